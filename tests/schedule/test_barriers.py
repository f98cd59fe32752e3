"""Where barriers are placed, against all placements there are."""

from __future__ import annotations

from itertools import chain, combinations

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.verify import LaunchAccess, verify_barriers
from polyc.errors import IllegalSchedule
from polyc.memory.plan import Slot
from polyc.schedule.barriers import place_barriers


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
