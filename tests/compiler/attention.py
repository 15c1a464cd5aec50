"""Attention as the models' graphs have it, in random shapes and over random visible sets."""

import random

from tests.ir.visible_sets import random_visible

from capra.ir.graph import Graph
from capra.ir.visible import Visible


def attention_graph(
    rows: int, cache: int, heads: int, width: int, *, name: str = "g",
    visible: Visible | None = None,
) -> Graph:  # fmt: skip
    """`rows` queries after `cache` keys and values, `heads` heads of `width`; output "attn".

    They are a chain's unless `visible` is given.
    """
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
    graph.attention(
        "attn", "q", sources["k"], sources["v"], visible=visible or Visible.causal(rows, cache),
        heads=heads, scale=width**-0.5,
    )  # fmt: skip
    for output in ("k", "v", "attn"):
        graph.output(output)
    return graph


def random_attention(seed: int) -> Graph:
    """Up to 10 rows, 9 cached ones, 3 heads of 1 to 6 columns; a chain, a tree or any mask."""
    draw = random.Random(seed)
    rows, cache = draw.randint(1, 10), draw.choice((0, 0, 1, draw.randint(2, 9)))
    heads, width = draw.randint(1, 3), draw.randint(1, 6)
    visible = random_visible(draw, rows, rows + cache)
    return attention_graph(rows, cache, heads, width, name=f"attention_{seed}", visible=visible)
