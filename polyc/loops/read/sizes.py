"""The sizes of a kernel's arguments: parameters of all its sets, known only when it is called.

    f(A, B, steps) on polyc.f64["n", None], polyc.f32[None, 3], polyc.i64

    A: float64[size_n, size_A_shape_1]    B: float32[size_B_shape_0, 3]    size_steps

A whole number that is an argument is a size as well, of either sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import islpy as isl

from polyc.errors import ShapeError
from polyc.loops.read.types import Argument, is_whole
from polyc.names import fresh, identifier
from polyc.scop.scop import Array
from polyc.types.parameters import Parameter, identify
from polyc.types.sizes import Extent, Size

LARGEST_NUMBER = 1 << 40
"""Whole numbers that are arguments are less than this, of either sign."""


@dataclass(frozen=True)
class Signature:
    """The types of a kernel's arguments, by name, in order.

    given: the values of those that are whole numbers, if they are known.
    """

    arguments: Mapping[str, Argument]
    given: Mapping[str, int] = field(default_factory=dict)

    def at(self, values: Sequence[int]) -> Signature:
        """The same where all sizes are known: their values, in order."""
        known = dict(zip((s.shown for s in self.sizes), values, strict=True))
        arguments = {}
        for name, argument in self.arguments.items():
            dims = None if argument.dims is None else self.dims(name)
            if dims is not None:
                dims = tuple(d if isinstance(d, int) else known[d] for d in dims)
            arguments[name] = Argument(argument.dtype, dims)
        return Signature(arguments, {name: known[name] for name in self.numbers})

    def dims(self, array: str) -> tuple[int | str, ...]:
        """What the extents of an array are, or are called."""
        dims = self.arguments[array].dims or ()
        return tuple(_own(array, k) if d is None else d for k, d in enumerate(dims))

    @cached_property
    def sizes(self) -> tuple[Parameter, ...]:
        """All sizes, in the order in which they appear; a whole number may be negative."""
        names: dict[str, bool] = {}
        for name, argument in self.arguments.items():
            for dim in self.dims(name):
                if not isinstance(dim, int):
                    names[dim] = True
            if argument.dims is None and is_whole(argument.dtype) and name not in self.given:
                names.setdefault(name, False)
        known = identify(names)
        low, high = -LARGEST_NUMBER, LARGEST_NUMBER
        return tuple(
            Parameter(known[n], 0, shown=n)
            if is_extent
            else Parameter(known[n], low, high, shown=n)
            for n, is_extent in names.items()
        )

    @cached_property
    def identifiers(self) -> Mapping[str, str]:
        """The name of a size -> its identifier."""
        return {size.shown: size.name for size in self.sizes}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[Extent, ...]]:
        """The shape of each array; sizes by their identifiers."""
        found = {}
        for name, argument in self.arguments.items():
            if argument.dims is not None:
                found[name] = tuple(
                    d if isinstance(d, int) else Size.of(self.identifiers[d])
                    for d in self.dims(name)
                )
        return found

    @cached_property
    def numbers(self) -> Mapping[str, Extent]:
        """Arguments that are whole numbers, as sizes."""
        return {
            name: self.given[name] if name in self.given else Size.of(self.identifiers[name])
            for name, argument in self.arguments.items()
            if argument.dims is None and is_whole(argument.dtype)
        }

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        """Arguments that are kept in memory: arrays, and numbers that are no sizes."""
        found: dict[str, Array] = {}
        taken: set[str] = set()
        for name, argument in self.arguments.items():
            if name in self.numbers:
                continue
            label = fresh(identifier(name) or "a", taken)
            taken.add(label)
            shape = cast("tuple[int, ...]", self.shapes.get(name, ()))
            found[name] = Array(label, argument.dtype, shape, "input")
        return found

    def context(self) -> isl.Set:
        """# []: the ranges of all sizes."""
        names = ", ".join(size.name for size in self.sizes)
        ranges = [f"{s.lower} <= {s.name}" for s in self.sizes]
        ranges += [f"{s.name} <= {s.upper}" for s in self.sizes if s.upper is not None]
        return isl.Set(f"[{names}] -> {{ [] : {' and '.join(ranges) or 'true'} }}")

    @cached_property
    def _measured(self) -> tuple[tuple[str, int, int | str], ...]:
        """(argument, dimension, what its extent is, or is called); a number has dimension -1."""
        found: list[tuple[str, int, int | str]] = []
        for name in self.arguments:
            found.extend((name, d, dim) for d, dim in enumerate(self.dims(name)))
            if name in self.numbers:
                found.append((name, -1, self.given.get(name, name)))
        return tuple(found)

    def measure(
        self, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, int]
    ) -> list[int]:
        """The value of each size in a call; ShapeError where two of one name differ."""
        found: dict[int | str, int] = {}
        for name, d, called in self._measured:
            value = numbers[name] if d < 0 else shapes[name][d]
            wanted = called if isinstance(called, int) else found.setdefault(called, value)
            if value != wanted:
                raise self._unequal(name, d, called, value, wanted)
        values = [found[size.shown] for size in self.sizes]
        for size, value in zip(self.sizes, values, strict=True):
            if not size.admits(value):
                raise ShapeError(
                    f"{size.shown} is {value}, but must be {size.lower} to {size.upper}; give a "
                    "number in this range"
                )
        return values

    def _unequal(self, name: str, d: int, called: int | str, value: int, wanted: int) -> ShapeError:
        places = (_spell(n, k) for n, k, what in self._measured if what == called)
        reason = "its type" if isinstance(called, int) else next(places)
        return ShapeError(
            f"{_spell(name, d)} is {value}, but {reason} is {wanted}; give equal sizes"
        )


def admits(sizes: isl.Set, values: Mapping[str, int]) -> bool:
    """Whether a set of sizes has these values of them in it."""
    for name, value in values.items():
        position = sizes.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            sizes = sizes.fix_val(isl.dim_type.param, position, isl.Val(value))
    return not sizes.is_empty()


def leaves(what: str, place: str, signature: Signature, sizes: Sequence[int]) -> ShapeError:
    """Of sizes with which Python would leave an array: what happens, and where."""
    named = zip(signature.sizes, sizes, strict=True)
    shown = ", ".join(f"{size.shown} = {value}" for size, value in named)
    return ShapeError(f"{place}: {what} where {shown}; give arrays of other sizes")


def _spell(name: str, d: int) -> str:
    return f"argument {name!r}" if d < 0 else f"dimension {d} of argument {name!r}"


def _own(array: str, dimension: int) -> str:
    """What people are shown of a size that has no name."""
    return f"{array}.shape[{dimension}]"
