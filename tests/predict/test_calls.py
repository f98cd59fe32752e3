"""Where a call finds its arrays, and what launches take by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.predict.calls import predict
from polyc.program.program import Program
from polyc.program.work import Work
from polyc.target.costs import LAUNCHED, UNHIDDEN
from polyc.target.machine import Target
from tests.programs import scale_program

TARGET = Target.named("avx512")
MIB = 1 << 20


def with_work(work: Work) -> Program:
    """Two launches that take this each: x, a weight -> t1;  t1, a weight -> y."""
    program = scale_program()
    launches = tuple(replace(launch, work=work) for launch in program.launches)
    return replace(program, launches=launches)


def taken(work: Work, weights: int, threads: int = 1, arena: int = 0) -> float:
    """Seconds of the first launch."""
    found = predict(with_work(work), arena, weights, TARGET, threads)
    assert found is not None
    return found[0]


def test_arrays_come_from_the_first_cache_that_still_holds_them():
    work = Work(((0.0, 1),), 0.0, 0.0, 0.0, (float(MIB), 4.0, 0.0))
    assert taken(work, MIB) == pytest.approx(LAUNCHED)
    large = Work(((0.0, 1),), 0.0, 0.0, 0.0, (16.0 * MIB, 0.0, 0.0))
    assert taken(large, 16 * MIB) == pytest.approx(LAUNCHED + 16 * MIB / TARGET.rates.l3)
    assert taken(large, 10**9) == pytest.approx(LAUNCHED + 16 * MIB / TARGET.rates.read)


def test_temporaries_take_turns_in_an_arena():
    work = Work(((0.0, 1),), 0.0, 0.0, 0.0, (0.0, 0.0, 8.0 * MIB))
    assert taken(work, 10**9, arena=16 * MIB) == pytest.approx(LAUNCHED + 8 * MIB / TARGET.rates.l3)
    assert taken(work, 10**9, arena=MIB) == pytest.approx(LAUNCHED)


def test_of_computing_and_fetching_the_longer_counts_and_a_share_of_the_other():
    work = Work(((2e-3, 1),), TARGET.rates.l2 * 1e-3, 0.0, 0.0, (0.0, 0.0, 0.0))
    assert taken(work, 0) == pytest.approx(LAUNCHED + 2e-3 + UNHIDDEN * 1e-3)


def test_threads_share_pieces_as_far_as_these_have_parts():
    alone, shared = (Work(((1e-3, n),), 0.0, 0.0, 0.0, (0.0, 0.0, 0.0)) for n in (1, 3))
    barrier = TARGET.rates.barrier
    assert taken(alone, 0, threads=2) == pytest.approx(LAUNCHED + barrier + 1e-3)
    assert taken(shared, 0, threads=2) == pytest.approx(LAUNCHED + barrier + 2e-3 / 3)
    assert taken(shared, 0, threads=8) == pytest.approx(LAUNCHED + barrier + 1e-3 / 3)


def test_a_kernel_whose_work_is_not_known_is_not_predicted():
    assert predict(scale_program(), 0, 0, TARGET, 1) is None
