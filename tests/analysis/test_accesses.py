"""Printed accesses: what the statement reads and writes, where it is stored, in bounds."""

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.accesses import find_differences
from polyc.loopnest import nodes as loopnest
from polyc.loopnest.index import Affine, Compare
from polyc.loopnest.nodes import Read, Value
from polyc.memory.storage import permuted
from polyc.scop.expr import Call, Cast, Const, Index, Load, Within
from tests.analysis.mutate import check_refused, find, swap
from tests.analysis.nests import (
    F32,
    ZERO,
    Case,
    array,
    at,
    case,
    ci,
    copy_at,
    guarded,
    load,
    loop,
    matmul,
    pointwise,
    read,
    run,
    scop,
    statement,
)


def padded(test: Compare, index: Affine, other: float = 0.0, is_guarded: bool = True) -> Case:
    """Y[i] = X[i - 1] where i >= 1, else 0."""
    inside = Within(isl.Set("{ P[i] : i >= 1 }"))
    element = Load("X", isl.PwMultiAff("{ P[i] -> X[i-1] : i >= 1 }"), F32)
    of = scop(
        [array("X", [7], "input"), array("Y", [8], "output")],
        statement(
            "{ P[i] : 0<=i<8 }", "{ P[i] -> Y[i] }", Call("select", (inside, element, ZERO), F32)
        ),
    )
    reading = guarded if is_guarded else read
    value = Call("select", (loopnest.Test(test), reading("X", index), Const(other, F32)), F32)
    return case(of, loop("i", 8, run("P", [ci], at("Y", ci), value), kind="parallel"))


def test_a_guarded_load_is_judged_where_it_is_evaluated() -> None:
    assert padded(Compare("ge", ci - 1), ci - 1).verify().accesses == 2
    check_refused(padded(Compare("ge", ci), ci - 1), "P computes within")
    check_refused(padded(Compare("ge", ci - 1), ci), "X[i] is not where X is stored", "P[1]")
    check_refused(padded(Compare("ge", ci - 1), ci - 1, 1.0), "P computes 0.0, but printed is 1.0")
    unguarded = padded(Compare("ge", ci - 1), ci - 1, is_guarded=False)
    check_refused(unguarded, "X[i - 1] is read where the statement reads nothing", "P[0]")


def gather(
    dynamic_at: int = 0,
    bound: int = 4,
    blocks: Sequence[tuple[int, int]] = (),
    rows: int = 4,
    base: int = 0,
) -> Case:
    """Y[i] = A[index(I[i]), i] with A stored transposed; `base` is added to the computed index."""

    def index(value: Load | Read) -> Call:
        return Call("index", (value, Const(bound, F32)), F32)

    element = Load(
        "A", isl.PwMultiAff("{ G[i] -> A[0, i] }"), F32, ((0, index(load("{ G[i] -> I[i] }"))),)
    )
    of = scop(
        [array("I", [3], "input"), array("A", [rows, 3], "input"), array("Y", [3], "output")],
        statement("{ G[i] : 0<=i<3 }", "{ G[i] -> Y[i] }", element),
    )
    place = at("A", *([0] * len(blocks)), *([ci, base] if not blocks else [0, ci]))
    value = Read(place, F32, ((dynamic_at, index(read("I", ci))),))
    stored = permuted(of.arrays["A"], [1, 0], blocks)
    return case(of, loop("i", 3, run("G", [ci], at("Y", ci), value)), storages={"A": stored})


def test_a_computed_coordinate_is_followed_through_its_storage() -> None:
    assert gather(dynamic_at=1).verify().accesses == 3
    check_refused(gather(dynamic_at=0), "is not stored by itself")
    check_refused(gather(dynamic_at=1, bound=5), "nothing keeps the index")
    check_refused(gather(dynamic_at=1, blocks=[(0, 2)]), "is not stored by itself")
    check_refused(gather(dynamic_at=1, base=1), "1 is added to an index that is data")
    check_refused(gather(dynamic_at=1, base=-1), "-1 is added to an index that is data")


def test_no_index_is_in_range_where_there_is_no_element() -> None:
    assert gather(dynamic_at=1, bound=1, rows=1).verify()
    check_refused(gather(dynamic_at=1, bound=0, rows=0), "nothing keeps the index")
    check_refused(gather(dynamic_at=1, bound=0), "nothing keeps the index")


def assign(value: object, target: Sequence[Affine] = (ci,)) -> Case:
    return pointwise(loop("i", 10, run("P", [ci], at("Y", *target), value)))  # type: ignore[arg-type]


def test_a_shifted_access_is_refused() -> None:
    check_refused(assign(read("X", ci + 1)), "X[i + 1] is not where X is stored", "P[0]")
    check_refused(assign(read("X", ci), [ci + 1]), "Y[i + 1] is not where Y is stored", "P[0]")
    check_refused(assign(read("X", ci, ci)), "X[i][i] should have 1 indices")
    check_refused(assign(read("Y", ci)), "Y[i] stands for an element of X")


def test_another_value_is_refused() -> None:
    check_refused(assign(ZERO), "P computes X", "but printed is 0.0")
    check_refused(assign(Value(ci)), "P computes X")
    check_refused(assign(Cast(read("X", ci), F32)), "P computes X")
    check_refused(assign(Read(at("X", ci), np.dtype(np.float64))), "P computes X")


def test_an_index_as_data_is_compared() -> None:
    number = Index(isl.PwAff("{ P[i] -> [2i] }"))
    of = scop(
        [replace(array("Y", [5], "output"), dtype=np.dtype(np.int64))],
        statement("{ P[i] : 0<=i<5 }", "{ P[i] -> Y[i] }", number),
    )

    def printed(value: Affine) -> Case:
        one = replace(run("P", [ci], at("Y", ci), Value(value)), dtype=np.dtype(np.int64))
        return case(of, loop("i", 5, one))

    assert printed(ci * 2).verify()
    check_refused(printed(ci), "P computes index")


def test_an_access_out_of_bounds_is_refused() -> None:
    """The statement itself reads X[i + 1]: the loops are faithful, and still leave the array."""
    of = scop(
        [array("X", [10], "input"), array("Y", [10], "output")],
        statement("{ P[i] : 0<=i<10 }", "{ P[i] -> Y[i] }", load("{ P[i] -> X[i+1] }")),
    )
    wrong = case(of, loop("i", 10, run("P", [ci], at("Y", ci), read("X", ci + 1))))
    check_refused(wrong, "X[i + 1] leaves the bounds [10]", "P[9] at [10]")


def test_another_storage_is_refused() -> None:
    right = matmul()
    wrong = permuted(right.scop.arrays["W"], [1, 0], [(1, 16)])
    check_refused(replace(right, storages={**right.storages, "W": wrong}), "parameter W has shape")
    square = matmul(4, 8, 8)
    stored = permuted(square.scop.arrays["W"], [0, 1], [(0, 8)])
    check_refused(
        replace(square, storages={**square.storages, "W": stored}), "is not where W is stored"
    )


def test_parameters_are_distinct_and_writable() -> None:
    right = pointwise(loop("i", 10, copy_at(ci)))
    params = tuple(replace(x, writes=False) for x in right.kernel.params)
    check_refused(
        replace(right, kernel=replace(right.kernel, params=params)), "Y, which is read-only"
    )
    check_refused(replace(right, parameters={"X": "X", "Y": "X"}), "two arrays share a parameter")
    check_refused(replace(right, parameters={"X": "X", "Y": "Z"}), "which is no parameter")


def test_another_reduction_is_refused() -> None:
    right = matmul()
    s = find(right, "S")
    check_refused(swap(right, s, replace(s, reduction="mul")), "S is printed with mul=")
    check_refused(swap(right, s, replace(s, dtype=np.dtype(np.float64))), "S is printed with type")


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        ("{ [i] -> [i mod 14] }", "{ [i] -> [i - 14*floor(i/14)] }", "{ [i] : false }"),
        (  # a roll by 2, as it is read and as its pieces say
            "{ [i] -> [(i + 2) mod 14] }",
            "{ [i] -> [i + 2] : i < 12; [i] -> [i - 12] : 11 < i < 26; [i] -> [i - 26] : i > 25 }",
            "{ [i] : false }",
        ),
        ("{ [i] -> [i] : i < 30 }", "{ [i] -> [i] : i > 3 }", "{ [i] : 0 <= i <= 3 or i = 30 }"),
        (
            "{ [i] -> [i mod 14] }",
            "{ [i] -> [i] : i < 16; [i] -> [i mod 14] : i >= 16 }",
            "{ [i] : 14 <= i <= 15 }",
        ),
    ],
)
def test_where_two_placesfind_differences(one, other, wrong) -> None:
    points = isl.Set("{ [i] : 0 <= i <= 30 }")
    functions = (isl.PwMultiAff(text).get_pw_aff(0) for text in (one, other))
    assert find_differences(points, *functions).is_equal(isl.Set(wrong))
