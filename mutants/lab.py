"""Mutants of the lab: what programs cost, what runs will cost, what is said of them."""

from typing import Final

from mutants.mutant import Group, Mutant

_COSTS: Final = "src/capra/lab/costs.py"
_PREDICT: Final = "src/capra/lab/predict.py"
_PLANNER: Final = "src/capra/lab/planner.py"
_SERVING: Final = "src/capra/lab/serving.py"
_ANATOMY: Final = "src/capra/lab/anatomy.py"
_CAUSALITY: Final = "src/capra/lab/causality.py"
_PROPOSERS: Final = "src/capra/spec_decode/proposers.py"

_TEST_COSTS: Final = ("tests/lab/test_costs.py",)
_TEST_PREDICT: Final = ("tests/lab/test_predict.py",)
_TEST_PLANNER: Final = ("tests/lab/test_planner.py",)
_TEST_SERVING: Final = ("tests/lab/test_serving.py",)

GROUP: Final = Group(
    "lab",
    (
        Mutant(
            "costs taken to be a line of caches", _COSTS,
            "rise % steps == 0 and at(middle) - low == rise // steps * middle",
            "rise % steps == 0",
            "the middle of a range is not compared",
            _TEST_COSTS,
        ),
        Mutant(
            "costs filled in one step behind", _COSTS,
            "low + rise // steps * step",
            "low + rise // steps * (step + 1)",
            "a cache gets the cost of the next one",
            _TEST_COSTS, ci=True,
        ),
        Mutant(
            "residues of caches ignored", _COSTS,
            "range(first, min(first + ARRAY_SIZE, last + 1))",
            "range(first, min(first + 1, last + 1))",
            "only every fourth cache is covered",
            _TEST_COSTS,
        ),
        Mutant(
            "cost curve relative to nothing", _COSTS,
            "[c / cycles[0] for c in cycles]",
            "[c / cycles[-1] for c in cycles]",
            "c(1) is not 1",
            _TEST_COSTS,
        ),
        Mutant(
            "the last rate does not go on", _PREDICT,
            "self.conditional[min(guess, len(self.conditional) - 1)]",
            "(*self.conditional, *[0.0] * guesses)[guess]",
            "guesses behind the given ones count as wrong",
            _TEST_PREDICT,
        ),
        Mutant(
            "bonus token not counted", _PREDICT,
            "starts[min(position + accepted + 1, extent.new_tokens)]",
            "starts[min(position + max(accepted, 1), extent.new_tokens)]",
            "a block moves by its accepted guesses only",
            _TEST_PREDICT, ci=True,
        ),
        Mutant(
            "costs at the first cache only", _PREDICT,
            "cycles(guesses + 1, extent.first_cache + position)",
            "cycles(guesses + 1, extent.first_cache)",
            "the cache grows and programs with it",
            _TEST_PREDICT,
        ),
        Mutant(
            "blocks reach past the context", _PREDICT,
            "room = self.context - self.first_cache - position - 1",
            "room = k",
            "a block is shortened where the context ends",
            _TEST_PREDICT,
        ),
        Mutant(
            "a last block of one guess too many", _PREDICT,
            "self.new_tokens - position - 1", "self.new_tokens - position",
            "a shortened block has no guess behind the last token",
            _TEST_PREDICT,
        ),
        Mutant(
            "drafts guess all that they may", _PREDICT,
            "return min(limit, self.proposed[position])",
            "return limit",
            "a block has the rows that the draft filled",
            _TEST_PREDICT,
        ),
        Mutant(
            "a pass of k rows", _PREDICT,
            "pass_cycles = k * extent.draft_cycles + cycles(k + 1, cache)",
            "pass_cycles = k * extent.draft_cycles + cycles(k, cache)",
            "the last token is a row too",
            _TEST_PREDICT,
        ),
        Mutant(
            "break-even from the wrong side", _PREDICT,
            "(low, middle) if pays(middle) else (middle, high)",
            "(middle, high) if pays(middle) else (low, middle)",
            "the bisection leaves the place it looks for",
            _TEST_PREDICT,
        ),
        Mutant(
            "steady state of the run instead of the context", _PREDICT,
            "end = extent.context - extent.first_cache",
            "end = min(extent.new_tokens, extent.context - extent.first_cache)",
            "the answer depends on the length that is asked for",
            ("tests/lab/test_predict.py", "tests/lab/test_planner.py"),
        ),
        Mutant(
            "assumed guesses are free", _PLANNER,
            "(proposed * source.draft_cycles if source.is_assumed else 0)",
            "0 * proposed",
            "the assumed cost of a guess is left out of the measured run",
            _TEST_PLANNER,
        ),
        Mutant(
            "worst K is best", _PLANNER,
            'best = max(ks, key=lambda entry: entry["steady"]["speedup"])',
            'best = min(ks, key=lambda entry: entry["steady"]["speedup"])',
            "the advice is the opposite",
            _TEST_PLANNER,
        ),
        Mutant(
            "every run of one seed", _PLANNER,
            "rates.conditional, seed + run)",
            "rates.conditional, seed)",
            "runs repeat each other",
            _TEST_PLANNER,
        ),
        Mutant(
            "serving formula without the bonus token", _SERVING,
            "expected_tokens(acceptance, k) / (1 + k * c)",
            "expected_tokens(acceptance, k - 1) / (1 + k * c)",
            "a pass gives k + 1 tokens at most",
            _TEST_SERVING,
        ),
        Mutant(
            "guesses of serving cost nothing", _SERVING,
            'run["executed_cycles"] + run["proposed"] * cost["c"] * step',
            'run["executed_cycles"]',
            "the assumed cost is left out of the runs",
            _TEST_SERVING,
        ),
        Mutant(
            "ratio of a verifier to one step", _ANATOMY,
            'verifier["cycles"] / together["cycles"]',
            'verifier["cycles"] / steps[0]["cycles"]',
            "the verifier writes the rows of all steps",
            ("tests/lab/test_anatomy.py",),
        ),
        Mutant(
            "causality compares a block with itself", _CAUSALITY,
            'first = blocks[0]["logits"] if blocks else logits',
            "first = logits",
            "every row is equal to itself",
            ("tests/lab/test_causality.py",),
        ),
        Mutant(
            "causality holds whatever is found", _CAUSALITY,
            '"holds": holds,',
            '"holds": True or holds,',
            "a wrong mask passes",
            ("tests/lab/test_causality.py",),
        ),
        Mutant(
            "synthetic rates backwards", _PROPOSERS,
            "if draw.random() >= rates[",
            "if draw.random() < rates[",
            "a guess is wrong as often as it should be right",
            ("tests/spec_decode/test_proposers.py",),
        ),
    ),
    full=("tests/lab", "tests/golden/test_recorded_experiments.py"),
)  # fmt: skip
