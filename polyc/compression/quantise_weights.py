"""`polyc.quantise_weights`: a model of floats -> one whose matrices have 4 bits a weight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import onnx

from polyc.compression.compare import compare
from polyc.compression.four_bits import Blocks, Form, to_blocks, why_not, write_layer
from polyc.compression.layers import Layers, find_layers, weights_of
from polyc.compression.measure import Power
from polyc.compression.onnx_form import read_plain, write_plain
from polyc.compression.options import check_choice, check_names
from polyc.compression.report import CompressionReport, LayerRow, count_weights
from polyc.compression.sketch import Sketch
from polyc.errors import InvalidOption, UnsupportedOp
from polyc.graph.ir import Graph

LEAST_BLOCK = 16
"""Weights of a block, at least, and a power of two: what readers of MatMulNBits ask for."""


def quantise_weights(
    model: Any,
    data: Any = None,
    *,
    block: int = 32,
    form: Form = "MatMulNBits",
    activations: Literal["float32", "int8"] = "float32",
    keep: Collection[str] = (),
    threads: int | None = None,
) -> onnx.ModelProto:
    """A model whose matrix products read weights of 4 bits; all else stays as it is.

    model: a path, bytes, an onnx.ModelProto or a Graph, of float32. No samples are needed; with
    `data`, as `quantise` takes it, the report also has what comes of it at each layer.
    block: how many weights, of those that are summed up, share a scale and a zero point.
    form: "MatMulNBits", com.microsoft's operator, which ONNX Runtime and polyc have; or
    "DequantizeLinear" in blocks, which is standard (operator set 21).
    activations: "int8" allows readers of MatMulNBits to round what they multiply with to bytes.
    keep: names of nodes that stay floats.

    Raises UnsupportedOp if there is no such product, InvalidOption for a block or a name that makes
    no sense; else what `quantise` raises.
    """
    check_choice("form", form, Form)
    check_choice("activations", activations, Literal["float32", "int8"])
    if block < LEAST_BLOCK or block & (block - 1):
        raise InvalidOption(f"block is {block}; it must be a power of two from {LEAST_BLOCK} on")
    graph = read_plain(model)
    layers = _find(graph, block, keep)
    stored = {layer.name: to_blocks(weights_of(graph, layer).T, block) for layer in layers.found}
    level = 4 if activations == "int8" else 0
    small = _write(graph, layers, stored, form, level)
    proto = write_plain(small)
    report = _report(graph, layers, stored, data, threads)
    weights = count_weights(graph), count_weights(small)
    replace(report, weights=weights).attach(proto)
    return proto


def _find(graph: Graph, block: int, keep: Collection[str]) -> Layers:
    """The layers whose weights can have 4 bits, and why those of others cannot."""
    layers = find_layers(graph)
    check_names(keep, layers)
    reasons = {layer.name: why_not(graph, layer, block) for layer in layers.found}
    layers = layers.without({name: why for name, why in reasons.items() if why})
    layers = layers.without(dict.fromkeys(keep, "it was asked for"))
    if not layers.found:
        raise UnsupportedOp(
            f"model {graph.name!r} has no MatMul or Gemm of float32 whose weights could have 4 "
            f"bits ({layers.told})"
        )
    return layers


def _write(
    graph: Graph, layers: Layers, stored: dict[str, Blocks], form: Form, level: int
) -> Graph:
    sketch = Sketch(graph)
    for node in graph.nodes:
        if node.name in stored:
            write_layer(sketch, layers.by_name[node.name], stored[node.name], form, level)
        else:
            sketch.nodes.append(node)
    return sketch.finish()


def _report(
    graph: Graph, layers: Layers, stored: dict[str, Blocks], data: Any, threads: int | None
) -> CompressionReport:
    """Decibels of weights over what rounding changes; and of what layers give, with samples."""
    sketch = Sketch(graph, graph.nodes)
    own: dict[str, Power] = {}
    renamed: dict[str, str] = {}
    for layer in layers.found:
        weights, restored = weights_of(graph, layer).T, stored[layer.name].restored
        off = (restored - weights).astype(np.float64)
        own[layer.name] = Power(
            float((weights.astype(np.float64) ** 2).sum()), float((off**2).sum())
        )
        renamed[layer.name] = sketch.constant(
            f"{layer.weight}_restored", restored if layer.axis else restored.T
        )
    sketch.nodes = [
        replace(n, inputs=(n.inputs[0], renamed[n.name], *n.inputs[2:])) if n.name in renamed else n
        for n in sketch.nodes
    ]
    ends = {layer.name: layer.end for layer in layers.found}
    report, here = compare(graph, sketch.finish(), ends, data, threads)
    rows = []
    for node in graph.nodes:
        if node.name in own:
            snr = here.get(node.name)
            rows.append(LayerRow(node.name, node.op, "uint4", own[node.name].snr, snr))
        elif node.name in layers.others:
            rows.append(LayerRow(node.name, node.op, "float32", why=layers.others[node.name]))
    return replace(report, layers=tuple(rows))
