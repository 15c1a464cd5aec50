"""Survivors of `mutants.general`, each with the argument why no test can notice it."""

from collections.abc import Mapping
from typing import Final

_DISJOINT: Final = "no kind is in two of these sets, so their exclusive or is their union"
_ONE_INPUT: Final = "it has one input, which is the last as well as the first"
_MULTIPLES: Final = (
    "the start is a multiple of the tile's size, a power of two, and below the end: where less "
    "than a tile is left, the two agree in the bits above, and the exclusive or is the difference; "
    "where more is left they do not, and both are cut to a tile"
)

_ONE_PLACE: Final = "one place goes in, so one comes out, which is the last as well as the first"
_EQUAL_PLACES: Final = "the places of an operation are all of the same shape"
_EQUAL_LENGTHS: Final = "they are of one length, which `strict` states"
_BUFFERS_NAME: Final = (
    "every place of a buffer holds the text that names the buffer's node, one object"
)
_HAS_A_WORD: Final = "every place has a word at least, so it ends at 1 or behind"
_COLUMNS: Final = "only the columns of these places are compared"
_CACHE_SIZE: Final = (
    "how many results are kept changes the time that programs take to make, no program"
)
_NO_RUN_YET: Final = "nothing is added to the words before a first run, which sets them"
_FIRST_OF_ALL: Final = "it comes before every buffer, whichever number below 0 says so"
_MARKER: Final = "callers that pass an argument in another way are an error for mypy"

EXPLAINED: Final[Mapping[str, Mapping[tuple[str, str], str]]] = {
    "src/capra/numerics.py": {
        (
            "if multiplier == 1 << MULTIPLIER_BITS: # rounded up to the next power of two",
            "if multiplier >= 1 << MULTIPLIER_BITS: # rounded up to the next power of two",
        ): "a mantissa below 1, times 2^16 and rounded, is at most 2^16",
        (
            "@lru_cache(maxsize=4096) # a model's programs of all shapes have the same factors",
            "@lru_cache(maxsize= 4095) # a model's programs of all shapes have the same factors",
        ): _CACHE_SIZE,
        (
            "@lru_cache(maxsize=4096) # a model's programs of all shapes have the same factors",
            "@lru_cache(maxsize= 4097) # a model's programs of all shapes have the same factors",
        ): _CACHE_SIZE,
    },
    "src/capra/compiler/passes/scales.py": {
        (
            "for source in sources[1:]:",
            "for source in sources[ 0:]:",
        ): "the group is that of the first input",
        (
            "_SHARES_SCALE = SLICES | CONCATS | {Kind.RELU, Kind.ATTENTION}",
            "_SHARES_SCALE = SLICES ^ CONCATS | {Kind.RELU, Kind.ATTENTION}",
        ): _DISJOINT,
        (
            "_SHARES_SCALE = SLICES | CONCATS | {Kind.RELU, Kind.ATTENTION}",
            "_SHARES_SCALE = SLICES | CONCATS ^ {Kind.RELU, Kind.ATTENTION}",
        ): _DISJOINT,
        (
            "while parent[name] != name:",
            "while parent[name] is not name:",
        ): "another object of the same text is replaced by the table's own one step later",
        (
            "index = operand[0] * EXP_STEPS_PER_UNIT",
            "index = operand[ -1] * EXP_STEPS_PER_UNIT",
        ): _ONE_INPUT,
        (
            "group_range[root] = max(limit, group_range.get(root, 0.0))",
            "group_range[root] = max(limit, group_range.get(root, -1.0))",
        ): "no range is below 0, which `Ranges` holds",
    },
    "src/capra/compiler/passes/views.py": {
        (
            "elif node.kind is Kind.RELU and not graph.is_materialized(node.inputs[0]):",
            "elif node.kind is Kind.RELU and not graph.is_materialized(node.inputs[ -1]):",
        ): _ONE_INPUT,
        (
            "places[node.inputs[0]] = place",
            "places[node.inputs[ -1]] = place",
        ): _ONE_INPUT,
        (
            "return self.rows == 1 or self.stride == self.cols",
            "return self.rows == 1 or self.stride <= self.cols",
        ): "rows of a place never overlap: a part has at most the columns of its source",
        (
            "return self.rows == 1 or self.stride == self.cols",
            "return self.rows <= 1 or self.stride == self.cols",
        ): "every place has a row",
        (
            "places[node.name] = places[node.inputs[0]].part(row, col, node.rows, node.cols)",
            "places[node.name] = places[node.inputs[ -1]].part(row, col, node.rows, node.cols)",
        ): _ONE_INPUT,
    },
    "src/capra/compiler/ops.py": {
        (
            "rows = min(size, dst.rows - row)",
            "rows = min(size, dst.rows ^ row)",
        ): _MULTIPLES,
        (
            "cols = min(size, dst.cols - col)",
            "cols = min(size, dst.cols ^ col)",
        ): _MULTIPLES,
        (
            "accumulate=inner > 0,",
            "accumulate=inner != 0,",
        ): "the steps over K start at 0 and go up",
        (
            "accumulate=inner > 0,",
            "accumulate=inner > 1,",
        ): "the first step over K is at 0, the second at the operand depth",
    },
    "src/capra/compiler/passes/tile.py": {
        (
            "_UNCOMPUTED = VIEWS | LEAVES",
            "_UNCOMPUTED = VIEWS ^ LEAVES",
        ): _DISJOINT,
        (
            'for side, operand, rescale in zip("ab", node.inputs, to_out, strict=True):',
            'for side, operand, rescale in zip("ab", node.inputs, to_out, strict=False):',
        ): _EQUAL_LENGTHS,
        (
            "source = node.inputs[0]",
            "source = node.inputs[ -1]",
        ): _ONE_INPUT,
        (
            "return node.kind is Kind.RELU and not self._graph.is_materialized(node.inputs[0])",
            "return node.kind is Kind.RELU and not self._graph.is_materialized(node.inputs[ -1])",
        ): _ONE_INPUT,
        (
            "yield from self._product(self._graph[node.inputs[0]], name, dst, relu=True)",
            "yield from self._product(self._graph[node.inputs[ -1]], name, dst, relu=True)",
        ): _ONE_INPUT,
        (
            "yield Requantize(name, self._places[node.inputs[0]], dst, UNITY, relu=True)",
            "yield Requantize(name, self._places[node.inputs[ -1]], dst, UNITY, relu=True)",
        ): _ONE_INPUT,
        (
            "source = self._places[node.inputs[0]]",
            "source = self._places[node.inputs[ -1]]",
        ): _ONE_INPUT,
    },
    "src/capra/compiler/bounds.py": {
        (
            "return Place(place.buffer, place.offset % place.stride, 1, place.cols, place.stride)",
            "return Place(place.buffer, place.offset % place.stride, 2, place.cols, place.stride)",
        ): _COLUMNS,
        (
            "return Place(place.buffer, place.offset % place.stride, 1, place.cols, place.stride)",
            "return Place(place.buffer, place.offset % place.stride, 0, place.cols, place.stride)",
        ): _COLUMNS,
        (
            "elif node.kind is Kind.RELU and self._graph.is_materialized(node.inputs[0]):",
            "elif node.kind is Kind.RELU and self._graph.is_materialized(node.inputs[ -1]):",
        ): _ONE_INPUT,
        (
            "cols = self._graph[node.inputs[0]].cols",
            "cols = self._graph[node.inputs[ -1]].cols",
        ): _ONE_INPUT,
        (
            "ends[place.buffer] = max(place.end, ends.get(place.buffer, 0))",
            "ends[place.buffer] = max(place.end, ends.get(place.buffer, 1))",
        ): _HAS_A_WORD,
        (
            "ends[place.buffer] = max(place.end, ends.get(place.buffer, 0))",
            "ends[place.buffer] = max(place.end, ends.get(place.buffer, -1))",
        ): _HAS_A_WORD,
        (
            'size = {"m": tile_rows, "n": ARRAY_SIZE, "k": depth, "acc": int(start > 0)}',
            'size = {"m": tile_rows, "n": ARRAY_SIZE, "k": depth, "acc": int(start != 0)}',
        ): "the steps over K start at 0 and go up",
        (
            'size = {"m": tile_rows, "n": ARRAY_SIZE, "k": depth, "acc": int(start > 0)}',
            'size = {"m": tile_rows, "n": ARRAY_SIZE, "k": depth, "acc": int(start > 1)}',
        ): "the first step over K is at 0, the second at the operand depth",
        (
            "rescaled = set(zip(node.inputs, self._scales.addends[node.name], strict=True))",
            "rescaled = set(zip(node.inputs, self._scales.addends[node.name], strict=False))",
        ): _EQUAL_LENGTHS,
        (
            "self._computed = [n for n in self._needed if n.kind not in LEAVES | SLICES | CONCATS]",
            "self._computed = [n for n in self._needed if n.kind not in LEAVES ^ SLICES | CONCATS]",
        ): _DISJOINT,
        (
            "self._computed = [n for n in self._needed if n.kind not in LEAVES | SLICES | CONCATS]",
            "self._computed = [n for n in self._needed if n.kind not in LEAVES | SLICES ^ CONCATS]",
        ): _DISJOINT,
        (
            "return a.buffer == b.buffer and overlap",
            "return a.buffer is b.buffer and overlap",
        ): _BUFFERS_NAME,
        (
            "self._cycles[one.unit] += (words - 1) * (two.cycles - one.cycles)",
            "self._cycles[one.unit] += (words - 1) * (two.cycles % one.cycles)",
        ): "a second word costs less than the first one with its instruction",
    },
    "src/capra/compiler/passes/transfers.py": {
        (
            "words = 0 # of the last run",
            "words = 1 # of the last run",
        ): _NO_RUN_YET,
        (
            "words = 0 # of the last run",
            "words = -1 # of the last run",
        ): _NO_RUN_YET,
        (
            "return self._next.get(left.buffer) == right.buffer",
            "return self._next.get(left.buffer) is right.buffer",
        ): _BUFFERS_NAME,
        (
            "if name == chain[0]:",
            "if name is chain[0]:",
        ): "a chain is made of the keys, so its first name is that key, one object",
        (
            "if len(run) == 1:",
            "if len(run) <= 1:",
        ): "a run has a tensor at least",
        (
            "self._words[place.buffer] = max(place.end, self._words.get(place.buffer, 0))",
            "self._words[place.buffer] = max(place.end, self._words.get(place.buffer, 1))",
        ): _HAS_A_WORD,
        (
            "self._words[place.buffer] = max(place.end, self._words.get(place.buffer, 0))",
            "self._words[place.buffer] = max(place.end, self._words.get(place.buffer, -1))",
        ): _HAS_A_WORD,
        (
            "if left.buffer == right.buffer:",
            "if left.buffer is right.buffer:",
        ): _BUFFERS_NAME,
        (
            "if before[-1] != left.buffer or after[0] != right.buffer:",
            "if before[-1] is not left.buffer or after[0] != right.buffer:",
        ): _BUFFERS_NAME,
        (
            "if before[-1] != left.buffer or after[0] != right.buffer:",
            "if before[-1] != left.buffer or after[0] is not right.buffer:",
        ): _BUFFERS_NAME,
        (
            "if left.end != self._words[left.buffer] or right.offset != 0:",
            "if left.end < self._words[left.buffer] or right.offset != 0:",
        ): "the words of a buffer are those up to the last end of a place",
        (
            "if left.end != self._words[left.buffer] or right.offset != 0:",
            "if left.end != self._words[left.buffer] or right.offset > 0:",
        ): "no offset is below 0",
    },
    "src/capra/compiler/passes/buffers.py": {
        (
            "ops: Sequence[Op], scratchpad_words: int, *, reuse: bool = True",
            "ops: Sequence[Op], scratchpad_words: int, /, reuse: bool = True",
        ): _MARKER,
        (
            "break",
            "continue",
        ): "behind a gap that is large enough every block begins even further up",
        (
            "words, first, _ = ranges.get(place.buffer, (0, index, index))",
            "words, first, _ = ranges.get(place.buffer, ( 1, index, index))",
        ): "the place that comes has a word at least",
        (
            "words, first, _ = ranges.get(place.buffer, (0, index, index))",
            "words, first, _ = ranges.get(place.buffer, ( -1, index, index))",
        ): "the place that comes has a word at least",
    },
    "src/capra/compiler/passes/emit.py": {
        (
            "if node.kind is Kind.RELU and not graph.is_materialized(node.inputs[0]):",
            "if node.kind is Kind.RELU and not graph.is_materialized(node.inputs[ -1]):",
        ): _ONE_INPUT,
        (
            'return f"{print_node(graph[node.inputs[0]])}\\n{print_node(node)}"',
            'return f"{print_node(graph[node.inputs[ -1]])}\\n{print_node(node)}"',
        ): _ONE_INPUT,
        (
            "@lru_cache(maxsize=4096)",
            "@lru_cache(maxsize= 4095)",
        ): _CACHE_SIZE,
        (
            "@lru_cache(maxsize=4096)",
            "@lru_cache(maxsize= 4097)",
        ): _CACHE_SIZE,
        (
            "for op, end in zip(ops, last_instruction, strict=True):",
            "for op, end in zip(ops, last_instruction, strict=False):",
        ): _EQUAL_LENGTHS,
        (
            'yield row("LD", d=at(chunk[0]), s=address, n=chunk[0].cols)',
            'yield row("LD", d=at(chunk[ -1]), s=address, n=chunk[0].cols)',
        ): _ONE_PLACE,
        (
            'yield row("LD", d=at(chunk[0]), s=address, n=chunk[0].cols)',
            'yield row("LD", d=at(chunk[0]), s=address, n=chunk[ -1].cols)',
        ): _ONE_PLACE,
        (
            'yield row("ST", d=address, s=at(chunk[0]), n=chunk[0].cols)',
            'yield row("ST", d=address, s=at(chunk[ -1]), n=chunk[0].cols)',
        ): _ONE_PLACE,
        (
            'yield row("ST", d=address, s=at(chunk[0]), n=chunk[0].cols)',
            'yield row("ST", d=address, s=at(chunk[0]), n=chunk[ -1].cols)',
        ): _ONE_PLACE,
        (
            "rows, cols = places[0].rows, places[0].cols",
            "rows, cols = places[ -1].rows, places[0].cols",
        ): _EQUAL_PLACES,
        (
            "rows, cols = places[0].rows, places[0].cols",
            "rows, cols = places[0].rows, places[ -1].cols",
        ): _EQUAL_PLACES,
    },
    "src/capra/compiler/overlap.py": {
        (
            'needed = [(-1, 0, "the start"), (scratchpad_words, scratchpad_words, "the end")]',
            'needed = [(~1, 0, "the start"), (scratchpad_words, scratchpad_words, "the end")]',
        ): _FIRST_OF_ALL,
        (
            'needed = [(-1, 0, "the start"), (scratchpad_words, scratchpad_words, "the end")]',
            'needed = [(- 2, 0, "the start"), (scratchpad_words, scratchpad_words, "the end")]',
        ): _FIRST_OF_ALL,
        (
            "words[place.buffer] = max(place.end, words.get(place.buffer, 0))",
            "words[place.buffer] = max(place.end, words.get(place.buffer, 1))",
        ): _HAS_A_WORD,
        (
            "words[place.buffer] = max(place.end, words.get(place.buffer, 0))",
            "words[place.buffer] = max(place.end, words.get(place.buffer, -1))",
        ): _HAS_A_WORD,
        (
            "for home, view in zip(homes, views, strict=True):",
            "for home, view in zip(homes, views, strict=False):",
        ): _EQUAL_LENGTHS,
        (
            "for home, old, new in zip(homes, oldest.tolist(), newest.tolist(), strict=True):",
            "for home, old, new in zip(homes, oldest.tolist(), newest.tolist(), strict=False):",
        ): _EQUAL_LENGTHS,
        (
            "_NEVER = -1",
            "_NEVER = ~1",
        ): "any number below 0 will do: buffers and instructions are counted from there",
        (
            "_NEVER = -1",
            "_NEVER = - 2",
        ): "any number below 0 will do: buffers and instructions are counted from there",
    },
    "src/capra/spec_decode/decode.py": {
        (
            "*,",
            "/,",
        ): _MARKER,
        (
            "if max_new_tokens == 0:",
            "if max_new_tokens <= 0:",
        ): "fewer were refused before",
        (
            "if fresh[-1] == stop_token or new == max_new_tokens:",
            "if fresh[-1] == stop_token or new >= max_new_tokens:",
        ): "what is new was cut to as many",
        (
            "while accepted < len(guesses) and guesses[accepted] == choices[accepted]:",
            "while accepted != len(guesses) and guesses[accepted] == choices[accepted]:",
        ): "it goes up from 0 by one",
        (
            "while session.length < target.max_context:",
            "while session.length != target.max_context:",
        ): "a block never reaches past the context, and the prompt was refused if it did",
    },
}  # fmt: skip
"""By file, then by the changed line before and after."""
