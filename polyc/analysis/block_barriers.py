"""Proof that the threads of a block meet nowhere without a barrier between.

The text is walked with the phases that may be running: those since the last barrier, on any way to
the place, around loops as well. A phase that conflicts with one of them is an error, and so is a
barrier that not all threads reach: one inside a loop over threads. A product in the background is
running beyond the next barriers (`Flights`). What threads share is written by one of them: where no
loop says which of several, they would all do it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyc.analysis.threads import (
    Flights,
    Phases,
    Running,
    accessing_threads,
    anywhere,
    is_own,
    is_write,
    one_later,
)
from polyc.loopnest.nodes import Assign, Await, Barrier, Block, For, If, Node, walk_nodes


def check_block_barriers(block: Block, phases: Phases) -> int:
    """Raises IllegalSchedule where threads may meet; gives the number of barriers."""
    for access in phases.accesses:
        if is_write(access) and not is_own(access):
            run = access.execution
            writers = accessing_threads(access).intersect_domain(run.points)
            if not writers.is_single_valued():
                rule = f"several threads write what {run.statement.name} writes once"
                raise phases.around.illegal(rule)
    _Walk(phases).after(block, frozenset())
    return sum(isinstance(node, Barrier) for node in walk_nodes(block))


@dataclass
class _Walk:
    phases: Phases
    next: int = 0
    flights: Flights = field(default_factory=Flights)

    def after(self, node: Node, running: Running) -> Running:
        """The phases that may be running behind a node."""
        match node:
            case Barrier():
                return self.flights.after_barrier(running)
            case Await():
                self.flights.land(node)
            case Assign() | For(kind="thread" | "combine"):
                return self.phase(node, running)
            case Block(body=body):
                for child in body:
                    running = self.after(child, running)
                return running
            case If(then=then, otherwise=other):
                after = self.after(then, running)
                return after | (self.after(other, running) if other else running)
            case For(kind="block", body=body):  # another iteration is another block
                self.after(body, frozenset())
                return frozenset()  # and a launch begins when the one before is over
            case For(body=body):
                first, running = self.next, anywhere(running)
                while True:
                    self.next = first
                    end = self.after(body, running)
                    again = one_later(end)
                    if again <= running:
                        self.flights.leave(end)
                        return anywhere(end | running)
                    running |= again
        return running

    def phase(self, node: Node, running: Running) -> Running:
        number, self.next = self.next, self.next + 1
        self.flights.begin(number, node)
        around = self.phases.around
        if any(isinstance(n, Barrier) for n in walk_nodes(node)):
            raise around.illegal("a barrier stands where not all threads come")
        for other, apart in running:
            if self.phases.conflict(other, number, apart):
                one, two = (self.phases.show(k) for k in (other, number))
                rule = f"threads of a block may meet in {one} and {two}, with no barrier between"
                raise around.illegal(rule)
        return running | {(number, 0)}
