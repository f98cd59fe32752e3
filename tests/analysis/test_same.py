"""Statements that are the same but for names are found to be; others not, whatever they share."""

from __future__ import annotations

import math
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.same import Renaming, find_renaming, same_literal
from polyc.scop.expr import Call, Cast, Const, Expr, Index, Load, Within
from polyc.scop.scop import Statement
from polyc.types.ranges import Step
from tests.analysis.nests import F32, load, statement


def product(*names: str, space: str = "S", domain: str = "0 <= i < 9") -> Statement:
    """c[i] = a[i] * b[i], by these names."""
    *factors, target = names
    reads = tuple(load(f"{{ {space}[i] -> {name}[i] }}") for name in factors)
    return statement(
        f"{{ {space}[i] : {domain} }}", f"{{ {space}[i] -> {target}[i] }}", Call("mul", reads, F32)
    )


def test_names_are_free() -> None:
    found = find_renaming([product("a", "b", "c")], [product("mul", "S", "exp", space="T")])
    assert isinstance(found, Renaming)
    assert found.arrays == {"a": "mul", "b": "S", "c": "exp"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (product("a", "b", "c"), product("a", "a", "c")),
        (product("a", "a", "c"), product("a", "b", "c")),
        (product("a", "b", "c"), product("a", "c", "c")),
        (product("a", "c", "c"), product("a", "b", "c")),
        (product("a", "b", "c"), product("a", "b", "c", domain="0 <= i < 8")),
        (product("a", "b", "c"), product("a", "b", "b", "c")),
    ],
)
def test_one_array_never_stands_for_two(one: Statement, other: Statement) -> None:
    assert isinstance(find_renaming([one], [other]), str)


def value(of: Expr) -> Statement:
    return statement("{ S[i] : 0 <= i < 9 }", "{ S[i] -> c[i] }", of)


def at(text: str) -> Load:
    return load(f"{{ S[i] -> a[{text}] }}")


NUMBER = Index(isl.PwAff("{ S[i] -> [(i)] }"))
FIRST = Within(isl.Set("{ S[i] : i < 4 }"))
VALUES: list[Expr] = [
    at("i"),
    at("i + 1"),
    at("8 - i"),
    Call("neg", (at("i"),), F32),
    Call("exp", (at("i"),), F32),
    Call("add", (at("i"), at("i")), F32),
    Call("add", (at("i"), at("i + 1")), F32),
    Call("add", (at("i"), Const(0.0, F32)), F32),
    Call("add", (at("i"), Const(-0.0, F32)), F32),
    Call("add", (at("i"), Const(math.nan, F32)), F32),
    Cast(at("i"), F32),
    Cast(at("i"), F32, for_storage=True),
    Cast(at("i"), np.dtype(np.float64)),
    NUMBER,
    replace(NUMBER, value=isl.PwAff("{ S[i] -> [(2 i)] }")),
    FIRST,
    replace(FIRST, domain=isl.Set("{ S[i] : i < 5 }")),
    replace(at("0"), dynamic=((0, NUMBER),)),
    replace(at("0"), dynamic=((0, Cast(NUMBER, F32)),)),
]


@pytest.mark.parametrize("k", range(len(VALUES)))
def test_values_are_told_apart(k: int) -> None:
    for other, wanted in enumerate(VALUES):
        found = find_renaming([value(VALUES[k])], [value(wanted)])
        assert isinstance(found, Renaming) == (k == other)


def test_what_a_domain_makes_equal_is_equal() -> None:
    odd = replace(NUMBER, value=isl.PwAff("{ S[i] -> [(i mod 9)] }"))
    wide = replace(FIRST, domain=isl.Set("{ S[i] : -3 <= i < 4 }"))
    for one, other in ((odd, NUMBER), (wide, FIRST), (at("i mod 9"), at("i"))):
        assert isinstance(find_renaming([value(one)], [value(other)]), Renaming)


def test_reductions_and_steps() -> None:
    plain = product("a", "b", "c")
    assert isinstance(find_renaming([plain], [replace(plain, reduction="add")]), str)
    assert isinstance(find_renaming([plain], [plain, plain]), str)

    def stepped(name: str, steps: int) -> Statement:
        one = product("a", "b", "c")
        write = isl.PwMultiAff(f"[{name}] -> {{ S[i] -> c[i + {name}] }}")
        return replace(one, write=write, step=Step.of(name, steps))

    assert isinstance(find_renaming([stepped("step_a", 5)], [stepped("step_b", 5)]), Renaming)
    assert isinstance(find_renaming([stepped("step_a", 5)], [stepped("step_b", 6)]), str)
    assert isinstance(find_renaming([stepped("step_a", 5)], [plain]), str)


def test_literals() -> None:
    assert same_literal(math.nan, math.nan)
    assert same_literal(2**64 - 1, 2**64 - 1)
    assert not same_literal(0.0, -0.0)
    assert not same_literal(1, 1.0)
    assert not same_literal(1, True)


def test_sizes_under_other_names() -> None:
    def rows(size: str) -> Statement:
        one = product("a", "b", "c")
        bound = f"[{size}, size_w] -> {{ S[i] : 0 <= i < {size} + size_w }}"
        return replace(one, domain=isl.Set(bound))

    of_n, of_m = rows("size_n"), rows("size_m")
    assert isinstance(find_renaming([of_n], [of_m]), str)
    assert isinstance(find_renaming([of_n], [of_m], {"size_n": "size_m"}), Renaming)
    swapped = {"size_n": "size_w", "size_w": "size_n"}
    assert isinstance(find_renaming([of_n], [of_n], swapped), Renaming)
    found = find_renaming([of_n], [of_m], {"size_n": "size_w"})
    assert found == "two sizes under one name"
