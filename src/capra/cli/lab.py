"""Experiments on runs and programs: capra trace, anatomy, causality and serving."""

from pathlib import Path
from typing import Annotated

import typer

from capra.cli.app import app
from capra.cli.options import (
    DraftNoiseOption,
    DraftOption,
    DraftSeedOption,
    GuessesOption,
    JsonOption,
    ModelOption,
    ModelSeedOption,
    NewTokensOption,
    OptimizeOption,
    PromptOption,
    StartTokenOption,
    count,
    positive,
    run_count,
)
from capra.cli.output import exit_unless_equal, print_json, print_table, progress_bar, say, show
from capra.cli.runs import (
    checkpoint_digests,
    chosen_model,
    file_digests,
    record_head,
    run_settings,
    text_steps,
)


@app.command(epilog="Example: capra trace --model pydoc --prompt 'The for loop' -k 2 -n 12")
def trace(
    model: ModelOption = "random",
    model_seed: ModelSeedOption = 1,
    draft: DraftOption = "bigram",
    draft_noise: DraftNoiseOption = 0.0,
    draft_seed: DraftSeedOption = 1,
    num_speculative_tokens: GuessesOption = 3,
    max_new_tokens: NewTokensOption = 9,
    prompt: PromptOption = None,
    start_token: StartTokenOption = None,
    optimize: OptimizeOption = "0",
    as_json: JsonOption = False,
) -> None:
    """Show a speculative run block by block: guesses, choices, what was accepted, cycles."""
    from capra.compiler.optimization import parse_optimization
    from capra.lm.prompts import prompt_tokens
    from capra.lm.target import ChipTarget
    from capra.report.experiments import trace_table
    from capra.report.tables import verdict
    from capra.spec_decode.comparison import Comparison
    from capra.spec_decode.drafts import draft_maker

    passes = parse_optimization(optimize)
    language_model = chosen_model(model, model_seed)
    tokens = prompt_tokens(language_model, prompt, start_token)
    make_proposer = draft_maker(draft, language_model, draft_noise, draft_seed, optimize=passes)
    target = ChipTarget(language_model, optimize=passes)
    runs = Comparison(target, tokens, max_new_tokens, num_speculative_tokens, make_proposer)
    steps = 2 * text_steps(language_model, tokens, max_new_tokens)
    with progress_bar("tokens", steps) as advance:
        plain = runs.plain(lambda fresh: advance(count=len(fresh)))
        speculative = runs.speculative(plain, lambda fresh: advance(count=len(fresh)))
    record = {
        **record_head(
            "decode", checkpoint_digests(model, draft), **run_settings(language_model, tokens)
        ),
        **runs.record(plain, speculative),
    }
    if as_json:
        print_json(record)
    else:
        print_table(trace_table(record))
        print()
        show(verdict(record))
    exit_unless_equal([record])


@app.command(epilog="Example: capra anatomy --model pydoc --rows 5 --cache 12")
def anatomy(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Program files to put side by side, instead of a model's programs."),
    ] = None,
    model: ModelOption = "random",
    model_seed: ModelSeedOption = 1,
    rows: Annotated[
        int, typer.Option("--rows", "-m", parser=positive, help="Rows of the verifier.")
    ] = 4,
    cache: Annotated[
        int, typer.Option("--cache", "-c", parser=count, help="Tokens in the cache before it.")
    ] = 4,
    optimize: OptimizeOption = "0",
    as_json: JsonOption = False,
) -> None:
    """Take programs apart, side by side: instructions, words, cycles by unit, ratio.

    Without files: a verifier, the plain steps that write the same rows, and the bigram draft.
    """
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.isa.program import load_program
    from capra.lab.anatomy import compare_programs, verifier_anatomy
    from capra.lm.bigram import compile_bigram
    from capra.lm.models import load_bigram
    from capra.lm.target import ChipTarget
    from capra.report.experiments import anatomy_table, programs_table

    passes = parse_optimization(optimize)
    if files:
        digests, record = file_digests(files), compare_programs([*map(load_program, files)])
    else:
        language_model = chosen_model(model, model_seed)
        draft = compile_bigram(load_bigram(language_model), language_model.config.chip, passes)
        target = ChipTarget(language_model, optimize=passes)
        digests = checkpoint_digests(model)
        record = {
            "model": language_model.config.name,
            **verifier_anatomy(target, rows, cache, draft),
        }
    head = record_head("anatomy", digests)
    record = {**head, "optimize": names_of(passes), **record}
    if as_json:
        print_json(record)
    else:
        print_table(programs_table(record) if files else anatomy_table(record))


@app.command(epilog="Example: capra causality")
def causality(as_json: JsonOption = False) -> None:
    """Change a token of a block: rows before it keep every integer, rows from it on do not."""
    from capra.lab.causality import causality as run_causality
    from capra.report.experiments import causality_table

    record = {**record_head("causality"), **run_causality()}
    if as_json:
        print_json(record)
    else:
        print_table(causality_table(record))
    if not record["holds"]:
        say("error: a row depends on a token behind it, or not on one before it")
        raise typer.Exit(1)


@app.command(epilog="Example: capra serving --model structured")
def serving(
    model: ModelOption = "structured",
    model_seed: ModelSeedOption = 1,
    draft: DraftOption = "bigram",
    seed: Annotated[
        int, typer.Option(parser=count, help="Seed of the synthetic drafts of the runs.")
    ] = 1,
    runs: Annotated[
        int, typer.Option(parser=run_count, help="Runs of each cell, with seeds of their own.")
    ] = 8,
    max_new_tokens: NewTokensOption = 32,
    prompt: PromptOption = None,
    start_token: StartTokenOption = None,
    optimize: OptimizeOption = "0",
    as_json: JsonOption = False,
) -> None:
    """The serving formula E / (1 + k c), beside runs on the chip at the same acceptance."""
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lab.planner import Workload
    from capra.lab.predict import guess_cycles
    from capra.lab.serving import serving as run_serving
    from capra.lm.prompts import prompt_tokens
    from capra.lm.target import ChipTarget
    from capra.report.plan import serving_chip_table, serving_formula_table, serving_lines
    from capra.spec_decode.drafts import draft_maker
    from capra.spec_decode.recorded import SERVING_ACCEPTANCES, SERVING_GUESSES

    passes = parse_optimization(optimize)
    language_model = chosen_model(model, model_seed)
    tokens = prompt_tokens(language_model, prompt, start_token)
    make_proposer = draft_maker(draft, language_model, 0.0, 1, optimize=passes)
    draft_cycles = guess_cycles(make_proposer(()), tokens)
    with progress_bar("serving", None) as advance:
        work = Workload(
            ChipTarget(language_model, optimize=passes),
            tuple(tokens),
            max_new_tokens,
            max(SERVING_GUESSES),
            advance,
        )
        texts = work.all_tokens
        advance(texts + len(SERVING_ACCEPTANCES) * len(SERVING_GUESSES), 0)
        head = record_head(
            "serving", checkpoint_digests(model, draft), **run_settings(language_model, tokens)
        )
        record = {
            **head,
            "model": language_model.config.name,
            "optimize": names_of(passes),
            **run_serving(work, draft_cycles, seed, runs),
        }
    if as_json:
        print_json(record)
    else:
        print_table(serving_formula_table(record))
        print()
        for line in serving_lines(record):
            show(line)
        print_table(serving_chip_table(record))
    exit_unless_equal(record["rows"])
