"""Tensors that consist of sizes: what Shape says, and what models compute of it.

    s = Shape(x); r = Gather(s, 0); t = Concat([r], [-1])     x: float32[n, 3, 4]  ->  t = (n, -1)

The entries are evaluated as `Size`s, in arrays of Python objects, where a model computes how to
reshape, expand or slice. So such nodes vanish, and what they computed needs no memory.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.creation import resolve_shape_span
from polyc.graph.shapes.ratios import Ratio, as_ratio, by_numerators, choose_by_numerators
from polyc.types.derived import Derived
from polyc.types.ranges import STEP
from polyc.types.sizes import Size, bounds, greatest, least

MAX_ENTRIES = 64
"""Elements of the largest tensor that is evaluated here: a list of extents has a handful."""

MOST_FACTORS, LONGEST = 8, 16_384
"""Of a size: how many others it multiplies, and letters that it is written with."""

Entries = Callable[..., Any]


def evaluate_sizes(
    node: Node, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> tuple[np.ndarray, ...] | None:
    """The elements of a node's outputs, as objects; None unless they follow from sizes.

    Raises nothing: what a size leaves open is computed like any other value.
    """
    if node.op == "Split":
        return _split(node, inputs, outputs)
    result = _evaluate_one(node, inputs, outputs[0]) if len(outputs) == 1 else None
    return None if result is None else (result,)


def _split(
    node: Node, inputs: Sequence[Tensor | None], parts: Sequence[Tensor]
) -> tuple[np.ndarray, ...] | None:
    """A list of extents, cut into shorter ones, as TensorFlow takes batch, length and the rest."""
    data, axis = inputs[0], int(node.get("axis", 0))
    lengths = [n for part in parts if isinstance(n := part.shape[axis], int)]
    if data is None or data.entries is None or len(lengths) < len(parts):
        return None
    return tuple(np.split(data.entries, np.cumsum(lengths)[:-1], axis))


def _evaluate_one(node: Node, inputs: Sequence[Tensor | None], output: Tensor) -> np.ndarray | None:
    if (node.op not in _EVALUATED and node.op != "Step") or output.dtype.kind not in "iubf":
        return None
    if node.op == "Step":
        return np.asarray(Size.of(f"{STEP}{node.outputs[0]}"), object)
    if node.op not in ("Shape", "Size") and not any(t and t.entries is not None for t in inputs):
        return None
    try:
        operands = [_operand(node, t) for t in inputs]
        if any(o is None for o, t in zip(operands, inputs, strict=True) if t is not None):
            return None
        result = evaluate_entries(node, operands)
        if output.dtype.kind == "f":  # exact, until it is a whole number again
            result = _each(as_ratio, result)
        if node.op == "Cast" and output.dtype.kind in "iu":
            result = _each(lambda e: e.truncate() if isinstance(e, Ratio) else e, result)
        elif node.op == "Cast" and output.dtype.kind == "b":
            result = _each(bool, result)
        elif output.dtype.kind == "f" and all(e.is_known for e in result.flat):
            return None  # numbers, which are computed as floats are
        return result.reshape(tuple(output.extents))
    except NotFixed:
        return None


def evaluate_entries(node: Node, operands: Sequence[Any]) -> np.ndarray:
    """The elements of a node's output, by those of its inputs; NotFixed as `require_small`."""
    result = np.asarray(_EVALUATED[node.op](node, *operands), object)
    for entry in result.flat:
        require_small(entry)
    return result


def require_small(entry: Any) -> None:
    """NotFixed for a formula that no model means as a size: such as n, squared twenty times.

    It would be longer than can be written, or have numbers beyond 64 bits.
    """
    for extent in (entry.above, entry.below) if isinstance(entry, Ratio) else (entry,):
        if isinstance(extent, Size):
            factors = max(len(product) for product, _ in extent.terms)
            derived = (name for name in extent.factors if isinstance(name, Derived))
            numbers = [count for _, count in extent.terms]
            numbers += [o for name in derived for o in name.operands if isinstance(o, int)]
            largest = max(map(abs, numbers))
            if factors > MOST_FACTORS or largest >= 1 << 62 or len(str(extent)) > LONGEST:
                raise NotFixed("a size is too long a formula", "give the sizes in dims")


def find_lacks(
    node: Node, inputs: Sequence[Tensor | None], lacks: Mapping[str, tuple[Size, ...]]
) -> tuple[Size, ...]:
    """What must not be negative so that the elements of a node's output follow from sizes.

    A remainder has no value by a size that is 0, so it lacks that the size is not. Who reads only
    the value need not ask for that; who reshapes by it must. `lacks`: what the inputs lack.
    """
    if node.op not in _EVALUATED and node.op != "Split":
        return ()
    found: list[Any] = [lack for name in node.inputs for lack in lacks.get(name, ())]
    by = inputs[1] if node.op == "Mod" else None
    if by is not None and by.entries is not None:
        found += [b - 1 for b in by.entries.flat if isinstance(b, Size) and bounds(b)[0] == 0]
    return tuple(dict.fromkeys(found))


def _operand(node: Node, tensor: Tensor | None) -> Any:
    """What a rule below is given: the tensor of a Shape, else entries; None if not known."""
    if tensor is None or node.op in ("Shape", "Size"):
        return tensor
    if tensor.entries is not None:
        return tensor.entries
    if tensor.value is None or tensor.value.size > MAX_ENTRIES or tensor.dtype.kind not in "iubf":
        return None
    values = tensor.value.astype(object)
    return _each(as_ratio, values) if tensor.dtype.kind == "f" else values


def _each(function: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(function, 1, 1)(values), object)


def _shape(node: Node, data: Tensor) -> list[Any]:
    span = resolve_shape_span(data.rank, node.get("start", 0), node.get("end"))
    return [data.shape[i] for i in span]


def _gather(node: Node, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.take(data, indices.astype(np.int64), axis=int(node.get("axis", 0)))


def _slice(
    node: Node,
    data: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    axes: np.ndarray | None = None,
    steps: np.ndarray | None = None,
) -> np.ndarray:
    count = len(starts)
    listed = range(count) if axes is None else axes.tolist()
    strides = [1] * count if steps is None else steps.tolist()
    cuts = [slice(None)] * data.ndim
    for axis, start, end, step in zip(listed, starts, ends, strides, strict=True):
        cuts[axis] = slice(int(start), int(end), int(step))
    return data[tuple(cuts)]


def _reduce(by: Entries) -> Entries:
    """Of a list: which axis says nothing more."""

    def apply(node: Node, data: np.ndarray, axes: np.ndarray | None = None) -> Any:
        if data.ndim > 1:
            raise NotFixed("sizes in a matrix are reduced", "give the model's inputs fixed sizes")
        return by(data.tolist())

    return apply


def _expand(node: Node, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(map(int, shape))))


def _divide(a: Any, b: Any) -> Any:
    """The standard's quotient of integers, which is cut off and not rounded down."""
    if isinstance(a, Ratio):
        return a / b
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if isinstance(b, int) and b <= 0:
        raise NotFixed(f"{a} divided by {b}", "give the sizes in dims")
    return Ratio(a, b).truncate()


def _remainder(node: Node, data: np.ndarray, by: np.ndarray) -> Any:
    """Of integers, with the divisor's sign: what has the dividend's is not evaluated."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Ratio) or (node.get("fmod", 0) and not (a >= 0 and b > 0)):
            raise NotFixed("a remainder with the dividend's sign", "give the sizes in dims")
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        if bounds(b)[0] == 0:  # `find_lacks` says so
            raise NotFixed(f"a remainder by {b}, which may be 0", "give the sizes in dims")
        for rest in (a, a + b):  # a dividend from -b up to b needs no quotient
            if bounds(rest)[0] >= 0 and bounds(rest - b)[1] < 0:
                return rest
        if isinstance(a, int) and 0 <= a <= MOST_STEPS and bounds(b)[0] > 0:
            return _remainder_of_number(a, b)
        return a - a // b * b

    return np.frompyfunc(apply, 2, 1)(data, by)


MOST_STEPS = 16
"""The largest number of which a remainder is put together of those by each smaller divisor."""


def _remainder_of_number(number: int, by: Size) -> Any:
    """What is left of a number, as a shift that a size bounds: it changes up to by = number + 1.

    2 mod n  =  2 * min(1, floor(n/3))       0, 0, 2, 2, …  for n = 1, 2, 3, 4, …
    """
    found: Any = 0
    for divisor in range(2, number + 2):
        change = number % divisor - number % (divisor - 1)
        found = found + change * least(1, by // divisor)
    return least(greatest(found, 0), number)  # as bounds of steps by themselves do not show


def _clip(
    node: Node, data: np.ndarray, low: np.ndarray | None = None, high: np.ndarray | None = None
) -> Any:
    if low is not None:
        data = np.frompyfunc(_GREATEST, 2, 1)(data, low)
    return data if high is None else np.frompyfunc(_LEAST, 2, 1)(data, high)


def _equal(a: Any, b: Any) -> bool:
    """Whether they are equal in all calls; NotFixed if they are in some."""
    low, high = bounds(a - b)
    if low == 0 == high:
        return True
    if low <= 0 <= high:
        raise NotFixed(f"whether {a} is {b} is known only at run time", "give it in dims")
    return False


def _same(node: Node, data: np.ndarray, *rest: Any) -> np.ndarray:
    return data


def _binary(function: Entries) -> Entries:
    return lambda node, *operands: reduce(np.frompyfunc(function, 2, 1), operands)


_GREATEST, _LEAST = choose_by_numerators(greatest), choose_by_numerators(least)

_EVALUATED: Mapping[str, Entries] = {
    "Shape": _shape,
    "Size": lambda node, data: math.prod(data.shape),
    "Gather": _gather,
    "Slice": _slice,
    "Concat": lambda node, *parts: np.concatenate(parts, int(node.get("axis", 0))),
    "Identity": _same,
    "Cast": _same,
    "Reshape": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Flatten": _same,
    "Transpose": lambda node, data: np.transpose(data, node.get("perm")),
    "Expand": _expand,
    "Tile": lambda node, data, repeats: np.tile(data, tuple(map(int, repeats))),
    "Add": _binary(lambda a, b: a + b),
    "Sub": _binary(lambda a, b: a - b),
    "Mul": _binary(lambda a, b: a * b),
    "Div": _binary(_divide),
    "Mod": _remainder,
    "Max": _binary(_GREATEST),
    "Min": _binary(_LEAST),
    "Clip": _clip,
    "Equal": _binary(by_numerators(_equal)),
    "Less": _binary(by_numerators(lambda a, b: a < b)),
    "LessOrEqual": _binary(by_numerators(lambda a, b: a <= b)),
    "Greater": _binary(by_numerators(lambda a, b: a > b)),
    "GreaterOrEqual": _binary(by_numerators(lambda a, b: a >= b)),
    "And": _binary(lambda a, b: bool(a and b)),
    "Or": _binary(lambda a, b: bool(a or b)),
    "Not": lambda node, data: _each(lambda e: not e, data),
    "Abs": lambda node, data: np.frompyfunc(_GREATEST, 2, 1)(data, -data),
    "Floor": lambda node, data: _each(lambda e: Ratio(e.floor()), data),
    "Ceil": lambda node, data: _each(lambda e: Ratio(e.ceil()), data),
    "Neg": lambda node, data: -data,
    "Where": lambda node, *operands: np.frompyfunc(lambda c, a, b: a if c else b, 3, 1)(*operands),
    "ReduceProd": _reduce(lambda data: reduce(operator.mul, data) if data else 1),
    "ReduceSum": _reduce(lambda data: reduce(operator.add, data) if data else 0),
    "ReduceMax": _reduce(lambda data: reduce(_GREATEST, data)),
    "ReduceMin": _reduce(lambda data: reduce(_LEAST, data)),
}
"""(node, the entries of each input) -> the entries of the output."""
