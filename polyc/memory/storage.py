"""How an array is stored: a relation from its logical indices to its place in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import islpy as isl
import numpy as np

from polyc.poly.parameters import rename_parameters
from polyc.scop.scop import Array
from polyc.types.other_names import rename_extent
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


def rename_storage(storage: Storage, names: Mapping[str, str]) -> Storage:
    """The storage in other names for sizes."""
    if not names:
        return storage
    extents: Sequence[Any] = [rename_extent(extent, names) for extent in storage.shape]
    return replace(storage, map=rename_parameters(storage.map, names), shape=tuple(extents))


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
    if _pad(value.shape, storage) == value.shape:
        return value.reshape(_split(value.shape, storage)).transpose(_order(storage))
    memory = np.zeros(storage.shape, value.dtype)
    fill(memory, value, storage)
    return memory


def fill(memory: np.ndarray, value: np.ndarray, storage: Storage) -> None:
    """Write a constant into zeroes in its stored order, without a copy in between.

    Of a dimension that is cut into blocks the full blocks are written, then what is left:

    w[o, i], 50 x m  ->  M[0 .. 2, i, 0 .. 15]  of o < 48, and  M[3, i, 0 .. 1]  of the last two
    """
    sizes = dict(storage.blocks)
    split = memory.transpose(np.argsort(_order(storage)))
    parts: list[list[tuple[slice, tuple[slice, ...]]]] = []
    for d, extent in enumerate(value.shape):
        if d not in sizes:
            parts.append([(slice(None), (slice(None),))])
            continue
        blocks, left = divmod(extent, sizes[d])
        full = blocks * sizes[d]
        parts.append([(slice(0, full), (slice(0, blocks), slice(None)))])
        if left:
            parts[d].append((slice(full, extent), (slice(blocks, blocks + 1), slice(0, left))))
    for chosen in product(*parts):
        taken, places = zip(*chosen, strict=True) if chosen else ((), ())
        target = split[(*chain(*places), ...)]
        target[...] = value[(*taken, ...)].reshape(target.shape)


def _pad(shape: Sequence[int], storage: Storage) -> tuple[int, ...]:
    """Extents that blocks divide."""
    sizes = dict(storage.blocks)
    return tuple(n + -n % sizes.get(d, 1) for d, n in enumerate(shape))


def _split(shape: Sequence[int], storage: Storage) -> list[int]:
    """Extents in which those of blocks are two: their number, and their size."""
    sizes = dict(storage.blocks)
    found: list[int] = []
    for d, n in enumerate(shape):
        found += [n // sizes[d], sizes[d]] if d in sizes else [n]
    return found


def _order(storage: Storage) -> list[int]:
    """Which of the extents that are split is stored k-th."""
    sizes = dict(storage.blocks)
    first = [d + sum(1 for other in sizes if other < d) for d in range(len(storage.permutation))]
    return [*(first[d] for d in storage.permutation), *(first[d] + 1 for d, _ in storage.blocks)]
