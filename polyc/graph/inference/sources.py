"""What a value is computed from: inputs of the graph, and counts of what is true.

A mask by which exporters assign says by a sum how many elements it has:

    n = ReduceSum(Cast(m));  y = ScatterND(x, Transpose(NonZero(m)), Expand(v, n))

There n is a size that a call finds, and the same one as that of NonZero, which counts alike. And
who writes an element follows from how many true ones come before it: nobody searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.errors import NeedsValues, NotFixed, UnsupportedOp
from polyc.graph.ir import INTERNAL, Node, Tensor

_VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def find_sources(tensor: str, nodes: Iterable[Node], inputs: Sequence[str]) -> tuple[str, ...]:
    """The graph inputs that a tensor depends on, in their order."""
    seen = {tensor, *(name for node in walk_up(tensor, nodes) for name in node.inputs)}
    return tuple(name for name in inputs if name in seen)


def name_inputs(unknown: NotFixed, nodes: Iterable[Node], inputs: Sequence[str]) -> UnsupportedOp:
    """The error, with the inputs that the missing value is computed from, if it is a value's."""
    found = find_sources(unknown.tensor, nodes, inputs)
    return NeedsValues(str(unknown), found, unknown.cases) if found else unknown


def walk_up(tensor: str, nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes that a tensor is computed by, each once, the last ones first."""
    producers = {o: n for n in nodes for o in n.outputs if o}
    waiting, seen = [tensor], {tensor}
    while waiting:
        producer = producers.get(waiting.pop())
        if producer is None:
            continue
        yield producer
        for name in producer.inputs:
            if name and name not in seen:
                seen.add(name)
                waiting.append(name)


def mark_assigned(nodes: Sequence[Node]) -> Sequence[Node]:
    """ScatterND(x, Transpose(NonZero(m)), u)   ->   ScatterTrue(x, Transpose(NonZero(m)), u, m)"""
    producers = {o: n for n in nodes for o in n.outputs if o}

    def mark(node: Node) -> Node:
        if node.op != "ScatterND" or node.domain or len(node.inputs) != 3:
            return node
        rows = producers.get(node.inputs[1])
        if rows is None or rows.op != "Transpose" or rows.get("perm", (1, 0)) != (1, 0):
            return node
        found = producers.get(rows.inputs[0])
        if found is None or found.op != "NonZero":
            return node
        return replace(
            node, op="ScatterTrue", inputs=(*node.inputs, found.inputs[0]), domain=INTERNAL
        )

    return [mark(node) for node in nodes]


def find_counts(tensor: str, nodes: Sequence[Node], table: Mapping[str, Tensor]) -> dict[str, Node]:
    """Of what a tensor is computed by, the sums over all of a mask, as Counts; by their names.

    n = ReduceSum(Cast(Reshape(m)))   ->   n = Count(m)          m: bool[a, b]
    """
    producers = {o: n for n in nodes for o in n.outputs if o}
    counts = {}
    for node in walk_up(tensor, nodes):
        total = table.get(node.outputs[0])
        if node.op != "ReduceSum" or total is None or total.size != 1 or total.dtype != np.int64:
            continue
        mask = _find_mask(node.inputs[0], producers, table)
        if mask is not None:
            form = {"rank": total.rank}
            counts[node.name] = Node(node.name, "Count", (mask,), node.outputs, form, INTERNAL)
    return counts


def _find_mask(name: str, producers: Mapping[str, Node], table: Mapping[str, Tensor]) -> str | None:
    """The booleans that a tensor has as numbers, in whatever shape and order."""
    is_mask = False
    while True:
        is_mask |= name in table and table[name].dtype == np.bool_
        node = producers.get(name)
        if node is None or node.domain or node.op not in (_VIEWS if is_mask else {*_VIEWS, "Cast"}):
            return name if is_mask else None
        name = node.inputs[0]
