"""Yosys for tests, and runs of the scripts of rtl/ that need it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def require_yosys() -> None:
    """A missing Yosys skips the test at home and fails it in CI."""
    if shutil.which("yosys") is None:
        assert not os.environ.get("CI"), "yosys is not installed"
        pytest.skip("yosys is not installed")


def run_script(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of a script that needs Yosys."""
    require_yosys()
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
