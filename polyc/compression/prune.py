"""`polyc.prune`: a model without its smallest weights, or without its smallest channels.

Where most weights of a layer are zero, `scop/sparse` multiplies by the others alone. A channel that
nobody computes and nobody reads is gone:

    y = f(x W1 + b1) W2    ->    y = f(x W1[:, kept] + b1[kept]) W2[kept, :]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from polyc.compression.channels import Pair, find_cuts
from polyc.compression.compare import compare
from polyc.compression.layers import Layers, find_layers
from polyc.compression.onnx_form import read_plain, write_plain
from polyc.compression.options import check_names
from polyc.compression.report import CompressionReport, LayerRow, count_weights
from polyc.errors import InvalidOption, UnsupportedOp
from polyc.graph.bodies import close_bodies
from polyc.graph.inference.infer import infer_graph
from polyc.graph.ir import Graph, Tensor


def prune(
    model: Any,
    share: float,
    data: Any = None,
    *,
    structured: bool = False,
    keep: Collection[str] = (),
    threads: int | None = None,
) -> onnx.ModelProto:
    """A model without the smallest weights of each Conv, Gemm and MatMul.

    model: a path, bytes, an onnx.ModelProto or a Graph, of float32.
    share: the part of each layer's weights that become zero, from 0 to less than 1.
    data: samples as `quantise` takes them, with which the report has what comes of it.
    structured: leave out whole output channels instead, that part of those of each layer whose
    readers are all layers by constant weights, with nothing but what treats channels one by one
    between. Those go for which the norm of what makes a channel, times the norm of the weights
    that read it, is least.
    keep: names of layers that stay as they are.

    The report that is left in the model (`CompressionReport.of`) says what became of each layer.
    Raises UnsupportedOp where there is nothing to prune, InvalidOption for a share or a name that
    makes no sense; else what `quantise` raises.
    """
    if not 0 <= share < 1:
        raise InvalidOption(f"share is {share!r}; it must be from 0 to less than 1")
    graph = read_plain(model)
    layers = find_layers(graph)
    check_names(keep, layers)
    layers = layers.without(dict.fromkeys(keep, "it was asked for"))
    layers = layers.without({x.name: "it has no weights" for x in layers.found if not x.weight})
    smaller, told = (_cut if structured else _thin)(graph, layers, share)
    if not told:
        what = "channels that only layers read" if structured else "weights"
        raise UnsupportedOp(f"model {graph.name!r} has no {what} to prune ({layers.told})")
    proto = write_plain(smaller)
    _report(graph, smaller, layers, told, data, threads).attach(proto)
    return proto


def _thin(graph: Graph, layers: Layers, share: float) -> tuple[Graph, dict[str, str]]:
    """The graph with zeros for each layer's smallest weights; {layer: what was done}"""
    changed: dict[str, Tensor] = {}
    told: dict[str, str] = {}
    for layer in layers.found:
        tensor = graph.tensors[layer.weight]
        assert tensor.value is not None
        count = round(share * tensor.value.size)
        thin = tensor.value.copy()
        thin.ravel()[np.argsort(np.abs(thin), axis=None, kind="stable")[:count]] = 0
        changed[layer.weight] = replace(tensor, value=thin)
        told[layer.name] = f"{np.mean(thin == 0):.0%} of its weights are zero"
    return replace(graph, tensors={**graph.tensors, **changed}), told


def _cut(graph: Graph, layers: Layers, share: float) -> tuple[Graph, dict[str, str]]:
    """The graph without each layer's smallest channels; {layer: what was done}"""
    values: dict[str, np.ndarray] = {}

    def value(name: str) -> np.ndarray:
        known = graph.value(name)
        assert known is not None
        return values.get(name, known)

    told: dict[str, str] = {}
    for pair in find_cuts(graph, layers.found):
        parts = [*pair.makers, *((layer.weight, 1 - layer.axis) for layer in pair.layers)]
        kept = _largest(pair, {name: value(name) for name, _ in parts}, share)
        channels = value(parts[0][0]).shape[parts[0][1]]
        if len(kept) == channels:
            continue
        for name, axis in parts:
            values[name] = np.take(value(name), kept, axis=axis)
        told[pair.source.name] = f"{len(kept)} of its {channels} channels are left"
    return _retype(graph, values), told


def _largest(pair: Pair, values: Mapping[str, np.ndarray], share: float) -> np.ndarray:
    """The channels of a tensor that stay, in order."""

    def norms(name: str, axis: int) -> np.ndarray:
        rows = np.moveaxis(values[name].astype(np.float64), axis, 0)
        return np.sqrt((rows.reshape(len(rows), -1) ** 2).sum(axis=1))

    weight, axis = pair.makers[0]
    made = norms(weight, axis)
    read = sum(norms(layer.weight, 1 - layer.axis) ** 2 for layer in pair.layers)
    order = np.argsort(-made * np.sqrt(read), kind="stable")
    return np.sort(order[: max(1, len(order) - round(share * len(order)))])


def _retype(graph: Graph, values: Mapping[str, np.ndarray]) -> Graph:
    """The graph with other constants, and the shapes that follow from them."""
    known = {
        name: tensor if name not in values else _constant(name, values[name])
        for name, tensor in graph.tensors.items()
        if name in graph.inputs or (tensor.is_known and name not in graph.producers)
    }
    nodes, ends = [close_bodies(node) for node in graph.nodes], (graph.inputs, graph.outputs)
    return infer_graph(graph.name, nodes, known, *ends, decides=True, whole=True)


def _constant(name: str, value: np.ndarray) -> Tensor:
    return Tensor(name, value.dtype, value.shape, np.ascontiguousarray(value))


def _report(
    graph: Graph,
    smaller: Graph,
    layers: Layers,
    told: Mapping[str, str],
    data: Any,
    threads: int | None,
) -> CompressionReport:
    """What became of each layer; and decibels where samples tell and shapes are as they were."""
    ends = {layer.name: layer.end for layer in layers.found}
    same = {k: v for k, v in ends.items() if graph.tensors[v].shape == smaller.tensors[v].shape}
    report, here = compare(graph, smaller, same, data, threads)
    rows = []
    for node in graph.nodes:
        why = told.get(node.name) or layers.others.get(node.name, "")
        if why or node.name in ends:
            stored = "pruned" if node.name in told else "float32"
            rows.append(LayerRow(node.name, node.op, stored, snr=here.get(node.name), why=why))
    weights = count_weights(graph), count_weights(smaller)
    return replace(report, layers=tuple(rows), weights=weights)
