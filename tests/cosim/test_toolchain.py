"""The hardware simulators on the path, without any of them."""

import pytest

from capra.cosim.toolchain import Simulator, compiled, version
from capra.errors import CosimError


@pytest.mark.parametrize("simulator", Simulator)
def test_a_missing_simulator_is_named_with_its_package(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    for use in (lambda: version(simulator), lambda: compiled(simulator, "tb", ())):
        with pytest.raises(CosimError, match=r"is not on the path, expected it for .* install"):
            use()
