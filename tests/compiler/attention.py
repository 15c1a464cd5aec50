"""Attention row by row, as the models' graphs have it, in random shapes."""

import random
from functools import partial

from capra.ir.graph import Graph


def attention_graph(rows: int, cache: int, heads: int, width: int, *, name: str = "g") -> Graph:
    """`rows` queries after `cache` keys and values, `heads` heads of `width`; output "attn"."""
    graph = Graph(name)
    whole = heads * width
    graph.input("x", rows, whole)
    for weight in ("wq", "wk", "wv"):
        graph.weight(weight, whole, whole)
    graph.matmul("q", "x", "wq", scale=whole**-0.5)
    sources = {}
    for new in ("k", "v"):
        graph.matmul(new, "x", f"w{new}", scale=whole**-0.5)
        sources[new] = new
        if cache:
            graph.input(f"{new}.cache", cache, whole, tag=new)
            sources[new] = graph.concat_rows(f"{new}.all", [f"{new}.cache", new], tag=new)
    k, v = sources["k"], sources["v"]
    parts = [
        attention_row(graph, row, cache + row + 1, heads, width, k=k, v=v) for row in range(rows)
    ]
    graph.concat_rows("attn", parts, tag="attn")
    for output in ("k", "v", "attn"):
        graph.output(output)
    return graph


def attention_row(
    graph: Graph, row: int, seen: int, heads: int, width: int, *, k: str, v: str, tag: str = "",
    as_matmul: bool = False,
) -> str:  # fmt: skip
    """Row `row` of the attention over the first `seen` rows of k and v.

    With `as_matmul` the scores are a transposed product, which is another kind of node.
    """
    graph.slice_rows(f"q.r{row}", "q", row, 1, tag="q")
    graph.slice_rows(f"k.r{row}", k, 0, seen, tag="k")
    graph.slice_rows(f"v.r{row}", v, 0, seen, tag="v")
    products = []
    for head in range(heads):
        operands = {each: f"{each}.r{row}" for each in "qkv"}
        if heads > 1:
            for each, source in operands.items():
                cut = f"{each}.r{row}.h{head}"
                operands[each] = graph.slice_cols(cut, source, head * width, width, tag=each)
        at = f"r{row}.h{head}"
        scores = partial(graph.matmul, transpose_b=True) if as_matmul else graph.scores
        scores(f"s.{at}", operands["q"], operands["k"], scale=width**-0.5, tag=f"s.h{head}{tag}")
        graph.softmax(f"p.{at}", f"s.{at}", tag=f"p.h{head}")
        graph.matmul(f"a.{at}", f"p.{at}", operands["v"], tag="attn")
        products.append(f"a.{at}")
    if heads == 1:
        return products[0]
    return graph.concat_cols(f"attn.r{row}", products, tag="attn")


def random_attention(seed: int) -> Graph:
    """Up to 10 rows, 9 cached ones, 3 heads of 1 to 6 columns."""
    draw = random.Random(seed)
    shape = draw.randint(1, 10), draw.choice((0, 0, 1, draw.randint(2, 9)))
    return attention_graph(*shape, draw.randint(1, 3), draw.randint(1, 6), name=f"attention_{seed}")
