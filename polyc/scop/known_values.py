"""Statements that read constants alone, computed when compiling.

    W: w_float[o, c] = rounded(float32(int32(w[o, c]) - zero[o]) * scale[o])     all: constants
    ->
    w_float: a constant as well

NumPy does what the C would do: integers are those of 32 bits, floats round once an operation.
"""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl
import numpy as np

from polyc.poly.affine import coefficients, outputs, plain_iterator, single_aff
from polyc.poly.boxes import box
from polyc.scop.expr import Call, Cast, Const, Expr, Load
from polyc.scop.scop import Array, Statement

FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "rounded": np.positive}
"""What integers are restored by, and the function of NumPy that gives the same bits."""


def fills(s: Statement, target: Array) -> bool:
    """Whether a statement writes all of an array, each element where its iterators say."""
    plain = [plain_iterator(function) for function in outputs(s.write)]
    if s.reduction or s.time is not None or plain != [(k, 0) for k in range(len(s.iterators))]:
        return False
    written = s.write.as_map().intersect_domain(s.domain).range()
    known = all(isinstance(n, int) for n in target.shape)
    return known and bool(written.is_equal(box(target.name, target.shape)))


def reads_constants(expr: Expr, arrays: Mapping[str, Array]) -> bool:
    """Whether an expression is of literals and elements of constants."""
    match expr:
        case Const():
            return True
        case Load(array, dynamic=()):
            return arrays[array].value is not None
        case Call(function, arguments):
            return function in FUNCTIONS and all(reads_constants(a, arrays) for a in arguments)
        case Cast(argument, dtype):
            known = argument.dtype.kind in "iu" and dtype.kind in "iuf"
            return known and dtype.isnative and reads_constants(argument, arrays)
    return False


def evaluate(expr: Expr, shape: tuple[int, ...], arrays: Mapping[str, Array]) -> np.ndarray | None:
    """The values of an expression that `reads_constants`, over the box of a shape.

    None where an index is no sum of multiples of iterators.
    """
    value = _evaluate(expr, shape, arrays)
    return None if value is None else np.ascontiguousarray(np.broadcast_to(value, shape))


def _evaluate(expr: Expr, shape: tuple[int, ...], arrays: Mapping[str, Array]) -> np.ndarray | None:
    """The same, with an extent of 1 along iterators that it does not depend on."""
    match expr:
        case Const(value, dtype):
            return np.full((1,) * len(shape), value, dtype)
        case Load(array, index):
            values, places = arrays[array].value, _places(index, shape)
            return None if values is None or places is None else values[places]
        case Cast(argument, dtype):
            inner = _evaluate(argument, shape, arrays)
            return None if inner is None else inner.astype(dtype)
        case Call(function, arguments, dtype):
            parts = [_evaluate(a, shape, arrays) for a in arguments]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            with np.errstate(all="ignore"):
                result: np.ndarray = FUNCTIONS[function](*known)
            return result.astype(dtype, copy=False)
    return None


def _places(index: isl.PwMultiAff, shape: tuple[int, ...]) -> tuple[np.ndarray, ...] | None:
    """The indices of an array that an affine function leads to, against the box."""
    found = []
    for function in outputs(index):
        aff, steps = single_aff(function), coefficients(function)
        if aff is None or None in steps or not aff.get_constant_val().is_int():
            return None
        place = np.full((1,) * len(shape), int(aff.get_constant_val().to_python()))
        for d, step in enumerate(steps):
            if step:
                along = [-1 if k == d else 1 for k in range(len(shape))]
                place = place + step * np.arange(shape[d]).reshape(along)
        found.append(place)
    return tuple(found)
