"""Where the threads of a block must wait for one another.

    for t: tile[t] = x[t]                      for t: tile[t] = x[t]
    for t: … tile[255 - t] …          ->       barrier
                                               for t: … tile[255 - t] …

Between loops over threads all threads are in step, so barriers may stand there. One is due where
a phase conflicts with another since the last one (`analysis/threads.py`). They are placed as late
as possible, in the order of the text, where the end of a loop is followed by its beginning; in text
without loops no placement has fewer. That they are enough is proven on the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from polyc.codegen.loopnest import Assign, Barrier, Block, For, If, Node

Conflict = Callable[[int, int], bool]
"""Whether two phases, by their numbers in the text, conflict."""


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

    def block(self, block: Block, running: frozenset[int]) -> tuple[Block, frozenset[int]]:
        body: list[Node] = []
        for node in block.body:
            if _is_phase(node):
                phase, self.next = self.next, self.next + 1
                if any(self.conflict(other, phase) for other in running):
                    body.append(Barrier())
                    running = frozenset()
                running |= {phase}
                body.append(node)
            else:
                new, running = self.inner(node, running)
                body.append(new)
        return replace(block, body=tuple(body)), running

    def inner(self, node: Node, running: frozenset[int]) -> tuple[Node, frozenset[int]]:
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

    def loop(self, loop: For, running: frozenset[int]) -> tuple[For, frozenset[int]]:
        """A loop that all threads go through; it begins after what ran before, or after its end.

        Other iterations of a loop over blocks are other blocks.
        """
        first = self.next
        while True:
            self.next = first
            body, end = self.block(loop.body, running)
            if end <= running or loop.kind == "block":
                return replace(loop, body=body), end
            running |= end


def _is_phase(node: Node) -> bool:
    return isinstance(node, Assign) or (
        isinstance(node, For) and node.kind in ("thread", "combine")
    )
