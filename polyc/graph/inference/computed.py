"""Sizes that a model computes in floating point: a call finds them, up to a bound that is known.

    n = Cast(Floor(h * Min(800/Min(h, w), 1333/Max(h, w))));  y = Resize(x, [n, …])

What `n` is, to the last bit of a float, no size says. But it is at most 1333, since h is at most
max(h, w). So `n` becomes a Found (`graph/inference/found.py`): kernels compute it, and the driver
reads it, and checks that it is within the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.inference.sizes import MAX_ENTRIES, evaluate_entries, require_small
from polyc.graph.inference.sources import walk_up
from polyc.graph.ir import INTERNAL, Node, Tensor
from polyc.graph.shapes.ratios import Ratio
from polyc.types.sizes import Extent, Size, bounds

DEEPEST = 64
"""Nodes one behind the other that are looked through: some twenty fit an image."""

LARGEST = 2**31
"""A bound beyond it says nothing: memory is taken for the most that there can be."""

MOST_BOUNDS = 16
"""Bounds of one number that are kept: a network has the smaller of two, of which each is one."""


@dataclass(frozen=True)
class Between:
    """A number that is not negative, by bounds each of which holds."""

    lows: tuple[Ratio, ...]
    highs: tuple[Ratio, ...]

    @staticmethod
    def exactly(value: Any) -> Between:
        """A number or a size; NotFixed for what may be negative or is not finite."""
        if isinstance(value, float):
            if not math.isfinite(value):
                raise NotFixed(f"{value} bounds nothing", "give the sizes in dims")
            value = Ratio(*Fraction(value).as_integer_ratio())
        ratio = value if isinstance(value, Ratio) else Ratio(value)
        if bounds(ratio.above)[0] < 0:
            raise NotFixed(f"{value} may be negative", "give the sizes in dims")
        return Between((ratio,), (ratio,))

    def __add__(self, other: Between) -> Between:
        return self._by(other, lambda a, b: a + b)

    def __mul__(self, other: Between) -> Between:
        return self._by(other, lambda a, b: a * b)

    def __truediv__(self, other: Between) -> Between:
        lows = [_divide(a, b) for a in self.lows for b in other.highs]
        highs = [_divide(a, b) for a in self.highs for b in other.lows]
        return _between(lows, highs)

    def least(self, other: Between) -> Between:
        """Of two numbers, the bounds of the smaller one: it is at most either of them."""
        return _between([Ratio(0)], [*self.highs, *other.highs])

    def greatest(self, other: Between) -> Between:
        """Those of the larger one: at least either of them, and at most both together."""
        return _between([*self.lows, *other.lows], (self + other).highs)

    def floor(self) -> Between:
        return _between([Ratio(0)], self.highs)

    def ceil(self) -> Between:
        """And those of whatever else rounds: to less than 1 more."""
        return _between(self.lows, [high + Ratio(1) for high in self.highs])

    def most(self) -> Extent:
        """The most that a whole number can be: a number, if one is known."""
        found = [_round_up(high) for high in self.highs]
        numbers = [most for most in found if isinstance(most, int) and most <= LARGEST]
        others = [most for most in found if isinstance(most, Size)]
        if not numbers and not others:
            raise NotFixed("how large it may be is not known", "give the sizes in dims")
        return min(numbers) if numbers else others[0]

    def _by(self, other: Between, combine: Callable[[Ratio, Ratio], Ratio]) -> Between:
        """Of what grows with both."""
        lows = [combine(a, b) for a in self.lows for b in other.lows]
        highs = [combine(a, b) for a in self.highs for b in other.highs]
        return _between(lows, highs)


def find_computed(
    tensor: str, nodes: Sequence[Node], table: Mapping[str, Tensor]
) -> dict[str, Node]:
    """Of what a tensor is computed by, numbers that become whole ones, as Computed; by their names.

    n = Cast(x)   ->   n = Computed(x)          x: float32[a], each at most a number or a size
    """
    bounds_of, found = _Bounds(nodes, table), {}
    for node in walk_up(tensor, nodes):
        result = table.get(node.outputs[0])
        if node.op != "Cast" or node.domain or result is None or result.dtype.kind != "i":
            continue
        given = table.get(node.inputs[0])
        if given is None or given.dtype.kind != "f" or result.entries is not None:
            continue
        try:
            most = [between.most() for between in bounds_of.elements(node.inputs[0]).flat]
        except NotFixed:
            continue
        form = {"most": tuple(most), "to": node.attributes["to"]}
        found[node.name] = Node(node.name, "Computed", node.inputs, node.outputs, form, INTERNAL)
    return found


class _Bounds:
    """Bounds of the elements of tensors; NotFixed where there are none."""

    def __init__(self, nodes: Sequence[Node], table: Mapping[str, Tensor]) -> None:
        self._producers = {o: n for n in nodes for o in n.outputs if o}
        self._table = table
        self._found: dict[str, np.ndarray] = {}

    def elements(self, name: str, depth: int = 0) -> np.ndarray:
        """Of each element of a tensor; nodes that are further up than DEEPEST say nothing."""
        if name not in self._found:
            if depth > DEEPEST:
                raise NotFixed("it is computed by many nodes", "give the sizes in dims")
            self._found[name] = self._compute(name, depth + 1)
        return self._found[name]

    def _compute(self, name: str, depth: int) -> np.ndarray:
        tensor = self._table.get(name)
        if tensor is None or any(isinstance(d, Size) for d in tensor.shape):
            raise NotFixed("how many there are is not known", "give the sizes in dims")
        if math.prod(tensor.extents) > MAX_ENTRIES:
            raise NotFixed("that many are no sizes", "give the sizes in dims")
        if tensor.value is not None:
            return _each(Between.exactly, tensor.value.astype(object))
        if tensor.entries is not None and all(map(_is_plain, tensor.entries.flat)):
            return _each(Between.exactly, tensor.entries)
        node = self._producers.get(name)
        if node is None or node.domain or not node.inputs:
            raise NotFixed("its value is no size", "give the sizes in dims")
        return self._apply(node, tensor, depth)

    def _apply(self, node: Node, result: Tensor, depth: int) -> np.ndarray:
        """What a node makes of its inputs."""
        data = self.elements(node.inputs[0], depth)
        if node.op in _BY_ELEMENT:
            others = (self.elements(name, depth) for name in node.inputs[1:])
            combined = reduce(np.frompyfunc(_BY_ELEMENT[node.op], 2, 1), others, data)
            return np.asarray(combined, object)
        if node.op in _OF_ONE:
            return _each(_OF_ONE[node.op], data)
        if node.op in _REDUCED and data.ndim <= 1 and data.size:
            return np.full(result.extents, reduce(_REDUCED[node.op], data.reshape(-1)), object)
        if node.op == "Concat":
            operands: list[Any] = [self.elements(name, depth) for name in node.inputs]
        elif node.op in _MOVED:
            operands = [data, *(self._table[name].value for name in node.inputs[1:] if name)]
        else:
            raise NotFixed(f"what {node.op} gives has no bounds", "give the sizes in dims")
        if any(operand is None for operand in operands):
            raise NotFixed("where it goes is not known", "give the sizes in dims")
        return evaluate_entries(node, operands).reshape(result.extents)


def _is_plain(entry: Any) -> bool:
    """Whether an entry is a size by itself: of fractions of sizes less is known."""
    return not isinstance(entry, Ratio) or isinstance(entry.below, int)


def _each(function: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(function, 1, 1)(values), object)


def _between(lows: Sequence[Ratio], highs: Sequence[Ratio]) -> Between:
    for end in (*lows, *highs):
        require_small(end)
    kept = (tuple(dict.fromkeys(ends))[:MOST_BOUNDS] for ends in (lows, highs))
    return Between(*kept)


def _divide(a: Ratio, b: Ratio) -> Ratio:
    if bounds(b.above)[0] <= 0:
        raise NotFixed(f"{b.above} may be 0", "give the sizes in dims")
    return a / b


def _round_up(high: Ratio) -> Extent | None:
    """A whole number that is at least a bound, with what floats round: None if none is found.

    128*h/max(h, w)   ->   128
    7*h/10            ->   floor(7*h/10) + 1
    """
    above, below = high.above, high.below
    if not isinstance(below, Size):
        return above // below + 1 if below > 1 else above
    for times in _quotients(above, below):
        if bounds(above - below * times)[1] <= 0:
            return times
    return None


def _quotients(above: Extent, below: Size) -> Iterator[int]:
    """Numbers that may be the least multiple of a size which another one is at most.

    128*h + max(h, w)   by max(h, w)   ->   1, 2, 128, 129, 256
    """
    counts = [abs(count) for _, count in above.terms] if isinstance(above, Size) else [above]
    each = {-(-a // abs(b)) for a in counts for _, b in below.terms}
    yield from sorted(each | {one + other for one in each for other in each})


_MOVED = frozenset({"Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice"})
_MOVED |= {"Squeeze", "Transpose", "Unsqueeze"}
"""What only moves the numbers of its first operand."""

_OF_ONE: Mapping[str, Callable[[Between], Between]] = {
    "Floor": Between.floor,
    "Ceil": Between.ceil,
    "Round": Between.ceil,
    "Reciprocal": lambda x: Between.exactly(1) / x,
}

_REDUCED: Mapping[str, Callable[[Between, Between], Between]] = {
    "ReduceMax": Between.greatest,
    "ReduceMin": Between.least,
    "ReduceSum": lambda a, b: a + b,
    "ReduceProd": lambda a, b: a * b,
}

_BY_ELEMENT: Mapping[str, Callable[[Between, Between], Between]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Min": Between.least,
    "Max": Between.greatest,
}
