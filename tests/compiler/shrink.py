"""Shrinks a graph for as long as something is still wrong with it.

It works on the text form: lines are dropped or rewritten, and what does not parse to a graph is no
candidate. Every step leaves fewer or simpler nodes, or smaller numbers, so it ends.
"""

import re
from collections.abc import Callable, Iterator

from capra.errors import GraphError
from capra.ir.graph import LEAVES, Graph, Node
from capra.ir.text import parse_graph, print_graph

_SIDE = re.compile(r"(?<=count=)\d+|\b\d+(?=x\d+\b)|(?<=\dx)\d+\b")
_NUMBER = re.compile(_SIDE.pattern + r"|(?<=start=)\d+")


def shrink(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """The smallest failing graph that single steps lead to; `graph` itself must fail."""
    assert fails(graph), "the graph does not fail"
    tried = {print_graph(graph)}
    while True:
        for smaller in _smaller(graph):
            text = print_graph(smaller)
            if text in tried:
                continue
            tried.add(text)
            if fails(smaller):
                graph = smaller
                break
        else:
            return graph


def _smaller(graph: Graph) -> Iterator[Graph]:
    for text in _rewritten(graph):
        try:
            smaller = parse_graph(text)
        except GraphError:
            continue
        if not smaller.outputs:
            continue
        yield _needed(smaller)
        yield smaller


def _needed_names(graph: Graph) -> set[str]:
    """The tensors that an output is computed from, outputs included."""
    needed = set(graph.outputs)
    for node in reversed(list(graph)):
        if node.name in needed:
            needed.update(node.inputs)
    return needed


def _needed(graph: Graph) -> Graph:
    """The graph without the nodes that no output needs."""
    needed = _needed_names(graph)
    lines = print_graph(graph).splitlines()
    kept = [line for line in lines if line.split()[0] in needed | {"graph", "output"}]
    return parse_graph("\n".join(kept))


def _rewritten(graph: Graph) -> Iterator[str]:
    """Texts that are simpler, the largest steps first; not all of them are graphs."""
    header, *lines = print_graph(graph).splitlines()
    nodes, outputs = lines[: len(graph.nodes)], lines[len(graph.nodes) :]

    def text(nodes: list[str], outputs: list[str] = outputs) -> str:
        return "\n".join([header, *nodes, *outputs])

    for line in outputs if len(outputs) > 1 else ():
        yield text(nodes, [line])
    needed = _needed_names(graph)
    for node in graph:
        if node.name not in needed:  # it may be a dead end that is at fault
            yield text(nodes, [f"output {node.name}"])
    for i, line in enumerate(outputs):
        yield text(nodes, outputs[:i] + outputs[i + 1 :])
        for operand in graph[line.split()[1]].inputs:
            yield text(nodes, [*outputs[:i], f"output {operand}", *outputs[i + 1 :]])
    for i, node in enumerate(graph):
        before, after = nodes[:i], nodes[i + 1 :]
        yield text(before + after)
        for operand in node.inputs:
            uses = [_renamed(line, node, operand) for line in (*after, *outputs)]
            yield text(before + uses[: len(after)], uses[len(after) :])
        if node.kind not in LEAVES:
            yield text([*before, f"{node.name} = input {node.rows}x{node.cols}", *after])
        if "scale=" in nodes[i]:
            yield text([*before, re.sub(r" scale=\S+", "", nodes[i]), *after])
    for side in sorted({int(n) for n in _SIDE.findall("\n".join(nodes))}, reverse=True):
        for less in _less(side, 1):
            yield text([_with_side(line, side, less) for line in nodes])
    for i, line in enumerate(nodes):
        for match in _NUMBER.finditer(line):
            head, tail = line[: match.start()], line[match.end() :]
            for less in _less(int(match[0]), 0 if head.endswith("start=") else 1):
                yield text([*nodes[:i], f"{head}{less}{tail}", *nodes[i + 1 :]])


def _renamed(line: str, node: Node, operand: str) -> str:
    return " ".join(operand if word == node.name else word for word in line.split())


def _less(number: int, lowest: int) -> list[int]:
    return sorted({n for n in (lowest, number // 2, number - 1) if lowest <= n < number})


def _with_side(line: str, side: int, less: int) -> str:
    return _SIDE.sub(lambda match: str(less) if int(match[0]) == side else match[0], line)
