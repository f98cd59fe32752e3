"""Index expressions: canonical forms, and rewrites that keep their value."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.loopnest.index import (
    TRUE,
    Affine,
    Compare,
    Logic,
    choice,
    const,
    decide,
    extremum,
    floordiv,
    modulo,
    of_extent,
    stride,
    substitute,
    times,
    var,
    variables,
)
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.substitute import substitute_condition
from polyc.types.sizes import Size, least
from tests.loopnest.indices import CONDITIONS, INDICES, NAMES, VALUES, evaluate, holds

a, b = var("a"), var("b")


def test_linear_combinations_are_canonical():
    assert a + b == b + a
    assert a * 3 - a * 3 == const(0)
    assert (a + b) * 0 == const(0)
    assert (a + 2) + (b - 2) == b + a
    assert (a - 1).constant == -1


@pytest.mark.parametrize(
    ("index", "simple"),
    [
        (floordiv(a * 8 + 3, 4), a * 2),
        (floordiv(a, 1), a),
        (floordiv(const(-1), 4), const(-1)),
        (modulo(a * 8 + 7, 4), const(3)),
        (modulo(a * 8 - 1, 4), const(3)),
        (modulo(a * 4 + b, 4), modulo(b, 4)),
        (floordiv(a, 64) * 64 + modulo(a, 64), a),
        (floordiv(a * 2 + 3, 4) * 12 + b - 9 + modulo(a * 2 + 3, 4) * 3, a * 6 + b),
        (extremum("min", (a, a)), a),
        (extremum("max", (const(3), const(5))), const(5)),
        (choice(Compare("ge", const(0)), a, b), a),
        (choice(Compare("eq", const(1)), a, b), b),
    ],
)
def test_what_is_known_is_folded(index, simple):
    assert index == simple


@settings(max_examples=60)
@given(INDICES, INDICES, st.integers(2, 9), st.integers(-3, 3), VALUES)
def test_a_number_is_not_left_in_its_digits(index, other, divisor, weight, values):
    digits = floordiv(index, divisor) * divisor + modulo(index, divisor)
    joined = digits * weight + other
    wanted = weight * evaluate(index, values) + evaluate(other, values)
    assert evaluate(joined, values) == wanted
    assert digits == index


@settings(max_examples=60)
@given(INDICES, INDICES, st.integers(2, 9), st.integers(-3, 3), VALUES)
def test_digits_that_isl_writes_in_another_way(index, other, divisor, weight, values):
    """The lower one by what is as much modulo the divisor, or counted from its end."""
    high, same = floordiv(index, divisor) * divisor, index + other * divisor
    for digits, number in (
        (high + modulo(same, divisor), index),
        (high - modulo(const(divisor - 1) - same, divisor), index - (divisor - 1)),
    ):
        wanted = weight * evaluate(number, values) + evaluate(other, values)
        assert evaluate(digits * weight + other, values) == wanted
        assert digits == number


def test_digits_of_several_numbers_stay():
    for digits in (
        floordiv(a, 64) * 64 + modulo(b, 64),
        floordiv(a, 64) * 64 + modulo(a, 32),
        floordiv(a, 64) * 32 + modulo(a, 64),
    ):
        assert len(digits.terms) == 2


def test_decided_conditions():
    unknown = Compare("ge", a)
    assert decide(TRUE) is True
    assert decide(Logic("or", ())) is False
    assert decide(Logic("and", (unknown, Compare("eq", const(1))))) is False
    assert decide(Logic("or", (unknown, Compare("eq", const(0))))) is True
    assert decide(Logic("and", (unknown, TRUE))) is None


def test_strides():
    assert stride(a * 3 + b, "a") == 3
    assert stride(a * 3 + b, "c") == 0
    assert stride(a + floordiv(a, 2), "a") is None
    assert stride(a + floordiv(b, 2), "a") == 1


@given(INDICES, INDICES, VALUES)
@settings(max_examples=200, deadline=None)
def test_substitution_keeps_the_value(index: Affine, inner: Affine, values: dict[str, int]):
    replaced = substitute(index, {"a": inner})
    assert evaluate(replaced, values) == evaluate(index, values | {"a": evaluate(inner, values)})
    constants = {name: const(v) for name, v in values.items()}
    assert substitute(index, constants) == const(evaluate(index, values))


@given(CONDITIONS, VALUES)
@settings(max_examples=200, deadline=None)
def test_substitution_in_conditions(condition, values):
    partly = substitute_condition(condition, {"a": const(values["a"])})
    assert holds(partly, values) == holds(condition, values)
    fully = substitute_condition(condition, {n: const(v) for n, v in values.items()})
    assert decide(fully) is holds(condition, values)


@given(INDICES, VALUES)
@settings(max_examples=200, deadline=None)
def test_strides_and_variables_are_true_of_the_values(index, values):
    for name in NAMES:
        step = stride(index, name)
        moved = evaluate(index, values | {name: values[name] + 1}) - evaluate(index, values)
        assert step is None or moved == step
        assert name in variables(index) or moved == 0


SCOPE = {
    "pc_floordiv": lambda x, d: x // d,
    "pc_mod": lambda x, d: x % d,
    "pc_min": min,
    "pc_max": max,
}


@given(INDICES.filter(lambda i: "?" not in show_index(i)), VALUES)
@settings(max_examples=200, deadline=None)
def test_the_printed_index_has_the_value(index, values):
    assert eval(show_index(index), SCOPE | values) == evaluate(index, values)


@given(CONDITIONS.filter(lambda c: "?" not in show_condition(c)), VALUES)
@settings(max_examples=200, deadline=None)
def test_the_printed_condition_has_the_truth(condition, values):
    text = show_condition(condition).replace("&&", "and").replace("||", "or")
    assert bool(eval(text, SCOPE | values)) == holds(condition, values)


def test_texts():
    assert show_index(a * 2 - b + 1) == "2 * a - b + 1"
    assert show_index(const(-3)) == "-3"
    assert show_index(b * -1) == "-b"
    assert show_index(extremum("min", (a, b, const(3)))) == "pc_min(pc_min(a, b), 3)"
    assert show_condition(Compare("ge", a - b - 2)) == "a >= b + 2"
    picked = choice(Compare("eq", a), b, const(7))
    assert show_index(picked + 1) == "(a == 0 ? b : 7) + 1"


def test_a_factor_without_a_name_is_shown_as_it_follows_from_others():
    n, k = Size.of("n"), Size.of("k")
    assert show_index(of_extent(least(n + 1, k) * least(n + 1, k) * 4)) == (
        "4 * pc_min(k, n + 1) * pc_min(k, n + 1)"
    )
    assert show_index(of_extent((n + 1) // 2 * k)) == "pc_floordiv(n + 1, 2) * k"
    assert show_index(times(a * 2 + 3, (n + 1) // 2)) == (
        "3 * pc_floordiv(n + 1, 2) + 2 * pc_floordiv(n + 1, 2) * a"
    )
