"""capra plan."""

from collections.abc import Sequence
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
    NewTokensOption,
    OptimizeOption,
    PromptOption,
    ScratchpadOption,
    StartTokenOption,
    listed,
    positive,
    real,
    run_count,
)
from capra.cli.output import exit_unless_equal, print_json, print_table, progress_bar, show
from capra.cli.runs import (
    checkpoint_digests,
    chosen_model,
    record_head,
    run_settings,
)
from capra.errors import InputError

TINY_GUESSES: Final = 15
GUESSES: Final = 7
MAX_DRAFT_CYCLES: Final = 1e9


@app.command(epilog="Example: capra plan --model structured --draft-noise 4")
def plan(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    draft: DraftOption = "bigram",
    draft_noise: DraftNoiseOption = 0.0,
    draft_seed: DraftSeedOption = 1,
    max_guesses: Annotated[
        int | None,
        typer.Option(
            "--max-k",
            parser=positive,
            help=f"Most guesses a block to look at. [default: {TINY_GUESSES} for a tiny model, "
            f"{GUESSES} for another]",
        ),
    ] = None,
    max_new_tokens: NewTokensOption = 32,
    prompt: PromptOption = None,
    start_token: StartTokenOption = None,
    acceptance: Annotated[
        str | None,
        typer.Option(
            help="Chance that a guess is right if those before it are, by its position in the "
            "block, such as 0.8,0.6; the last one goes on. Nothing is run."
        ),
    ] = None,
    synthetic_acceptance: Annotated[
        str | None,
        typer.Option(
            "--synthetic-acceptance",
            help="The same, run with a draft that is right at these rates, instead of --draft.",
        ),
    ] = None,
    draft_cycles: Annotated[
        float | None,
        typer.Option(
            parser=real, help="Assumed cycles of a guess with one of these two. [default: the "
            "draft's own with --acceptance, 0 with --synthetic-acceptance]",
        ),
    ] = None,
    synthetic_runs: Annotated[
        int,
        typer.Option(
            parser=run_count, help="Runs of each K with a synthetic draft, with seeds of their own."
        ),
    ] = 8,
    measure: Annotated[
        str | None,
        typer.Option(
            help="Ks to run: best, all, none or numbers such as 1,3,7. [default: all of a tiny "
            "model, the best of another]"
        ),
    ] = None,
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
    optimize: OptimizeOption = "1",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Say whether speculation pays for a model and a draft, and with how many guesses a block."""
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lab import planner
    from capra.lab.predict import Rates, guess_cycles
    from capra.lm.models import TINY_MODELS
    from capra.lm.prompts import prompt_tokens
    from capra.lm.target import ChipTarget
    from capra.report.plan import cost_curve_table, guesses_table, plan_lines
    from capra.spec_decode.drafts import draft_maker

    if acceptance is not None and synthetic_acceptance is not None:
        raise InputError("--acceptance and --synthetic-acceptance are given, expected one of them")
    passes = parse_optimization(optimize)
    given = synthetic_acceptance if acceptance is None else acceptance
    if given is None and draft_cycles is not None:
        raise InputError(
            f"--draft-cycles is {draft_cycles} with a draft that is run, expected it with "
            "--acceptance or --synthetic-acceptance"
        )
    if draft_cycles is not None and not 0 <= draft_cycles <= MAX_DRAFT_CYCLES:
        raise InputError(
            f"--draft-cycles is {draft_cycles}, expected a number of 0 .. {MAX_DRAFT_CYCLES:g}"
        )
    given_by = "--synthetic-acceptance" if acceptance is None else "--acceptance"
    given_rates = None if given is None else Rates(listed(given_by, given, real))
    is_tiny = model in TINY_MODELS
    language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
    tokens = prompt_tokens(language_model, prompt, start_token)
    if max_guesses is None:
        room = language_model.config.context - len(tokens)
        max_guesses = max(1, min(TINY_GUESSES if is_tiny else GUESSES, room))
    if measure is None:
        measure = "none" if acceptance is not None else "all" if is_tiny else "best"
    measured = _measured(measure, max_guesses)
    with progress_bar("planning", None) as advance:
        work = planner.Workload(
            ChipTarget(language_model, optimize=passes),
            tuple(tokens),
            max_new_tokens,
            max_guesses,
            advance,
        )
        runs = 1 if measured is None else len(measured)
        writes_text = acceptance is None and (synthetic_acceptance is None or runs > 0)
        texts = work.all_tokens
        advance(max_guesses + runs + writes_text * texts, 0)
        if given_rates is not None and synthetic_acceptance is not None:
            source = planner.synthetic_source(
                work, given_rates, draft_cycles or 0.0, draft_seed, synthetic_runs
            )
        else:
            make = draft_maker(draft, language_model, draft_noise, draft_seed, optimize=passes)
            if given_rates is None:
                source = planner.measured_source(work, make)
            else:
                own = guess_cycles(make(work.prompt), work.prompt)
                source = planner.given_source(
                    given_rates, own if draft_cycles is None else draft_cycles,
                    is_assumed=draft_cycles is not None,
                )  # fmt: skip
        found = planner.plan(work, source, measured)
    drawn = source.kind == "synthetic"
    record = {
        **record_head(
            "plan", checkpoint_digests(model, None if drawn else draft),
            **run_settings(language_model, tokens),
            draft="synthetic" if drawn else draft, max_k=max_guesses, measure=measure,
        ),
        "optimize": names_of(passes),
        **found,
    }  # fmt: skip
    if as_json:
        print_json(record)
    else:
        for line in plan_lines(record):
            show(line)
        print()
        print_table(guesses_table(record))
        print()
        print_table(cost_curve_table(record["cost_curve"]))
    exit_unless_equal([entry["measured"] for entry in record["ks"] if entry["measured"]])


def _measured(text: str, max_guesses: int) -> Sequence[int] | None:
    """The Ks to run; None for the best one."""
    if text == "best":
        return None
    if text == "none":
        return []
    if text == "all":
        return range(1, max_guesses + 1)
    ks = listed("--measure", text, positive, " (several with commas), best, all or none")
    if max(ks) > max_guesses:
        raise InputError(f"--measure has {max(ks)}, expected at most {max_guesses}, the largest K")
    return ks
