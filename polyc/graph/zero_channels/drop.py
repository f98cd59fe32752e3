"""Leave out channels that are computed for nothing, because weights are zero.

    Conv(Relu(Conv(x, W, b)), V)    ->    Conv(Relu(Conv(x, W[kept], b[kept])), V[:, kept])

Channel c goes where W[c] and b[c] are zero, or V[:, c] is; a channel that is another number, since
W[c] alone is zero, becomes a part of the next bias. Between may stand what treats channels one by
one, sums of several such tensors, which lose a channel where all who read it can do without, and
concatenations. What channels are and who needs them is found by one walk (`walk.py`).

For numbers that is the same. An infinity or a NaN is not carried on through a weight of zero any
more, and sums are rounded in another order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify import REWRITES
from polyc.graph.simplify.rewriting import Rewrite, RewriteNote, Rewritten
from polyc.graph.zero_channels.moves import HANDLERS
from polyc.graph.zero_channels.products import has_zeros
from polyc.graph.zero_channels.walk import Walk, walk_graph


def choose_rewrites(sparse: bool) -> tuple[tuple[int, Rewrite], ...]:
    """What simplifies a graph, with its levels; channels go last, when batch norms are folded."""
    return (*REWRITES, (2, drop_zero_channels)) if sparse else REWRITES


def drop_zero_channels(graph: Graph) -> Rewritten:
    """The graph without channels that nobody needs; one note for each product that made some."""
    if not any(has_zeros(Walk(graph), node) for node in graph.nodes):
        return Rewritten(graph)
    walk = walk_graph(graph, HANDLERS)
    kept = {name: walk.atoms.kept(c.atoms) for name, c in walk.channels.items()}
    if all(k.all() for k in kept.values()):
        return Rewritten(graph)
    tensors = {
        name: t if name not in kept else _without(t, walk.channels[name].axis, kept[name])
        for name, t in graph.tensors.items()
    }
    nodes = list(graph.nodes)
    _move_into_biases(walk, nodes, tensors)
    _cut_constants(walk, nodes, tensors)
    _count_again(walk, nodes, tensors)
    notes = tuple(
        RewriteNote("zero_channels", f"{told} dropped: weights of zero make them needless")
        for place, made in walk.makers.items()
        if (told := _told(graph.nodes[place], walk.atoms.kept(made.atoms)))
    )
    return Rewritten(graph.rewrite(nodes, tensors), notes)


def _told(node: Node, kept: np.ndarray) -> str:
    gone = int((~kept).sum())
    return f"{gone} of {len(kept)} channels of {node.op} '{node.name}'" if gone else ""


def _without(tensor: Tensor, axis: int, kept: np.ndarray) -> Tensor:
    shape = (*tensor.shape[:axis], int(kept.sum()), *tensor.shape[axis + 1 :])
    return tensor if kept.all() else replace(tensor, shape=shape)


def _move_into_biases(walk: Walk, nodes: list[Node], tensors: dict[str, Tensor]) -> None:
    """What a channel that is a number adds to a product, before the channel goes."""
    for shift in walk.shifts:
        gone = ~walk.atoms.kept(shift.atoms)
        added = shift.terms[:, gone].sum(axis=1)
        if not added.any():
            continue
        node = nodes[shift.node]
        names = (*node.inputs, "")[: shift.operand + 1]
        known = tensors[names[shift.operand]].value if names[shift.operand] else None
        bias = added if known is None else known.astype(np.float64) + added
        dtype = tensors[node.inputs[1]].dtype
        made = _add_constant(tensors, f"{node.outputs[0]}_bias", bias.astype(dtype))
        inputs = (*names[: shift.operand], made)
        nodes[shift.node] = replace(node, inputs=inputs)


def _cut_constants(walk: Walk, nodes: list[Node], tensors: dict[str, Tensor]) -> None:
    """Constants without what belongs to channels that go."""
    for cut in walk.cuts:
        kept, node = walk.atoms.kept(cut.atoms), nodes[cut.node]
        if kept.all() or not "".join(node.inputs[cut.operand : cut.operand + 1]):
            continue
        value = tensors[node.inputs[cut.operand]].value
        assert value is not None
        less = np.ascontiguousarray(np.compress(kept, value, axis=cut.axis))
        base = f"{node.outputs[0]}_operand_{cut.operand}"
        nodes[cut.node] = _with_operand(node, cut.operand, _add_constant(tensors, base, less))


def _count_again(walk: Walk, nodes: list[Node], tensors: dict[str, Tensor]) -> None:
    """Attributes and shapes that say how many channels there are."""
    for count in walk.counts:
        kept = int(walk.atoms.kept(count.atoms).sum())
        node = nodes[count.node]
        if count.attribute:
            changed = {**node.attributes, count.attribute: kept}
            nodes[count.node] = replace(node, attributes=changed)
            continue
        value = tensors[node.inputs[count.operand]].value
        assert value is not None
        shape = value.copy()
        shape[count.entry] = kept
        made = _add_constant(tensors, f"{node.outputs[0]}_shape", shape)
        nodes[count.node] = _with_operand(node, count.operand, made)


def _with_operand(node: Node, operand: int, name: str) -> Node:
    inputs = (*node.inputs[:operand], name, *node.inputs[operand + 1 :])
    return replace(node, inputs=inputs)


def _add_constant(tensors: dict[str, Tensor], base: str, value: np.ndarray) -> str:
    """The name of a new constant."""
    number = 1
    while f"{base}_{number}" in tensors:
        number += 1
    name = f"{base}_{number}"
    tensors[name] = Tensor(name, value.dtype, value.shape, value)
    return name
