"""isl AST expressions -> index expressions and conditions."""

from __future__ import annotations

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
)

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
