"""Seconds of each launch of a call: the work of its kernel, and where its arrays come from.

An array is found where it was left. Since its last use, in this call or in the one before, so many
bytes have gone by; the first cache that holds as many still has it:

    launch 3: relu(x @ w3)      w3: all weights went by since the last call       memory
                                x: launch 2 has just written it                   second level

Temporaries share an arena: what becomes one was another a moment ago, so that never more than the
arena has gone by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from polyc.program.program import Program
from polyc.program.work import Work
from polyc.target.costs import LAUNCHED, STAYS, UNHIDDEN
from polyc.target.machine import Target


def predict(
    program: Program, arena: int, weights: int, target: Target, threads: int
) -> tuple[float, ...] | None:
    """Seconds of each launch, its steps together; None where a launch's work is not known.

    arena, weights: bytes of all temporaries, and of all constants.
    """
    works = [launch.work for launch in program.launches]
    if any(work is None for work in works):
        return None
    known = [work for work in works if work is not None]
    most = {
        name: arena if array.kind == "temporary" else arena + weights
        for name, array in program.arrays.items()
    }
    found = _find_arrays(program, known, most)
    return tuple(
        launch.runs * (LAUNCHED + _seconds(work, distances, target, threads))
        for launch, work, distances in zip(program.launches, known, found, strict=True)
    )


def _seconds(work: Work, distances: Sequence[float], target: Target, threads: int) -> float:
    """One execution of a kernel whose arrays were used so many bytes ago."""
    rates = target.rates
    team = min(threads, max((shares for _, shares in work.pieces), default=1))
    computing = sum(
        seconds * -(-shares // min(threads, shares)) / shares for seconds, shares in work.pieces
    )
    far = work.again + _between(work, distances, STAYS * target.l2, STAYS * target.l3)
    memory = work.afar + _between(work, distances, STAYS * target.l3, float("inf"))
    fetching = max(work.near / (rates.l2 * team), far / (rates.l3 * team))
    fetching += memory / min(rates.read * team, rates.read_all)
    waiting = rates.barrier if threads > 1 else 0.0
    return waiting + max(computing, fetching) + UNHIDDEN * min(computing, fetching)


def _between(work: Work, distances: Sequence[float], least: float, most: float) -> float:
    """Bytes of arrays that were used longer ago than one cache holds, and not than another."""
    pairs = zip(work.touched, distances, strict=True)
    return sum(touched for touched, distance in pairs if least < distance <= most)


def _find_arrays(
    program: Program, works: Sequence[Work], most: Mapping[str, int]
) -> list[tuple[float, ...]]:
    """By launch and parameter: bytes that went by since the array's last use, calls in a row.

    most: of each array.
    """
    passed = [0.0, *accumulate(sum(work.touched) for work in works)]
    last: dict[str, float] = {}
    found: list[tuple[float, ...]] = []
    for before in (0.0, passed[-1]):  # a first call shows where the second one finds its arrays
        found = []
        for k, launch in enumerate(program.launches):
            homes = [program.home(array) for array in launch.arguments]
            begin, end = before + passed[k], before + passed[k + 1]
            found.append(tuple(min(end - last.get(h, begin), most[h]) for h in homes))
            last.update(dict.fromkeys(homes, end))
    return found
