"""How long polyc is predicted to take for each layer of a network, and what it multiplies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from polyc.compression.calibration.network import Compile, measure
from polyc.compression.calibration.samples import Feeds
from polyc.compression.layers import PRODUCTS
from polyc.graph.ir import Graph


@dataclass(frozen=True)
class Prediction:
    """Seconds that a network takes on this machine, and those of its layers.

    seconds is empty, and total 0, if that depends on sizes that only a call knows. floats: the
    layers whose bytes are multiplied as floats, and why.
    """

    total: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    floats: Mapping[str, str] = field(default_factory=dict)

    def share(self, layer: str) -> float | None:
        """The part of the time that is a layer's."""
        return self.seconds.get(layer, 0.0) / self.total if self.total else None

    def gain(self, layer: str, then: Prediction) -> float:
        """The part of the time that a layer takes less in another network; 0 if none is known."""
        less = self.seconds.get(layer, 0.0) - then.seconds.get(layer, 0.0)
        return max(less, 0.0) / self.total if self.total and then.total else 0.0


def predict(graph: Graph, sample: Feeds, compile: Compile) -> Prediction:
    """What a network takes for such a sample, compiled as it is.

    A kernel that several layers are fused into counts for all of them alike; what has no layer in
    it counts for none.
    """
    layers = {n.name for n in graph.nodes if n.op in PRODUCTS}
    report = compile(graph, measure(graph, sample)).explain()
    seconds: dict[str, float] = defaultdict(float)
    total = 0.0
    for kernel in report.kernels:
        took = kernel.predicted
        if took is None:
            seconds, total = defaultdict(float), 0.0
            break
        total += took
        inside = [name for name in kernel.whole_nodes if name in layers]
        for name in inside:
            seconds[name] += took / len(inside)
    return Prediction(total, dict(seconds), dict(report.float_sums))
