"""What networks of bytes lose, and which layers stay floats so that it is not too much."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from polyc.compression.budget import keep_fewest, measure_effects, rank
from polyc.compression.calibration.network import Compile
from polyc.compression.calibration.samples import Feeds
from polyc.compression.candidate import Calibrated, make_candidate
from polyc.compression.layers import Layer
from polyc.compression.measure import Power, measure_ends
from polyc.compression.shares import Prediction, predict
from polyc.errors import InvalidOption
from polyc.run.model import CompiledModel

EFFECT_SAMPLES = 8
"""Samples that the effect of each layer is measured on, at most: each takes a call a layer."""


@dataclass(frozen=True)
class Judge:
    """A float network, its layers, the drift of those that are corrected, and a measure of loss."""

    known: Calibrated
    layers: Collection[Layer]
    errors: Mapping[str, Power]
    probe: Sequence[Feeds]
    compile: Compile
    accuracy: Callable[[CompiledModel], float] | None

    def keep(self, budget: float, before: Prediction) -> tuple[dict[str, str], str]:
        """({layer that stays float: why}, a sentence)"""
        graph, plan = self.known.graph, self.known.plan(self.layers)
        effects = measure_effects(graph, plan, self.probe[:EFFECT_SAMPLES], self.compile)
        made = make_candidate(self.known, self.layers, {}).graph
        after = predict(made, self.probe[0], self.compile)
        gains = {name: before.gain(name, after) for name in effects}
        loss = cache(self._loss())
        # By effect alone where a layer gains so much that it is never given up, and costs too much.
        for ranked in (rank(effects, gains), rank(effects, {})):
            found = keep_fewest(ranked, lambda names: loss(tuple(names)), budget)
            if found is not None:
                break
        else:
            raise InvalidOption(
                f"the budget of {budget:g} cannot be kept to: {loss(()):.3g} is lost with all "
                "layers in bytes, and more than it allows with any one; give a larger budget"
            )
        kept, lost = found
        why = {
            name: f"alone it changes the outputs by {np.sqrt(effects[name]):.1%} of themselves"
            for name in kept
        }
        what = "of accuracy" if self.accuracy else "of the outputs"
        return why, (
            f"budget: {lost:.2g} {what} is lost, {budget:g} is allowed; {len(kept)} of "
            f"{len(self.layers)} layers stay floats"
        )

    def _loss(self) -> Callable[[tuple[str, ...]], float]:
        """What the network loses in which some layers stay floats, by their names."""
        accuracy = self.accuracy
        whole = accuracy(self.compile(self.known.graph, {})) if accuracy else 0.0

        def loss(kept: tuple[str, ...]) -> float:
            layers = [layer for layer in self.layers if layer.name not in kept]
            made = make_candidate(self.known, layers, self.errors).graph
            if accuracy is not None:
                return whole - accuracy(self.compile(made, {}))
            graph = self.known.graph
            outputs = {name: name for name in graph.outputs}
            found = measure_ends(graph, made, outputs, self.probe, self.compile)
            return max(float(np.sqrt(p.noise / (p.signal or 1.0))) for p in found.values())

        return loss
