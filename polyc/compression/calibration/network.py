"""Networks that samples pass through.

A network of any size is compiled for the sizes of the first sample, which takes less than half as
long as for any; samples mostly have the same. Where one has others, it is compiled for any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from polyc.compression.calibration.samples import Feeds
from polyc.errors import InvalidData, PolycError, ShapeError
from polyc.graph.ir import Graph
from polyc.run.model import CompiledModel
from polyc.types.sizes import Size

Sizes = Mapping[str, int]
Compile = Callable[[Graph, Sizes], CompiledModel]
"""Compiles a graph of which some sizes are known."""


class Network:
    """A graph, compiled when the first sample comes."""

    def __init__(self, graph: Graph, compile: Compile) -> None:
        self._graph, self._compile = graph, compile
        self._sizes: Sizes = {}
        self._model: CompiledModel | None = None

    def run(self, samples: Iterable[Feeds]) -> Iterator[dict[str, Any]]:
        """The outputs for each sample; InvalidData names the one that does not fit the graph."""
        for number, feeds in enumerate(samples):
            try:
                model = self._fit(feeds)
            except ShapeError as error:
                raise _misfit(number, error) from error
            try:
                yield model.run(feeds)
            except (PolycError, TypeError) as error:
                raise _misfit(number, error) from error

    def _fit(self, feeds: Feeds) -> CompiledModel:
        sizes = measure(self._graph, feeds)
        if self._model is None:
            self._sizes, self._model = sizes, self._compile(self._graph, sizes)
        elif self._sizes and self._sizes != sizes:
            self._sizes, self._model = {}, self._compile(self._graph, {})
        return self._model


def _misfit(number: int, error: Exception) -> InvalidData:
    return InvalidData(f"sample {number} does not fit the model: {error}")


def measure(graph: Graph, feeds: Feeds) -> dict[str, int]:
    """The sizes that inputs name, by a sample; what does not fit is left to the model to refuse.

    Sums of sizes are left out: they follow.
    """
    found: dict[str, int] = {}
    for name in graph.inputs:
        extents = np.asarray(feeds[name]).shape
        for size, extent in zip(graph.tensors[name].shape, extents, strict=False):
            if isinstance(size, Size) and size == min(size.names):
                found.setdefault(str(size), extent)
    return found
