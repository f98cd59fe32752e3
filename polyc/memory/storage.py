"""How an array is stored: a relation from its logical indices to its place in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np

from polyc.scop.scop import Array
from polyc.types.sizes import Extent


@dataclass(frozen=True)
class Storage:
    """A storage map: element A[i…] lies at map(A[i…]) of a row-major box of extents `shape`.

    `permutation` and `blocks` say how the map came about (they are what a report shows):
    logical dimension `permutation[k]` is stored k-th; a dimension d in `blocks` is cut into blocks
    of that many elements, which are stored innermost, in the order of `blocks`.
    """

    array: str
    map: isl.MultiAff  # A -> M
    shape: tuple[int, ...]
    permutation: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> Extent:
        """Elements of the box, padding included."""
        return math.prod(self.shape)

    @property
    def is_row_major(self) -> bool:
        return self.permutation == tuple(range(len(self.permutation))) and not self.blocks


def row_major(array: Array) -> Storage:
    return permuted(array, range(len(array.shape)))


def permuted(
    array: Array,
    permutation: Sequence[int],
    blocks: Sequence[tuple[int, int]] = (),
    gap: int = 0,
) -> Storage:
    """The map { A[i0, i1, …] -> M[i_p(0), floor(i_d / b), …, i_d mod b] }.

    Outer coordinates follow `permutation` (a blocked dimension contributes its block number), then
    one inner coordinate a block. The last block of a dimension that its size does not divide is
    padded; `gap` elements are left free after each innermost row.
    """
    indices = [f"i{k}" for k in range(len(array.shape))]
    sizes = dict(blocks)
    coordinates, shape = [], []
    for d in permutation:
        size = sizes.get(d, 1)
        coordinates.append(f"floor({indices[d]}/{size})" if size > 1 else indices[d])
        shape.append(-(-array.shape[d] // size))
    for d, size in blocks:
        coordinates.append(f"({indices[d]} mod {size})" if size > 1 else "0")
        shape.append(size)
    if shape:
        shape[-1] += gap
    function = isl.MultiAff(
        f"{{ {array.name}[{', '.join(indices)}] -> {array.name}_M[{', '.join(coordinates)}] }}"
    )
    return Storage(array.name, function, tuple(shape), tuple(permutation), tuple(blocks))


def arrange(value: np.ndarray, storage: Storage) -> np.ndarray:
    """The contents of a constant in its stored order, padding zero; a view where none is needed."""
    sizes = dict(storage.blocks)
    padding = [(0, -n % sizes.get(d, 1)) for d, n in enumerate(value.shape)]
    padded = np.pad(value, padding) if any(p for _, p in padding) else value
    split: list[int] = []
    position = {}
    for d, n in enumerate(padded.shape):
        position[d] = len(split)
        split += [n // sizes[d], sizes[d]] if d in sizes else [n]
    order = [position[d] for d in storage.permutation]
    order += [position[d] + 1 for d, _ in storage.blocks]
    return padded.reshape(split).transpose(order)
