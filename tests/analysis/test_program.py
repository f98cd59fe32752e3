"""The order of launches and the arena."""

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.footprints import compute_footprints
from polyc.analysis.launches.access import LaunchAccess, in_memory, verify_program
from polyc.analysis.launches.arena import verify_arena
from polyc.analysis.launches.barriers import verify_barriers
from polyc.errors import IllegalSchedule
from polyc.program.plan import Slot
from polyc.scop.scop import Array
from tests.analysis.nests import matmul_scop


def launch(name: str, reads: dict[str, str], writes: dict[str, str]) -> LaunchAccess:
    return LaunchAccess(
        name, {k: isl.Set(v) for k, v in reads.items()}, {k: isl.Set(v) for k, v in writes.items()}
    )


HALVES = [
    launch("low", {"X": "{ X[i] : 0<=i<4 }"}, {"A": "{ A[i] : 0<=i<4 }"}),
    launch("high", {"X": "{ X[i] : 4<=i<8 }"}, {"A": "{ B[i] : 4<=i<8 }"}),
    launch("sum", {"A": "{ A[i] : 0<=i<8 }"}, {"Y": "{ Y[0] }"}),
    launch("caller", {"Y": "{ Y[0] }"}, {}),
]


def test_reads_are_covered_by_earlier_launches() -> None:
    assert verify_program(HALVES, {"X"}) == 2


def test_a_read_before_its_write_names_the_launch_and_the_element() -> None:
    with pytest.raises(IllegalSchedule, match=r"launch low: it reads X unwritten, e\.g\. X\[0\]"):
        verify_program(HALVES, set())
    without = [HALVES[0], *HALVES[2:]]
    with pytest.raises(IllegalSchedule, match=r"launch sum: it reads A unwritten, e\.g\. A\[4\]"):
        verify_program(without, {"X"})
    with pytest.raises(IllegalSchedule, match=r"launch sum: it reads A"):
        verify_program([HALVES[0], HALVES[2], HALVES[1]], {"X"})


def test_memory_under_another_shape_is_read_when_all_is_written() -> None:
    arrays = {
        "A": Array("A", np.dtype(np.float32), (8,), "output"),
        "V": Array("V", np.dtype(np.float32), (2, 4), "input", memory="A"),
    }
    seen = in_memory(launch("sum", {"V": "{ V[0, 0] }"}, {}), arrays)
    assert seen.reads.keys() == {"A"}
    assert verify_program([*HALVES[:2], seen], {"X"}) == 1  # of X nothing is asked
    for wrong in ([HALVES[0], seen], [seen, *HALVES[:2]]):
        with pytest.raises(IllegalSchedule, match="launch sum: it reads A unwritten"):
            verify_program(wrong, {"X"})


STATE = [
    launch("append", {"S": "{ S[i] : 0<=i<4 }"}, {"S": "{ S[i] : 4<=i<6 }"}),
    launch("sum", {"S": "{ S[i] : 0<=i<6 }"}, {"Y": "{ Y[0] }"}),
    launch("caller", {"Y": "{ Y[0] }", "S": "{ S[i] : 0<=i<9 }"}, {}),
]


def test_what_a_call_writes_of_a_state_is_read_afterwards() -> None:
    assert verify_program(STATE, {"S"}) == 4
    with pytest.raises(IllegalSchedule, match=r"launch sum: it reads S unwritten, e\.g\. S\[4\]"):
        verify_program([STATE[1], STATE[0], STATE[2]], {"S"})
    update = launch("update", {"S": "{ S[i] : 0<=i<4 }"}, {"S": "{ S[i] : 0<=i<4 }"})
    assert verify_program([update, *STATE], {"S"}) == 5
    with pytest.raises(IllegalSchedule, match=r"launch append: it reads S unwritten"):
        verify_program([STATE[0], update], {"S"})


def test_footprints_are_images_of_accesses() -> None:
    found = compute_footprints(matmul_scop(4, 3, 5))
    assert set(found.reads) == {"X", "W", "acc"}
    assert set(found.writes) == {"acc", "Y"}
    assert found.reads["W"].is_equal(isl.Set("{ W[k,j] : 0<=k<5 and 0<=j<3 }"))
    assert found.writes["Y"].is_equal(isl.Set("{ Y[i,j] : 0<=i<4 and 0<=j<3 }"))


SLOTS = [Slot("a", 0, 64, 0, 1), Slot("b", 64, 32, 1, 2), Slot("c", 0, 64, 2, 3)]


def test_slots_that_are_not_live_at_once_may_share_memory() -> None:
    assert verify_arena(SLOTS, 96) == 3


@pytest.mark.parametrize(
    ("slots", "size", "message"),
    [
        (SLOTS, 95, r"b at \[64, 96\) lies outside of its 95 bytes"),
        ([Slot("a", -8, 8, 0, 0)], 96, r"a at \[-8, 0\) lies outside"),
        ([*SLOTS, Slot("d", 63, 2, 3, 3)], 96, r"c at \[0, 64\) and d at \[63, 65\) overlap"),
        ([SLOTS[0], Slot("d", 32, 8, 1, 4)], 96, "a at .* and d at .* overlap in launch 1"),
    ],
)
def test_overlap_and_overflow_name_the_arrays(slots: list[Slot], size: int, message: str) -> None:
    with pytest.raises(IllegalSchedule, match=message):
        verify_arena(slots, size)


def test_launches_between_two_barriers_are_independent() -> None:
    assert verify_barriers(HALVES, [], {2, 3}) == 1
    assert verify_barriers(HALVES, [], range(4)) == 0
    lapped = [launch("low", {}, {"A": "{ A[i] : 0<=i<5 }"}), *HALVES[1:]]
    with pytest.raises(
        IllegalSchedule, match=r"launches low and high: .* both touch, e\.g\. A\[4\]"
    ):
        verify_barriers(lapped, [], {2, 3})


@pytest.mark.parametrize("missing", [2, 3])
def test_a_missing_barrier_names_the_launches_and_an_element(missing: int) -> None:
    with pytest.raises(IllegalSchedule, match=r"launches \w+ and \w+: no barrier .* e\.g\. [AY]\["):
        verify_barriers(HALVES, [], {2, 3} - {missing})


def test_an_array_does_not_move_in_before_another_is_out() -> None:
    chain = [
        launch("one", {}, {"a": "{ a[0] }"}),
        launch("two", {"a": "{ a[0] }"}, {"b": "{ b[0] }"}),
        launch("three", {}, {"c": "{ c[0] }"}),
    ]
    slots = [Slot("a", 0, 64, 0, 1), Slot("b", 64, 64, 1, 2), Slot("c", 0, 64, 2, 2)]
    assert verify_barriers(chain, slots, {1, 2}) == 0
    with pytest.raises(IllegalSchedule, match=r"a at \[0, 64\) and c at|c at .* and a at"):
        verify_barriers(chain, slots, {1})
    apart = [*slots[:2], Slot("c", 128, 64, 2, 2)]
    assert verify_barriers(chain, apart, {1}) == 1
