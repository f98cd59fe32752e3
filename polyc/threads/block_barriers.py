"""Where the threads of a block must wait for one another.

    for t: tile[t] = x[t]                      for t: tile[t] = x[t]
    for t: … tile[255 - t] …          ->       barrier
                                               for t: … tile[255 - t] …

Between loops over threads all threads are in step, so barriers may stand there. One is due where
a phase conflicts with another since the last one (`analysis/threads.py`). They are placed as late
as possible, in the order of the text, where the end of a loop is followed by its beginning; in text
without loops no placement has fewer. Phases of one loop are compared at the number of iterations
that they are apart: where arrays have a place for each of several iterations, threads may be in
different ones. That the barriers are enough is proven on the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from polyc.analysis.threads import Flights, Running, anywhere, one_later
from polyc.loopnest.nodes import Assign, Await, Barrier, Block, For, If, Node

Conflict = Callable[[int, int, int | None], bool]
"""Whether two phases, by their numbers in the text, conflict: so many iterations apart, or any."""


def place_block_barriers(block: Block, conflict: Conflict) -> Block:
    """The nest with the barriers that its phases need."""
    return _Placer(conflict).block(block, frozenset())[0]


@dataclass
class _Placer:
    """Walks the text; `next` is the number of the next phase.

    Each method gives a node with its barriers, and the phases that run since the last of them.
    """

    conflict: Conflict
    next: int = 0
    flights: Flights = field(default_factory=Flights)

    def block(self, block: Block, running: Running) -> tuple[Block, Running]:
        body: list[Node] = []
        for node in block.body:
            if _is_phase(node):
                phase, self.next = self.next, self.next + 1
                self.flights.begin(phase, node)
                if any(self.conflict(other, phase, apart) for other, apart in running):
                    body.append(Barrier())
                    running = self.flights.after_barrier(running)
                running |= {(phase, 0)}
                body.append(node)
            else:
                if isinstance(node, Await):
                    self.flights.land(node)
                new, running = self.inner(node, running)
                body.append(new)
        return replace(block, body=tuple(body)), running

    def inner(self, node: Node, running: Running) -> tuple[Node, Running]:
        match node:
            case Block():
                return self.block(node, running)
            case For():
                return self.loop(node, running)
            case If(then=then, otherwise=other):
                then, after = self.block(then, running)
                others = running
                if other:
                    other, others = self.block(other, running)
                return replace(node, then=then, otherwise=other), after | others
        return node, running

    def loop(self, loop: For, running: Running) -> tuple[For, Running]:
        """A loop that all threads go through; it begins after what ran before, or after its end.

        Other iterations of a loop over blocks are other blocks, and a launch begins when the one
        before is over.
        """
        if loop.kind == "block":
            return replace(loop, body=self.block(loop.body, frozenset())[0]), frozenset()
        first, running = self.next, anywhere(running)
        while True:
            self.next = first
            body, end = self.block(loop.body, running)
            again = one_later(end)
            if again <= running:
                self.flights.leave(end)
                return replace(loop, body=body), anywhere(end)
            running |= again


def _is_phase(node: Node) -> bool:
    return isinstance(node, Assign) or (
        isinstance(node, For) and node.kind in ("thread", "combine")
    )
