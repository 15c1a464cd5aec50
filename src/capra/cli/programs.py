"""Program files: capra compile, capra dis, capra profile and capra replay."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
    is_given,
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
    show,
)
from capra.cli.runs import chosen_model, file_digests, read_text, record_head
from capra.errors import GraphError, InputError, RangeError
from capra.text import printable_lines

if TYPE_CHECKING:
    from capra.compiler.optimization import Optimization
    from capra.ir.graph import Graph
    from capra.ir.ranges import Ranges
    from capra.isa.chip import Chip
    from capra.lm.model import LanguageModel

OF_A_MODEL = {"model": "--model", "model_seed": "--model-seed", "rows": "--rows",
              "cache": "--cache"}  # fmt: skip
"""Options of compile that say which graph of a model."""


@app.command(
    "compile", epilog="Example: capra compile --model random --rows 4 --cache 4 --emit buffers"
)
def compile_program(
    context: typer.Context,
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
    graph: Annotated[
        Path | None,
        typer.Option("--graph", help="A graph of your own, as text, instead of a model's.")
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(
            "--ranges", help="With --graph: a JSON file of each tag's largest magnitude."
        ),
    ] = None,
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
    """Compile a step or a verifier of a model, or a graph of your own, to a program file."""
    from capra.compiler.bounds import lower_bound
    from capra.compiler.optimization import parse_optimization
    from capra.compiler.passes.scales import assign_scales
    from capra.compiler.pipeline import PASSES, compile_graph
    from capra.compiler.printer import print_bound
    from capra.files import check_distinct
    from capra.isa.program import save_program
    from capra.lm.models import is_file

    if emit is not None and emit not in (*PASSES, "bound"):
        raise InputError(f"--emit is {emit!r}, expected one of {', '.join(PASSES)}, bound")
    passes = parse_optimization(optimize)
    if graph is not None:
        given = [flag for name, flag in OF_A_MODEL.items() if is_given(context, name)]
        if given:
            raise InputError(f"{given[0]} is given with --graph, expected a model or a graph")
        sizes = {"external_words": external_words, "scratchpad_words": scratchpad_words}
        source = _graph_source(graph, ranges, sizes, passes)
    elif ranges is not None:
        raise InputError(f"--ranges is {ranges}, expected it with --graph only")
    else:
        language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
        source = _model_source(language_model, rows, cache, passes)

    def observe(name: str, text: Callable[[], str]) -> None:
        if name == emit:
            print(printable_lines(text()), end="")

    if output is not None:
        inputs = (graph, ranges, Path(model) if is_file(model) else None)
        check_distinct([output], filter(None, inputs))
    program = compile_graph(*source, optimize=passes, observer=observe)
    if emit == "bound":
        bound = lower_bound(source.graph, assign_scales(source.graph, source.ranges), source.chip)
        print(print_bound(program.counters, bound), end="")
    if emit is None or output is not None:
        path = output or Path(f"{program.name}.ga2")
        save_program(program, path)
        say(f"{path}: {describe(program)}")


class _Source(NamedTuple):
    """What is compiled, and for which chip."""

    graph: "Graph"
    ranges: "Ranges"
    chip: "Chip"


def _model_source(model: "LanguageModel", rows: int, cache: int, passes: "Optimization") -> _Source:
    """The graph of so many rows after so many in the cache."""
    from capra.lm.target import model_graph

    config = model.config
    if rows > config.context:
        raise InputError(f"--rows is {rows}, expected at most {config.context}, the context")
    if rows + cache > config.context:
        raise InputError(
            f"--rows {rows} after --cache {cache} is {rows + cache} tokens, expected at most "
            f"{config.context}, the context"
        )
    graph = model_graph(config, "step" if rows == 1 else "verify", rows, cache, passes)
    return _Source(graph, model.ranges, config.chip)


def _graph_source(
    path: Path, ranges_path: Path | None, sizes: Mapping[str, int | None], passes: "Optimization"
) -> _Source:
    """A graph of the user's, its ranges, and a chip that is large enough unless sizes are given."""
    from capra.compiler.fit import fitting_chip
    from capra.compiler.passes.scales import missing_ranges
    from capra.ir.ranges import Ranges, parse_ranges
    from capra.ir.text import parse_graph

    text = read_text(path, "graph")
    try:
        graph = parse_graph(text)
        graph.check_complete()
    except GraphError as error:
        raise InputError(f"graph {path}: {error}") from None
    ranges = Ranges()
    if ranges_path is not None:
        try:
            ranges = parse_ranges(read_text(ranges_path, "ranges"))
        except RangeError as error:
            raise InputError(f"ranges {ranges_path}: {error}") from None
    missing = missing_ranges(graph, ranges)
    if missing:
        source = "--ranges FILE.json" if ranges_path is None else str(ranges_path)
        raise InputError(
            f"graph {path} needs the largest magnitudes of {', '.join(missing)}, expected them in "
            f'{source}, a JSON object such as {{"{missing[0]}": 1.5}}'
        )
    given = {name: size for name, size in sizes.items() if size is not None}
    return _Source(graph, ranges, replace(fitting_chip(graph, ranges, passes), **given))


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

    head = record_head("profile", file_digests([file]))
    record = {**head, **profile_record(load_program(file))}
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
        **record_head("replay", file_digests([file])),
        "program": program.name,
        "seed": seed,
        "cycles": program.cycles,
        "cycles_by_unit": program.counters.by_unit(),
        "cycles_by_phase": dict(program.phases),
    }
    mismatch = finish_replays(verifier, record)
    if as_json:
        print_json(record)
    else:
        show(f"{program.name}: {describe(program)}")
        print_rtl(record)
    if mismatch:
        raise typer.Exit(1)
