"""How a rule of an operator is stated, and what is raised when a node breaks it.

The functions of this package see shapes and attributes, not whole nodes, so that the lowering to
statements can call them too. They raise `RuleBroken` or `NotFixed`, which carry the rule, what it
expects, what it got and the way out; `infer_node` adds the node and the types of its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyc.errors import NotFixed, ShapeError
from polyc.graph.ir import Dim, Node, Tensor
from polyc.types.sizes import Size, bounds

FIX_SIZES = "give the model's inputs fixed sizes"
"""The way out where only running could tell."""


class RuleBroken(ShapeError):
    """A rule that does not hold: `statement` says which, `way_out` what to change."""

    def __init__(self, rule: str, expected: object, got: object, way_out: str) -> None:
        self.statement = f"{rule}: expected {_show(expected)}, got {_show(got)}"
        self.way_out = way_out
        super().__init__(f"{self.statement}; {way_out}")


def require(holds: bool, rule: str, expected: object, got: object, way_out: str) -> None:
    """Raise `RuleBroken` unless the rule holds; `NotFixed` where it does for some sizes."""
    if holds:
        return
    if may_be_equal(expected, got):
        raise NotFixed(
            f"{rule}: whether {_show(got)} is {_show(expected)} is known only at run time",
            FIX_SIZES,
            needs=tuple(_differences(expected, got)),
        )
    raise RuleBroken(rule, expected, got, way_out)


def require_at_least(extent: Dim, least: int, rule: str, got: object, way_out: str) -> None:
    """Raise `RuleBroken` unless an extent is as large; `NotFixed` where it is for some sizes."""
    low, high = bounds(extent)
    if high < least:
        raise RuleBroken(rule, f"at least {least}", got, way_out)
    if low < least:
        statement = f"{rule}: whether {extent} is at least {least} is known only at run time"
        raise NotFixed(statement, FIX_SIZES, needs=(extent - least,))


def require_at_most(extent: Dim, most: Dim, rule: str, way_out: str) -> None:
    """Raise `RuleBroken` if an extent is larger; `NotFixed` where it is for some sizes."""
    low, high = bounds(most - extent)
    if high < 0:
        raise RuleBroken(rule, f"at most {most}", extent, way_out)
    if low < 0:
        statement = f"{rule}: whether {extent} is at most {most} is known only at run time"
        raise NotFixed(statement, FIX_SIZES, needs=(most - extent,))


def are_equal(a: Dim, b: Dim) -> bool:
    """Whether two extents are equal for all sizes that are assumed."""
    return a == b or bounds(a - b) == (0, 0)


def _differences(a: Any, b: Any) -> Iterator[Dim]:
    """What must not be negative where extents, or shapes, are equal."""
    for x, y in zip(a, b, strict=True) if isinstance(a, tuple) else ((a, b),):
        if x != y:
            yield from (x - y, y - x)


def may_be_equal(a: object, b: object) -> bool:
    """Whether these are extents, or shapes, that differ but are equal for some sizes."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        pairs = list(zip(a, b, strict=False))
        return len(a) == len(b) and all(x == y or may_be_equal(x, y) for x, y in pairs)
    if isinstance(a, Size) and isinstance(b, Size | int):
        least, most = bounds(a - b)
        return least <= 0 <= most
    return isinstance(b, Size) and may_be_equal(b, a)


def require_rank(tensor: Tensor, role: str, least: int, most: int | None = None) -> None:
    """Raise `RuleBroken` unless least <= rank <= most; `most=None` sets no upper limit."""
    fits = least <= tensor.rank and (most is None or tensor.rank <= most)
    if not fits:
        bound = f"at least {least}" if most is None else str(least)
        if most is not None and most != least:
            bound = f"{least} to {most}"
        way_out = f"reshape {tensor.name!r} to that many dimensions"
        raise RuleBroken(f"rank of {role}", bound, tensor.rank, way_out)


def require_shape(tensor: Tensor | None, role: str, expected: Sequence[Dim]) -> None:
    """Unless the tensor is absent or has exactly this shape, raise as `require` does."""
    if tensor is not None:
        pairs = zip(tensor.shape, expected, strict=False)
        fits = tensor.rank == len(expected) and all(are_equal(a, b) for a, b in pairs)
        way_out = f"give {tensor.name!r} that shape"
        require(fits, f"shape of {role}", tuple(expected), tensor.shape, way_out)


def given(tensor: Tensor | None) -> Tensor:
    """A required input; RuleBroken if it is absent, which signatures show for most operators."""
    if tensor is None:
        raise RuleBroken("a required input", "a tensor", "none", "connect it")
    return tensor


def constant_value(tensor: Tensor, role: str) -> np.ndarray:
    """The value of an input on which the output shape depends; `NotFixed` if not a constant."""
    if tensor.value is None:
        raise NotFixed(
            f"the output shape depends on the value of {role}, and {tensor.name!r} is computed at "
            "run time",
            "export the model with fixed sizes, so that it becomes a constant",
            tensor.name,
        )
    return tensor.value


def constant_ints(tensor: Tensor, role: str) -> tuple[int, ...]:
    """The entries of a constant list of integers (or of one scalar): int64[2] -> (0, -1)."""
    value = constant_value(tensor, role)
    require(value.ndim <= 1, f"rank of {role}", "0 or 1", value.ndim, "pass a list of integers")
    return tuple(int(v) for v in value.reshape(-1))


def known_extents(tensor: Tensor, role: str) -> tuple[Dim, ...]:
    """The entries of a list of extents: numbers, or sizes that are known once inputs are."""
    if tensor.entries is None:
        return constant_ints(tensor, role)
    require(tensor.rank <= 1, f"rank of {role}", "0 or 1", tensor.rank, "pass a list of integers")
    return tuple(tensor.entries.reshape(-1))


def constant_scalar(tensor: Tensor, role: str) -> Any:
    """The only entry of a constant, as a Python number: float32[] or float32[1] -> float."""
    value = constant_value(tensor, role)
    require(value.size == 1, f"number of elements of {role}", 1, value.size, "pass a scalar")
    return value.reshape(-1)[0].item()


def constant_int(tensor: Tensor, role: str) -> int:
    """The only entry of a constant as an integer: float32[] 3.0 -> 3."""
    value = constant_scalar(tensor, role)
    require(math.isfinite(value), role, "a finite number", value, "correct it")
    return int(value)


def known_scalar(tensor: Tensor, role: str) -> Any:
    """The only entry of a tensor: a Python number, or a size that is known once inputs are."""
    if tensor.entries is None:
        return constant_scalar(tensor, role)
    require(tensor.entries.size == 1, f"number of elements of {role}", 1, tensor.shape, "pass one")
    return tensor.entries.reshape(-1)[0]


def known_int(tensor: Tensor, role: str) -> Dim:
    """The only entry of a tensor, an integer or a size that is known once inputs are."""
    return constant_int(tensor, role) if tensor.entries is None else known_scalar(tensor, role)


def attribute_ints(node: Node, name: str, count: int, default: int = 0) -> tuple[int, ...]:
    """A list attribute of `count` integers; absent or empty: the default, `count` times."""
    values = tuple(int(v) for v in node.get(name, ()) or (default,) * count)
    way_out = "give one integer per spatial dimension"
    require(len(values) == count, f"length of attribute {name}", count, len(values), way_out)
    return values


def describe_tensor(role: str, tensor: Tensor) -> str:
    """`X float32[1,32,8,8]`; short integer constants show their value: `axes int64[2]=(0, 1)`."""
    text = f"{role} {tensor.dtype}[{','.join(map(str, tensor.shape))}]"
    value = tensor.value
    if value is not None and value.dtype.kind in "iu" and value.ndim <= 1 and value.size <= 8:
        text += f"={_show(tuple(value.reshape(-1).tolist()))}"
    return text


def _show(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(str, value))})"
    return str(value)
