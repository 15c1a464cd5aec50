"""Mutants of the graph IR, its evaluations, and the compiler."""

from typing import Final

from mutants.mutant import Group, Mutant

_GRAPH: Final = "src/capra/ir/graph.py"
_VIEWS: Final = "src/capra/compiler/passes/views.py"
_SCALES: Final = "src/capra/compiler/passes/scales.py"
_OPS: Final = "src/capra/compiler/ops.py"
_TILE: Final = "src/capra/compiler/passes/tile.py"
_BUFFERS: Final = "src/capra/compiler/passes/buffers.py"
_EMIT: Final = "src/capra/compiler/passes/emit.py"
_OVERLAP: Final = "src/capra/compiler/overlap.py"
_MASKS: Final = "src/capra/compiler/passes/masks.py"
_VISIBLE: Final = "src/capra/ir/visible.py"
_TRANSFERS: Final = "src/capra/compiler/passes/transfers.py"
_PIPELINE: Final = "src/capra/compiler/pipeline.py"
_BOUNDS: Final = "src/capra/compiler/bounds.py"
_TERMS: Final = "src/capra/certify/terms.py"

_TEST_GRAPH: Final = ("tests/ir/test_graph.py",)
_TEST_VIEWS: Final = ("tests/compiler/test_views.py",)
_TEST_SCALES: Final = ("tests/compiler/test_scales.py",)
_TEST_TILE: Final = ("tests/compiler/test_tile.py",)
_TEST_BUFFERS: Final = ("tests/compiler/test_buffers.py",)
_TEST_EMIT: Final = ("tests/compiler/test_emit.py",)
_TEST_OVERLAP: Final = ("tests/compiler/test_overlap.py",)
_TEST_RANGES: Final = ("tests/ir/test_ranges.py",)
_TEST_ATTENTION: Final = ("tests/compiler/test_attention.py",)
_TEST_VISIBLE: Final = ("tests/ir/test_visible.py",)
_TEST_IR_ATTENTION: Final = ("tests/ir/test_attention.py",)
_TEST_TRANSFERS: Final = ("tests/compiler/test_transfers.py",)
_TEST_OPTIMIZATION: Final = "tests/compiler/test_optimization.py"
_TEST_BOUNDS: Final = ("tests/compiler/test_bounds.py",)
_TEST_TERMS: Final = ("tests/certify/test_terms.py",)

GROUP: Final = Group(
    "compiler",
    (
        Mutant(
            "view starts at the beginning of its source", _VIEWS,
            "row, col = (node.start, 0) if node.kind in BY_ROWS else",
            "row, col = (0, 0) if node.kind in BY_ROWS else",
            "a slice reads the first rows, whatever its start",
            _TEST_VIEWS, ci=True,
        ),
        Mutant(
            "offset counted in words, not rows", _VIEWS,
            "self.offset + row * self.stride + col",
            "self.offset + row + col",
            "row i of a tensor is its i-th word",
            _TEST_VIEWS,
        ),
        Mutant(
            "slice keeps the source's row count", _VIEWS,
            "places[node.inputs[0]].part(row, col, node.rows, node.cols)",
            "places[node.inputs[0]].part(row, col, places[node.inputs[0]].rows, node.cols)",
            "a slice of n rows has as many as its source",
            _TEST_VIEWS,
        ),
        Mutant(
            "column slice starts at the first column", _VIEWS,
            "if node.kind in BY_ROWS else (0, node.start)",
            "if node.kind in BY_ROWS else (0, 0)",
            "every head reads the columns of the first",
            _TEST_VIEWS,
        ),
        Mutant(
            "parts of a concatenation in one place", _VIEWS,
            "yield name, place.part(row, col,",
            "yield name, place.part(0, 0,",
            "the new rows overwrite the cached ones",
            _TEST_VIEWS,
        ),
        Mutant(
            "fused product keeps a buffer of its own", _VIEWS,
            "elif node.kind is Kind.RELU and not graph.is_materialized(node.inputs[0]):",
            "elif False:",
            "the places name a tensor that never exists",
            _TEST_VIEWS,
        ),
        Mutant(
            "slice first given a buffer of its own", _VIEWS,
            "if node.kind not in SLICES:",
            "if True:",
            "a slice must not own a buffer",
            _TEST_VIEWS,
            argument="the second loop replaces the place of every slice, and nothing reads it "
            "before: a slice is no part of a concatenation and fuses no relu",
        ),
        Mutant(
            "interpreter takes a row too many", "src/capra/ir/interpreter.py",
            "first[node.start : node.start + node.rows]",
            "first[node.start : node.start + node.rows + 1]",
            "a slice of n rows has n + 1",
            ("tests/ir/test_interpreter.py",), ci=True,
        ),
        Mutant(
            "float takes a row too few", "src/capra/ir/reference.py",
            "first[node.start : node.start + node.rows]",
            "first[node.start : node.start + node.rows - 1]",
            "a slice of n rows has n - 1",
            ("tests/ir/test_reference.py",),
        ),
        Mutant(
            "float ignores the factor of a product", "src/capra/ir/reference.py",
            "first @ right * node.scale",
            "first @ right",
            "attention scores are not divided by the root of the width",
            ("tests/ir/test_reference.py",),
        ),
        Mutant(
            "interpreter forgets to transpose", "src/capra/ir/interpreter.py",
            "operands[1].T if node.transpose_b else operands[1]",
            "operands[1]",
            "q k instead of q k^T",
            ("tests/ir/test_interpreter.py",),
        ),
        Mutant(
            "slice scale not tied", _SCALES,
            "_SHARES_SCALE = SLICES | CONCATS",
            "_SHARES_SCALE = CONCATS",
            "a slice is the same words as its source, hence has the same scale",
            _TEST_SCALES, ci=True,
        ),
        Mutant(
            "only the first part of a concatenation tied", _SCALES,
            "for source in sources[1:]:",
            "for source in ():",
            "one tensor whose rows have two scales",
            _TEST_SCALES,
        ),
        Mutant(
            "group takes its smallest range", _SCALES,
            "group_range[root] = max(limit,",
            "group_range[root] = min(limit,",
            "values of the wider members saturate",
            _TEST_SCALES,
        ),
        Mutant(
            "softmax range above 1", _SCALES,
            "limit = min(recorded, 1.0) if node.kind in _PROBABILITIES else recorded",
            "limit = recorded",
            "steps of a probability get coarser than needed",
            _TEST_SCALES,
        ),
        Mutant(
            "factor of a product left out of its rescale", _SCALES,
            "operand[0] * operand[1] * node.scale",
            "operand[0] * operand[1]",
            "integers disagree with float by the factor",
            _TEST_SCALES,
        ),
        Mutant(
            "both addends rescaled by the first", _SCALES,
            "addends[node.name] = (a, b)",
            "addends[node.name] = (a, a)",
            "the second operand is added with the wrong weight",
            _TEST_SCALES,
        ),
        Mutant(
            "ranges rounded down", "src/capra/ir/ranges.py",
            "math.ceil(math.ldexp",
            "math.floor(math.ldexp",
            "the largest value saturates",
            _TEST_RANGES,
        ),
        Mutant(
            "range of the last sample only", "src/capra/ir/ranges.py",
            "largest[node.tag] = max(magnitude, largest.get(node.tag, 0.0))",
            "largest[node.tag] = magnitude",
            "earlier samples saturate",
            _TEST_RANGES,
        ),
        Mutant(
            "range past the end accepted", _GRAPH,
            " or start + count > size:",
            ":",
            "a slice reads the words behind its source",
            _TEST_GRAPH, ci=True,
        ),
        Mutant(
            "negative start accepted", _GRAPH,
            "start < 0 or count < 1",
            "count < 1",
            "a slice reads the words before its source",
            _TEST_GRAPH,
        ),
        Mutant(
            "empty slice accepted", _GRAPH,
            "start < 0 or count < 1",
            "start < 0 or count < 0",
            "no instruction has zero rows; the message would not name the range",
            _TEST_GRAPH,
        ),
        Mutant(
            "slice may feed a concatenation", _GRAPH,
            'if node.kind in SLICES:\n                raise GraphError(\n                '
            '    f"{name}: {kind}',
            'if False:\n                raise GraphError(\n                '
            '    f"{name}: {kind}',
            "it would need a copy, which the compiler cannot make",
            _TEST_GRAPH,
        ),
        Mutant(
            "slice may feed a relu", _GRAPH,
            'if node.kind in SLICES:\n            raise GraphError(\n            '
            '    f"{name}: relu',
            'if False:\n            raise GraphError(\n            '
            '    f"{name}: relu',
            "it would need a copy, which the compiler cannot make",
            _TEST_GRAPH,
        ),
        Mutant(
            "tensor may be part of two concatenations", _GRAPH,
            "            if owner is not None:",
            "            if False:",
            "it would have two places",
            _TEST_GRAPH,
        ),
        Mutant(
            "relu fused although the product has two readers", _GRAPH,
            "len(users) != 1",
            "len(users) < 1",
            "the other reader finds no tensor",
            _TEST_GRAPH,
        ),
        Mutant(
            "relu fused into an output", _GRAPH,
            " or name in self._outputs:\n            return None",
            ":\n            return None",
            "the output is never written",
            _TEST_GRAPH,
        ),
        Mutant(
            "source not loaded before its view is read", _TILE,
            "sources += reversed(node.inputs)",
            "sources += ()",
            "the view shows words that nobody loaded",
            _TEST_TILE, ci=True,
        ),
        Mutant(
            "sources loaded in reverse", _TILE,
            "sources += reversed(node.inputs)",
            "sources += node.inputs",
            "loads come in another order than the graph declares",
            _TEST_TILE,
        ),
        Mutant(
            "leaf loaded again by every reader", _TILE,
            "self._loaded.add(node.name)",
            "pass",
            "cycles for words that are there already",
            _TEST_TILE,
        ),
        Mutant(
            "last tile always four columns wide", _OPS,
            "cols = min(size, dst.cols - col)",
            "cols = size",
            "a tile reaches past the edge of its product",
            _TEST_TILE,
        ),
        Mutant(
            "tiles of a long product replace each other", _OPS,
            "accumulate=inner > 0",
            "accumulate=False",
            "only the last part of K counts",
            _TEST_TILE,
        ),
        Mutant(
            "first tile accumulates", _OPS,
            "accumulate=inner > 0",
            "accumulate=True",
            "the sums start from what the scratchpad held",
            _TEST_TILE,
        ),
        Mutant(
            "tile of a transposed operand not transposed", _OPS,
            "b.part(col, inner, cols, depth)",
            "b.part(inner, col, cols, depth)",
            "rows and columns of B are exchanged",
            _TEST_TILE,
        ),
        Mutant(
            "fused relu left out", _TILE,
            "self._scales.product[node.name], relu)",
            "self._scales.product[node.name], False)",
            "negative values stay",
            _TEST_TILE,
        ),
        Mutant(
            "requantization of an addend left out", _TILE,
            "if not rescale.is_identity:",
            "if False:",
            "operands of different scales are added",
            _TEST_TILE,
        ),
        Mutant(
            "requantization by exactly 1 kept", _TILE,
            "if not rescale.is_identity:",
            "if True:",
            "cycles for nothing: the recorded counts have none",
            _TEST_TILE,
        ),
        Mutant(
            "argmax of the first row for all", _TILE,
            "yield ArgmaxRow(name, source.row(row), dst.row(row))",
            "yield ArgmaxRow(name, source.row(0), dst.row(row))",
            "every row has the token of the first",
            _TEST_TILE,
        ),
        Mutant(
            "buffer reused while its last reader runs", _BUFFERS,
            "if block[2] >= life.first]",
            "if block[2] > life.first]",
            "an operation writes over what it reads",
            _TEST_BUFFERS, ci=True,
        ),
        Mutant(
            "gap one word too small taken", _BUFFERS,
            "block_base - base >= words",
            "block_base - base >= words - 1",
            "the last word belongs to two buffers",
            _TEST_BUFFERS,
        ),
        Mutant(
            "life ends with the last write", _BUFFERS,
            "for place in (*reads(op), *writes(op)):",
            "for place in writes(op):",
            "readers find another tensor",
            _TEST_BUFFERS,
        ),
        Mutant(
            "program one word larger than the scratchpad accepted", _BUFFERS,
            "bases[name] + life.words > scratchpad_words",
            "bases[name] + life.words > scratchpad_words + 1",
            "the last word has no place",
            _TEST_BUFFERS,
        ),
        Mutant(
            "outputs before inputs in external memory", _EMIT,
            "external=(*sources.values(), *outputs.values())",
            "external=(*outputs.values(), *sources.values())",
            "the order of a step is x, weights, cache, outputs",
            _TEST_EMIT,
        ),
        Mutant(
            "gaps between rows ignored", _EMIT,
            "if all(place.is_contiguous for place in places):",
            "if True:",
            "a strided tensor is moved as one vector",
            _TEST_EMIT,
        ),
        Mutant(
            "rows of a load all come from the first", _EMIT,
            "yield index * cols + start, tuple(",
            "yield start, tuple(",
            "external memory is read at one place again and again",
            _TEST_EMIT,
        ),
        Mutant(
            "stride of A taken for B", _EMIT,
            "sb=b.stride",
            "sb=a.stride",
            "rows of B are as far apart as those of A",
            _TEST_EMIT,
        ),
        Mutant(
            "tensor said to live to the end of its writer", _EMIT,
            "*written[name], last_instruction[buffer.last],",
            "*written[name], written[name][1],",
            "tests would read tensors back too early",
            _TEST_EMIT,
        ),
        Mutant(
            "overlap check looks at no neighbour", _OVERLAP,
            "assert before[1] <= block[0] and block[1] <= behind[0]", "assert behind",
            "an allocator that overwrites living words would pass",
            _TEST_OVERLAP, ci=True,
        ),
        Mutant(
            "overlap check of buffers asks for one written word only", _OVERLAP,
            "place.of(marks).all()", "place.of(marks).any()",
            "a row that is written after it is read would pass",
            _TEST_OVERLAP,
        ),
        Mutant(
            "overlap check lets an instruction read what it writes first", _OVERLAP,
            """            view[...] = 0
        for view in read[index]:  # comes before its own write
            view[...] = index + 1""",
            """            pass
        for view in read[index]:
            view[...] = index + 1
        for view in written[index]:
            view[...] = 0""",
            "a first tile that accumulates would pass",
            _TEST_OVERLAP,
        ),
        Mutant(
            "overlap check of buffers forgets that sources are read to the end", _OVERLAP,
            "ending[index].append(name)", "ending[index - 1].append(name)",
            "a product whose sums lie over its operand would pass",
            _TEST_OVERLAP,
        ),
        Mutant(
            "tiles of other products with the addresses of the first", _EMIT,
            "place._replace(buffer=\"\", offset=0)",
            "place",
            "addresses are added to offsets",
            _TEST_EMIT,
        ),
        Mutant(
            "overlap check lets late writes pass", _OVERLAP,
            "assert new <= home.ready,", "assert new <= home.until,",
            "a tensor overwritten while it lives would pass",
            _TEST_OVERLAP,
        ),
        Mutant(
            "overlap check lets stale words pass", _OVERLAP,
            "assert old >= home.first,", "assert old >= _NEVER,",
            "a tensor that was not written whole would pass",
            _TEST_OVERLAP,
        ),
        Mutant(
            "row of a chain sees the row below it", _VISIBLE,
            "tuple((2 << row) - 1 for",
            "tuple((4 << row) - 1 & (1 << rows) - 1 for",
            "a draft token knows the token that it is to guess",
            _TEST_VISIBLE, ci=True,
        ),
        Mutant(
            "node of a tree is blind to itself", _VISIBLE,
            "(tails[parent] if parent >= 0 else 0) | 1 << row",
            "(tails[parent] if parent > 0 else 0) | 1 << row",
            "children of the first node do not see it",
            _TEST_VISIBLE,
        ),
        Mutant(
            "neighbours of a run counted from its end", _VISIBLE,
            "if runs and sum(runs[-1]) == column:",
            "if runs and runs[-1][0] + 1 == column:",
            "a run of three is two runs",
            _TEST_VISIBLE,
        ),
        Mutant(
            "last key of a tail not counted to its end", _VISIBLE,
            "return self.prefix + tail.bit_length() if tail",
            "return self.prefix + tail.bit_count() if tail",
            "a tile is too narrow for what its rows see behind gaps",
            _TEST_VISIBLE,
        ),
        Mutant(
            "row that sees nothing accepted", _VISIBLE,
            "if not self.prefix and not tail:",
            "if not self.prefix and tail < 0:",
            "its softmax is of nothing",
            _TEST_VISIBLE,
        ),
        Mutant(
            "interpreter's softmax is over all keys", "src/capra/ir/interpreter.py",
            "seen = node.visible.columns(row)",
            "seen = list(range(node.visible.keys))",
            "scores of invisible keys are not 0",
            _TEST_IR_ATTENTION,
        ),
        Mutant(
            "float's probabilities of invisible keys", "src/capra/ir/reference.py",
            "np.where(seen, scores, -np.inf)",
            "np.where(seen, scores, -1.0)",
            "they get a share",
            _TEST_IR_ATTENTION,
        ),
        Mutant(
            "every head has the columns of the first", _GRAPH,
            "return slice(head * width, (head + 1) * width)",
            "return slice(0, width)",
            "the other heads are never read",
            _TEST_IR_ATTENTION,
        ),
        Mutant(
            "a refused attention keeps names", _GRAPH,
            "            self._check_new(each)\n        self._inner.update(inner)",
            "            self._inner.add(each)",
            "what is inside may have the name of a node",
            _TEST_IR_ATTENTION,
        ),
        Mutant(
            "gap with the words that were there", _MASKS,
            "if first > behind:",
            "if first < behind:",
            "an invisible key has the probability of another",
            _TEST_ATTENTION, ci=True,
        ),
        Mutant(
            "gap starts one key late", _MASKS,
            "gap = (0, behind, 1, first - behind)",
            "gap = (0, first - 1, 1, 1)",
            "all but the last key of a gap keep what was there before",
            _TEST_ATTENTION,
        ),
        Mutant(
            "runs put over each other", _MASKS,
            "        at += length\n    yield SoftmaxRow",
            "        at = length\n    yield SoftmaxRow",
            "the third run lies over the second",
            _TEST_ATTENTION,
        ),
        Mutant(
            "run read from the first key", _MASKS,
            "part = source.part(0, first, 1, length)",
            "part = source.part(0, behind, 1, length)",
            "scores of the first keys for those behind a gap",
            _TEST_ATTENTION,
        ),
        Mutant(
            "scores changed while they are moved", _MASKS,
            "scores.part(0, at, 1, length), UNITY)",
            "scores.part(0, at, 1, length), index)",
            "the softmax is of other scores",
            _TEST_ATTENTION,
        ),
        Mutant(
            "probabilities moved back by one", _MASKS,
            "part = dst.part(0, first, 1, length)",
            "part = dst.part(0, behind, 1, length)",
            "they lie in the gap, and the run has old words",
            _TEST_ATTENTION,
        ),
        Mutant(
            "keys behind the last without zeros", _MASKS,
            "(*runs, (source.cols, 0))",
            "runs",
            "keys that only other rows of the tile see get old words",
            _TEST_ATTENTION,
        ),
        Mutant(
            "zeros of a mask not written", _MASKS,
            "if is_new:  # before",
            "if False:  # before",
            "the product with the values reads what was there before",
            _TEST_ATTENTION, ci=True,
        ),
        Mutant(
            "zeros start one key late", _MASKS,
            "hidden = (0, source.cols - max(mask), blind, max(mask))",
            "hidden = (0, source.cols - 1, blind, 1)",
            "all but the last hidden key keep what was there before",
            _TEST_ATTENTION,
        ),
        Mutant(
            "last blind row without zeros", _MASKS,
            "blind = 1 + max(row",
            "blind = max(row",
            "the third row of a tile sees the fourth",
            _TEST_ATTENTION,
        ),
        Mutant(
            "softmax of the whole row in spite of its mask", _MASKS,
            "seen = (row, 0, 1, source.cols - count)",
            "seen = (row, 0, 1, source.cols)",
            "every row sees the whole block",
            _TEST_ATTENTION,
        ),
        Mutant(
            "masks of a shared buffer not aligned", _MASKS,
            "buffer.part(0, buffer.cols - keys, rows, keys)",
            "buffer.part(0, 0, rows, keys)",
            "a narrower softmax finds other words where its zeros should be",
            _TEST_ATTENTION,
        ),
        Mutant(
            "masks of other shapes share a buffer", _MASKS,
            "self._shared[mask] = temporary(f\"{name}.fixed\", rows, self._widest[mask])",
            "self._shared[mask] = temporary(\"fixed\", rows, self._widest[mask])",
            "the zeros of one mask are not those of another",
            _TEST_ATTENTION,
        ),
        Mutant(
            "gap taken for a mask", _MASKS,
            "if any(len(runs) != 1 or runs[0][0] for runs in rows):",
            "if any(runs[0][0] for runs in rows):",
            "a row sees its first run only",
            _TEST_ATTENTION,
        ),
        Mutant(
            "run that starts late taken for a mask", _MASKS,
            "if any(len(runs) != 1 or runs[0][0] for runs in rows):",
            "if any(len(runs) != 1 for runs in rows):",
            "a row sees the first keys for its own",
            _TEST_ATTENTION,
        ),
        Mutant(
            "tile over the keys of its first row", _TILE,
            "keys = max(node.visible.end(row) for row in rows)",
            "keys = node.visible.end(rows[0])",
            "later rows of the tile miss keys",
            _TEST_ATTENTION,
        ),
        Mutant(
            "every tile has the first queries", _TILE,
            "(q, rows.start, len(rows)), (k, 0, keys)",
            "(q, 0, len(rows)), (k, 0, keys)",
            "the fifth row is the first once more",
            _TEST_ATTENTION,
        ),
        Mutant(
            "heads of a result over each other", _TILE,
            "place.part(row, cut.start, count, width)",
            "place.part(row, 0 if place is dst else cut.start, count, width)",
            "the last head is in the columns of the first",
            _TEST_ATTENTION,
        ),
        Mutant(
            "probabilities weigh the keys", _TILE,
            "(k, 0, keys), (v, 0, keys),",
            "(k, 0, keys), (k, 0, keys),",
            "a sum of keys for one of values",
            _TEST_ATTENTION,
        ),
        Mutant(
            "values loaded behind the first product that reads them", _TILE,
            "yield from load_values\n                yield from self._tile(node, head.mixed, tile,",
            "yield from self._tile(node, head.mixed, tile, probs, value, out)\n"
            "                yield from load_values\n"
            "                yield from self._tile(node, head.mixed, tile,",
            "the first head weighs what the scratchpad held",
            _TEST_ATTENTION,
        ),
        Mutant(
            "two tiles with one buffer of sums", _TILE,
            'temporary(f"{tensor.name}.{tile}.sums"',
            'temporary(f"{tensor.name}.sums"',
            "a buffer that lives from the first tile to the last",
            _TEST_ATTENTION,
        ),
        Mutant(
            "scores in the scale of the result", _TILE,
            "self._scales.product[tensor.name])",
            "self._scales.product[node.inner[0].mixed.name])",
            "integers of another scale",
            _TEST_ATTENTION,
        ),
        Mutant(
            "bound loads keys that no row sees", _BOUNDS,
            "rows.update(*map(node.visible.columns, range(node.rows)))",
            "rows.update(range(node.visible.keys))",
            "a program that loads less would be below it",
            _TEST_BOUNDS,
        ),
        Mutant(
            "bound of attentions that share no keys", _BOUNDS,
            "rows[product.right] += product.rows",
            "rows[product.right] = product.rows",
            "a program that tiles rows of both would be below it",
            _TEST_BOUNDS,
        ),
        Mutant(
            "joined store when the first of its run is complete", _TRANSFERS,
            "if not incomplete[run[0]]:",
            "if True:",
            "words that are not there yet are stored",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "tensors joined across one that is not loaded", _TRANSFERS,
            "            runs.append([])\n",
            "            pass\n",
            "they do not follow each other in external memory",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "buffers joined behind words of something else", _TRANSFERS,
            "if left.end != self._words[left.buffer] or right.offset != 0:",
            "if right.offset != 0:",
            "the tensors do not follow each other in the scratchpad",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "run of tensors longer than a transfer", _TRANSFERS,
            "elif before and words + size <= _LONGEST and buffers.join(",
            "elif before and buffers.join(",
            "no instruction counts as many words",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "words of the last two tensors of a run counted", _TRANSFERS,
            "words += size",
            "words = size",
            "no instruction counts as many words",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "buffer moved behind the first of its chain", _TRANSFERS,
            "start += self._words[before]",
            "start = self._words[before]",
            "the third buffer lies over the second",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "tensors with gaps joined", _TRANSFERS,
            "if not (left.is_contiguous and right.is_contiguous):",
            "if False:",
            "the words between their rows are something else's",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "parts of one buffer moved at once in any order", _TRANSFERS,
            "return right.offset == left.end",
            "return True",
            "they do not follow each other in the scratchpad",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "joined buffers moved at once in any order", _TRANSFERS,
            "return self._next.get(left.buffer) == right.buffer",
            "return True",
            "they do not follow each other in the scratchpad",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "block attention that does not fit kept", _PIPELINE,
            "_JOINED, _BLOCKS, _JOINED | _BLOCKS)", "_JOINED)",
            "-O1 refuses chips that -O0 fits",
            (f"{_TEST_OPTIMIZATION}::test_what_takes_room_is_left_out_where_it_does_not_fit",),
        ),
        Mutant(
            "joined buffers that do not fit kept", _PIPELINE,
            "_JOINED, _BLOCKS, _JOINED | _BLOCKS)", "_BLOCKS)",
            "a program that fits without the pass is refused with it",
            _TEST_TRANSFERS,
        ),
        Mutant(
            "unread outputs stored all the same", "src/capra/lm/target.py",
            'with_attention="unread-outputs" not in optimize',
            "with_attention=True",
            "every layer's attention goes to memory for nobody",
            (f"{_TEST_OPTIMIZATION}::test_what_no_session_reads_stays_in_the_scratchpad",),
        ),
        Mutant(
            "level 1 without its last pass", "src/capra/compiler/optimization.py",
            "O1: Final[Optimization] = frozenset(OPTIMIZATIONS)",
            "O1: Final[Optimization] = frozenset(OPTIMIZATIONS[:-1])",
            "blocks have guesses behind the last token",
            (f"{_TEST_OPTIMIZATION}::test_levels_and_lists_of_names",),
        ),
        Mutant(
            "bound takes a sum of one row for one of four", _BOUNDS,
            "Fraction(sums), min(ARRAY_SIZE, together))",
            "Fraction(sums), ARRAY_SIZE)",
            "lower than it need be",
            _TEST_BOUNDS,
        ),
        Mutant(
            "bound loads every leaf whole", _BOUNDS,
            "        for name in self._graph.outputs:\n            place =",
            "        for name in self._places:\n            place =",
            "a program that loads less would be below it",
            _TEST_BOUNDS,
        ),
        Mutant(
            "certificate drops products with 0 on one side only", _TERMS,
            "kept = (left != zero) & (right != zero)",
            "kept = left != zero",
            "equal sums are refused",
            _TEST_TERMS,
        ),
        Mutant(
            "certificate takes any rescale for 0", _TERMS,
            "if multiplier == 0 or term == self._numbers.get(_ZERO):",
            "if multiplier < 4 or term == self._numbers.get(_ZERO):",
            "what differs would be accepted",
            _TEST_TERMS,
        ),
    ),
    full=("tests/compiler", "tests/ir", "tests/golden", "tests/system/test_causality.py"),
)  # fmt: skip
