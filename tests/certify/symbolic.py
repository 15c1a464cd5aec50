"""Graphs expanded into terms, and compiled programs executed on them."""

from capra.certify.dataflow import Dataflow, Rows
from capra.certify.explain import Difference
from capra.certify.instructions import check_instructions
from capra.certify.terms import Terms
from capra.compiler.passes.scales import assign_scales
from capra.ir.graph import Graph, Node
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.isa.program import Program


def expanded(graph: Graph, scales: Scales) -> tuple[Dataflow, dict[str, Rows]]:
    dataflow = Dataflow(Terms())

    def leaf(node: Node, scale: float) -> Rows:
        return dataflow.leaf(node.name, 0, node.rows, node.cols, scale)

    return dataflow, dataflow.expand(graph, scales, leaf)


def check(graph: Graph, ranges: Ranges, program: Program) -> Difference | None:
    dataflow, values = expanded(graph, assign_scales(graph, ranges))
    inputs = {
        slot.name: dataflow.leaf(slot.name, 0, slot.rows, slot.cols, slot.scale)
        for slot in program.slots("input", "weight")
    }
    return check_instructions(program, dataflow, inputs, values, graph.outputs)
