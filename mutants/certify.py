"""Mutants of the static certificate: what would let it certify a program that is not exact."""

from typing import Final

from mutants.mutant import Group, Mutant

_CERTIFICATE: Final = "src/capra/certify/certificate.py"
_DATAFLOW: Final = "src/capra/certify/dataflow.py"
_TERMS: Final = "src/capra/certify/terms.py"
_INSTRUCTIONS: Final = "src/capra/certify/instructions.py"


def _test(file: str, name: str) -> tuple[str, ...]:
    return (f"tests/certify/test_{file}.py::test_{name}",)


GROUP: Final = Group(
    "certify",
    (
        Mutant(
            "product remembered without its rescale", _DATAFLOW,
            '("product", row, columns, out)', '("product", row, columns)',
            "a wrong scale of a product gives the row that was made with the right one",
            _test("certificate", "one_wrong_scale_is_named"), ci=True,
        ),
        Mutant(
            "softmax remembered without its index", _DATAFLOW,
            '("softmax", row, index, out)', '("softmax", row, out)',
            "a wrong index scale gives the row that was made with the right one",
            _test("certificate", "one_wrong_softmax_index_is_named"),
        ),
        Mutant(
            "sum remembered without the rescale of its second operand", _DATAFLOW,
            '("add", a, b, a_to_out, b_to_out)', '("add", a, b, a_to_out)',
            "a wrong rescale of an addend gives the row that was made with the right one",
            _test("certificate", "one_wrong_rescale_of_an_addend_is_named"),
        ),
        Mutant(
            "leaf remembered without its scale", _DATAFLOW,
            '("leaf", tensor, row, cols, scale)', '("leaf", tensor, row, cols)',
            "what the host quantizes differently is taken for the same",
            _test("certificate", "scales_that_make_up_for_each_other_are_refused"),
        ),
        Mutant(
            "leaf without its scale", _TERMS,
            "constants=(tensor, row, column, scale)", "constants=(tensor, row, column, None)",
            "what the host quantizes differently is the same term",
            _test("terms", "whatever_differs_gives_another_number"),
        ),
        Mutant(
            "rescale by exactly 1 left out of any word", _TERMS,
            "if multiplier == 1 << shift and self._terms[term].op in _INT8:",
            "if multiplier == 1 << shift:",
            "a sum of 32 bits would not be clamped",
            _test("terms", "a_rescale_by_exactly_one_leaves_an_int8_integer_alone_and_no_other"),
        ),
        Mutant(
            "operand is the whole word", _TERMS,
            "self._number(Term(TermOp.BYTE, (term,))) if self._is_wide[term] else term", "term",
            "the machine reads the lowest byte",
            _test("terms", "an_operand_is_the_lowest_byte_of_its_word"),
        ),
        Mutant(
            "digest without constants", _TERMS,
            "repr((str(term.op), term.constants))", "repr(str(term.op))",
            "models of other scales have the same digest",
            _test("terms", "a_digest_depends_on_the_function_alone"),
        ),
        Mutant(
            "only the first row of a block compared", _CERTIFICATE,
            "in enumerate(found):", "in enumerate(found[:1]):",
            "rows that see too much or too little are certified",
            _test("certificate", "the_last_row_of_a_block_counts"), ci=True,
        ),
        Mutant(
            "rows of a prefill not compared", _CERTIFICATE,
            'compared = names if role == "prefill"', 'compared = () if role == "prefill"',
            "a prefill may leave any keys and values",
            _test("certificate", "a_prefill_that_keeps_other_values_is_found"),
        ),
        Mutant(
            "compared rows stand for the first of the cache", _CERTIFICATE,
            "return self._cached(node, cache, rows) if", "return self._cached(node, 0, rows) if",
            "what is right at one position is taken for right at another",
            _test("certificate", "an_exact_model_is_certified"),
        ),
        Mutant(
            "programs of the smallest cache only", _CERTIFICATE,
            "{i * last // (count - 1) for i in range(count)}", "{0}",
            "addresses that grow with the cache are never looked at",
            _test("certificate", "every_cache_is_every_cache"),
        ),
        Mutant(
            "programs of evenly spread caches only", _CERTIFICATE,
            "sorted(spread | {cache for cache in tail if cache % ARRAY_SIZE not in remainders})",
            "sorted(spread)",
            "masks that are wrong at the other remainders are certified",
            _test("certificate", "a_visible_set_that_is_wrong_at_one_remainder_is_refused"),
        ),
        Mutant(
            "no comparison at the end of a life", _INSTRUCTIONS,
            "due[home.ready][home.name] = due[home.until][home.name] = home.region",
            "due[home.ready][home.name] = home.region",
            "a tensor overwritten while it lives is found at its readers, or not at all",
            _test(
                "instructions",
                "a_buffer_that_is_reused_too_early_is_found_at_the_tensor_that_it_destroys",
            ),
        ),
        Mutant(
            "words that nobody wrote may be read", _INSTRUCTIONS,
            "if (self._of(region) == _NOTHING).any():", "if False:",
            "they are taken for the last term of the table",
            _test("instructions", "a_read_of_words_that_nobody_wrote_is_found"),
        ),
        Mutant(
            "outputs may be missing", _INSTRUCTIONS,
            "if stored != tuple(outputs):", "if False:",
            "the host would read words of an earlier program",
            _test("instructions", "a_missing_output_is_found"),
        ),
    ),
    full=("tests/certify",),
)  # fmt: skip
