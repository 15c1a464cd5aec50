"""The graphs of a language model: step, verifier, prefill and draft.

All are built by the same lines and share their tags, so that one Ranges value compiles them all.
"""

from typing import Final

from capra.ir.graph import Graph
from capra.ir.visible import Visible
from capra.lm.model import ModelConfig

CACHE_SUFFIX: Final = ".cache"
"""l0.k.cache holds the cached rows that l0.k continues."""


def cache_names(config: ModelConfig) -> tuple[str, ...]:
    """Names of the cached tensors of every layer, keys then values."""
    return tuple(f"l{layer}.{kv}" for layer in range(config.layers) for kv in ("k", "v"))


def step_graph(config: ModelConfig, cache: int) -> Graph:
    """One token after `cache` others: outputs token, logits, new k, new v."""
    return _decoder(config, 1, cache, f"step_c{cache}", with_attention=False)


def verifier_graph(
    config: ModelConfig, rows: int, cache: int, *, with_attention: bool = True
) -> Graph:
    """`rows` tokens after `cache` others, each row blind to later ones.

    Outputs as the step's, and the attention output of every layer unless it is left out.
    """
    name = f"verify_m{rows}_c{cache}"
    return _decoder(config, rows, cache, name, with_attention=with_attention)


def prefill_graph(config: ModelConfig, rows: int, cache: int) -> Graph:
    """`rows` prompt tokens after `cache` others: outputs only the new k and v of every layer."""
    graph = Graph(f"prefill_m{rows}_c{cache}")
    x = _Decoder(graph, config, rows, cache, last_layer_is_cache_only=True).run()
    assert x is None
    for name in cache_names(config):
        graph.output(name)
    return graph


def draft_graph(vocab_size: int, width: int) -> Graph:
    """The bigram draft: one product and its argmax; outputs token and logits."""
    graph = Graph("draft")
    graph.input("x", 1, width)
    graph.weight("table", width, vocab_size)
    graph.matmul("logits", "x", "table")
    graph.argmax("token", "logits")
    graph.output("token")
    graph.output("logits")
    return graph


def _decoder(
    config: ModelConfig, rows: int, cache: int, name: str, *, with_attention: bool
) -> Graph:
    graph = Graph(name)
    x = _Decoder(graph, config, rows, cache).run()
    assert x is not None
    graph.matmul("logits", x, "unembed")
    graph.argmax("token", "logits")
    attention = [f"l{layer}.attn" for layer in range(config.layers)] if with_attention else []
    for output in ("token", "logits", *cache_names(config), *attention):
        graph.output(output)
    return graph


class _Decoder:
    """Adds the layers of a model to a graph."""

    def __init__(
        self,
        graph: Graph,
        config: ModelConfig,
        rows: int,
        cache: int,
        *,
        last_layer_is_cache_only: bool = False,
    ) -> None:
        self._graph = graph
        self._config = config
        self._rows = rows
        self._cache = cache
        self._cache_only = last_layer_is_cache_only

    def run(self) -> str | None:
        """The name of the last layer's output, or None where it ends with its keys and values."""
        graph, config = self._graph, self._config
        x: str | None = graph.input("x", self._rows, config.width)
        for name, (rows, cols) in config.weight_shapes().items():
            if not (self._cache_only and name in self._unused_by_cache()):
                graph.weight(name, rows, cols)
        if self._cache:
            for name in cache_names(config):
                graph.input(f"{name}{CACHE_SUFFIX}", self._cache, config.width, tag=name)
        for layer in range(config.layers):
            assert x is not None
            x = self._layer(x, layer)
        return x

    def _unused_by_cache(self) -> set[str]:
        last = self._config.layers - 1
        return {"unembed", *(f"layers.{last}.{name}" for name in ("wq", "wo", "w1", "w2"))}

    def _layer(self, x: str, layer: int) -> str | None:
        graph, at, weights = self._graph, f"l{layer}", f"layers.{layer}"
        cache_only = self._cache_only and layer == self._config.layers - 1
        if not cache_only:
            graph.matmul(f"{at}.q", x, f"{weights}.wq")
        graph.matmul(f"{at}.k", x, f"{weights}.wk")
        graph.matmul(f"{at}.v", x, f"{weights}.wv")
        if cache_only:
            return None
        keys, values = self._with_cache(f"{at}.k"), self._with_cache(f"{at}.v")
        attention = graph.attention(
            f"{at}.attn", f"{at}.q", keys, values,
            visible=Visible.causal(self._rows, self._cache), heads=self._config.heads,
            scale=self._config.head_width**-0.5, inner_tag=at,
        )  # fmt: skip
        graph.matmul(f"{at}.o", attention, f"{weights}.wo")
        middle = graph.add(f"{at}.mid", x, f"{at}.o")
        graph.matmul(f"{at}.ff1.product", middle, f"{weights}.w1")
        graph.relu(f"{at}.ff1", f"{at}.ff1.product")
        graph.matmul(f"{at}.ff2", f"{at}.ff1", f"{weights}.w2")
        return graph.add(f"{at}.out", middle, f"{at}.ff2")

    def _with_cache(self, name: str) -> str:
        """The cached rows and the block's own below each other."""
        if not self._cache:
            return name
        return self._graph.concat_rows(f"{name}.all", [f"{name}{CACHE_SUFFIX}", name], tag=name)
