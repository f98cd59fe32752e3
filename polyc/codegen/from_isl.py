"""isl's AST expressions, and its affine functions, as index expressions and conditions."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.loopnest.index import (
    Affine,
    Compare,
    Condition,
    Logic,
    choice,
    const,
    extremum,
    floordiv,
    modulo,
    var,
    weighted_sum,
)
from polyc.poly.affine import outputs, single_aff
from polyc.poly.parameters import parameters_of

IN, PARAM, DIV = isl.dim_type.in_, isl.dim_type.param, isl.dim_type.div
Op = isl.ast_expr_op_type
Kind = isl.ast_expr_type


def to_index(expr: isl.AstExpr) -> Affine:
    """An integer expression; isl's quotients and remainders all become floor and mod.

    pdiv_q, pdiv_r: isl knows that the dividend is not negative, where truncation is floor.
    div: the division is exact. zdiv_r is only compared with zero, where signs do not matter.
    """
    kind = expr.get_type()
    if kind == Kind.int:
        return const(int(expr.get_val().to_python()))
    if kind == Kind.id:
        return var(expr.get_id().get_name())
    operator = expr.get_op_type()
    arguments = [expr.get_op_arg(k) for k in range(expr.get_op_n_arg())]
    if operator in (Op.cond, Op.select):
        condition, then, otherwise = arguments
        return choice(to_condition(condition), to_index(then), to_index(otherwise))
    if operator in _CONDITIONS:
        return choice(to_condition(expr), const(1), const(0))
    values = [to_index(a) for a in arguments]
    match operator:
        case Op.add:
            return values[0] + values[1]
        case Op.sub:
            return values[0] - values[1]
        case Op.minus:
            return values[0] * -1
        case Op.mul:
            left, right = values
            return right * left.constant if left.is_constant else left * right.constant
        case Op.fdiv_q | Op.pdiv_q | Op.div:
            return floordiv(values[0], values[1].constant)
        case Op.pdiv_r | Op.zdiv_r:
            return modulo(values[0], values[1].constant)
        case Op.min:
            return extremum("min", tuple(values))
        case Op.max:
            return extremum("max", tuple(values))
    raise AssertionError(f"isl generated an operator that polyc does not know: {expr}")


def to_condition(expr: isl.AstExpr) -> Condition:
    """A boolean expression as comparisons with zero."""
    if expr.get_type() == Kind.int:
        return Logic("and" if expr.get_val().to_python() else "or", ())
    operator = expr.get_op_type()
    arguments = [expr.get_op_arg(k) for k in range(expr.get_op_n_arg())]
    if operator in _CONJUNCTIONS:
        return Logic("and", tuple(to_condition(a) for a in arguments))
    if operator in _DISJUNCTIONS:
        return Logic("or", tuple(to_condition(a) for a in arguments))
    left, right = (to_index(a) for a in arguments)
    match operator:
        case Op.eq:
            return Compare("eq", left - right)
        case Op.ge:
            return Compare("ge", left - right)
        case Op.gt:
            return Compare("ge", left - right - 1)
        case Op.le:
            return Compare("ge", right - left)
        case Op.lt:
            return Compare("ge", right - left - 1)
    raise AssertionError(f"isl generated a condition that polyc does not know: {expr}")


# By name: islpy's type stubs leave out the members whose names are keywords of Python.
_CONJUNCTIONS = frozenset({Op.__members__["and_"], Op.and_then})
_DISJUNCTIONS = frozenset({Op.__members__["or_"], Op.or_else})
_CONDITIONS = _CONJUNCTIONS | _DISJUNCTIONS | {Op.eq, Op.ge, Op.gt, Op.le, Op.lt}


def apply_affine(
    function: isl.PwMultiAff, arguments: Sequence[Affine]
) -> tuple[Affine, ...] | None:
    """A function at some indices; None if it has several pieces, or divides.

    { [i, j] -> [2j + 5, i] }  at  c0 + c2, c1   ->   2*c1 + 5, c0 + c2

    So much is plain without isl, which looks at all that holds of the loops to find as much.
    """
    affs = list(map(single_aff, outputs(function)))
    if any(aff is None or aff.dim(DIV) or not aff.get_denominator_val().is_one() for aff in affs):
        return None
    sizes = list(map(var, parameters_of(function)))
    return tuple(_apply(aff, arguments, sizes) for aff in affs if aff is not None)


def _apply(aff: isl.Aff, arguments: Sequence[Affine], sizes: Sequence[Affine]) -> Affine:
    """One coordinate of such a function."""
    parts = [
        (index, _whole(aff.get_coefficient_val(kind, k)))
        for kind, indices in ((IN, arguments), (PARAM, sizes))
        for k, index in enumerate(indices)
        if aff.involves_dims(kind, k, 1)
    ]
    return weighted_sum(parts, _whole(aff.get_constant_val()))


def _whole(value: isl.Val) -> int:
    return int(value.to_python())
