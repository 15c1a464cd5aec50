"""The command line: one function a command.

Results go to stdout, talk and progress to stderr. What Capra refuses is one sentence and exit code
2. Heavy imports happen inside the commands, so that --help is quick.
"""

# Importing a module registers its commands, in the order in which --help lists them.
from capra.cli import (  # noqa: I001
    decode, bench, experiments, lab, plan, sweep, report, programs, certify, models,
)  # fmt: skip
from capra.cli.app import main

__all__ = [
    "bench", "certify", "decode", "experiments", "lab", "main", "models", "plan", "programs",
    "report", "sweep",
]  # fmt: skip
