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

from polyc.compression.calibrate import Compile
from polyc.compression.insert import Bytes, QdqWriter
from polyc.compression.samples import Feeds, run
from polyc.compression.sketch import Sketch
from polyc.graph.ir import Graph


@dataclass
class Power:
    """Sums of squares, of numbers as they should be and of what they are off by."""

    signal: float = 0.0
    noise: float = 0.0

    @property
    def snr(self) -> float | None:
        """Decibels of signal over noise; None if there is no noise at all, or no signal."""
        if self.noise > 0 and self.signal > 0:
            return float(10 * np.log10(self.signal / self.noise))
        return None


def measure_layers(
    graph: Graph, plan: Bytes, samples: Iterable[Feeds], compile: Compile
) -> dict[str, Power]:
    """The own error of each layer, by its name."""
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
    return _compare(writer.sketch, pairs, samples, compile)


def measure_ends(
    graph: Graph,
    quantised: Graph,
    ends: Mapping[str, str],
    samples: Iterable[Feeds],
    compile: Compile,
) -> dict[str, Power]:
    """The error of the network of bytes at tensors that both have, by what these are called."""
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
    pairs = {key: (name, renamed[name]) for key, name in ends.items()}
    return _compare(sketch, pairs, samples, compile)


def _compare(
    sketch: Sketch,
    pairs: Mapping[str, tuple[str, str]],
    samples: Iterable[Feeds],
    compile: Compile,
) -> dict[str, Power]:
    """Sums of squares of the first of each pair, and of how far the second is from it."""
    outputs: list[str] = []
    for wanted, given in pairs.values():
        shape = sketch.tensors[wanted].shape
        off = sketch.call("Sub", (wanted, given), f"{wanted}_off", shape)
        outputs += [_power(sketch, wanted), _power(sketch, off)]
    found = {key: Power() for key in pairs}
    if outputs:
        for result in run(compile(sketch.finish(outputs)), samples):
            values = [float(result[o]) for o in outputs]
            for power, signal, noise in zip(found.values(), values[::2], values[1::2], strict=True):
                power.signal += signal
                power.noise += noise
    return found


def _power(sketch: Sketch, name: str) -> str:
    return sketch.call("ReduceSumSquare", (name,), f"{name}_power", (), keepdims=0)
