"""Reads at positions that count the elements of a matrix, as exporters write x[rows, columns].

    Gather(Reshape(x, [a b]), i b + j)   ->   Unsqueeze(x)      x[a, b], i = 0 … a-1, j = 0 … b-1

i and j are Ranges along dimensions of their own, that of i before that of j. No integer set can say
what is at i b + j where b is known only at run time, but which element that is can be said here.
Exact to the bit.
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Dim, Graph, Node
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, is_filled

_MOVES_NOTHING = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def read_in_place(graph: Graph) -> Rewritten:
    """Apply the table above."""
    return apply_rule(graph, "positions", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.domain or node.op != "Gather" or node.get("axis", 0) != 0:
        return None
    flat, reshape = scope.tensor(node.inputs[0]), scope.producer(node.inputs[0])
    if reshape is None or reshape.op not in ("Reshape", "Flatten"):
        return None
    matrix = scope.tensor(reshape.inputs[0])
    if matrix.rank != 2 or flat.shape[1:] not in ((), (1,)):
        return None
    found = _find_positions(scope, node.inputs[1], *matrix.shape)
    if found is None:
        return None
    rank = scope.tensor(node.outputs[0]).rank
    axes = np.array([k for k in range(rank) if k not in found], np.int64)
    places = scope.constant(f"{node.outputs[0]}_axes", axes)
    text = f"Gather '{node.name}' reads '{matrix.name}' element for element"
    view = Node(node.name, "Unsqueeze", (matrix.name, places.name), node.outputs)
    return Change(text, (view,), (places,))


def _find_positions(scope: Scope, name: str, rows: Dim, columns: Dim) -> tuple[int, int] | None:
    """The dimensions of i and j where a tensor is i * columns + j."""
    total = scope.producer(name)
    if total is None or total.op != "Add":
        return None
    for scaled, j in (total.inputs, total.inputs[::-1]):
        product = scope.producer(scaled)
        if product is None or product.op != "Mul":
            continue
        for i, step in (product.inputs, product.inputs[::-1]):
            if not _is_number(scope, step, columns):
                continue
            rank = scope.tensor(name).rank
            places = _counted(scope, i, rows, rank), _counted(scope, j, columns, rank)
            if places[0] is not None and places[1] is not None and places[0] < places[1]:
                return places[0], places[1]
    return None


def _counted(scope: Scope, name: str, extent: Dim, rank: int) -> int | None:
    """The dimension, of `rank` in all, along which a tensor counts 0, 1, … up to an extent."""
    shape = scope.tensor(name).shape
    long = [k for k, d in enumerate(shape) if d != 1]
    if len(long) != 1 or shape[long[0]] != extent:
        return None
    producer = scope.producer(name)
    while producer is not None and producer.op in _MOVES_NOTHING:
        if scope.tensor(producer.outputs[0]).dtype not in (np.int32, np.int64):
            return None
        producer = scope.producer(producer.inputs[0])
    if producer is None or producer.op != "Range":
        return None
    start, _, step = map(scope.value, producer.inputs)
    counts = is_filled(start, 0) and is_filled(step, 1)
    return rank - len(shape) + long[0] if counts else None


def _is_number(scope: Scope, name: str, expected: Dim) -> bool:
    """Whether a tensor is one number, which is this extent."""
    tensor = scope.tensor(name)
    elements = tensor.value if tensor.value is not None else tensor.entries
    return elements is not None and elements.size == 1 and elements.item() == expected
