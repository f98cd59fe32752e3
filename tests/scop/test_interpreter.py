"""The interpreter refuses what the compiler must never emit, and evaluates as isl does."""

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.scop.expr import Call, Const, Load
from polyc.scop.scop import Array, Scop, Statement
from tests.scop.interpreter import contains, convert, evaluate_piecewise, interpret, points_of

F64 = np.dtype(np.float64)
ONE = Const(1.0, F64)


def statement(domain, write, value=ONE, reduction=None):
    s = isl.Set(domain)
    names = tuple(s.get_dim_name(isl.dim_type.set, k) for k in range(s.dim(isl.dim_type.set)))
    return Statement("S", s, names, "A", isl.PwMultiAff(write), value, reduction)


def run(*statements, size=4):
    scop = Scop("s", statements, {"A": Array("A", F64, (size,), "output")}, (), ("A",))
    return interpret(scop, {})["A"]


def load(index):
    return Load("A", isl.PwMultiAff(index), F64)


WHOLE = statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> A[i] }")


def test_assignment_and_reduction():
    update = statement(
        "{ S[i, j] : 0 <= i < 4 and 0 <= j <= i }", "{ S[i, j] -> A[i] }", ONE, "add"
    )
    assert run(WHOLE, update).tolist() == [2, 3, 4, 5]


def test_recurrence_runs_in_order():
    first = statement("{ S[i] : i = 0 }", "{ S[i] -> A[0] }")
    double = Call("mul", (Const(2.0, F64), load("{ S[i] -> A[i - 1] }")), F64)
    rest = statement("{ S[i] : 1 <= i < 4 }", "{ S[i] -> A[i] }", double)
    assert run(first, rest).tolist() == [1, 2, 4, 8]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ([statement("{ S[i] : 0 <= i < 5 }", "{ S[i] -> A[i] }")], "leaves"),
        ([statement("{ S[i] : 0 <= i < 3 }", "{ S[i] -> A[i] }")], "not written in full"),
        ([statement("{ S[i] : 0 <= i < 8 }", "{ S[i] -> A[floor(i/2)] }")], "twice"),
        ([WHOLE, WHOLE], "already written"),
        ([statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> A[i] }", ONE, "add")], "not initialised"),
        ([statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> A[i] }", load("{ S[i] -> A[3] }"))],
         "before it is written"),
        ([statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> A[i] : i > 0 }")], "not defined"),
    ],
)  # fmt: skip
def test_refusals(statements, message):
    with pytest.raises(AssertionError, match=message):
        run(*statements)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([
    "{ S[i, j] -> [2i + floor((i + 3j)/4) - (j mod 3)] }",
    "{ S[i, j] -> [floor((i + 3*floor(j/2))/5)] : i > j; S[i, j] -> [-j] : i <= j }",
    "{ S[i, j] -> [max(i, -i) - min(j, 3)] : (i + j) mod 2 = 0 }",
]), st.integers(-9, 9), st.integers(-9, 9))  # fmt: skip
def test_quasi_affine_functions_agree_with_isl(formula, i, j):
    function = isl.PwAff(formula)
    values, defined = evaluate_piecewise(function, np.array([[i, j]]))
    point = isl.Set(f"{{ S[{i}, {j}] }}").sample_point()
    inside = point.to_set().is_subset(function.domain())
    assert defined[0] == inside
    if inside:
        assert values[0] == function.eval(point).to_python()


def test_points_in_lexicographic_order():
    domain = isl.Set("{ S[i, j] : 0 <= i < 3 and i <= j < 3 and (exists a : j = 2a) }")
    assert points_of(domain).tolist() == [[0, 0], [0, 2], [1, 2], [2, 2]]
    assert contains(domain, np.array([[0, 1], [0, 2]])).tolist() == [False, True]
    assert points_of(isl.Set("{ S[] }")).shape == (1, 0)
    assert points_of(isl.Set("{ S[i] : 0 <= i < 0 }")).shape == (0, 1)


def test_conversion_saturates():
    x = np.array([np.nan, -np.inf, np.inf, 9.3e18, -1e19, 3.9, -3.9])
    limits = np.iinfo(np.int64)
    expected = [0, limits.min, limits.max, limits.max, limits.min, 3, -3]
    assert convert(x, np.dtype(np.int64)).tolist() == expected
