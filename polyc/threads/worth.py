"""How many threads a call of a kernel is worth: what they save, less what they wait for.

    for k in 1 .. n:                       one thread:     work of all trips
      parallel i in 0 .. k / 2048: …       t threads:      that of the one with most trips,
      barrier                                              and a WAIT

Loops whose bounds depend on others are looked at in a few places, and not counted: what is asked is
whether threads take a third of the time or three times of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyc.loopnest.index import Affine, const, decide, substitute, substitute_condition
from polyc.loopnest.nodes import (
    Assign,
    Barrier,
    Block,
    For,
    If,
    Kernel,
    Node,
    Read,
    walk_expr,
    walk_nodes,
)

WAIT = 40_000
"""Operations, where a byte counts as two, in the time of a barrier of threads that are awake.

That is 0.2 to 0.3 us, with the shared loop before it, on two cores of an AMD EPYC (families 25 and
26); `printing/driver.py` says what an operation is.
"""

WAKE = 4_000_000
"""And until a thread runs that has been asleep: 30 to 40 us."""

ONE_BY_ONE = 4
"""What an assignment costs outside of lanes, in assignments within them."""

GAIN = 1.2
"""By what threads have to be faster: the others are cores that someone else could use."""

PLACES = (1, 3, 5)
"""The sixths of a loop with barriers in which it is looked at."""

Values = Mapping[str, Affine]


def choose_threads(kernel: Kernel, sizes: Mapping[str, int], most: int) -> int:
    """The threads for a call with these sizes: `most`, or one."""
    values = {name: const(value) for name, value in sizes.items()}
    alone = _time(kernel.body, values, 1, False)
    shared = _time(kernel.body, values, most, False) + WAKE
    return most if alone > GAIN * shared else 1


def _time(node: Node, values: Values, threads: int, in_lanes: bool) -> float:
    """Operations in the time that a node takes, for some values of the variables around it."""
    match node:
        case Block(body=body):
            return sum(_time(inner, values, threads, in_lanes) for inner in body)
        case For():
            return _loop(node, values, threads, in_lanes)
        case If(condition, then, otherwise):
            chosen = then if decide(substitute_condition(condition, values)) else otherwise
            return _time(chosen, values, threads, in_lanes) if chosen else 0
        case Assign():
            return _work(node) * (1 if in_lanes else ONE_BY_ONE)
        case Barrier():
            return WAIT if threads > 1 else 0
        case _:
            return 0


def _loop(loop: For, values: Values, threads: int, in_lanes: bool) -> float:
    lower, upper = (substitute(bound, values).constant for bound in (loop.lower, loop.upper))
    trips = max(0, -(-(upper - lower) // loop.step))
    waits = any(isinstance(inner, Barrier) for inner in walk_nodes(loop))
    lanes = in_lanes or loop.kind in ("simd", "vector")
    found = [
        _time(loop.body, {**values, loop.var: const(lower + trips * at // 6)}, threads, lanes)
        for at in (PLACES if waits else PLACES[1:2])
        if trips
    ]
    turns = -(-trips // threads) if loop.kind == "parallel" else trips
    return turns * sum(found) / len(found) if found else 0


def _work(assign: Assign) -> int:
    """Operations of an assignment, a byte that is read or written counted as two."""
    parts = list(walk_expr(assign.value))
    touched = sum(part.dtype.itemsize for part in parts if isinstance(part, Read))
    return len(parts) + 2 * (touched + assign.dtype.itemsize)
