"""Channels of a tensor brought to like ranges, by scales that move into the weights around it.

    y = relu(x W1 + b1) W2    ->    y = relu(x (W1 / s) + b1 / s) (s W2)        one s > 0 a channel

A tensor of bytes has one scale, so that a channel that is small beside the largest one is left with
few of its bits; its weights have a scale for each channel. So the network is kept as it is, and
ranges are moved from activations into weights. For convolutions this is known as cross-layer
equalisation; where x is what a norm gives, and W1 and b1 are its gain and shift, as SmoothQuant.

With a_c the largest magnitude of channel c and w_c that of the weights that read it, the scales are

    s_c = a_c^t / w_c^(1 - t)

t = 1 makes all channels alike, 1/2 shares out what is uneven. Which t is best is predicted: bytes
round x within a step of D, and each row of weights within a step of D_o, so that y is off by

    D^2 sum(W2^2) + sum_o D_o^2 sum_c mean(x_c^2)                               (up to one factor)

and the t with the least is taken, or none. A depthwise convolution has a scale for each channel
that it reads, so t = 1 costs nothing there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.compression.calibration.network import Compile, Network
from polyc.compression.calibration.samples import Feeds
from polyc.compression.channels import Pair, find_pairs
from polyc.compression.layers import Layer
from polyc.compression.sketch import Sketch
from polyc.graph.ir import Graph

EXPONENTS = (0.25, 0.5, 0.75, 1.0)
"""What is tried for t."""

GAIN = 0.9
"""The error that is predicted must become less than this part of what it was."""


@dataclass
class Channels:
    """Of each channel of a tensor: the largest magnitude, and the mean of squares."""

    most: np.ndarray
    square: np.ndarray

    def join(self, other: Channels) -> None:
        self.most = np.maximum(self.most, other.most)
        self.square = np.maximum(self.square, other.square)


class _Values:
    """Constants of a graph in float64, as they are by now."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changed: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.changed.get(name, np.asarray(self.graph.value(name), np.float64))

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        self.changed[name] = value


def balance(
    graph: Graph, layers: Collection[Layer], samples: Iterable[Feeds], compile: Compile
) -> tuple[Graph, list[str]]:
    """The same network with ranges moved into weights, and a sentence for each place."""
    pairs = find_pairs(graph, layers)
    if not pairs:
        return graph, []
    seen = _measure(graph, dict(read for p in pairs for read in p.reads), samples, compile)
    values = _Values(graph)
    notes = []
    for pair in pairs:
        channels = seen[pair.reads[0][0]]
        for name, _ in pair.reads[1:]:
            channels.join(seen[name])
        exponent, scale = _choose(pair, channels, values)
        if exponent == 0:
            continue
        for name, axis in pair.makers:
            value = values[name]
            values[name] = value / scale.reshape(-1, *[1] * (value.ndim - 1 - axis))
        for layer in pair.layers:
            values[layer.weight] = values[layer.weight] * _spread(layer, values, scale)
        readers = ", ".join(repr(layer.name) for layer in pair.layers)
        notes.append(
            f"balanced: {len(scale)} channels between {pair.source.name!r} and {readers}, "
            f"exponent {exponent:g}"
        )
    changed = {
        name: replace(graph.tensors[name], value=value.astype(np.float32))
        for name, value in values.changed.items()
    }
    return replace(graph, tensors={**graph.tensors, **changed}), notes


def _measure(
    graph: Graph, names: Mapping[str, int], samples: Iterable[Feeds], compile: Compile
) -> dict[str, Channels]:
    """What samples make of each channel of some tensors, {tensor: its dimension of channels}."""
    sketch, outputs = Sketch(graph, graph.nodes), []
    for name, axis in names.items():
        tensor = graph.tensors[name]
        channels = (tensor.shape[axis],)
        others = np.array([k for k in range(tensor.rank) if k != axis], np.int64)
        axes = sketch.constant(f"{name}_axes", others)
        size = sketch.call("Abs", (name,), f"{name}_size", tensor.shape)
        square = sketch.call("Mul", (name, name), f"{name}_square", tensor.shape)
        for op, given in (("ReduceMax", size), ("ReduceMean", square)):
            outputs.append(sketch.call(op, (given, axes), f"{name}_{op}", channels, keepdims=0))
    seen: dict[str, Channels] = {}
    for result in Network(sketch.finish(outputs), compile).run(samples):
        for name, most, square in zip(names, outputs[::2], outputs[1::2], strict=True):
            now = Channels(result[most].astype(np.float64), result[square].astype(np.float64))
            seen.setdefault(name, now).join(now)
    return seen


def _choose(pair: Pair, channels: Channels, values: _Values) -> tuple[float, np.ndarray]:
    """The exponent and the scales with the least error that is predicted; 0 for no scales."""
    read = [_rows(layer, values) for layer in pair.layers]
    weights = np.max([np.abs(w).max(axis=(1, 2)).ravel() for w in read], axis=0)
    alive = (channels.most > 0) & (weights > 0)
    chosen, scale = 0.0, np.ones(len(alive))
    if not alive.any():
        return chosen, scale
    best = GAIN * _error(channels, read, scale)
    for exponent in EXPONENTS:
        tried = np.ones(len(alive))
        tried[alive] = channels.most[alive] ** exponent / weights[alive] ** (1 - exponent)
        # What all channels have in common makes no difference; without it numbers stay in range.
        tried[alive] /= np.exp(np.log(tried[alive]).mean())
        error = _error(channels, read, tried)
        if error < best:
            best, chosen, scale = error, exponent, tried
    return chosen, scale


def _error(channels: Channels, read: list[np.ndarray], scale: np.ndarray) -> float:
    """What is predicted for the layers that read a tensor, were it scaled: noise over signal."""
    step = (channels.most / scale).max() / 255
    total = 0.0
    for rows in read:
        groups, _, taps, _ = rows.shape
        scaled = rows * scale.reshape(groups, 1, 1, -1)
        steps = np.abs(scaled).max(axis=(2, 3), keepdims=True) / 127
        square = channels.square.reshape(groups, 1, 1, -1)
        signal = float((rows**2 * square).sum())
        rounded = (steps**2 * taps * square / scale.reshape(groups, 1, 1, -1) ** 2).sum()
        total += (step**2 * (scaled**2).sum() + rounded) / signal if signal > 0 else 0.0
    return float(total)


def _rows(layer: Layer, values: _Values) -> np.ndarray:
    """Weights as [groups, outputs of a group, taps, inputs of a group]."""
    weights = np.moveaxis(values[layer.weight], layer.axis, 0)
    groups = int(layer.node.get("group", 1))
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    return weights.reshape(groups, outputs, inputs, -1).swapaxes(2, 3)


def _spread(layer: Layer, values: _Values, scale: np.ndarray) -> np.ndarray:
    """Scales of the channels that a layer reads, as its weights are multiplied by them."""
    weights = np.moveaxis(values[layer.weight], layer.axis, 0)
    groups = int(layer.node.get("group", 1))
    each = np.repeat(scale.reshape(groups, -1), len(weights) // groups, axis=0)
    return np.moveaxis(each.reshape(*each.shape, *[1] * (weights.ndim - 2)), 0, layer.axis)
