from pathlib import Path

import pytest

from capra.isa.emit import GENERATED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_file_is_not_stale(name: str) -> None:
    assert (ROOT / name).read_text() == GENERATED[name](), (
        f"{name} is stale: run `python -m capra.isa.emit`"
    )
