"""Inputs whose values are sizes: how often a loop runs, what a shape is to be.

    y = Reshape(x, target)      target: int64[2], given in each call
    target is (target.0, target.1), so that y: float32[target.0, target.1]

Those sizes are told by a call like others, and what follows is compiled once for all of them that
are at least 1. What a value means beyond that, such as the -1 of a Reshape, is left to a call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Tensor
from polyc.names import fresh, identifier
from polyc.types.sizes import Extent, Size, names_in, spell_shape
from polyc.types.spec import TensorSpec

MOST_VALUES = 16
"""Elements of the longest list that is taken for sizes: as many as a shape may have."""


def name_values(inputs: Sequence[Tensor], chosen: Collection[str]) -> list[Tensor]:
    """The inputs, of which those that are chosen consist of sizes if they are short integer lists.

    count: int64[], shape: int64[2]   ->   count, (shape.0, shape.1)
    """
    taken = set(names_in([extent for tensor in inputs for extent in tensor.shape]))
    named = []
    for tensor in inputs:
        if tensor.name in chosen and _is_short_list(tensor):
            entries = np.empty(tensor.extents, object)
            for place in np.ndindex(entries.shape):
                base = ".".join([identifier(tensor.name) or "value", *map(str, place)])
                name = fresh(base if not base[0].isdigit() else f"value_{base}", taken)
                taken.add(name)
                entries[place] = Size.of(name)
            tensor = replace(tensor, entries=entries)
        named.append(tensor)
    return named


def _is_short_list(tensor: Tensor) -> bool:
    whole = tensor.dtype.kind in "iu" and tensor.dtype.itemsize >= 4
    return whole and tensor.rank <= 1 and tensor.is_static and 0 < tensor.size <= MOST_VALUES


def describe(graph: Graph, name: str, shown: Mapping[str, Extent]) -> TensorSpec:
    """What a caller sees of an input or output, where sizes have the names that are shown."""
    tensor = graph.tensors[name]

    def show(extent: Extent) -> Extent:
        return extent.at(shown) if isinstance(extent, Size) else extent

    values: tuple[int | str, ...] = ()
    if tensor.entries is not None and name in graph.inputs:
        values = spell_shape(map(show, tensor.entries.flat))
    return TensorSpec(name, tensor.dtype, spell_shape(map(show, tensor.shape)), values)
