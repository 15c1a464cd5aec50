"""capra bench."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from capra.cli.app import app
from capra.cli.options import (
    DraftNoiseOption,
    DraftOption,
    DraftSeedOption,
    ExternalOption,
    JsonOption,
    ModelOption,
    ModelSeedOption,
    OptimizeOption,
    ScratchpadOption,
    listed,
    positive,
)
from capra.cli.output import exit_unless_equal, print_json, print_table, progress_bar, show
from capra.cli.runs import checkpoint_digests, chosen_model, file_digests, record_head

DEFAULT_KS: Final = "1,2,3,4,7"


@app.command(epilog="Example: capra bench --new-tokens 32 -k 1,3")
def bench(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    draft: DraftOption = "bigram",
    draft_noise: DraftNoiseOption = 0.0,
    draft_seed: DraftSeedOption = 1,
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            help="File of prompts, one per line, or a JSON list of texts. [default: 28 built-in "
            "texts, 16 of them from held-out text; every token of a model without text]",
        ),
    ] = None,
    new_tokens: Annotated[
        str | None,
        typer.Option(
            "--new-tokens",
            "-n",
            help="Lengths, with commas. [default: a quarter, half and three quarters of the "
            "context]",
        ),
    ] = None,
    ks: Annotated[
        str,
        typer.Option("--num-speculative-tokens", "-k", help="Draft tokens per block, with commas."),
    ] = DEFAULT_KS,
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
    optimize: OptimizeOption = "1",
    as_json: JsonOption = False,
) -> None:
    """Measure what speculation gains over many prompts: mean, range, and how often it loses."""
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lab.bench import bench as run_bench
    from capra.lab.bench import built_in_prompts, default_lengths, prompts_from
    from capra.lm.target import ChipTarget
    from capra.report.spread import bench_lines, bench_table
    from capra.spec_decode.drafts import draft_maker

    passes = parse_optimization(optimize)
    counts = listed("--num-speculative-tokens", ks, positive)
    language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
    files = checkpoint_digests(model, draft) | file_digests(filter(None, [prompts]))
    chosen = (
        built_in_prompts(language_model)
        if prompts is None
        else prompts_from(prompts, language_model)
    )
    lengths = (
        default_lengths(language_model.config.context, chosen)
        if new_tokens is None
        else listed("--new-tokens", new_tokens, positive)
    )
    make_proposer = draft_maker(draft, language_model, draft_noise, draft_seed, optimize=passes)
    target = ChipTarget(language_model, optimize=passes)
    with progress_bar("runs", len(chosen) * (1 + len(lengths) * len(counts))) as advance:
        found = run_bench(target, make_proposer, chosen, lengths, counts, advance)
    chip = asdict(language_model.config.chip)
    record = {
        **record_head("bench", files, chip=chip), "optimize": names_of(passes), **found
    }  # fmt: skip
    if as_json:
        print_json(record)
    else:
        for line in bench_lines(record):
            show(line)
        print()
        print_table(bench_table(record))
    exit_unless_equal([record])
