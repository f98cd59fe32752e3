"""The layers that can multiply bytes: products by constant weights, or of two activations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.types.element_types import FLOAT32

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})

UNKNOWN = frozenset({"ConvTranspose", "ConvInteger", "Einsum", "MatMulInteger"})
"""Operators that multiply as well, but that standard QDQ has no form for, or are integers."""


@dataclass(frozen=True)
class Layer:
    """A product whose factors can be bytes.

    weight: the constant factor, "" where both are activations; axis: its dimension of output
    channels. bias: the constant with a number for each channel that is added, "" if there is none;
    adds: the node that adds it, where that is a node of its own. end: what the layer gives, behind
    that and what is done with each number in registers.
    """

    node: Node
    weight: str
    axis: int
    bias: str
    adds: str
    end: str

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def activations(self) -> tuple[str, ...]:
        """The factors that a call brings."""
        return self.node.inputs[: 1 if self.weight else 2]


@dataclass(frozen=True)
class Layers:
    """The layers of a graph, in order; and, by node, why others that multiply are none."""

    found: tuple[Layer, ...]
    others: dict[str, str]

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.found}

    @property
    def told(self) -> str:
        """Why products are no layers, for an error that says that none is left."""
        whys = (f"{name!r} stays: {why}" for name, why in self.others.items())
        return "; ".join(whys) or "none at all"

    def without(self, kept: Mapping[str, str]) -> Layers:
        """These layers but some, {layer: why it is none now}."""
        found = tuple(layer for layer in self.found if layer.name not in kept)
        gone = {layer.name: kept[layer.name] for layer in self.found if layer.name in kept}
        return Layers(found, {**self.others, **gone})


def find_layers(graph: Graph) -> Layers:
    """The products of a graph that standard QDQ has integers for."""
    found, others = [], {}
    for node in graph.nodes:
        if node.domain or node.op not in PRODUCTS | UNKNOWN:
            continue
        why_not = _why_not(graph, node)
        if why_not:
            others[node.name] = why_not
        else:
            found.append(_make(graph, node))
    return Layers(tuple(found), others)


def _why_not(graph: Graph, node: Node) -> str:
    if node.op in UNKNOWN:
        return f"{node.op} has no form in bytes"
    factors = [graph.tensors[name] for name in node.inputs[:2]]
    if any(t.dtype != FLOAT32 for t in factors):
        return f"its factors are {factors[0].dtype} and {factors[1].dtype}, not float32"
    if factors[0].is_constant:
        return "its first factor is a constant"
    if any(t.rank < 2 for t in factors):
        return "a factor is a vector"
    if node.op == "MatMul" and factors[1].rank > 2 and factors[1].is_constant:
        return "its weights are a batch of matrices"
    if node.op == "MatMul":
        return ""
    if not factors[1].is_constant:
        return "its weights are no constant"
    if node.op == "Gemm" and (node.get("transA", 0) or node.get("alpha", 1.0) != 1.0):
        return "it transposes or scales its input"
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = graph.value(node.inputs[2])
        weights = graph.value(node.inputs[1])
        assert weights is not None
        channels = weights.shape[_axis(node)]
        if bias is None or bias.shape != (channels,) or node.get("beta", 1.0) != 1.0:
            return "its bias is not one number for each channel"
    return ""


def _axis(node: Node) -> int:
    """The dimension of constant weights that output channels run along."""
    return 0 if node.op == "Conv" or node.get("transB", 0) else 1


def _make(graph: Graph, node: Node) -> Layer:
    weight = node.inputs[1] if graph.tensors[node.inputs[1]].is_constant else ""
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    adds, end = "", node.outputs[0]
    for reader in only_readers(graph, end):
        if reader.op == "Add" and weight and not bias and node.op != "Conv":
            bias = _added(graph, reader, end, int(graph.tensors[weight].extents[_axis(node)]))
            adds = reader.name if bias else ""
            if not adds:
                break
        elif reader.op not in ("Relu", "Clip") or node.op == "MatMul":
            break
        end = reader.outputs[0]
    return Layer(node, weight, _axis(node), bias, adds, end)


def only_readers(graph: Graph, name: str) -> Iterator[Node]:
    """The node that alone reads a tensor, the node that alone reads its result, and so on."""
    while name not in graph.outputs:
        readers = graph.consumers.get(name, ())
        if len(readers) != 1 or readers[0].domain or len(readers[0].outputs) != 1:
            return
        yield readers[0]
        name = readers[0].outputs[0]


def _added(graph: Graph, node: Node, result: str, channels: int) -> str:
    """The constant that a node adds to each row of a product; "" if it adds something else."""
    (other,) = [name for name in node.inputs if name != result] or [""]
    value = graph.value(other)
    return other if value is not None and value.shape == (channels,) else ""


def weights_of(graph: Graph, layer: Layer) -> np.ndarray:
    """The constant factor, with output channels first."""
    value = graph.value(layer.weight)
    assert value is not None
    return np.moveaxis(value, layer.axis, 0)
