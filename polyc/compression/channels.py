"""Channels of tensors: what makes them, what hands them on, and which layers read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from polyc.compression.layers import Layer
from polyc.graph.ir import Graph, Node

EACH = frozenset({"Identity", "LeakyRelu", "Relu"})
POOLS = frozenset({"AveragePool", "GlobalAveragePool", "MaxPool"})
SUMS = frozenset({"ReduceMean", "ReduceSum"})
"""Operators that give for a scaled channel the scaled result."""

ALONE = EACH | frozenset(
    {"Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "Sigmoid", "Softplus", "Swish", "Tanh"}
)
"""Operators that treat each number alone, whatever its channel's scale."""

NORMS = frozenset({"LayerNormalization", "RMSNormalization"})


@dataclass(frozen=True)
class Pair:
    """A tensor that can be scaled by channel: constants that make it, and layers that read it.

    makers: constants with the dimension of the tensor's channels, which are divided; reads: the
    tensors that the layers read, each with the dimension at which it has these channels.
    """

    source: Node
    makers: tuple[tuple[str, int], ...]
    layers: tuple[Layer, ...]
    reads: tuple[tuple[str, int], ...]


def find_pairs(graph: Graph, layers: Collection[Layer]) -> list[Pair]:
    """The tensors that can be scaled by channel, and are read by layers of bytes alone."""
    by_name = {layer.name: layer for layer in layers if layer.weight}
    pairs = []
    for node in graph.nodes:
        made = _makers(graph, node, by_name.get(node.name))
        if made is None:
            continue
        pair = _pair(graph, node, made, by_name, EACH)
        pairs += [pair] if pair is not None else []
    return pairs


def find_cuts(graph: Graph, layers: Collection[Layer]) -> list[Pair]:
    """The tensors of which channels can be left out: layers make them, and layers alone read them.

    Groups of a convolution stand together, and none of their channels can go.
    """
    plain = [layer for layer in layers if int(layer.node.get("group", 1)) == 1]
    by_name = {layer.name: layer for layer in plain if layer.weight}
    cuts = []
    for layer in by_name.values():
        made = _makers(graph, layer.node, layer)
        if made is not None:
            pair = _pair(graph, layer.node, made, by_name, ALONE)
            cuts += [pair] if pair is not None else []
    return cuts


Makers = tuple[str, tuple[tuple[str, int], ...], int]


def _makers(graph: Graph, node: Node, layer: Layer | None) -> Makers | None:
    """(a tensor, the constants that its channels are proportional to, its dimension of channels)"""
    result = node.outputs[0]
    if layer is not None:
        if layer.adds:
            result = next(n for n in graph.nodes if n.name == layer.adds).outputs[0]
        bias = [(layer.bias, 0)] if layer.bias else []
        axis = 1 if node.op == "Conv" else graph.tensors[result].rank - 1
        return result, ((layer.weight, layer.axis), *bias), axis
    if node.op in NORMS and not node.domain:
        given = node.inputs[1:]
        last = graph.tensors[node.inputs[0]].rank - 1
        values = [graph.value(name) for name in given if name]
        plain = all(v is not None and v.ndim == 1 for v in values)
        if plain and node.get("axis", -1) in (-1, last):
            return result, tuple((name, 0) for name in given if name), last
    return None


def _pair(
    graph: Graph, node: Node, made: Makers, layers: Mapping[str, Layer], alone: Collection[str]
) -> Pair | None:
    """What a node makes, if layers alone read it, and their constants are nobody else's."""
    result, makers, axis = made
    found = _readers(graph, result, axis, layers, alone)
    names = [name for name, _ in makers] + [layer.weight for layer, _ in found or ()]
    own = all(len(graph.consumers[name]) == 1 for name in names)
    if not found or not own or len(set(names)) < len(names):
        return None
    readers, reads = zip(*found, strict=True)
    return Pair(node, makers, readers, tuple(dict.fromkeys(reads)))


def _readers(
    graph: Graph, name: str, axis: int, layers: Mapping[str, Layer], alone: Collection[str]
) -> list[tuple[Layer, tuple[str, int]]] | None:
    """The layers that read a tensor by its channels, at dimension `axis`, each with what it reads.

    None if anything else reads it, but for operators that treat each number `alone`, and pools.
    """
    if name in graph.outputs:
        return None
    found: list[tuple[Layer, tuple[str, int]]] = []
    for reader in graph.consumers.get(name, ()):
        layer = layers.get(reader.name)
        if layer is not None:
            wanted = 1 if reader.op == "Conv" else graph.tensors[name].rank - 1
            more = [(layer, (name, axis))] if axis == wanted else None
        else:
            after = _follow(graph, reader, name, axis, alone)
            more = (
                None if after is None else _readers(graph, reader.outputs[0], after, layers, alone)
            )
        if more is None:
            return None
        found += more
    return found


def _follow(graph: Graph, node: Node, name: str, axis: int, alone: Collection[str]) -> int | None:
    """Where a node that hands channels on has them; None if it does something else."""
    if node.domain or name != node.inputs[0] or len(node.outputs) > 1:
        return None
    rank = graph.tensors[name].rank
    if node.op in alone or (node.op in POOLS and axis == 1):
        return axis
    if node.op == "Flatten" and axis == node.get("axis", 1) == 1:
        return 1 if graph.tensors[name].shape[2:] == (1,) * (rank - 2) else None
    if node.op in SUMS and len(node.inputs) > 1:
        given = graph.value(node.inputs[1])
        axes = {int(k) % rank for k in given.ravel()} if given is not None else {axis}
        if axis not in axes:
            return axis if node.get("keepdims", 1) else axis - sum(k < axis for k in axes)
    return None
