"""Ranges of tensors, found by the compiled float network while samples pass through it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from polyc.compression.calibration.network import Compile, Network
from polyc.compression.calibration.ranges import Extremes, Histogram, Method
from polyc.compression.calibration.samples import Feeds
from polyc.compression.sketch import Sketch
from polyc.errors import InvalidData
from polyc.graph.ir import Graph


def find_extremes(
    graph: Graph, names: Collection[str], samples: Iterable[Feeds], compile: Compile
) -> dict[str, Histogram]:
    """The extremes of tensors; each is reduced to two numbers inside the network."""
    sketch = Sketch(graph, graph.nodes)
    outputs: list[str] = []
    for name in names:
        for op in ("ReduceMin", "ReduceMax"):
            outputs.append(sketch.call(op, (name,), f"{name}_{op}", (), keepdims=0))
    found = {name: Extremes() for name in names}
    for result in Network(sketch.finish(outputs), compile).run(samples):
        values = [float(result[o]) for o in outputs]
        for seen, low, high in zip(found.values(), values[::2], values[1::2], strict=True):
            seen.add(low, high)
    return {name: Histogram(seen) for name, seen in found.items()}


def find_histograms(
    graph: Graph, names: Collection[str], samples: Iterable[Feeds], compile: Compile
) -> dict[str, Histogram]:
    """The histograms of tensors; those of one sample are held at a time."""
    found = {name: Histogram() for name in names}
    given = [name for name in names if name in graph.inputs]
    computed = [name for name in names if name not in graph.inputs]
    network = Network(graph.rewrite(graph.nodes, outputs=computed), compile)
    for feeds in samples:
        for name in given:
            found[name].add(np.asarray(feeds[name], np.float32))
        if computed:
            for result in network.run([feeds]):
                for name in computed:
                    found[name].add(result[name])
    return found


def calibrate(
    graph: Graph,
    names: Collection[str],
    samples: Iterable[Feeds],
    method: Method,
    compile: Compile,
) -> dict[str, Histogram]:
    """What samples say about the range of each tensor; InvalidData names one that is not finite."""
    find = find_extremes if method == "min-max" else find_histograms
    found = find(graph, names, samples, compile)
    for name, seen in found.items():
        if not np.isfinite([seen.extremes.low, seen.extremes.high]).all():
            raise InvalidData(
                f"tensor {name!r} becomes NaN or infinite (it ranges from {seen.extremes.low} to "
                f"{seen.extremes.high}) for some of the samples; check that they are what the "
                "model expects"
            )
    return found
