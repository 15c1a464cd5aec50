"""Capra: speculative decoding, from Python down to silicon, exact to the bit, counted to the cycle.

The names below are the public API. They are imported when first used, so that `import capra` and
the command line start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capra.compiler.passes.scales import assign_scales as assign_scales
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
    from capra.isa.program import Program as Program
    from capra.isa.program import load_program as load_program
    from capra.isa.program import save_program as save_program
    from capra.isa.timing import Counters as Counters
    from capra.lm.bigram import ChipBigram as ChipBigram
    from capra.lm.corpus import load_corpus as load_corpus
    from capra.lm.model import LanguageModel as LanguageModel
    from capra.lm.models import load_bigram as load_bigram
    from capra.lm.models import load_model as load_model
    from capra.lm.target import ChipTarget as ChipTarget
    from capra.lm.target import FloatTarget as FloatTarget
    from capra.lm.target import Forward as Forward
    from capra.lm.target import InterpretedTarget as InterpretedTarget
    from capra.lm.target import ProgramRun as ProgramRun
    from capra.lm.tokenizer import CharTokenizer as CharTokenizer
    from capra.numerics import quantize as quantize
    from capra.sim.device import SimulatedDevice as SimulatedDevice
    from capra.sim.machine import Machine as Machine
    from capra.spec_decode.decode import Decoded as Decoded
    from capra.spec_decode.decode import Session as Session
    from capra.spec_decode.decode import Target as Target
    from capra.spec_decode.decode import decode as decode
    from capra.spec_decode.proposers import ChainProposer as ChainProposer
    from capra.spec_decode.proposers import Proposal as Proposal
    from capra.spec_decode.proposers import Proposer as Proposer

__version__ = "0.1.0"

_HOME = {
    "CapraError": "capra.errors",
    "ChainProposer": "capra.spec_decode.proposers",
    "CharTokenizer": "capra.lm.tokenizer",
    "Chip": "capra.isa.chip",
    "ChipBigram": "capra.lm.bigram",
    "ChipTarget": "capra.lm.target",
    "Counters": "capra.isa.timing",
    "Decoded": "capra.spec_decode.decode",
    "FloatTarget": "capra.lm.target",
    "Forward": "capra.lm.target",
    "Graph": "capra.ir.graph",
    "InterpretedTarget": "capra.lm.target",
    "LanguageModel": "capra.lm.model",
    "Machine": "capra.sim.machine",
    "Program": "capra.isa.program",
    "ProgramRun": "capra.lm.target",
    "Proposal": "capra.spec_decode.proposers",
    "Proposer": "capra.spec_decode.proposers",
    "Ranges": "capra.ir.ranges",
    "Session": "capra.spec_decode.decode",
    "SimulatedDevice": "capra.sim.device",
    "Target": "capra.spec_decode.decode",
    "assemble": "capra.isa.assembler",
    "assign_scales": "capra.compiler.passes.scales",
    "compile_graph": "capra.compiler.pipeline",
    "decode": "capra.spec_decode.decode",
    "disassemble": "capra.isa.assembler",
    "evaluate_float": "capra.ir.reference",
    "evaluate_int": "capra.ir.interpreter",
    "load_bigram": "capra.lm.models",
    "load_corpus": "capra.lm.corpus",
    "load_model": "capra.lm.models",
    "load_program": "capra.isa.program",
    "parse_graph": "capra.ir.text",
    "print_graph": "capra.ir.text",
    "quantize": "capra.numerics",
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
