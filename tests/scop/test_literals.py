"""The literals that a statement computes with, and what is left without them."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np

from polyc.scop.expr import BOOL, INT64, Cast, Const, Expr, Load, call, walk
from polyc.scop.literals import compute_form, content_of, find_literals, replace_literals
from polyc.scop.scop import Statement

F32, F16, U8 = (np.dtype(t) for t in (np.float32, np.float16, np.uint8))
X = Load("X", isl.PwMultiAff("{ S[i] -> X[i] }"), F32)


def literal(value: float) -> Const:
    return Const(value, F32)


def statement(value: Expr) -> Statement:
    domain = isl.Set("{ S[i] : 0 <= i < 8 }")
    return Statement("S", domain, ("i",), "Y", isl.PwMultiAff("{ S[i] -> Y[i] }"), value)


def affine(scale: float, shift: float) -> Expr:
    return call("add", call("mul", X, literal(scale)), literal(shift))


def test_literals_are_found_and_replaced_from_left_to_right() -> None:
    value = call("max", affine(2.0, 3.0), call("mul", literal(4.0), affine(5.0, 6.0)))
    assert [c.value for c in find_literals(value)] == [2.0, 3.0, 4.0, 5.0, 6.0]
    others = [literal(float(k)) for k in range(5)]
    assert find_literals(replace_literals(value, others)) == tuple(others)
    assert replace_literals(value, find_literals(value)) == value
    assert find_literals(X) == ()
    assert replace_literals(X, []) is X


def test_what_says_where_an_element_lies_is_no_literal() -> None:
    place = call("index", Cast(literal(3.0), INT64), Const(8, INT64))
    gathered = replace(X, dynamic=((0, place),))
    assert find_literals(call("mul", gathered, literal(2.0))) == (literal(2.0),)
    assert replace_literals(gathered, []) is gathered


def test_truth_values_narrow_types_and_what_does_not_fit_stay() -> None:
    for stays in (Const(True, BOOL), Const(1.5, F16), Const(256, U8), Const(-1, U8)):
        assert find_literals(stays) == ()
    assert find_literals(Const(255, U8)) == (Const(255, U8),)


def test_a_form_is_what_is_left_without_literals() -> None:
    form = compute_form(statement(affine(2.0, 3.0)))
    assert form == compute_form(statement(affine(-0.0, float("nan"))))
    assert form != compute_form(statement(call("mul", X, affine(2.0, 3.0))))
    assert form != compute_form(replace(statement(affine(2.0, 3.0)), reduction="add"))
    cast = (Cast(Const(1, np.dtype(t)), F32) for t in (np.uint8, np.int8))
    unsigned, signed = (compute_form(statement(e)) for e in cast)
    assert unsigned != signed, "a type is not a matter of the literal"


def test_a_literal_is_an_element_bit_by_bit() -> None:
    for value in (0.0, -0.0, float("nan"), float("inf"), 0.1, 1e300):
        with np.errstate(over="ignore"):
            expected = np.float32(value).tobytes()
            assert content_of(literal(value)).tobytes() == expected
    assert sum(isinstance(e, Const) for e in walk(affine(1.0, 2.0))) == 2
