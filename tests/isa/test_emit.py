from pathlib import Path

import pytest

from capra.isa.emit import GENERATED, main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_file_is_not_stale(name: str) -> None:
    assert (ROOT / name).read_text() == GENERATED[name](), (
        f"{name} is stale: run `python -m capra.isa.emit`"
    )


def test_the_files_are_written_below_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main()
    for name in GENERATED:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()
