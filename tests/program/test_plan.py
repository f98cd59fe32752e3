"""The memory plan against brute force, and its bookkeeping on a whole program."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import ShapeError
from polyc.program.plan import ALIGNMENT, Slot, compute_lower_bound, pack, plan_memory
from tests.programs import gather_program, scale_program, stored

SLOTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 6)), min_size=0, max_size=6
).map(
    lambda rows: [
        Slot(f"t{k}", 0, size * ALIGNMENT, min(a, b), max(a, b))
        for k, (size, a, b) in enumerate(rows)
    ]
)


def smallest_arena(slots: list[Slot]) -> int:
    """Optimum: some order of placing each slot as low as possible reaches it."""
    best = None
    for order in itertools.permutations(slots):
        placed: list[Slot] = []
        for slot in order:
            offset = 0
            for other in sorted((p for p in placed if p.meets(slot)), key=lambda p: p.offset):
                if offset + slot.bytes > other.offset:
                    offset = max(offset, other.offset + other.bytes)
            placed.append(replace(slot, offset=offset))
        height = max((p.offset + p.bytes for p in placed), default=0)
        best = height if best is None else min(best, height)
    return best or 0


@given(SLOTS)
@settings(max_examples=60)
def test_pack_never_overlaps_and_is_near_the_optimum(slots):
    packed = pack(slots)
    assert sorted(s.array for s in packed) == sorted(s.array for s in slots)
    for a, b in itertools.combinations(packed, 2):
        if a.meets(b) and a.bytes and b.bytes:
            assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
    height = max((s.offset + s.bytes for s in packed), default=0)
    optimum = smallest_arena(slots)
    assert compute_lower_bound(slots) <= optimum <= height <= 1.25 * optimum


def test_lower_bound_is_the_largest_live_set():
    slots = [Slot("a", 0, 64, 0, 1), Slot("b", 0, 128, 1, 2), Slot("c", 0, 64, 2, 3)]
    assert compute_lower_bound(slots) == 192
    assert {s.array: s.offset for s in pack(slots)} == {"b": 0, "a": 128, "c": 128}


def test_a_chain_alternates_between_two_slots():
    plan = plan_memory(scale_program((1.0,) * 6))
    assert plan.arena_bytes == plan.lower_bound == 2 * ALIGNMENT
    assert [s.offset for s in plan.slots] in ([0, 64, 0, 64, 0], [64, 0, 64, 0, 64])
    assert plan.constants == {f"w{k}": k * ALIGNMENT for k in range(6)}
    assert plan.weights_bytes == 6 * ALIGNMENT


def test_constants_that_are_only_returned_are_kept():
    plan = plan_memory(gather_program())
    assert plan.slots == ()
    assert plan.arena_bytes == 0
    assert plan.constants == {"c": 0, "d": 0}
    assert plan.weights_bytes == ALIGNMENT


def test_sizes_beyond_the_address_space_are_refused():
    program = scale_program()
    huge = stored("t1", (6,), "temporary")
    huge = replace(huge, storage=replace(huge.storage, shape=(2**31, 2**31, 4)))
    assert np.prod(huge.storage.shape, dtype=np.int64) == 0  # what 64 bits would make of it
    with pytest.raises(ShapeError, match=r"array 't1'.*smaller dimensions"):
        plan_memory(replace(program, arrays={**program.arrays, "t1": huge}))
