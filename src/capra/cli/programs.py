"""Program files: capra compile, capra dis, capra profile and capra replay."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

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
from capra.cli.output import (
    describe,
    finish_replays,
    print_json,
    print_rtl,
    print_table,
    progress_bar,
    say,
)
from capra.cli.runs import chosen_model
from capra.errors import InputError


@app.command(
    "compile", epilog="Example: capra compile --model random --rows 4 --cache 4 --emit buffers"
)
def compile_program(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    rows: Annotated[
        int,
        typer.Option(
            "--rows", "-m", parser=positive, help="Tokens in the block; 1 makes a plain step."
        ),
    ] = 1,
    cache: Annotated[
        int, typer.Option("--cache", "-c", parser=count, help="Tokens in the cache.")
    ] = 0,
    emit: Annotated[
        str | None,
        typer.Option(help="Print the state after a pass instead: graph, scales, attention, "
                     "views, tiles, transfers, buffers or emission; bound: cycles and their lower "
                     "bound."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Program file. [default: NAME.ga2]")
    ] = None,
    optimize: OptimizeOption = "1",
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
) -> None:  # fmt: skip
    """Compile a step or a verifier of a model to a program file."""
    from capra.compiler.bounds import lower_bound
    from capra.compiler.optimization import parse_optimization
    from capra.compiler.passes.scales import assign_scales
    from capra.compiler.pipeline import PASSES, compile_graph
    from capra.compiler.printer import print_bound
    from capra.isa.program import save_program
    from capra.lm.target import model_graph

    language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
    config = language_model.config
    if emit is not None and emit not in (*PASSES, "bound"):
        raise InputError(f"--emit is {emit!r}, expected one of {', '.join(PASSES)}, bound")
    if rows > config.context:
        raise InputError(f"--rows is {rows}, expected at most {config.context}, the context")
    if config.has_positions and rows + cache > config.context:
        raise InputError(
            f"--rows {rows} after --cache {cache} is {rows + cache} tokens, expected at most "
            f"{config.context}, the context"
        )

    def observe(name: str, text: Callable[[], str]) -> None:
        if name == emit:
            print(text(), end="")

    passes = parse_optimization(optimize)
    graph = model_graph(config, "step" if rows == 1 else "verify", rows, cache, passes)
    program = compile_graph(
        graph, language_model.ranges, config.chip, optimize=passes, observer=observe
    )
    if emit == "bound":
        bound = lower_bound(graph, assign_scales(graph, language_model.ranges), config.chip)
        print(print_bound(program.counters, bound), end="")
    if emit is None or output is not None:
        path = output or Path(f"{program.name}.ga2")
        save_program(program, path)
        say(f"{path}: {describe(program)}")


@app.command(epilog="Example: capra dis step_c0.ga2")
def dis(
    file: Annotated[Path, typer.Argument(help="A program file that `capra compile` wrote.")],
) -> None:
    """Print a program file as text: external map, tensors, instructions."""
    from capra.compiler.printer import print_program
    from capra.isa.program import load_program

    print(print_program(load_program(file)), end="")


@app.command(epilog="Example: capra profile step_c0.ga2 --json")
def profile(
    file: Annotated[Path, typer.Argument(help="A program file that `capra compile` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """What the cycles of a program file are spent on, down to the instruction with --json."""
    from capra.isa.profile import profile_record
    from capra.isa.program import load_program
    from capra.report.attribution import attribution_table

    record = profile_record(load_program(file))
    if as_json:
        print_json(record)
    else:
        print_table(attribution_table(record))


@app.command(epilog="Example: capra replay step_c0.ga2 --rtl verilator")
def replay(
    file: Annotated[Path, typer.Argument(help="A program file that `capra compile` wrote.")],
    rtl: Annotated[
        str, typer.Option("--rtl", help="icarus, verilator, or both with a comma.")
    ] = "icarus,verilator",
    seed: Annotated[
        int, typer.Option(parser=count, help="Seed of the inputs, the weights and all memory.")
    ] = 1,
    wave: Annotated[
        Path | None,
        typer.Option(help="Waveform to write, FILE.vcd or FILE.fst; needs a single simulator."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program file on the simulator and on the chip's RTL, on random data, and compare."""
    from capra.cosim.toolchain import parse_simulators
    from capra.cosim.verify import replay_program
    from capra.isa.program import load_program

    simulators = parse_simulators(rtl)
    program = load_program(file)
    verifier = replay_program(program, simulators, seed, wave, progress_bar)
    record = {
        "program": program.name,
        "seed": seed,
        "cycles": program.cycles,
        "cycles_by_unit": program.counters.by_unit(),
    }
    mismatch = finish_replays(verifier, record)
    if as_json:
        print_json(record)
    else:
        print(f"{program.name}: {describe(program)}")
        print_rtl(record)
    if mismatch:
        raise typer.Exit(1)
