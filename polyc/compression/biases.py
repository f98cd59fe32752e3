"""Biases that take back what bytes shift the mean of a channel by.

Rounding weights is the same error in each call: where activations are not around zero, as behind a
Relu, it moves the mean of what a channel gives. The mean is measured (`measure.py`), and what the
channel is off by is added to its bias.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from polyc.compression.layers import Layer
from polyc.compression.measure import Power
from polyc.compression.sketch import Sketch
from polyc.graph.ir import Graph, Node


def correct_biases(
    graph: Graph, layers: Collection[Layer], errors: Mapping[str, Power]
) -> tuple[Graph, list[str]]:
    """The graph with other biases, and the names of the layers that have them.

    A product of matrices without a bias stays as it is: to add one is one more thing to do.
    """
    sketch = Sketch(graph)
    changed: dict[str, tuple[str, str]] = {}
    for layer in layers:
        drift = errors[layer.name].drift if layer.name in errors else None
        if drift is None or not layer.weight or (layer.node.op == "MatMul" and not layer.adds):
            continue
        old = graph.value(layer.bias)
        title = layer.bias or f"{layer.name}_bias"
        value = drift if old is None else old.astype(np.float64) + drift
        name = sketch.constant(title, value.astype(np.float32))
        changed[layer.adds or layer.name] = layer.bias, name
    for node in graph.nodes:
        sketch.nodes.append(_with_bias(node, *changed[node.name]) if node.name in changed else node)
    done = [layer.name for layer in layers if (layer.adds or layer.name) in changed]
    return sketch.finish(), done


def _with_bias(node: Node, old: str, new: str) -> Node:
    if not old:
        return replace(node, inputs=(*node.inputs[:2], new))
    return replace(node, inputs=tuple(new if name == old else name for name in node.inputs))
