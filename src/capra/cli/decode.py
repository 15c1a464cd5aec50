"""capra decode."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from capra.cli.app import app
from capra.cli.options import (
    DraftNoiseOption,
    DraftOption,
    DraftSeedOption,
    ExternalOption,
    GuessesOption,
    JsonOption,
    ModelOption,
    ModelSeedOption,
    NewTokensOption,
    OptimizeOption,
    PromptOption,
    RtlOption,
    ScratchpadOption,
    StartTokenOption,
    whole,
)
from capra.cli.output import (
    exit_unless_equal,
    finish_replays,
    print_json,
    print_rtl,
    print_table,
    progress_bar,
    rtl_verifier,
    show,
)
from capra.cli.runs import (
    checkpoint_digests,
    chosen_model,
    record_head,
    run_settings,
    text_steps,
)
from capra.text import printable_lines


@app.command(epilog="Example: capra decode --prompt 'The with statement' --max-new-tokens 64")
def decode(
    model: ModelOption = "pydoc",
    model_seed: ModelSeedOption = 1,
    draft: DraftOption = "bigram",
    draft_noise: DraftNoiseOption = 0.0,
    draft_seed: DraftSeedOption = 1,
    num_speculative_tokens: GuessesOption = 3,
    max_new_tokens: NewTokensOption = 64,
    prompt: PromptOption = None,
    start_token: StartTokenOption = None,
    stop_token: Annotated[
        int | None, typer.Option(parser=whole, help="Token after which to stop.")
    ] = None,
    optimize: OptimizeOption = "1",
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
    from capra.compiler.optimization import parse_optimization
    from capra.lm.prompts import detokenizer, prompt_tokens
    from capra.lm.target import ChipTarget
    from capra.spec_decode.certificate import CertifyingTarget, certificate_record
    from capra.spec_decode.comparison import Comparison
    from capra.spec_decode.drafts import draft_maker

    passes = parse_optimization(optimize)
    language_model = chosen_model(model, model_seed, external_words, scratchpad_words)
    tokens = prompt_tokens(language_model, prompt, start_token)
    verifier = rtl_verifier(rtl)
    device = None if verifier is None else verifier.device(language_model.config.chip)
    make_proposer = draft_maker(draft, language_model, draft_noise, draft_seed, device, passes)
    detokenize = detokenizer(language_model)
    target = ChipTarget(language_model, device, optimize=passes)
    runs = Comparison(
        target, tokens, max_new_tokens, num_speculative_tokens, make_proposer, stop_token
    )
    certified = (CertifyingTarget(target), CertifyingTarget(target)) if certify else None
    through = certified or (None, None)

    # A bar and a text that grows do not share a terminal, and replays want a bar.
    streams = not as_json and verifier is None
    texts = {label: _Stream(label, tokens, detokenize) for label in ("plain", "speculative")}
    steps = 2 * text_steps(language_model, tokens, max_new_tokens)

    with progress_bar("tokens", steps, hidden=streams) as advance:

        def on_tokens(label: str) -> Callable[[Sequence[int]], None]:
            return texts[label] if streams else lambda fresh: advance(count=len(fresh))

        plain = runs.plain(on_tokens("plain"), through[0])
        speculative = runs.speculative(plain, on_tokens("speculative"), through[1])
    record = {
        **record_head(
            "decode", checkpoint_digests(model, draft), **run_settings(language_model, tokens)
        ),
        **runs.record(plain, speculative),
    }
    if certified is not None:
        record["certificate"] = certificate_record(*(each.rows for each in certified))
    mismatch = finish_replays(verifier, record)
    if as_json:
        print_json(record)
    else:
        from capra.report.tables import (
            comparison_table,
            resident_line,
            run_certificate_line,
            verdict,
        )

        if not streams:
            texts["plain"](plain.tokens)
            texts["speculative"](speculative.tokens)
        print("\n")
        print_table(comparison_table(record))
        print()
        show(verdict(record))
        if record["resident_weights"]["weight_words"]:
            show(resident_line(record))
        if certify:
            show(run_certificate_line(record["certificate"]))
        print_rtl(record)
    exit_unless_equal([record], mismatch)


class _Stream:
    """Prints tokens as they come, after a label and the prompt."""

    def __init__(
        self, label: str, prompt: Sequence[int], detokenize: Callable[[Sequence[int]], str]
    ) -> None:
        self._heading = f"\n[{label}] {detokenize(prompt)}"
        self._detokenize = detokenize

    def __call__(self, fresh: Sequence[int]) -> None:
        text = printable_lines(self._heading + self._detokenize(fresh))
        print(text, end="", flush=True)
        self._heading = ""
