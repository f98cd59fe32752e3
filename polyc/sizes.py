"""Sizes that are known only when a model runs: what they may be, and what a call says they are.

A dimension of an input is a number or the name of such a size: x: float32[batch, 3, height, width].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyc.errors import ShapeError
from polyc.spec import TensorSpec

Range = int | tuple[int, int]
"""One value, or the first and the last of those that a size may have."""


@dataclass(frozen=True)
class SizeRange:
    """The values that a size may have, and the one that kernels are chosen for.

    lower, upper: the first and the last value; upper None: as large as memory allows. hint: by
    default some value of the range that is typical.
    """

    name: str
    lower: int = 1
    upper: int | None = None
    hint: int | None = None

    def admits(self, value: int) -> bool:
        return self.lower <= value and (self.upper is None or value <= self.upper)

    def __str__(self) -> str:
        return f"{self.name} {self.lower} to {self.upper or 'any'}"


def read_sizes(
    dims: Mapping[str, Range] | None, hint: Mapping[str, int] | None
) -> tuple[SizeRange, ...]:
    """{"seq": (1, 2048), "batch": 1}, {"seq": 128} -> the ranges, sorted by name.

    Raises ShapeError for what is no range, and for a hint outside of its range.
    """
    dims, hint = dims or {}, hint or {}
    sizes = []
    for name in sorted({*dims, *hint}):
        given = dims.get(name, (1, None))
        lower, upper = (given, given) if isinstance(given, int) else given
        if lower < 0 or (upper is not None and upper < lower):
            raise ShapeError(f"size {name!r}: {given} is no range; give a number, or (first, last)")
        size = SizeRange(name, int(lower), None if upper is None else int(upper), hint.get(name))
        if size.hint is not None and not size.admits(size.hint):
            raise ShapeError(f"size {name!r}: the hint {size.hint} is not in its range {given}")
        sizes.append(size)
    return tuple(sizes)


def measure_sizes(
    model: str,
    inputs: Iterable[TensorSpec],
    shapes: Sequence[tuple[int, ...]],
    ranges: Iterable[SizeRange] = (),
) -> dict[str, int]:
    """The size of each symbol, from the shapes of a call's arrays.

        x: float32[n, 3], of shape (5, 3)   ->   {"n": 5}

    Raises ShapeError where a shape does not fit its spec, where two arrays disagree about a size,
    and for a size that is not in its range.
    """
    found: dict[str, int] = {}
    for spec, shape in zip(inputs, shapes, strict=True):
        fits = len(shape) == len(spec.shape)
        for dim, extent in zip(spec.shape, shape, strict=False):
            fits = fits and extent == (
                found.setdefault(dim, extent) if isinstance(dim, str) else dim
            )
        if not fits:
            known = ", ".join(f"{name} = {size}" for name, size in found.items())
            raise ShapeError(
                f"model {model!r}, input {spec.name!r} has shape {tuple(shape)}, expected "
                f"{_show(spec)}{f' where {known}' if known else ''}; reshape it"
            )
    for size in ranges:
        if size.name in found and not size.admits(found[size.name]):
            raise ShapeError(
                f"model {model!r} was compiled for {size}, but a call has {size.name} = "
                f"{found[size.name]}; compile it with a wider range in dims"
            )
    return found


def _show(spec: TensorSpec) -> str:
    return f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
