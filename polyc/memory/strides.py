"""Strides: how accesses move through memory when a loop takes a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyc.memory.storage import Storage
from polyc.poly.affine import Column, coefficients, is_divided, outputs, unit_dimension
from polyc.scop.expr import Call, Expr, Index, Load, Within, offset_range, walk
from polyc.scop.scop import Array, Statement
from polyc.types.estimate import estimate

OFTEN = 32
"""Uses of each element that make copying it first cheap: a copy costs about as much as two uses."""

SEVERAL = 4
"""The same where there would be no lanes otherwise."""


@dataclass(frozen=True)
class Strides:
    """How one access moves through memory: elements per step of each iterator, None if irregular.

    Steps over sizes that are known only at run time are those of their estimates.

    `free` marks an array whose layout is still open: any single dimension may become the unit one.
    dimensions[p] is the one dimension of the array that iterator p walks with unit step, if it is
    one and no coordinate is data alone; `reuse` is how many instances read each element; `data` are
    the iterators that decide by data where it is; `repeats` are those of which several steps read
    one element, and as many more the next one in memory, as in x[floor(p/2)]; `uses` are the reads
    of an element as well, but by windows that overlap too, on average.
    """

    array: str
    steps: tuple[int | None, ...]
    dimensions: tuple[int | None, ...]
    reuse: int
    free: bool
    is_write: bool
    itemsize: int
    data: frozenset[int] = frozenset()
    repeats: frozenset[int] = frozenset()
    uses: float = 1.0

    @property
    def is_packable(self) -> bool:
        """Whether the elements are read often enough that copying them first costs little."""
        return not self.is_write and self.reuse >= OFTEN

    @property
    def is_window(self) -> bool:
        """Whether windows that overlap read the elements, each several times."""
        return not self.is_write and self.uses >= SEVERAL and self.uses > self.reuse


def accesses(s: Statement) -> Iterator[tuple[str, isl.PwMultiAff, bool]]:
    """(array, S -> A, is_write) of the write and of every load."""
    yield s.array, s.write, True
    for load in s.loads:
        yield load.array, load.index, False


def compute_strides(
    s: Statement, arrays: Mapping[str, Array], storages: Mapping[str, Storage]
) -> tuple[Strides, ...]:
    """The strides of every access of a statement, the write first."""
    result = []
    sizes = s.estimated_extents
    data = {id(load.index): frozenset(_moving(load)) for load in s.loads if load.dynamic}
    anywhere = {
        id(load.index)
        for load in s.loads
        if any(offset_range(coordinate) is None for _, coordinate in load.dynamic)
    }
    spread = {id(load.index): _spread(load, sizes) for load in s.loads if load.dynamic}
    for (array, index, is_write), columns in zip(accesses(s), s.columns, strict=True):
        storage = storages.get(array)
        weights = _dimension_strides(arrays[array], storage)
        steps = tuple(
            None
            if p in data.get(id(index), ()) or None in column
            else sum(c * w for c, w in zip(column, weights, strict=True) if c is not None)
            for p, column in enumerate(columns)
        )
        walked = tuple(
            d
            if d is not None and id(index) not in anywhere and p not in data.get(id(index), ())
            else None
            for p, d in enumerate(map(unit_dimension, columns))
        )
        repeats = frozenset(
            p
            for p, (step, column) in enumerate(zip(steps, columns, strict=True))
            if step is None and not is_write and _repeats(index, p, column, weights)
        )
        reuse = prod(n for n, step in zip(sizes, steps, strict=True) if step == 0)
        reuse = int(reuse * spread.get(id(index), 1.0))
        itemsize = arrays[array].dtype.itemsize
        uses = prod(sizes) / max(1, prod(map(estimate, arrays[array].shape)))
        result.append(
            Strides(
                array,
                steps,
                walked,
                reuse,
                free=storage is None,
                is_write=is_write,
                itemsize=itemsize,
                data=data.get(id(index), frozenset()),
                repeats=repeats,
                uses=max(uses, reuse),
            )
        )
    return tuple(result)


def has_known_step(column: Column, storage: Storage | None) -> bool:
    """Whether a number says how far an iterator moves in memory, and no size that a call decides.

    column: how it moves in each dimension.   x[n, c, h, w] along w: yes; along h: w elements
    """
    if None in column:
        return False
    if storage is None:  # free to lie so
        return True
    blocked = dict(storage.blocks)
    return all(
        isinstance(extent, int)
        for d, step in enumerate(column)
        if step and d not in blocked
        for extent in storage.shape[storage.permutation.index(d) + 1 :]
    )


def _repeats(
    index: isl.PwMultiAff, p: int, column: Sequence[int | None], weights: Sequence[int]
) -> bool:
    """Whether an iterator moves an access by one element in several steps, and by nothing else."""
    moving = [d for d, step in enumerate(column) if step != 0]
    if len(moving) != 1 or weights[moving[0]] != 1:
        return False
    return is_divided(index.get_at(moving[0]), p)


def _spread(load: Load, sizes: Sequence[int]) -> float:
    """How often data leads to each element that it may lead to, if it does so evenly."""
    reached = 1
    for _, coordinate in load.dynamic:
        ends = offset_range(coordinate)
        if ends is None:
            return 1.0
        reached *= ends[1] - ends[0] + 1
    return max(1.0, prod(sizes[p] for p in _moving(load)) / reached)


def by_data(s: Statement) -> set[int]:
    """The iterators that the indices of a statement which are data depend on.

    y[i] = x[k[i]] and y[i] = index(k[i], n): i. What is in lanes there is spelled for each of them.
    """
    checked = (e for e in walk(s.value) if isinstance(e, Call) and e.function == "index")
    return _depends_on(checked).union(*(_moving(load) for load in s.loads if load.dynamic))


def _moving(load: Load) -> set[int]:
    """The iterators that the coordinates which are data depend on."""
    return _depends_on(coordinate for _, coordinate in load.dynamic)


def _depends_on(values: Iterable[Expr]) -> set[int]:
    """The iterators that values depend on, by what they read and by themselves."""
    found: set[int] = set()
    for value in values:
        for e in walk(value):
            for function in outputs(e.index) if isinstance(e, Load) else ():
                found |= {p for p, c in enumerate(coefficients(function)) if c != 0}
            if isinstance(e, Index):
                found |= {p for p, c in enumerate(coefficients(e.value)) if c != 0}
            if isinstance(e, Within):
                count = e.domain.dim(isl.dim_type.set)
                found |= {p for p in range(count) if e.domain.involves_dims(isl.dim_type.set, p, 1)}
    return found


def _dimension_strides(array: Array, storage: Storage | None) -> list[int]:
    """Elements between neighbours along each logical dimension; 1 everywhere while undecided."""
    if storage is None:
        return [1] * len(array.shape)
    strides, step = [0] * len(array.shape), 1
    for d, size in reversed(storage.blocks):
        strides[d], step = step, step * size  # inside a block
    for d, extent in reversed(list(zip(storage.permutation, storage.shape, strict=False))):
        strides[d] = strides[d] or step
        step *= estimate(extent)
    return strides
