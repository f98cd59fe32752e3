"""Small scops cut into launches: in every order that changes nothing, and in no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.analysis.launches.partition import Part, verify_partition
from polyc.errors import IllegalSchedule
from polyc.scop.scop import Scop, Statement
from polyc.types.ranges import Step
from tests.analysis.nests import ZERO, array, load, scop, statement

FILL = statement("{ F[i] : 0 <= i < 8 }", "{ F[i] -> A[i] }", ZERO)
ADD = statement(
    "{ S[i, k] : 0 <= i < 8 and 0 <= k < 3 }",
    "{ S[i, k] -> A[i] }",
    load("{ S[i, k] -> X[i, k] }"),
    "add",
)
READ = statement("{ R[i] : 0 <= i < 8 }", "{ R[i] -> Y[i] }", load("{ R[i] -> A[7 - i] }"))
TURN = statement("{ T[i] : 0 <= i < 4 }", "{ T[i] -> A[i] }", load("{ T[i] -> Y[i] }"))
LAST = statement("{ L[i] : 0 <= i < 8 }", "{ L[i] -> Z[i] }", load("{ L[i] -> A[i] }"))

COPY = statement("{ C[i] : 0 <= i < 8 }", "{ C[i] -> B[i] }", load("{ C[i] -> A[i] }"))
READ_COPY = replace(READ, value=load("{ R[i] -> B[7 - i] }"))
LAST_COPY = replace(LAST, value=load("{ L[i] -> B[i] }"))


def model(*statements: Statement) -> Scop:
    arrays = [array("X", [8, 3], "input"), array("A", [8], "temporary")]
    arrays += [array("Y", [8], "output"), array("Z", [8], "output")]
    return scop(arrays, *statements)


WHOLE = model(FILL, ADD, READ, TURN, LAST)


def cut(*groups: tuple[Statement, ...], of: Scop = WHOLE) -> int:
    parts = [Part(f"k{k}", group) for k, group in enumerate(groups)]
    return verify_partition(of, parts, {**of.arrays, "B": array("B", [8], "temporary")})


def test_launches_in_the_order_of_the_scop() -> None:
    assert cut((FILL, ADD, READ, TURN, LAST)) == 0
    assert cut((FILL,), (ADD,), (READ,), (TURN,), (LAST,)) == 0


def test_what_is_independent_may_change_places() -> None:
    halves = [
        statement(f"{{ H{k}[i] : {4 * k} <= i < {4 * k + 4} }}", f"{{ H{k}[i] -> Y[i] }}", ZERO)
        for k in range(2)
    ]
    assert cut((halves[1],), (halves[0],), of=model(*halves)) > 0
    lapped = statement("{ H1[i] : 3 <= i < 8 }", "{ H1[i] -> Y[i] }", ZERO)
    with pytest.raises(IllegalSchedule, match=r"H1 of launch k0 is executed before H0.*Y\[3\]"):
        cut((lapped,), (halves[0],), of=model(halves[0], lapped))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (((ADD,), (FILL,), (READ, TURN, LAST)), r"S of launch k0 is executed before F.*A\[0\]"),
        (((FILL, READ), (ADD, TURN, LAST)), r"R of launch k0 is executed before S.*A\[0\]"),
        (((FILL, ADD, TURN), (READ, LAST)), "T of launch k0 is executed before R"),
        (((FILL, ADD), (READ, LAST, TURN)), "L of launch k1 is executed before T"),
        (((FILL, ADD), (READ, TURN)), "statement L is in no launch"),
        (((FILL, ADD), (READ, TURN, LAST), (LAST,)), "L is in k1 as well"),
        (((FILL, ADD), (READ, TURN, READ_COPY, LAST)), "R is in k1 as well"),
        (((FILL, ADD, COPY, COPY), (READ, TURN, LAST)), "copies to B, which is written elsewhere"),
    ],
)
def test_what_is_not_the_scop_is_refused(groups: tuple, said: str) -> None:
    with pytest.raises(IllegalSchedule, match=said):
        cut(*groups)


def test_copies() -> None:
    assert cut((FILL, ADD), (COPY,), (READ_COPY,), (TURN, LAST)) == 0
    with pytest.raises(IllegalSchedule, match="C copies what T overwrites before it is read"):
        cut((FILL, ADD), (COPY,), (READ_COPY,), (TURN,), (LAST_COPY,))
    with pytest.raises(IllegalSchedule, match="R of launch k1 is executed before C"):
        cut((FILL, ADD), (READ_COPY,), (COPY,), (TURN, LAST))
    with pytest.raises(IllegalSchedule, match="C of launch k1 is executed before S"):
        cut((FILL,), (COPY,), (ADD,), (READ_COPY,), (TURN, LAST))
    short = replace(COPY, domain=COPY.domain.subtract(COPY.domain.lexmax()))
    with pytest.raises(IllegalSchedule, match="R is not what the scop says"):
        cut((FILL, ADD), (short,), (READ_COPY,), (TURN, LAST))


def test_a_loop_over_steps_stands_in_one_piece() -> None:
    step = Step.of("step_s", 5)
    inside = [replace(s, step=step) for s in (FILL, ADD)]
    of = model(*inside, READ)
    wrong = [Part("a", (inside[0],), step), Part("b", (READ,)), Part("c", (inside[1],), step)]
    with pytest.raises(IllegalSchedule, match="does not stand together"):
        verify_partition(of, wrong, of.arrays)
    outside = [Part("a", tuple(inside)), Part("b", (READ,))]
    with pytest.raises(IllegalSchedule, match=r"is repeated with .* but its launch with None"):
        verify_partition(of, outside, of.arrays)


def test_the_last_reader_of_a_copy_may_not_overwrite_what_was_copied() -> None:
    """A[i] = A[i - 1] goes on from what it wrote; A[i] = B[i - 1] does not."""
    sweep = statement("{ W[i] : 1 <= i < 8 }", "{ W[i] -> A[i] }", load("{ W[i] -> A[i - 1] }"))
    other = replace(sweep, value=load("{ W[i] -> B[i - 1] }"))
    with pytest.raises(IllegalSchedule, match="C copies what W overwrites before it is read"):
        cut((FILL,), (COPY,), (other,), (LAST,), of=model(FILL, sweep, LAST))


def test_what_is_copied_in_front_of_a_loop_is_not_written_at_its_end() -> None:
    step = Step.of("step_s", 5)
    read = statement("{ R[i] : 0 <= i < 8 }", "{ R[i] -> Y[i] }", load("{ R[i] -> A[i] }"))
    write = statement("{ W[i] : 0 <= i < 8 }", "{ W[i] -> A[i] }", load("{ W[i] -> X[i, 0] }"))
    read, write = replace(read, step=step), replace(write, step=step)
    whole = model(FILL, read, write)
    other = replace(read, value=load("{ R[i] -> B[i] }"))
    parts = [Part("k0", (FILL,)), Part("k1", (COPY,))]
    parts += [Part("k2", (other,), step), Part("k3", (write,), step)]
    with pytest.raises(IllegalSchedule, match="C copies what W overwrites before it is read"):
        verify_partition(whole, parts, {**whole.arrays, "B": array("B", [8], "temporary")})
