"""Options that several commands share, and how their values are read."""

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

import typer

from capra.lm.tokenizer import DEFAULT_PROMPT
from capra.numerals import parse_real, parse_whole

T = TypeVar("T", int, float)

MAX_RUNS: Final = 10_000
"""Repeated runs with other seeds; each is made before the first one starts."""


def _number(
    parse: Callable[[str], T], expected: str, least: T | None = None, most: T | None = None
) -> Callable[[str], T]:
    """A reader of numbers of a kind; anything else is refused with what was expected."""

    def read(text: str) -> T:
        try:
            value = parse(str(text))  # a default comes as the number that it is
        except ValueError:
            raise typer.BadParameter(f"found {text!r}, expected {expected}") from None
        if (least is not None and value < least) or (most is not None and value > most):
            raise typer.BadParameter(f"found {text}, expected {expected}")
        return value

    # what --help shows as the value's type
    read.__name__ = "float" if parse is parse_real else "int"
    return read


whole: Final = _number(parse_whole, "a whole number")
count: Final = _number(parse_whole, "a whole number of at least 0", 0)
positive: Final = _number(parse_whole, "a whole number of at least 1", 1)
run_count: Final = _number(parse_whole, f"a whole number of 1 .. {MAX_RUNS}", 1, MAX_RUNS)
real: Final = _number(parse_real, "a number")


def listed(option: str, text: str, read: Callable[[str], T], instead: str = "") -> tuple[T, ...]:
    """Numbers with commas between them; a refusal names the option, and what it takes instead."""
    try:
        return tuple(read(part) for part in text.split(","))
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}{instead}", param_hint=option) from None


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has a parameter, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


OptimizeOption = Annotated[
    str,
    typer.Option(
        "--optimize",
        "-O",
        help="How programs are made: 0, as the reference did; 1, with all passes that make them "
        "faster; or names of such passes with commas.",
    ),
]
ModelOption = Annotated[
    str, typer.Option("--model", help="structured, random, pydoc or a checkpoint file.")
]
ModelSeedOption = Annotated[
    int,
    typer.Option("--model-seed", parser=count, help="Seed of a structured or random model."),
]
DraftOption = Annotated[
    str,
    typer.Option(
        "--draft",
        help="bigram, constant, random, always-right, always-wrong, or a checkpoint file "
        "whose bigram to use.",
    ),
]
DraftNoiseOption = Annotated[
    float,
    typer.Option(
        "--draft-noise", parser=real, help="Deviation of the noise that makes a bigram worse."
    ),
]
DraftSeedOption = Annotated[
    int,
    typer.Option("--draft-seed", parser=count, help="Seed of that noise or of a random draft."),
]
GuessesOption = Annotated[
    int,
    typer.Option(
        "--num-speculative-tokens", "-k", parser=count, help="Guesses in a block; 0: none."
    ),
]
NewTokensOption = Annotated[
    int, typer.Option("--max-new-tokens", "-n", parser=count, help="Tokens to generate at most.")
]
PromptOption = Annotated[
    str | None,
    typer.Option("--prompt", help=f"Text to continue. [default: {DEFAULT_PROMPT!r}]"),
]
StartTokenOption = Annotated[
    int | None,
    typer.Option(
        "--start-token", parser=whole, help="Token to continue instead. [default without text: 0]"
    ),
]
ExternalOption = Annotated[
    int | None,
    typer.Option(
        "--external-words",
        parser=positive,
        help="Size of external memory. [default: the model's chip]",
    ),
]
ScratchpadOption = Annotated[
    int | None,
    typer.Option(
        "--scratchpad-words",
        parser=positive,
        help="Size of the scratchpad. [default: the model's chip]",
    ),
]
RtlOption = Annotated[
    str | None,
    typer.Option(
        "--rtl",
        help="Replay every executed program on the chip's RTL: icarus, verilator, or both with a "
        "comma.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
