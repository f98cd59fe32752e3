"""Where barriers are placed, against all placements there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.dependences import compute_dependences
from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.launches.barriers import verify_barriers
from polyc.analysis.verify import verify_kernel
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import Affine
from polyc.loopnest.nodes import Assign, Block
from polyc.program.plan import Slot
from polyc.threads.barriers import join_pieces, place_barriers
from tests.analysis.nests import ZERO, Case, at, ci, copy_at, loop, pointwise, read, recurrence, run


def launch(name: str, reads: dict[str, range], writes: dict[str, range]) -> LaunchAccess:
    def sets(parts: dict[str, range]) -> dict[str, isl.Set]:
        return {a: isl.Set(f"{{ {a}[i] : {r.start} <= i < {r.stop} }}") for a, r in parts.items()}

    return LaunchAccess(name, sets(reads), sets(writes))


WHOLE = range(8)


def test_branches_meet_where_they_are_read() -> None:
    fire = [
        launch("squeeze", {"x": WHOLE}, {"s": WHOLE}),
        launch("expand1", {"s": WHOLE}, {"y": range(4)}),
        launch("expand3", {"s": WHOLE}, {"y": range(4, 8)}),
        launch("next", {"y": WHOLE}, {"z": WHOLE}),
    ]
    assert place_barriers(fire, []) == {1, 3}


def test_what_is_read_may_not_be_written_meanwhile() -> None:
    reuse = [
        launch("a", {"x": WHOLE}, {"y": WHOLE}),
        launch("b", {}, {"x": range(1)}),
        launch("c", {}, {"x": range(1, 2)}),
    ]
    assert place_barriers(reuse, []) == {1}


def test_memory_that_another_array_has_had() -> None:
    pair = [launch("a", {}, {"t": WHOLE}), launch("b", {}, {"u": WHOLE})]
    near = [Slot("t", 0, 32, 0, 0), Slot("u", 31, 32, 1, 1)]
    assert place_barriers(pair, near) == {1}
    assert place_barriers(pair, [near[0], Slot("u", 32, 32, 1, 1)]) == frozenset()


def test_memory_that_is_a_launch_s_own() -> None:
    first, second = launch("a", {}, {"y": WHOLE}), launch("b", {}, {"z": WHOLE})
    pair = [replace(first, scratch=frozenset({"t"})), replace(second, scratch=frozenset({"u"}))]
    over = [Slot("t", 0, 64, 0, 0), Slot("u", 0, 64, 1, 1)]
    assert place_barriers(pair, over) == {1}
    with pytest.raises(IllegalSchedule, match="overlap"):
        verify_barriers(pair, over, ())
    assert place_barriers(pair, [over[0], Slot("u", 64, 64, 1, 1)]) == frozenset()


@pytest.mark.parametrize("seed", range(20))
def test_no_placement_has_fewer(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def part() -> range:
        first = int(rng.integers(0, 7))
        return range(first, int(rng.integers(first + 1, 9)))

    arrays = ["a", "b", "c", "d", "e"]
    program = [
        launch(
            f"k{k}",
            {a: part() for a in rng.choice(arrays, 2, replace=False)},
            {str(rng.choice(arrays)): part()},
        )
        for k in range(6)
    ]
    slots = [Slot(a, 16 * k, 24, 0, 0) for k, a in enumerate(arrays[:3])]
    placed = place_barriers(program, slots)
    verify_barriers(program, slots, placed)
    everywhere = range(1, len(program))
    fewer = chain.from_iterable(combinations(everywhere, n) for n in range(len(placed)))
    for barriers in fewer:
        with pytest.raises(IllegalSchedule):
            verify_barriers(program, slots, barriers)


# -- inside a kernel ------------------------------------------------------------------------------


def groups(case: Case) -> list[int]:
    """How many loops each node of the kernel holds, once the independent ones are joined."""
    joined = join_pieces(case.kernel, case.scop, compute_dependences(case.scop))
    assert verify_kernel(joined, case.scop, case.storages, case.parameters)
    return [len(n.body) if isinstance(n, Block) and n.concurrent else 1 for n in joined.body.body]


def step(index: Affine) -> Assign:
    return run("R", [index], at("Y", index), read("Y", index - 1))


def test_full_and_partial_tiles_run_side_by_side() -> None:
    full = loop("i", 8, copy_at(ci), kind="parallel")
    rest = loop("i", 10, copy_at(ci), lower=8)
    assert groups(pointwise(full, rest)) == [2]
    assert groups(pointwise(rest, full)) == [2]


def test_one_thread_does_what_no_loop_shares() -> None:
    halves = [loop("i", 5, copy_at(ci)), loop("i", 10, copy_at(ci), lower=5)]
    assert groups(pointwise(*halves)) == [1, 1]


def test_what_depends_on_another_waits() -> None:
    steps = [loop("i", n + 1, step(ci), lower=n, kind="parallel") for n in range(1, 6)]
    start = run("B", [], at("Y", 0), ZERO)
    assert groups(recurrence().with_body(start, *steps)) == [1] * 6
