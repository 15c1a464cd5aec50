"""The command line: one function a command.

Results go to stdout, talk and progress to stderr. What Capra refuses is one sentence and exit code
2. Heavy imports happen inside the commands, so that --help is quick.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from capra import __version__
from capra.errors import CapraError, InputError

if TYPE_CHECKING:
    from capra.cosim.verify import Verifier
    from capra.isa.program import Program
    from capra.lm.model import LanguageModel
    from capra.sim.device import Device
    from capra.spec_decode.proposers import Proposer

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Speculative decoding on the GA2 chip, exact to the bit and counted to the cycle.",
)

DEFAULT_PROMPT = "A list of"


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"found {text!r}, expected a whole number") from None


def _count(text: str) -> int:
    value = _whole(text)
    if value < 0:
        raise typer.BadParameter(f"found {text}, expected a whole number of at least 0")
    return value


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"found {text!r}, expected a number") from None


def _positive(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise typer.BadParameter(f"found {text}, expected a whole number of at least 1")
    return value


ModelOption = Annotated[
    str, typer.Option("--model", help="structured, random, pydoc or a checkpoint file.")
]
ModelSeedOption = Annotated[
    int,
    typer.Option("--model-seed", parser=_whole, help="Seed of a structured or random model."),
]
ExternalOption = Annotated[
    int | None,
    typer.Option(
        "--external-words",
        parser=_positive,
        help="Size of external memory. [default: the model's chip]",
    ),
]
ScratchpadOption = Annotated[
    int | None,
    typer.Option(
        "--scratchpad-words",
        parser=_positive,
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


def main() -> None:
    """Run the command line; every refusal becomes one sentence on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (CapraError, TyperException) as error:
        from capra.isa.assembler import printable

        text = error.format_message() if isinstance(error, TyperException) else str(error)
        line = " ".join(text.splitlines())
        print("error:", printable(line), file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except (OSError, UnicodeEncodeError) as error:
        # stdout takes no more; point it elsewhere, so that closing it does not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(1)
        print(f"error: cannot write the output: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"capra {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example: capra decode --prompt 'The with statement' --max-new-tokens 64")
def decode(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    draft: Annotated[
        str,
        typer.Option(
            help="bigram, constant, random, always-right, always-wrong, or a checkpoint file "
            "whose bigram to use."
        ),
    ] = "bigram",
    draft_noise: Annotated[
        float, typer.Option(parser=_real, help="Deviation of the noise that makes a bigram worse.")
    ] = 0.0,
    draft_seed: Annotated[
        int, typer.Option(parser=_whole, help="Seed of that noise or of a random draft.")
    ] = 1,
    num_speculative_tokens: Annotated[
        int,
        typer.Option(
            "--num-speculative-tokens", "-k", parser=_count, help="Guesses in a block; 0: none."
        ),
    ] = 3,
    max_new_tokens: Annotated[
        int,
        typer.Option("--max-new-tokens", "-n", parser=_count, help="Tokens to generate at most."),
    ] = 64,
    prompt: Annotated[
        str | None, typer.Option(help=f"Text to continue. [default: {DEFAULT_PROMPT!r}]")
    ] = None,
    start_token: Annotated[
        int | None,
        typer.Option(parser=_whole, help="Token to continue instead. [default without text: 0]"),
    ] = None,
    stop_token: Annotated[
        int | None, typer.Option(parser=_whole, help="Token after which to stop.")
    ] = None,
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Compare every integer of the logits, keys and values of both runs, and digest "
            "them row by row.",
        ),
    ] = False,
    rtl: RtlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt plainly and speculatively on the simulated chip, and compare the two."""
    from capra.lm.target import ChipTarget
    from capra.spec_decode.certificate import CertifyingTarget, certificate_record
    from capra.spec_decode.decode import decode as run_decode
    from capra.spec_decode.metrics import comparison_record

    language_model = _load_model(model, model_seed, external_words, scratchpad_words)
    tokens = _prompt_tokens(language_model, prompt, start_token)
    verifier = _verifier(rtl)
    device = None if verifier is None else verifier.device(language_model.config.chip)
    make_proposer = _draft(draft, language_model, draft_noise, draft_seed, device)
    detokenize = _detokenizer(language_model)
    target = ChipTarget(language_model, device)
    target.check_fit(len(tokens), max_new_tokens, num_speculative_tokens)
    certified = (CertifyingTarget(target), CertifyingTarget(target)) if certify else None
    plain_target, speculative_target = certified or (target, target)

    with _progress("tokens", 2 * max_new_tokens, hidden=not as_json) as advance:

        def on_tokens(label: str) -> Callable[[Sequence[int]], None]:
            if as_json:
                return lambda fresh: advance(count=len(fresh))
            return _Stream(label, tokens, detokenize)

        plain = run_decode(
            plain_target, tokens, max_new_tokens,
            stop_token=stop_token, on_tokens=on_tokens("plain"),
        )  # fmt: skip
        speculative = run_decode(
            speculative_target, tokens, max_new_tokens,
            stop_token=stop_token, on_tokens=on_tokens("speculative"),
            proposer=make_proposer(plain.prompt + plain.tokens) if num_speculative_tokens else None,
            num_speculative_tokens=num_speculative_tokens,
        )  # fmt: skip
    record = comparison_record(plain, speculative, detokenize)
    if certified is not None:
        record["certificate"] = certificate_record(*(each.rows for each in certified))
    mismatch = _finish(verifier, record)
    if as_json:
        _print_json(record)
    else:
        from capra.report.tables import comparison_table, run_certificate_line, verdict

        print("\n")
        _print_table(comparison_table(record))
        print(f"\n{verdict(record)}")
        if certify:
            print(run_certificate_line(record["certificate"]))
        _print_rtl(record)
    _exit_unless_equal([record], mismatch)


@app.command(epilog="Example: capra table --json")
def table(rtl: RtlOption = None, as_json: JsonOption = False) -> None:
    """The seven recorded runs of the tiny models: 32 tokens, plain and speculative."""
    from capra.report.tables import runs_table
    from capra.spec_decode.experiments import RUNS, table_runs

    verifier = _verifier(rtl)
    with _progress("runs", RUNS) as advance:
        if verifier is None:
            runs = table_runs(lambda _run: advance())
        else:
            runs = table_runs(lambda _run: advance(), verifier.device)
    record: dict[str, Any] = {"runs": runs}
    mismatch = _finish(verifier, record)
    if as_json:
        _print_json(record)
    else:
        _print_table(runs_table(runs))
        _print_rtl(record)
    _exit_unless_equal(runs, mismatch)


@app.command(epilog="Example: capra grid")
def grid(as_json: JsonOption = False) -> None:
    """Speedup and acceptance of the structured model over draft noise and k: 25 runs."""
    from capra.report.tables import grid_table
    from capra.spec_decode.experiments import CELLS, grid_cells

    with _progress("runs", CELLS) as advance:
        cells = grid_cells(lambda _cell: advance())
    if as_json:
        _print_json({"cells": cells})
    else:
        _print_table(grid_table(cells))
    _exit_unless_equal(cells)


@app.command(
    "compile", epilog="Example: capra compile --model random --rows 4 --cache 4 --emit buffers"
)
def compile_program(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    rows: Annotated[
        int,
        typer.Option(
            "--rows", "-m", parser=_positive, help="Tokens in the block; 1 makes a plain step."
        ),
    ] = 1,
    cache: Annotated[
        int, typer.Option("--cache", "-c", parser=_count, help="Tokens in the cache.")
    ] = 0,
    emit: Annotated[
        str | None,
        typer.Option(help="Print the state after a pass instead: graph, scales, views, tiles, "
                     "buffers or emission."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Program file. [default: NAME.ga2]")
    ] = None,
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
) -> None:  # fmt: skip
    """Compile a step or a verifier of a model to a program file."""
    from capra.compiler.pipeline import PASSES, compile_graph
    from capra.isa.program import save_program
    from capra.lm.target import model_graph

    language_model = _load_model(model, model_seed, external_words, scratchpad_words)
    config = language_model.config
    if emit is not None and emit not in PASSES:
        raise InputError(f"--emit is {emit!r}, expected one of {', '.join(PASSES)}")
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

    graph = model_graph(config, "step" if rows == 1 else "verify", rows, cache)
    program = compile_graph(graph, language_model.ranges, config.chip, observer=observe)
    if emit is None or output is not None:
        path = output or Path(f"{program.name}.ga2")
        save_program(program, path)
        _say(f"{path}: {_describe(program)}")


@app.command(epilog="Example: capra dis step_c0.ga2")
def dis(
    file: Annotated[Path, typer.Argument(help="A program file that `capra compile` wrote.")],
) -> None:
    """Print a program file as text: external map, tensors, instructions."""
    from capra.compiler.printer import print_program
    from capra.isa.program import load_program

    print(print_program(load_program(file)), end="")


@app.command(epilog="Example: capra replay step_c0.ga2 --rtl verilator")
def replay(
    file: Annotated[Path, typer.Argument(help="A program file that `capra compile` wrote.")],
    rtl: Annotated[
        str, typer.Option("--rtl", help="icarus, verilator, or both with a comma.")
    ] = "icarus,verilator",
    seed: Annotated[
        int, typer.Option(parser=_count, help="Seed of the inputs, the weights and all memory.")
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
    verifier = replay_program(program, simulators, seed, wave)
    record = {
        "program": program.name,
        "seed": seed,
        "cycles": program.cycles,
        "cycles_by_unit": program.counters.by_unit(),
    }
    mismatch = _finish(verifier, record)
    if as_json:
        _print_json(record)
    else:
        print(f"{program.name}: {_describe(program)}")
        _print_rtl(record)
    if mismatch:
        raise typer.Exit(1)


@app.command(epilog="Example: capra certify --model random --max-context 16 --max-rows 4")
def certify(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    max_context: Annotated[
        int | None,
        typer.Option(
            "--max-context", parser=_count, help="Largest cache. [default: the model's context]"
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", parser=_positive, help="Largest block.")
    ] = 8,
    instructions: Annotated[
        bool,
        typer.Option("--instructions", help="Certify the emitted programs too; takes minutes."),
    ] = False,
    caches: Annotated[
        int | None,
        typer.Option(
            "--caches",
            parser=_positive,
            help="Caches at which the programs of a block are certified, spread evenly. "
            "[default: all of a tiny model's, 8 of another's]",
        ),
    ] = None,
    external_words: ExternalOption = None,
    scratchpad_words: ScratchpadOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that blocks compute the rows of plain steps, whatever the weights and the text."""
    from capra.certify.certificate import Subject
    from capra.certify.certificate import certify as run_certify
    from capra.lm.models import TINY_MODELS
    from capra.lm.target import ChipTarget
    from capra.report.tables import certificate_lines

    language_model = _load_model(model, model_seed, external_words, scratchpad_words)
    last = language_model.config.context if max_context is None else max_context
    if caches is None:
        caches = last + 1 if model in TINY_MODELS else 8
    elif not instructions:
        raise InputError(f"--caches is {caches} without programs, expected --instructions")
    with _progress("shapes", None) as advance:
        certificate = run_certify(
            Subject.of(ChipTarget(language_model)), last, max_rows,
            instruction_caches=caches if instructions else 0, on_shape=advance,
        )  # fmt: skip
    record = {
        "model": language_model.config.name,
        "max_context": last,
        "max_rows": max_rows,
        "chip": asdict(language_model.config.chip),
        **certificate.record(),
    }
    if as_json:
        _print_json(record)
    else:
        for line in certificate_lines(record):
            print(line)
    if certificate.failure is not None:
        _say(f"error: not certified: {certificate.failure}")
        raise typer.Exit(1)


@app.command("eval", epilog="Example: capra eval --windows 32")
def evaluate(
    model: ModelOption = "pydoc",
    windows: Annotated[
        int | None,
        typer.Option(parser=_positive, help="Held-out windows to evaluate. [default: all]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What int8 costs a text model on held-out Python documentation: the chip against float."""
    from capra.lm.evaluate import evaluate as run_evaluate
    from capra.report.tables import evaluation_table, tensor_error_table

    language_model = _load_model(model, seed=0)
    with _progress("windows", None) as advance:
        result = run_evaluate(language_model, windows, lambda _done, total: advance(total))
    record: dict[str, Any] = {
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
        _print_json(record)
    else:
        _print_table(evaluation_table(record))
        print()
        _print_table(tensor_error_table(record["tensor_errors"]))


@app.command(epilog="Example: capra train --output my.safetensors (needs the extra: capra[train])")
def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="Checkpoint file to write.")],
    seed: Annotated[int, typer.Option(parser=_whole, help="Seed of weights and batches.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(parser=_positive, help="Optimizer steps. [default: the recipe's]"),
    ] = None,
) -> None:
    """Train the pydoc model anew on this Python's documentation: minutes on two cores."""
    from capra.files import check_writable
    from capra.lm.checkpoint import model_from, save_checkpoint
    from capra.lm.train import STEPS
    from capra.lm.train import train as run_train

    check_writable(output)
    with _progress("steps", None) as advance:
        trained = run_train(
            seed=seed, steps=STEPS if steps is None else steps,
            progress=lambda _step, total, _loss: advance(total),
        )  # fmt: skip
    header = {**trained.config, "ranges": trained.ranges}
    save_checkpoint(model_from(header, trained.tensors), output, trained.config)
    _say(f"wrote {output}")


def _verifier(rtl: str | None) -> "Verifier | None":
    """What replays on the named RTL simulators; nothing of it is needed without the option."""
    if rtl is None:
        return None
    from capra.cosim.toolchain import parse_simulators
    from capra.cosim.verify import Verifier

    return Verifier(parse_simulators(rtl))


def _finish(verifier: "Verifier | None", record: dict[str, Any]) -> bool:
    """Add what the replays found to a record, and say the first mismatch; whether there is one."""
    if verifier is None:
        return False
    verifier.finish()
    record["rtl"] = verifier.record()
    mismatch = verifier.first_mismatch
    if mismatch is not None:
        _say(f"mismatch: {mismatch}")
    return mismatch is not None


def _print_rtl(record: dict[str, Any]) -> None:
    from capra.report.tables import rtl_lines

    for line in rtl_lines(record.get("rtl", {})):
        print(line)


def _load_model(
    name: str, seed: int, external_words: int | None = None, scratchpad_words: int | None = None
) -> "LanguageModel":
    """The model of a name, on a chip with other memories where these are given."""
    from capra.lm.models import load_model

    model = load_model(name, seed)
    chip = model.config.chip
    if external_words is not None:
        chip = replace(chip, external_words=external_words)
    if scratchpad_words is not None:
        chip = replace(chip, scratchpad_words=scratchpad_words)
    return replace(model, config=replace(model.config, chip=chip))


def _prompt_tokens(
    model: "LanguageModel", prompt: str | None, start_token: int | None
) -> list[int]:
    """The tokens to continue, from whichever of the two options suits the model."""
    from capra.lm.model import check_token
    from capra.lm.tokenizer import CharTokenizer

    if prompt is not None and start_token is not None:
        raise InputError("both --prompt and --start-token are given, expected one of them")
    if start_token is not None:
        check_token("--start-token", start_token, model.config.vocab_size)
        return [start_token]
    if model.characters is None:
        if prompt is not None:
            raise InputError(
                f"--prompt is {prompt!r}, but model {model.config.name} has no text, expected "
                "--start-token"
            )
        return [0]
    return CharTokenizer(model.characters).encode(DEFAULT_PROMPT if prompt is None else prompt)


def _draft(
    name: str, model: "LanguageModel", noise: float, seed: int, device: "Device | None"
) -> Callable[[tuple[int, ...]], "Proposer"]:
    """How to make the proposer of a name, given the prompt and the plain run's continuation.

    What can be refused is refused now; only the scripted proposers need that text.
    """
    from capra.lm.bigram import ChipBigram
    from capra.lm.models import is_file, load_bigram, load_bigram_from
    from capra.spec_decode import proposers

    vocab = model.config.vocab_size
    scripted = {"always-right": proposers.always_right, "always-wrong": proposers.always_wrong}
    if name in scripted:
        return lambda text: scripted[name](text, vocab)
    proposer: Proposer
    if name == "constant":
        proposer = proposers.ConstantProposer(0)
    elif name == "random":
        proposer = proposers.RandomProposer(vocab, seed)
    elif name == "bigram" or is_file(name):
        bigram = (
            load_bigram(model, noise, seed)
            if name == "bigram"
            else load_bigram_from(Path(name), model, noise, seed)
        )
        proposer = proposers.ChainProposer(ChipBigram(bigram, model.config.chip, device))
    else:
        raise InputError(
            f"--draft is {name!r}, expected bigram, constant, random, always-right, always-wrong "
            "or an existing checkpoint file"
        )
    return lambda _text: proposer


def _detokenizer(model: "LanguageModel") -> Callable[[Sequence[int]], str]:
    """Tokens to text; numbers for a model without characters."""
    from capra.lm.tokenizer import CharTokenizer

    if model.characters is None:
        return lambda tokens: "".join(f"{token} " for token in tokens)
    return CharTokenizer(model.characters).decode


class _Stream:
    """Prints tokens as they come, after a label and the prompt."""

    def __init__(
        self, label: str, prompt: Sequence[int], detokenize: Callable[[Sequence[int]], str]
    ) -> None:
        self._heading = f"\n[{label}] {detokenize(prompt)}"
        self._detokenize = detokenize

    def __call__(self, fresh: Sequence[int]) -> None:
        print(self._heading + self._detokenize(fresh), end="", flush=True)
        self._heading = ""


def _exit_unless_equal(records: Sequence[dict[str, Any]], mismatch: bool = False) -> None:
    """Exit with 1 where tokens or integers differ, or where the RTL did (which has been said)."""
    equal = all(record["tokens_equal"] for record in records)
    if not equal:
        _say("error: speculation changed the tokens, expected those of plain decoding")
    certified = all(record["certificate"]["equal"] for record in records if "certificate" in record)
    if not certified:
        _say("error: speculation changed the integers of a row, expected those of plain decoding")
    if mismatch or not equal or not certified:
        raise typer.Exit(1)


def _describe(program: "Program") -> str:
    counts = ", ".join(f"{n} {mnemonic}" for mnemonic, n in program.histogram().items())
    return f"{program.cycles:,} cycles, {len(program.instructions)} instructions ({counts})"


def _print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record, indent=2))


def _print_table(content: Any) -> None:
    from rich.console import Console

    Console(highlight=False).print(content)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@contextmanager
def _progress(
    what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr where that is a terminal; yields a function that advances it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    disabled = hidden or not console.is_terminal
    with Progress(console=console, transient=True, disable=disabled) as progress:
        task = progress.add_task(what, total=total)

        def advance(new_total: int | None = None, count: int = 1) -> None:
            progress.update(task, advance=count, total=total if new_total is None else new_total)

        yield advance
