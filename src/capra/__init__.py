"""Capra: speculative decoding, from Python down to silicon, exact to the bit, counted to the cycle.

The names below are the public API. They are imported when first used, so that `import capra` and
the command line start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capra.compiler.pipeline import compile_graph as compile_graph
    from capra.errors import CapraError as CapraError
    from capra.ir.graph import Graph as Graph
    from capra.ir.interpreter import evaluate_int as evaluate_int
    from capra.ir.ranges import Ranges as Ranges
    from capra.ir.ranges import record_ranges as record_ranges
    from capra.ir.reference import evaluate_float as evaluate_float
    from capra.ir.text import parse_graph as parse_graph
    from capra.ir.text import print_graph as print_graph
    from capra.isa.assembler import assemble as assemble
    from capra.isa.assembler import disassemble as disassemble
    from capra.isa.chip import Chip as Chip
    from capra.isa.program import (
        Program as Program,
    )
    from capra.isa.program import (
        load_program as load_program,
    )
    from capra.isa.program import (
        save_program as save_program,
    )
    from capra.lm.models import load_model as load_model
    from capra.lm.target import ChipTarget as ChipTarget
    from capra.lm.target import FloatTarget as FloatTarget
    from capra.sim.device import SimulatedDevice as SimulatedDevice
    from capra.sim.machine import Machine as Machine
    from capra.spec_decode.decode import decode as decode
    from capra.spec_decode.proposers import Proposal as Proposal

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
