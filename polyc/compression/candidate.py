"""A float network with what samples say of it, and networks of bytes that can be made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from polyc.compression.biases import correct_biases
from polyc.compression.calibration.ranges import Histogram, Method, choose_range
from polyc.compression.calibration.scales import Activations, Scale, activation_scale
from polyc.compression.insert import Bytes, insert_bytes
from polyc.compression.layers import Layer, find_layers
from polyc.compression.measure import Power
from polyc.compression.places import Places, find_places
from polyc.graph.ir import Graph


@dataclass(frozen=True)
class Calibrated:
    """A float network, the ranges of its tensors, and how scales follow from them."""

    graph: Graph
    seen: Mapping[str, Histogram]
    method: Method
    activations: Activations

    def plan(self, layers: Collection[Layer]) -> Bytes:
        """Where bytes stand, and by which scales, so that these layers multiply them."""
        places = find_places(self.graph, layers)
        return Bytes(tuple(layers), places, self._scales(places))

    def _scales(self, places: Places) -> dict[str, Scale]:
        """The scale of each group of tensors, from what was seen of all of them together."""
        scales = {}
        for group, names in places.members().items():
            together = Histogram()
            for name in names:
                together.join(self.seen[name])
            symmetric, signed = group in places.symmetric, group in places.signed
            fit = partial(
                activation_scale, kind=self.activations, symmetric=symmetric, signed=signed
            )
            scales[group] = fit(*choose_range(together, self.method, fit))
        return scales


@dataclass(frozen=True)
class Candidate:
    """A network of bytes; `corrected` are the layers whose biases are others than before."""

    plan: Bytes
    graph: Graph
    corrected: tuple[str, ...]


def make_candidate(
    known: Calibrated, layers: Collection[Layer], errors: Mapping[str, Power]
) -> Candidate:
    """The network in which these layers are of bytes.

    errors: of layers, with the drift of those whose biases are to be corrected.
    """
    graph, corrected = correct_biases(known.graph, layers, errors)
    names = {layer.name for layer in layers}
    renewed = [layer for layer in find_layers(graph).found if layer.name in names]
    plan = known.plan(renewed)
    return Candidate(plan, insert_bytes(graph, plan), tuple(corrected))
