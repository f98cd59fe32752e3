"""Layers that stay floats, so that the network of bytes keeps to a budget of accuracy.

Each layer's effect on the outputs is measured alone: beside it stands its twin of bytes, and an
input of the network switches from one to the other. So one compiled network tells of all layers.
They are ranked by effect over predicted gain, and as few of the first as the budget asks for stay
floats, which networks that are made so decide, not the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.compression.calibration.network import Compile, Network
from polyc.compression.calibration.samples import Feeds
from polyc.compression.insert import Bytes, QdqWriter
from polyc.graph.ir import Graph, Tensor

LEAST_GAIN = 1e-4
"""Part of the time that a layer saves at least: what saves nothing is worth a little."""


def measure_effects(
    graph: Graph, plan: Bytes, samples: Iterable[Feeds], compile: Compile
) -> dict[str, float]:
    """What each layer of bytes alone does to the outputs: power of their error over their own."""
    switched, switches = _with_switches(graph, plan)
    network, off = Network(switched, compile), dict.fromkeys(switches.values(), np.array(False))
    noise, signal = dict.fromkeys(switches, 0.0), 0.0
    for feeds in samples:
        (wanted,) = network.run([{**feeds, **off}])
        signal += _power(wanted)
        for layer, switch in switches.items():
            (given,) = network.run([{**feeds, **off, switch: np.array(True)}])
            noise[layer] += _power({name: given[name] - wanted[name] for name in wanted})
    return {layer: power / signal if signal else power for layer, power in noise.items()}


def _with_switches(graph: Graph, plan: Bytes) -> tuple[Graph, dict[str, str]]:
    """The network whose layers are of bytes where a switch says so; {layer: its switch}"""
    places = replace(plan.places, replaced=set(), readers={})
    writer = QdqWriter(graph, replace(plan, layers=(), places=places))
    sketch, by_node = writer.sketch, {layer.name: layer for layer in plan.layers}
    switches: dict[str, str] = {}
    for name in graph.inputs:
        writer.restore(name)
    ends: dict[str, str] = {}
    for node in graph.nodes:
        layer = by_node.get(node.name)
        if layer is not None:
            switches[node.name] = switch = sketch.name(f"{node.name}_switch")
            sketch.tensors[switch] = Tensor(switch, np.dtype(bool), ())
            if layer.end in plan.places.replaced:
                ends[layer.end] = switch
        elif not any(o in ends for o in node.outputs):
            writer.add(node)
            continue
        # One result, which is the floats, or what bytes make of them, or that as bytes.
        (result,) = node.outputs
        floats = last = sketch.moved(result, f"{result}_float")
        sketch.nodes.append(replace(node, outputs=(floats,)))
        if layer is not None:
            last = sketch.choose(switch, writer.add_twin(layer), floats)
        if result in ends:
            last = sketch.choose(ends[result], writer.round_trip(result, last), last)
        sketch.name_last(result)
        writer.restore(result)
    inputs = (*graph.inputs, *switches.values())
    return replace(sketch.graph, inputs=inputs).rewrite(sketch.nodes, sketch.tensors), switches


def _power(values: Mapping[str, np.ndarray]) -> float:
    """The sum of squares of the floats among some arrays."""
    floats = [v.astype(np.float64) for v in values.values() if v.dtype.kind == "f"]
    return float(sum((v**2).sum() for v in floats))


def rank(effects: Mapping[str, float], gains: Mapping[str, float]) -> list[str]:
    """The layers with most effect on the outputs for what they gain first."""
    worth = {name: max(gains.get(name, 0.0), LEAST_GAIN) for name in effects}
    return sorted(effects, key=lambda name: -effects[name] / worth[name])


def keep_fewest(
    ranked: Sequence[str], loss: Callable[[Sequence[str]], float], budget: float
) -> tuple[list[str], float] | None:
    """(as few of the first layers as must stay floats, what is lost then)

    loss: of the network in which these layers stay floats. Their number is doubled until the budget
    is kept to, and then bisected. None if it is not even with a single layer of bytes.
    """
    lost = loss([])
    if lost <= budget:
        return [], lost
    too_few, enough = 0, 1
    while (lost := loss(ranked[:enough]) if enough < len(ranked) else np.inf) > budget:
        if enough >= len(ranked) - 1:
            return None
        too_few, enough = enough, min(2 * enough, len(ranked) - 1)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        now = loss(ranked[:middle])
        if now <= budget:
            enough, lost = middle, now
        else:
            too_few = middle
    return list(ranked[:enough]), lost
