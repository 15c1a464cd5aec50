"""capra certify."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from capra.cli.app import app
from capra.cli.options import (
    ExternalOption,
    JsonOption,
    ModelOption,
    ModelSeedOption,
    OptimizeOption,
    ScratchpadOption,
    count,
    positive,
)
from capra.cli.output import print_json, progress_bar, say, show
from capra.cli.runs import checkpoint_digests, chosen_model, record_head
from capra.errors import InputError

if TYPE_CHECKING:
    from capra.lm.model import ModelConfig

SMALL_WEIGHTS: Final = 4096
SMALL_CONTEXT: Final = 64


@app.command(epilog="Example: capra certify --model random --max-context 16 --max-rows 4")
def certify(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    max_context: Annotated[
        int | None,
        typer.Option(
            "--max-context", parser=count, help="Largest cache. [default: the model's context]"
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", parser=positive, help="Largest block.")
    ] = 8,
    instructions: Annotated[
        bool | None,
        typer.Option(
            "--instructions/--graphs-only",
            help="Certify the emitted programs too, or the graphs that they are compiled from "
            "alone. [default: the programs of a tiny model, in seconds; the graphs of another, "
            "whose programs take minutes]",
        ),
    ] = None,
    caches: Annotated[
        int | None,
        typer.Option(
            "--caches",
            parser=positive,
            help="Caches at which the programs of a block are certified, spread evenly, with "
            "one of each remainder modulo the array's size. [default: all of a tiny model's, 8 of "
            "another's]",
        ),
    ] = None,
    optimize: OptimizeOption = "1",
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that blocks compute the rows of plain steps, whatever the weights and the text.

    All of pydoc, the default, takes minutes; a smaller --max-context or --max-rows less. The first
    line says what the certificate does not cover.
    """
    from capra.certify.certificate import Subject
    from capra.certify.certificate import certify as run_certify
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lm.target import ChipTarget
    from capra.report.tables import certificate_lines

    language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
    last = language_model.config.context if max_context is None else max_context
    is_small = _takes_seconds(language_model.config)
    if instructions is None:
        instructions = is_small
    if caches is None:
        caches = last + 1 if is_small else 8
    elif not instructions:
        raise InputError(f"--caches is {caches} without programs, expected --instructions")
    passes = parse_optimization(optimize)
    target = ChipTarget(language_model, optimize=passes)
    with progress_bar("shapes", None) as advance:
        certificate = run_certify(
            Subject.of(target), last, max_rows,
            instruction_caches=caches if instructions else 0, on_shape=advance,
        )  # fmt: skip
    record = {
        **record_head("certify", checkpoint_digests(model)),
        "model": language_model.config.name,
        "max_context": last,
        "max_rows": max_rows,
        "optimize": names_of(passes),
        "chip": asdict(language_model.config.chip),
        **certificate.record(),
    }
    if as_json:
        print_json(record)
    else:
        for line in certificate_lines(record):
            show(line)
    if certificate.failure is not None:
        say(f"error: not certified: {certificate.failure}")
        raise typer.Exit(1)


def _takes_seconds(config: "ModelConfig") -> bool:
    """Whether all programs of a model are certified in seconds: a few thousand weights do."""
    weights = sum(rows * cols for rows, cols in config.weight_shapes().values())
    return weights <= SMALL_WEIGHTS and config.context <= SMALL_CONTEXT
