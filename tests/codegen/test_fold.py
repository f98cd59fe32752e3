"""Folding changes how an index is written, never what it is."""

from __future__ import annotations

from hypothesis import given

from polyc.codegen.cuda.fold import fold, fold_condition
from polyc.loopnest.index import FloorDiv, const, floordiv, modulo, var
from tests.loopnest.indices import CONDITIONS, INDICES, VALUES, evaluate, holds

a, b = var("a"), var("b")


@given(INDICES, VALUES)
def test_an_index_keeps_its_value(index, values):
    assert evaluate(fold(index), values) == evaluate(index, values)


@given(CONDITIONS, VALUES)
def test_a_condition_keeps_its_truth(condition, values):
    assert holds(fold_condition(condition), values) == holds(condition, values)


def test_digits_make_up_their_number():
    number = floordiv(a, 12) * 12 + floordiv(modulo(a, 12), 3) * 3 + modulo(a, 3)
    assert fold(number) == a


def test_quotients_are_shared_whatever_their_sign():
    shared = FloorDiv(a + b, 3)
    for index in (floordiv(a + b, 3), floordiv(const(2) - a - b, 3), floordiv(a - b * 2, 3)):
        assert [atom for atom, _ in fold(index).terms if isinstance(atom, FloorDiv)] == [shared]
    assert fold(modulo(const(2) - a - b, 3)) == const(2) - modulo(a + b, 3)
