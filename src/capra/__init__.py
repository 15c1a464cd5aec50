"""Capra: speculative decoding, from Python down to silicon, exact to the bit, counted to the cycle.

The names below are the public API. They are imported when first used, so that `import capra` and
the command line start quickly.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "CapraError": "capra.errors",
    "Chip": "capra.isa.chip",
    "ChipTarget": "capra.lm.target",
    "FloatTarget": "capra.lm.target",
    "Graph": "capra.ir.graph",
    "Machine": "capra.sim.machine",
    "Program": "capra.isa.program",
    "Proposal": "capra.spec_decode.proposers",
    "Ranges": "capra.ir.ranges",
    "SimulatedDevice": "capra.sim.device",
    "assemble": "capra.isa.assembler",
    "compile_graph": "capra.compiler.pipeline",
    "decode": "capra.spec_decode.decode",
    "disassemble": "capra.isa.assembler",
    "evaluate_float": "capra.ir.reference",
    "evaluate_int": "capra.ir.interpreter",
    "load_model": "capra.lm.models",
    "load_program": "capra.isa.program",
    "parse_graph": "capra.ir.text",
    "print_graph": "capra.ir.text",
    "record_ranges": "capra.ir.ranges",
    "save_program": "capra.isa.program",
}

__all__ = sorted(["__version__", *_HOME])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'capra' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
