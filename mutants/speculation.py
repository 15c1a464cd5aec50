"""Mutants of the speculative loop, the graphs of a model, its references and its drafts."""

from typing import Final

from mutants.mutant import Group, Mutant

_DECODE: Final = "src/capra/spec_decode/decode.py"
_METRICS: Final = "src/capra/spec_decode/metrics.py"
_GRAPHS: Final = "src/capra/lm/graphs.py"
_TARGET: Final = "src/capra/lm/target.py"
_REFERENCE: Final = "src/capra/lm/reference.py"
_BIGRAM: Final = "src/capra/lm/bigram.py"

_TEST_DECODE: Final = ("tests/spec_decode/test_decode.py",)
_TEST_METRICS: Final = ("tests/spec_decode/test_metrics.py",)
_TEST_CAUSALITY: Final = ("tests/system/test_causality.py",)
_TEST_GRAPHS: Final = ("tests/lm/test_graphs.py", *_TEST_CAUSALITY)
_TEST_TARGET: Final = ("tests/lm/test_target.py",)
_TEST_REFERENCE: Final = ("tests/lm/test_reference.py",)
_TEST_BIGRAM: Final = ("tests/lm/test_bigram.py",)

GROUP: Final = Group(
    "speculation",
    (
        Mutant(
            "accept one too many", _DECODE,
            "        accepted += 1\n    return accepted",
            "        accepted += 1\n    return min(accepted + 1, len(guesses))",
            "the first wrong guess counts as right",
            _TEST_DECODE, ci=True,
        ),
        Mutant(
            "shortened block one guess too long", _DECODE,
            "room = min(room, max_new_tokens - new - 1)",
            "room = min(room, max_new_tokens - new)",
            "a row is computed behind the last token asked for",
            _TEST_DECODE,
        ),
        Mutant(
            "blocks shortened unasked", _DECODE,
            "if shorten_last_block:",
            "if True:",
            "the recorded runs have as many guesses in every block",
            _TEST_DECODE,
        ),
        Mutant(
            "first guess unchecked", _DECODE,
            "accepted = 0\n    while",
            "accepted = min(1, len(guesses))\n    while",
            "a wrong first guess is taken for the target's choice",
            _TEST_DECODE,
        ),
        Mutant(
            "guess i compared with row i+1", _DECODE,
            "guesses[accepted] == choices[accepted]",
            "guesses[accepted] == choices[accepted + 1]",
            "row i + 1 follows the guess, it does not choose it",
            _TEST_DECODE,
        ),
        Mutant(
            "stop at the first agreement", _DECODE,
            "guesses[accepted] == choices[accepted]",
            "guesses[accepted] != choices[accepted]",
            "wrong guesses are accepted and right ones are not",
            _TEST_DECODE,
        ),
        Mutant(
            "bonus token from the draft", _DECODE,
            "return self.choices[: self.accepted + 1]",
            "return (*self.proposed, self.choices[-1])[: self.accepted + 1]",
            "behind the accepted guesses the target decides",
            _TEST_DECODE, ci=True,
        ),
        Mutant(
            "bonus token from the previous row", _DECODE,
            "return self.choices[: self.accepted + 1]",
            "return (*self.choices[: self.accepted], self.choices[max(self.accepted - 1, 0)])",
            "the last accepted token is emitted twice",
            _TEST_DECODE,
        ),
        Mutant(
            "bonus token not appended", _DECODE,
            "accepted = count_accepted(guesses, choices)",
            "accepted = max(count_accepted(guesses, choices) - 1, 0)",
            "the next block computes it again: the text stays, the accounting does not",
            _TEST_DECODE, ci=True,
        ),
        Mutant(
            "rejected rows kept", _DECODE,
            "session.truncate(start + 1 + accepted)",
            "session.truncate(session.length)",
            "later rows see keys and values of guesses that were wrong",
            _TEST_DECODE,
        ),
        Mutant(
            "row of the last accepted guess dropped", _DECODE,
            "session.truncate(start + 1 + accepted)",
            "session.truncate(start + accepted)",
            "the input of the bonus token is missing from the cache",
            _TEST_DECODE,
        ),
        Mutant(
            "last token left out of the block", _DECODE,
            "rows = (text[-1], *guesses)",
            "rows = tuple(guesses) or (text[-1],)",
            "the first guess is checked by nobody, and its row is missing from the cache",
            _TEST_DECODE,
        ),
        Mutant(
            "prompt cached whole", _DECODE,
            "session.prefill(prompt[:-1])",
            "session.prefill(prompt)",
            "the last token of the prompt is in the cache twice",
            _TEST_DECODE,
        ),
        Mutant(
            "block reaches past the context", _DECODE,
            "target.max_context - session.length - 1",
            "target.max_context - session.length",
            "one row more than there is room for",
            _TEST_DECODE,
        ),
        Mutant(
            "result not cut to the length asked for", _DECODE,
            "_cut(block.emitted, max_new_tokens - new,",
            "_cut(block.emitted, max_new_tokens,",
            "a block gives more tokens than were asked for",
            _TEST_DECODE,
        ),
        Mutant(
            "text goes on behind the stop token", _DECODE,
            "return kept[: kept.index(stop_token) + 1] if",
            "return kept if",
            "tokens of the same block follow the stop token",
            _TEST_DECODE,
        ),
        Mutant(
            "guesses behind an unknown one checked", _DECODE,
            "            break  # cannot be",
            "            continue  # cannot be",
            "they are compared with the choices of other rows",
            _TEST_DECODE,
        ),
        Mutant(
            "too many guesses let through", "src/capra/spec_decode/proposers.py",
            "if len(tokens) > count:",
            "if False:",
            "a block reaches past the context",
            _TEST_DECODE,
        ),
        Mutant(
            "draft's programs not counted", _DECODE,
            "proposal.runs + tuple(forward.runs))",
            "tuple(forward.runs))",
            "drafting would be free",
            _TEST_DECODE,
        ),
        Mutant(
            "every guess from the committed token", "src/capra/spec_decode/proposers.py",
            "self._draft.next(token)",
            "self._draft.next(text[-1])",
            "all guesses of a block are the same",
            ("tests/spec_decode/test_proposers.py",), ci=True,
        ),
        Mutant(
            "acceptance per position off by one", _METRICS,
            "block.accepted > position",
            "block.accepted >= position",
            "the first guess would always be right",
            _TEST_METRICS,
        ),
        Mutant(
            "mean acceptance length without the target's own token", _METRICS,
            "1 + accepted / len(blocks)",
            "accepted / len(blocks)",
            "a block emits the accepted guesses and one token more",
            _TEST_METRICS,
        ),
        Mutant(
            "prompt counted in the decode speedup", _METRICS,
            '"decode_speedup": ratio("prefill")',
            '"decode_speedup": ratio(None)',
            "the prompt is the same in both runs",
            _TEST_METRICS,
        ),
        Mutant(
            "k and v swapped", _GRAPHS,
            'keys, values = self._with_cache(f"{at}.k"), self._with_cache(f"{at}.v")',
            'values, keys = self._with_cache(f"{at}.k"), self._with_cache(f"{at}.v")',
            "queries meet values, and keys are mixed",
            _TEST_GRAPHS,
        ),
        Mutant(
            "new values cached as keys", _TARGET,
            "tensor[start:end] = execution.outputs[name]",
            'tensor[start:end] = execution.outputs[name.replace(".v", ".k")]',
            "later rows mix keys",
            _TEST_TARGET,
        ),
        Mutant(
            "row sees one later row", _GRAPHS,
            "visible=Visible.causal(self._rows, self._cache),",
            "visible=Visible(self._cache, self._rows, tuple("
            "(4 << row) - 1 & (1 << self._rows) - 1 for row in range(self._rows))),",
            "a row must not know the guess that it checks",
            _TEST_GRAPHS, ci=True,
        ),
        Mutant(
            "row cannot see itself", _GRAPHS,
            "visible=Visible.causal(self._rows, self._cache),",
            "visible=Visible(self._cache, self._rows, tuple("
            "max((1 << row) - 1, 1) for row in range(self._rows))),",
            "the choice does not depend on the last token's own key",
            _TEST_GRAPHS,
        ),
        Mutant(
            "block of siblings", _GRAPHS,
            "visible=Visible.causal(self._rows, self._cache),",
            "visible=Visible.tree([-1] * self._rows, self._cache),",
            "a row does not know the guesses before it",
            _TEST_GRAPHS,
        ),
        Mutant(
            "keys weighed for values", _GRAPHS,
            'f"{at}.attn", f"{at}.q", keys, values,',
            'f"{at}.attn", f"{at}.q", keys, keys,',
            "the values have no effect",
            _TEST_GRAPHS,
        ),
        Mutant(
            "keys ask for themselves", _GRAPHS,
            'f"{at}.attn", f"{at}.q", keys, values,',
            'f"{at}.attn", f"{at}.k", keys, values,',
            "the queries have no effect",
            _TEST_GRAPHS,
        ),
        Mutant(
            "one head for all", _GRAPHS,
            "heads=self._config.heads,",
            "heads=1,",
            "every row has one softmax where the model has several",
            _TEST_GRAPHS,
        ),
        Mutant(
            "scores not scaled", _GRAPHS,
            "self._config.head_width**-0.5",
            "1.0",
            "the softmax is sharper than the model's",
            _TEST_GRAPHS,
        ),
        Mutant(
            "no residual around the attention", _GRAPHS,
            'graph.add(f"{at}.mid", x, f"{at}.o")',
            'graph.add(f"{at}.mid", f"{at}.o", f"{at}.o")',
            "the token itself is lost",
            _TEST_GRAPHS,
        ),
        Mutant(
            "cache behind the block", _GRAPHS,
            '[f"{name}{CACHE_SUFFIX}", name]',
            '[name, f"{name}{CACHE_SUFFIX}"]',
            "a row sees later rows of the block instead of cached ones",
            _TEST_GRAPHS,
        ),
        Mutant(
            "every block at position 0", _TARGET,
            "model.embed(tokens, start)",
            "model.embed(tokens, 0)",
            "positions start again with every block",
            _TEST_TARGET,
        ),
        Mutant(
            "rows of a block cached one too early", _TARGET,
            "tensor[start:end] = execution.outputs[name]",
            "tensor[start - (start > 0) : end - (start > 0)] = execution.outputs[name]",
            "the last cached row is overwritten",
            _TEST_TARGET,
        ),
        Mutant(
            "float mask sees the whole block", _REFERENCE,
            "np.full((count, count), MASKED), k=1)",
            "np.full((count, count), MASKED), k=count)",
            "rows depend on later tokens",
            _TEST_REFERENCE, ci=True,
        ),
        Mutant(
            "float mask hides the row itself", _REFERENCE,
            "np.full((count, count), MASKED), k=1)",
            "np.full((count, count), MASKED), k=0)",
            "a row does not attend to itself",
            _TEST_REFERENCE,
        ),
        Mutant(
            "stepper forgets the oldest key", _REFERENCE,
            "key in self._keys[layer]]",
            "key in self._keys[layer][-8:]]",
            "attention over the last rows only",
            _TEST_REFERENCE,
        ),
        Mutant(
            "draft table off by one", _BIGRAM,
            "counts[before, after] += 1",
            "counts[before, (after + 1) % vocab_size] += 1",
            "the draft guesses the token behind the right one",
            _TEST_BIGRAM,
        ),
        Mutant(
            "draft counts backwards", _BIGRAM,
            "counts[before, after] += 1",
            "counts[after, before] += 1",
            "the draft guesses what came before",
            _TEST_BIGRAM,
        ),
        Mutant(
            "draft reads another token's row", _BIGRAM,
            "self._x[token : token + 1]",
            "self._x[token - 1 :][:1]",
            "the guess follows another token",
            _TEST_BIGRAM,
        ),
        Mutant(
            "noise forgets its seed", _BIGRAM,
            "draw = random.Random(seed)",
            "draw = random.Random(0)",
            "all drafts of one noise are the same",
            _TEST_BIGRAM,
        ),
    ),
    full=(
        "tests/spec_decode", "tests/lm", "tests/system/test_causality.py",
        "tests/system/test_recorded_results.py", "tests/system/test_exactness.py",
    ),
)  # fmt: skip
