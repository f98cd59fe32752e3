"""Index expressions evaluated by Python: the meaning that every rewrite must keep."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from polyc.loopnest.index import (
    Affine,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Var,
    choice,
    const,
    extremum,
    floordiv,
    modulo,
    var,
)

NAMES = ("a", "b", "c")
VALUES = st.fixed_dictionaries({name: st.integers(-20, 20) for name in NAMES})


def evaluate(index: Affine, values: Mapping[str, int]) -> int:
    total = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Var(name):
                value = values[name]
            case FloorDiv(argument, divisor):
                value = evaluate(argument, values) // divisor
            case Mod(argument, divisor):
                value = evaluate(argument, values) % divisor
            case Extremum(which, arguments):
                pick = min if which == "min" else max
                value = pick(evaluate(a, values) for a in arguments)
            case Choice(condition, then, otherwise):
                value = evaluate(then if holds(condition, values) else otherwise, values)
        total += coefficient * value
    return total


def holds(condition: Condition, values: Mapping[str, int]) -> bool:
    match condition:
        case Compare(operator, left):
            value = evaluate(left, values)
            return value >= 0 if operator == "ge" else value == 0
        case Logic(operator, arguments):
            every = all if operator == "and" else any
            return every(holds(a, values) for a in arguments)


def _compound(inside: st.SearchStrategy[Affine]) -> st.SearchStrategy[Affine]:
    factors, divisors = st.integers(-4, 4), st.integers(1, 6)
    return st.one_of(
        st.builds(lambda x, y: x + y, inside, inside),
        st.builds(lambda x, y: x - y, inside, inside),
        st.builds(lambda x, k: x * k, inside, factors),
        st.builds(floordiv, inside, divisors),
        st.builds(modulo, inside, divisors),
        st.builds(
            extremum,
            st.sampled_from(["min", "max"]),
            st.lists(inside, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(choice, _conditions(inside), inside, inside),
    )


def _conditions(inside: st.SearchStrategy[Affine]) -> st.SearchStrategy[Condition]:
    compare = st.builds(Compare, st.sampled_from(["ge", "eq"]), inside)
    return st.recursive(
        compare,
        lambda below: st.builds(
            Logic, st.sampled_from(["and", "or"]), st.lists(below, max_size=3).map(tuple)
        ),
        max_leaves=3,
    )


INDICES = st.recursive(
    st.one_of(st.sampled_from(NAMES).map(var), st.integers(-9, 9).map(const)),
    _compound,
    max_leaves=6,
)
CONDITIONS = _conditions(INDICES)
