"""Runs pytest again and again in forks of one process, which has imported what takes long to.

A script: it reads requests from its input, one JSON object a line, and answers each with one. The
working directory and the environment are those that it was started with. Nothing of the project is
imported before a fork, so that every run sees the sources as they are then.

    request   arguments of pytest, whether to write bytecode, seconds (wall), seconds (processor)
    answer    the return code (negative: the signal that ended it; null: no end), stdout
"""

import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import threading
from typing import Any, Final

_SLOW_TO_IMPORT: Final = (
    "pytest", "_pytest.assertion.rewrite", "_pytest.capture", "_pytest.fixtures",
    "_pytest.python", "_pytest.runner", "_pytest.terminal", "hypothesis.strategies", "numpy",
    "numpy.testing", "rich.console", "rich.table", "safetensors.numpy", "typer.testing",
)  # fmt: skip


def _run(request: dict[str, Any], output: int) -> int:
    """Pytest in the forked process, with its output in a file."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if request["processor_seconds"] is not None:
        limit = int(request["processor_seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    sys.dont_write_bytecode = not request["bytecode"]
    if not request["bytecode"]:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    import pytest

    return int(pytest.main(request["arguments"]))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            code = 3  # pytest's own code of an internal error
            try:
                code = _run(request, output.fileno())
                sys.stdout.flush()
            finally:
                os._exit(code)
        late = threading.Event()

        def end() -> None:
            late.set()
            os.killpg(child, signal.SIGKILL)

        timer = threading.Timer(request["seconds"], end)
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        timer.join()
        output.seek(0)
        return {
            "code": None if late.is_set() else os.waitstatus_to_exitcode(status),
            "stdout": output.read().decode(errors="replace"),
        }


def _keep_failing_examples_as_they_are() -> None:
    """Leave out what makes them smaller, the slowest part of a failure: one is enough.

    The profile of the tests' own inherits what it does not set from the one that is loaded now.
    """
    from hypothesis import Phase, settings

    settings.register_profile("as they are", phases=(Phase.explicit, Phase.generate))
    settings.load_profile("as they are")


def main() -> None:
    """Answer requests until the input ends."""
    for name in _SLOW_TO_IMPORT:
        importlib.import_module(name)
    _keep_failing_examples_as_they_are()
    gc.freeze()  # collections in the forks need not look at it
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
