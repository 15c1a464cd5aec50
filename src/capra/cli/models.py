"""Models: capra eval and capra train."""

from pathlib import Path
from typing import Annotated

import typer

from capra.cli.app import app
from capra.cli.options import JsonOption, ModelOption, count, positive
from capra.cli.output import print_json, print_table, progress_bar, say
from capra.cli.runs import checkpoint_digests, chosen_model, record_head


@app.command("eval", epilog="Example: capra eval --windows 32")
def evaluate(
    model: ModelOption = "pydoc",
    windows: Annotated[
        int | None,
        typer.Option(parser=positive, help="Held-out windows to evaluate. [default: all]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What int8 costs a text model on held-out Python documentation: the chip against float."""
    from capra.lm.evaluate import evaluate as run_evaluate
    from capra.report.tables import evaluation_table, tensor_error_table

    language_model = chosen_model(model, seed=0)
    with progress_bar("windows", None) as advance:
        result = run_evaluate(language_model, windows, lambda _done, total: advance(total))
    record = {
        **record_head("eval", checkpoint_digests(model)),
        "model": language_model.config.name,
        "windows": result.windows,
        "characters": result.characters,
        "skipped_characters": result.skipped,
        "chip_bits_per_character": result.chip_bits,
        "float_bits_per_character": result.float_bits,
        "chip_over_float": result.ratio,
        "greedy_agreement": result.agreement,
        "greedy_texts": {
            "characters": result.text_characters,
            "common_prefixes": list(result.common_prefixes),
        },
        "tensor_errors": {
            "windows": result.error_windows,
            "tensors": {
                tag: {"relative_l2": error.relative, "largest_steps": error.steps}
                for tag, error in result.tensor_errors.items()
            },
        },
    }
    if as_json:
        print_json(record)
    else:
        print_table(evaluation_table(record))
        print()
        print_table(tensor_error_table(record["tensor_errors"]))


@app.command(epilog="Example: capra train --output my.safetensors (needs pip install '.[train]')")
def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="Checkpoint file to write.")],
    seed: Annotated[int, typer.Option(parser=count, help="Seed of weights and batches.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(parser=positive, help="Optimizer steps. [default: the recipe's]"),
    ] = None,
) -> None:
    """Train the pydoc model anew on this Python's documentation: minutes on two cores."""
    from capra.files import check_writable
    from capra.lm.checkpoint import model_from, save_checkpoint
    from capra.lm.train import STEPS
    from capra.lm.train import train as run_train

    check_writable(output)
    with progress_bar("steps", None) as advance:
        trained = run_train(
            seed=seed, steps=STEPS if steps is None else steps,
            progress=lambda _step, total, _loss: advance(total),
        )  # fmt: skip
    header = {**trained.config, "ranges": trained.ranges}
    save_checkpoint(model_from(header, trained.tensors), output, trained.config)
    say(f"wrote {output}")
