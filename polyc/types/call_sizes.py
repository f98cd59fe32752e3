"""Sizes as users and calls say them: what `dims` and `hint` mean, and what arrays measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from numbers import Integral

from polyc.errors import NotFixed, ShapeError
from polyc.types.derived import plain_name
from polyc.types.ranges import SizeRange
from polyc.types.sizes import Extent, Size, evaluate, greatest, least
from polyc.types.spec import TensorSpec

Range = int | tuple[int, int] | str
"""One value, the first and the last of those that a size may have, or a sum of other sizes."""


def read_sizes(
    dims: Mapping[str, Range] | None, hint: Mapping[str, int] | None
) -> tuple[SizeRange, ...]:
    """{"seq": (1, 2048), "batch": 1, "total": "past + seq"}, {"seq": 128} -> by name, sorted.

    Raises ShapeError for what is no range, and for a hint outside of its range.
    """
    dims = {plain_name(name): given for name, given in (dims or {}).items()}
    hint = {plain_name(name): size for name, size in (hint or {}).items()}
    sizes = []
    for name in sorted({*dims, *hint}):
        given = dims.get(name, (1, None))
        if isinstance(given, str):
            sizes.append(SizeRange(name, same=_read_same(name, given)))
            continue
        lower, upper = (given, given) if isinstance(given, int | Integral) else given
        if lower < 0 or (upper is not None and upper < lower):
            raise ShapeError(f"size {name!r}: {given} is no range; give a number, or (first, last)")
        typical = None if name not in hint else int(hint[name])
        size = SizeRange(name, int(lower), None if upper is None else int(upper), typical)
        if size.hint is not None and not size.admits(size.hint):
            raise ShapeError(f"size {name!r}: the hint {size.hint} is not in its range {given}")
        sizes.append(size)
    return tuple(sizes)


def _read_same(name: str, text: str) -> Size:
    size = parse_size(text)
    if size == Size.of(text) and not _NAME.fullmatch(text):
        raise ShapeError(
            f"size {name!r}: {text!r} is no sum of sizes; write it as 'past + seq' or '2*n + 1'"
        )
    return size


def known_sizes(sizes: Iterable[SizeRange]) -> dict[str, Extent]:
    """Sizes that are numbers, or that are said in terms of others."""
    sizes = tuple(sizes)
    fixed: dict[str, Extent] = {s.name: s.lower for s in sizes if s.lower == s.upper}
    same = {s.name: s.same.at(fixed) for s in sizes if isinstance(s.same, Size)}
    return {**fixed, **same}


_NAME = re.compile(r"[^\W\d][\w.]*")
_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d][\w.]*)|(\S))")


OPERATIONS: Mapping[str, Callable[[Extent, Extent], Extent]] = {
    "floor": lambda a, b: a // b,
    "max": greatest,
    "min": least,
}


@cache
def parse_size(text: str) -> Size:
    """What str gives of a size, as the size again: "past + 2*n - 1", "floor((h - 1)/2) + 1".

    Any other text is a name.
    """
    tokens = [found[0].strip() for found in _TOKEN.finditer(text)]
    try:
        total, end = _parse_sum(tokens, 0)
    except (ValueError, IndexError, NotFixed):
        return Size.of(text)
    return total if isinstance(total, Size) and end == len(tokens) else Size.of(text)


def _parse_sum(tokens: Sequence[str], at: int) -> tuple[Extent, int]:
    """sum = [sign] product {sign product}"""
    total: Extent = 0
    sign = "+"
    if tokens[at] in ("+", "-"):
        sign, at = tokens[at], at + 1
    while True:
        term, at = _parse_product(tokens, at)
        total = total + (term if sign == "+" else term * -1)
        if at == len(tokens) or tokens[at] not in ("+", "-"):
            return total, at
        sign, at = tokens[at], at + 1


def _parse_product(tokens: Sequence[str], at: int) -> tuple[Extent, int]:
    """product = factor {"*" factor}"""
    total, at = _parse_factor(tokens, at)
    while at < len(tokens) and tokens[at] == "*":
        factor, at = _parse_factor(tokens, at + 1)
        total = total * factor
    return total, at


def _parse_factor(tokens: Sequence[str], at: int) -> tuple[Extent, int]:
    """factor = number | name | "(" sum ")" | "floor(" sum "/" sum ")" | pair

    pair = "min(" sum "," sum ")" | "max(" sum "," sum ")"
    """
    first = tokens[at]
    if first.isdigit():
        return int(first), at + 1
    if first == "(":
        inside, at = _parse_sum(tokens, at + 1)
        return inside, _expect(tokens, at, ")")
    if not _NAME.fullmatch(first):
        raise ValueError(first)
    if at + 1 == len(tokens) or tokens[at + 1] != "(" or first not in OPERATIONS:
        return Size.of(first), at + 1
    a, at = _parse_sum(tokens, at + 2)
    b, at = _parse_sum(tokens, _expect(tokens, at, "/" if first == "floor" else ","))
    return OPERATIONS[first](a, b), _expect(tokens, at, ")")


def _expect(tokens: Sequence[str], at: int, token: str) -> int:
    if tokens[at] != token:
        raise ValueError(tokens[at])
    return at + 1


def measure_sizes(
    model: str,
    inputs: Iterable[TensorSpec],
    shapes: Sequence[tuple[int, ...]],
    ranges: Iterable[SizeRange] = (),
    known: Mapping[str, int] | None = None,
    values: Sequence[Sequence[int]] = (),
) -> dict[str, int]:
    """The size of each symbol, from the shapes of a call's arrays, and from those that are known.

        x: float32[n, 3], of shape (5, 3)   ->   {"n": 5}

    values: the elements of each array, if they are sizes, or nothing.

    A dimension that is a sum of sizes is under its text, "past + seq". Raises ShapeError where a
    shape does not fit its spec, where two arrays disagree about a size, and for a size that is not
    in its range, now or in the next call.
    """
    ranges = tuple(ranges)
    told = {size.name for size in ranges if size.same is None}
    found: dict[str, int] = dict(known or {})
    for spec, listed in zip(inputs, values, strict=False):
        found.update(_read_values(model, spec, listed))
    for spec, shape in zip(inputs, shapes, strict=True):
        fits = len(shape) == len(spec.shape)
        for dim, extent in zip(spec.shape, shape, strict=False):
            fits = fits and extent == (
                found.setdefault(dim, extent) if isinstance(dim, str) else dim
            )
        if not fits:
            where = ", ".join(f"{name} = {size}" for name, size in found.items())
            raise ShapeError(
                f"model {model!r}, input {spec.name!r} has shape {tuple(shape)}, expected "
                f"{_show(spec)}{f' where {where}' if where else ''}; reshape it"
            )
    _check_totals(model, found, told)
    given = [size for size in ranges if size.name in found]
    for need in (need for size in given for need in size.needs):
        if need.names <= found.keys() and evaluate(need, found) < 0:
            where = ", ".join(f"{name} = {found[name]}" for name in sorted(need.names))
            inside = ", ".join(str(size) for size in given if size.name in need.names)
            raise ShapeError(
                f"model {model!r} is right where {need} is not negative, but a call has "
                f"{where}; give it other sizes, of which each by itself may be: {inside}"
            )
    for size in given:
        if not size.admits(found[size.name]):
            raise ShapeError(
                f"model {model!r} was compiled for {size}, but a call has {size.name} = "
                f"{found[size.name]}; compile it with a wider range in dims"
            )
        if size.next is not None and not size.admits(after := evaluate(size.next, found)):
            raise ShapeError(
                f"model {model!r}: after this call {size.name} would be {after}, but states were "
                f"compiled for {size}; start anew, or compile it with a wider range in dims"
            )
    return found


def _read_values(model: str, spec: TensorSpec, listed: Sequence[int]) -> dict[str, int]:
    """The sizes that the elements of an input are; ShapeError where one is a number, and differs.

    (n, 32) of 5, 32   ->   {"n": 5}
    """
    told: dict[str, int] = {}
    for value, given in zip(spec.values, listed, strict=False):
        expected = value if isinstance(value, int) else told.setdefault(value, given)
        if given != expected:
            raise ShapeError(
                f"model {model!r}, input {spec.name!r} is {tuple(listed)}, but was compiled for "
                f"({', '.join(map(str, spec.values))}); compile it for these values"
            )
    return told


def _check_totals(model: str, found: Mapping[str, int], told: Collection[str]) -> None:
    """Raise ShapeError for a dimension that is not what its text says of the sizes of others."""
    totals = {text: parse_size(text) for text in found.keys() - told}
    totals = {text: total for text, total in totals.items() if total.names != {text}}
    plain = {name: size for name, size in found.items() if name not in totals}
    for text, total in totals.items():
        if total.names <= plain.keys() and evaluate(total, plain) != found[text]:
            where = ", ".join(f"{name} = {plain[name]}" for name in sorted(total.names))
            raise ShapeError(
                f"model {model!r}: an input has {text} = {found[text]}, where {where}; reshape it"
            )


def _show(spec: TensorSpec) -> str:
    return f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
