"""What bytes cost in accuracy, measured inside compiled networks while samples pass through.

Twins: beside each layer of the float network stands one of bytes, which reads the same floats. What
differs between the two is the layer's own error.

Beside: the float network and the one of bytes run on the same inputs. What differs at a layer's end
is all error so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.compression.calibration.network import Compile, Network
from polyc.compression.calibration.samples import Feeds
from polyc.compression.insert import Bytes, QdqWriter
from polyc.compression.sketch import Sketch
from polyc.graph.inference.parameters import rename_found
from polyc.graph.ir import Graph
from polyc.types.sizes import names_in


@dataclass
class Power:
    """Means of squares, of numbers as they should be and of what they are off by.

    drift: for each channel the mean of what its numbers are off by, where that was asked for.
    """

    signal: float = 0.0
    noise: float = 0.0
    drift: np.ndarray | None = None

    @property
    def snr(self) -> float | None:
        """Decibels of signal over noise; None if there is no noise at all, or no signal."""
        if self.noise > 0 and self.signal > 0:
            return float(10 * np.log10(self.signal / self.noise))
        return None

    def without_drift(self) -> Power:
        """What is left when each channel is shifted by what it is off by."""
        if self.drift is None:
            return self
        return Power(self.signal, max(self.noise - float((self.drift**2).mean()), 0.0))


def measure_layers(
    graph: Graph, plan: Bytes, samples: Iterable[Feeds], compile: Compile
) -> dict[str, Power]:
    """The own error of each layer, by its name; with its drift, if it has weights."""
    places = replace(plan.places, replaced=set(), readers={})  # floats go on as they are
    writer = QdqWriter(graph, replace(plan, layers=(), places=places))
    by_node = {layer.name: layer for layer in plan.layers}
    pairs: dict[str, tuple[str, str]] = {}
    for name in graph.inputs:
        writer.restore(name)
    for node in graph.nodes:
        writer.add(node)
        if node.name in by_node:
            pairs[node.name] = node.outputs[0], writer.add_twin(by_node[node.name])
    channels = {
        layer.name: 1 if layer.node.op == "Conv" else graph.tensors[layer.node.outputs[0]].rank - 1
        for layer in plan.layers
        if layer.weight  # a bias corrects no other, and rows of attention are as many as tokens
    }
    return _compare(writer.sketch, pairs, samples, compile, channels)


def measure_ends(
    graph: Graph,
    quantised: Graph,
    ends: Mapping[str, str],
    samples: Iterable[Feeds],
    compile: Compile,
) -> dict[str, Power]:
    """The error of the network of bytes at tensors that both have, by what these are called.

    Each network finds sizes of its own, as many elements as pass a threshold; of tensors that have
    such sizes nothing is known.
    """
    found = {size.name for size in graph.found}
    quantised = rename_found(quantised, {name: f"{name}_of_bytes" for name in found})
    sketch = Sketch(graph, graph.nodes)
    renamed = {name: name for name in quantised.inputs}
    for name, tensor in quantised.tensors.items():
        if name not in renamed:
            renamed[name] = sketch.name(f"{name}_of_bytes")
            sketch.tensors[renamed[name]] = replace(tensor, name=renamed[name])
    renamed[""] = ""
    for node in quantised.nodes:
        inputs, outputs = (tuple(renamed[n] for n in ns) for ns in (node.inputs, node.outputs))
        title = sketch.name(f"{node.name}_of_bytes")
        sketch.nodes.append(replace(node, name=title, inputs=inputs, outputs=outputs))
    pairs = {
        key: (name, renamed[name])
        for key, name in ends.items()
        if found.isdisjoint(names_in(graph.tensors[name].shape))
    }
    return {key: Power() for key in ends} | _compare(sketch, pairs, samples, compile)


def _compare(
    sketch: Sketch,
    pairs: Mapping[str, tuple[str, str]],
    samples: Iterable[Feeds],
    compile: Compile,
    channels: Mapping[str, int] | None = None,
) -> dict[str, Power]:
    """Of the first of each pair, and of how far the second is from it; means over all samples.

    channels: the dimension of channels, of those whose drift is asked for.
    """
    outputs: dict[str, list[str]] = {}
    for key, (wanted, given) in pairs.items():
        shape = sketch.tensors[wanted].shape
        off = sketch.call("Sub", (wanted, given), f"{wanted}_off", shape)
        outputs[key] = [_square(sketch, wanted), _square(sketch, off)]
        if channels and key in channels:
            axis = channels[key]
            others = np.array([k for k in range(len(shape)) if k != axis], np.int64)
            inputs = off, sketch.constant(f"{wanted}_axes", others)
            title, kept = f"{wanted}_drift", (shape[axis],)
            outputs[key].append(sketch.call("ReduceMean", inputs, title, kept, keepdims=0))
    found = {key: Power() for key in pairs}
    if not outputs:
        return found
    whole = sketch.finish([o for names in outputs.values() for o in names])
    for count, result in enumerate(Network(whole, compile).run(samples), 1):
        for key, (signal, noise, *drift) in outputs.items():
            power = found[key]
            power.signal += (float(result[signal]) - power.signal) / count
            power.noise += (float(result[noise]) - power.noise) / count
            for name in drift:
                now = result[name].astype(np.float64)
                before = np.zeros_like(now) if power.drift is None else power.drift
                power.drift = before + (now - before) / count
    return found


def _square(sketch: Sketch, name: str) -> str:
    """The mean of squares of a tensor."""
    square = sketch.call("Mul", (name, name), f"{name}_square", sketch.tensors[name].shape)
    return sketch.call("ReduceMean", (square,), f"{name}_power", (), keepdims=0)
