"""How many threads a call of a kernel is worth, as C: what they save, less what they wait for.

    for k in 1 .. n:                       one thread:     work of all trips
      parallel i in 0 .. k / 2048: …       t threads:      that of the one with most trips,
      barrier                                              and a WAIT

    i64 c0_trips = pc_trips(1, n, 1); double c0_time = 0;
    for (int at = 1; c0_trips > 0 && at < 6; at += 2) {
        const i64 c0 = 1 + c0_trips * at / 6;
        …
    }

Loops whose bounds depend on others are looked at in a few places, and not counted: what is asked is
whether threads take a third of the time or three times of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from polyc.loopnest.index_text import show_condition, show_index
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

SIXTHS = (1, 3, 5), (3,)
"""Where in a loop it is looked at: one with barriers, and another."""


def print_team(kernel: Kernel) -> Iterator[str]:
    """int polyc_team(sizes, most): the threads for a call with these sizes, `most` or one."""
    yield from ("static double team_time(const i64 *sizes, i64 threads)", "{")
    yield "    (void)sizes;"
    yield from (f"    const i64 {name} = sizes[{k}];" for k, name in enumerate(kernel.sizes))
    yield from (f"    (void){name};" for name in kernel.sizes)
    yield "    double time = 0;"
    yield from _Team(count()).node(kernel.body, "time", False, "    ")
    yield from ("    return time;", "}", "")
    yield from ("int polyc_team(const i64 *sizes, int most)", "{")
    yield f"    const double shared = team_time(sizes, most) + {WAKE};"
    yield f"    return team_time(sizes, 1) > {GAIN} * shared ? most : 1;"
    yield from ("}", "")


class _Team:
    """Statements that add the time of nodes to a variable; `numbers` are for names of loops."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.numbers = numbers

    def node(self, node: Node, time: str, in_lanes: bool, indent: str) -> Iterator[str]:
        match node:
            case Block(body=body):
                for inner in body:
                    yield from self.node(inner, time, in_lanes, indent)
            case For():
                yield from self.loop(node, time, in_lanes, indent)
            case If(condition, then, otherwise):
                yield f"{indent}if ({show_condition(condition)}) {{"
                yield from self.node(then, time, in_lanes, indent + "    ")
                if otherwise is not None:
                    yield f"{indent}}} else {{"
                    yield from self.node(otherwise, time, in_lanes, indent + "    ")
                yield f"{indent}}}"
            case Assign():
                yield f"{indent}{time} += {_work(node) * (1 if in_lanes else ONE_BY_ONE)};"
            case Barrier():
                yield f"{indent}{time} += threads > 1 ? {WAIT} : 0;"

    def loop(self, loop: For, time: str, in_lanes: bool, indent: str) -> Iterator[str]:
        """The mean of a few iterations, times those that one thread executes."""
        number = next(self.numbers)
        inside, trips, at = f"time_{number}", f"trips_{number}", f"at_{number}"
        waits = any(isinstance(inner, Barrier) for inner in walk_nodes(loop))
        places = SIXTHS[0] if waits else SIXTHS[1]
        lanes = in_lanes or loop.kind in ("simd", "vector")
        lower, upper = show_index(loop.lower), show_index(loop.upper)
        turns = f"({trips} + threads - 1) / threads" if loop.kind == "parallel" else trips
        yield f"{indent}{{"
        yield f"{indent}    const i64 {trips} = pc_trips({lower}, {upper}, {loop.step});"
        yield f"{indent}    double {inside} = 0;"
        first, last = places[0], places[-1]
        yield f"{indent}    for (int {at} = {first}; {trips} > 0 && {at} <= {last}; {at} += 2) {{"
        step = f" * {loop.step}" if loop.step != 1 else ""
        yield f"{indent}        const i64 {loop.var} = {lower} + {trips} * {at} / 6{step};"
        yield f"{indent}        (void){loop.var};"
        yield from self.node(loop.body, inside, lanes, indent + "        ")
        yield f"{indent}    }}"
        yield f"{indent}    {time} += (double)({turns}) * {inside} / {len(places)};"
        yield f"{indent}}}"


def _work(assign: Assign) -> int:
    """Operations of an assignment, a byte that is read or written counted as two."""
    parts = list(walk_expr(assign.value))
    touched = sum(part.dtype.itemsize for part in parts if isinstance(part, Read))
    return len(parts) + 2 * (touched + assign.dtype.itemsize)
