"""Copies vanish: their sources are written where the copy would have put them."""

import time

import pytest

from polyc.scop.expr import Call
from polyc.scop.merge_copies import merge_copies
from polyc.scop.scop import Scop, Statement
from tests.analysis.nests import F32, ZERO, array, load, matmul_scop, scop, statement
from tests.scop.rewrites import check, get, names


def produce(name: str, target: str, n: int) -> Statement:
    value = Call("neg", (load(f"{{ {name}[i, j] -> X[i, j] }}"),), F32)
    domain = f"{{ {name}[i, j] : 0 <= i < 3 and 0 <= j < {n} }}"
    return statement(domain, f"{{ {name}[i, j] -> {target}[i, j] }}", value)


def copy(name: str, source: str, target: str, place: str, n: int) -> Statement:
    domain = f"{{ {name}[i, j] : 0 <= i < 3 and 0 <= j < {n} }}"
    return statement(
        domain,
        f"{{ {name}[i, j] -> {target}[{place}] }}",
        load(f"{{ {name}[i, j] -> {source}[i, j] }}"),
    )


def concat() -> Scop:
    return scop(
        [
            array("X", [3, 8], "input"),
            array("A", [3, 5], "temporary"),
            array("B", [3, 2], "temporary"),
            array("Y", [3, 7], "output"),
        ],
        produce("P", "A", 5),
        produce("Q", "B", 2),
        copy("CA", "A", "Y", "i, j", 5),
        copy("CB", "B", "Y", "i, j + 5", 2),
    )


def test_a_concatenation_is_written_in_place():
    after = check(merge_copies, concat())
    assert names(after) == ["P", "Q"]
    assert {s.array for s in after.statements} == {"Y"}
    assert set(after.arrays) == {"X", "Y"}


def test_other_readers_follow_the_array():
    before = concat()
    extra = copy("R", "A", "Z", "i, j", 5)
    arrays = {**before.arrays, "Z": array("Z", [3, 5], "output")}
    before = Scop("c", (*before.statements, extra), arrays, ("X",), ("Y", "Z"))
    after = check(merge_copies, before)
    assert [ld.array for s in after.statements for ld in s.loads].count("A") == 0
    assert len(after.statements) == 3


def test_an_array_with_a_halo_is_filled_around_what_is_written_inside():
    before = scop(
        [
            array("X", [3, 4], "input"),
            array("A", [3, 4], "temporary"),
            array("H", [3, 6], "temporary"),
            array("Y", [3, 4], "output"),
        ],
        statement("{ F[i] : 0 <= i < 3 }", "{ F[i] -> H[i, 0] }", ZERO),
        statement("{ G[i] : 0 <= i < 3 }", "{ G[i] -> H[i, 5] }", ZERO),
        produce("P", "A", 4),
        copy("C", "A", "H", "i, j + 1", 4),
        statement(
            "{ R[i, j] : 0 <= i < 3 and 0 <= j < 4 }",
            "{ R[i, j] -> Y[i, j] }",
            Call("add", (load("{ R[i, j] -> H[i, j] }"), load("{ R[i, j] -> H[i, j + 2] }")), F32),
        ),
    )
    after = check(merge_copies, before)
    assert names(after) == ["F", "G", "P", "R"]
    assert get(after, "P").array == "H"


def test_copies_of_copies_end_in_the_last_target():
    before = scop(
        [
            array("X", [3, 5], "input"),
            array("A", [3, 5], "temporary"),
            array("B", [3, 6], "temporary"),
            array("Y", [3, 8], "output"),
        ],
        produce("P", "A", 5),
        copy("C", "A", "B", "i, j", 5),
        statement("{ F[i] : 0 <= i < 3 }", "{ F[i] -> B[i, 5] }", ZERO),
        copy("D", "B", "Y", "i, j + 2", 6),
        statement("{ G[i, j] : 0 <= i < 3 and 0 <= j < 2 }", "{ G[i, j] -> Y[i, j] }", ZERO),
    )
    after = check(merge_copies, before)
    assert names(after) == ["P", "F", "G"]
    assert {s.array for s in after.statements} == {"Y"}


def test_what_stays_a_copy():
    part = scop(
        [
            array("X", [3, 5], "input"),
            array("A", [3, 5], "temporary"),
            array("Y", [3, 4], "output"),
        ],
        produce("P", "A", 5),
        copy("C", "A", "Y", "i, j", 4),  # a part of A would have no place
    )
    assert names(check(merge_copies, part)) == ["P", "C"]
    kept = scop(
        [array("X", [3, 5], "input"), array("A", [3, 5], "output"), array("Y", [3, 5], "output")],
        produce("P", "A", 5),
        copy("C", "A", "Y", "i, j", 5),  # the caller wants A as well
    )
    assert names(check(merge_copies, kept)) == ["P", "C"]
    given = scop(
        [array("X", [3, 5], "input"), array("Y", [3, 5], "output")],
        copy("C", "X", "Y", "i, 4 - j", 5),
    )
    assert names(check(merge_copies, given)) == ["C"]


def test_the_same_array_twice_in_a_concatenation_is_copied_once():
    before = scop(
        [
            array("X", [3, 5], "input"),
            array("A", [3, 5], "temporary"),
            array("Y", [3, 10], "output"),
        ],
        produce("P", "A", 5),
        copy("C", "A", "Y", "i, j", 5),
        copy("D", "A", "Y", "i, j + 5", 5),
    )
    after = check(merge_copies, before)
    assert names(after) == ["P", "D"]


def test_an_accumulator_stays_where_its_reduction_is():
    before = matmul_scop()
    copy_out = statement(
        "{ T[i, j] : 0 <= i < 4 and 0 <= j < 32 }",
        "{ T[i, j] -> Y[i, j] }",
        load("{ T[i, j] -> acc[i, j] }"),
    )
    of = Scop("mm", (*before.statements[:2], copy_out), before.arrays, ("X",), ("Y",))
    assert merge_copies(of) == of


@pytest.mark.thorough
def test_a_place_that_takes_minutes_to_find_is_not_looked_for():
    """[32, 3, 33] as [3, 6, 22, 8], then in blocks of 2 x 2: the sizes have no common divisor."""
    flat = "1056*i0 + 176*(i1 mod 6) + 16*i2 + 8*floor((i1 mod 24)/12) + 2*i3 + (floor(i1/6) mod 2)"
    before = scop(
        [
            array("X", [32, 3, 33], "input"),
            array("A", [32, 3, 33], "temporary"),
            array("Y", [3, 24, 11, 4], "output"),
        ],
        statement(
            "{ P[i, j, k] : 0 <= i < 32 and 0 <= j < 3 and 0 <= k < 33 }",
            "{ P[i, j, k] -> A[i, j, k] }",
            Call("neg", (load("{ P[i, j, k] -> X[i, j, k] }"),), F32),
        ),
        statement(
            "{ C[i0, i1, i2, i3] : 0 <= i0 < 3 and 0 <= i1 < 24 and 0 <= i2 < 11 and 0 <= i3 < 4 }",
            "{ C[i0, i1, i2, i3] -> Y[i0, i1, i2, i3] }",
            load(
                f"{{ C[i0, i1, i2, i3] -> A[floor(({flat})/99), floor(({flat})/33) mod 3, "
                f"({flat}) mod 33] }}"
            ),
        ),
    )
    started = time.process_time()
    after = merge_copies(before)
    assert time.process_time() - started < 10
    assert get(after, "C").array == "Y"
