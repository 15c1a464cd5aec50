"""Every exception that Capra raises on purpose.

    CapraError
    ├── GraphError       a graph that cannot be built, printed or parsed
    ├── RangeError       a tensor without a usable range, or a scale that no multiplier can express
    ├── ProgramError     an instruction, a program or a program file that breaks a rule of the ISA
    ├── CapacityError    a program that does not fit the chip
    ├── PoisonError      a program that read a word which nobody wrote
    ├── CosimError       a hardware simulator that is missing, does not build or does not run
    ├── SweepError       a sweep that cannot go on, as a worker died or a file changed
    ├── CheckpointError  a checkpoint that is missing, damaged or not a model of ours
    └── InputError       anything else a user typed: prompt, token, count, path, model name

A user's mistake raises one of these with a sentence that names the thing, the value found and the
value expected; the command line prints it and exits with 2. A broken invariant of Capra's own is an
assertion, never one of these.
"""


class CapraError(Exception):
    """The root: catch it to catch everything that Capra refuses."""


class GraphError(CapraError):
    """A graph that cannot be built, printed or parsed."""


class RangeError(CapraError):
    """A tensor without a usable range, or a scale that no multiplier can express."""


class ProgramError(CapraError):
    """An instruction, a program or a program file that breaks a rule of the ISA."""


class CapacityError(CapraError):
    """A program that does not fit the chip's memories."""


class PoisonError(CapraError):
    """A program that read a word which nobody wrote."""


class CosimError(CapraError):
    """A hardware simulator that is missing, does not build the chip or does not run it."""


class SweepError(CapraError):
    """A sweep that cannot go on, as a worker died or a file changed."""


class CheckpointError(CapraError):
    """A checkpoint that is missing, damaged or not a model of ours."""


class InputError(CapraError):
    """A prompt, token, count, path or name that cannot be used."""
