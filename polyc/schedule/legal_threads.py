"""Whether the loops of a kernel for a GPU are nested as its blocks and threads can run them.

    block … ─ sequence { thread … ─ S,  for k ─ sequence { thread … ─ T,  thread … ─ U } }

Blocks are the outermost loops. A block's threads go in step from one nest of loops over threads to
the next; such a nest is what they do at once, so nothing stands between its loops over threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.schedule.loops import Instances, Kept, Loop, LoopTree, children, statements_in, walk
from polyc.schedule.names import short
from polyc.schedule.threads import MOST_THREADS, WARP

THREADS = ("thread", "combine")
AT_ONCE = ("vector", "copy", "box", "mma", "wgmma")
"""Kinds of loops whose iterations a thread, or an instruction, runs at once."""


def check_threads(tree: LoopTree, kernel: str, *, may_launch: bool = False) -> None:
    """Raise IllegalSchedule where loops are nested as no block can run them.

    may_launch: loops may stand around those over blocks, each of whose iterations is a launch.
    """
    for path in _paths(tree, ()):
        *above, loop = path
        try:
            _check_loop(loop, above, may_launch)
        except IllegalSchedule as error:
            said = f"{loop.kind} {loop.name}"
            raise IllegalSchedule(f"kernel {show(kernel)}: {said}: {error}") from None
    for node in walk(tree):
        if isinstance(node, Kept) and any(_is(n, ("block",)) for n in walk(node.body)):
            raise IllegalSchedule(
                f"kernel {show(kernel)}: what is kept at {node.at or 'the top'} would be shared by "
                "the blocks inside; keep it at a loop inside of these"
            )
    if not may_launch:
        _check_blocks(tree, kernel)


def _check_blocks(tree: LoopTree, kernel: str) -> None:
    """Raise IllegalSchedule unless all loops over blocks are one nest, around all statements."""
    node = tree
    while isinstance(node, Loop) and node.kind == "block":
        node = node.body
    other = next((n for n in walk(node) if isinstance(n, Loop) and n.kind == "block"), None)
    if other is not None:
        around = ", ".join(map(short, sorted(statements_in(other))))
        raise IllegalSchedule(
            f"kernel {show(kernel)}: block {other.name}: loops over blocks are one nest around all "
            f"statements, and this one is around {around}; leave out distribute, or fuse the loops"
        )


def _check_loop(loop: Loop, above: Sequence[Loop], may_launch: bool) -> None:
    around = above[-1] if above else None
    if loop.kind == "parallel":
        raise IllegalSchedule("that is for CPUs; a GPU's loops run over block, warp and thread")
    if loop.kind == "block" and may_launch:
        _check_launch(loop, above)
    elif loop.kind == "block" and around is not None and around.kind != "block":
        raise IllegalSchedule(
            f"blocks are the outermost loops, and {around.name} around it is {around.kind}; put "
            f"{loop.name} outside by order"
        )
    if loop.kind in THREADS:
        _check_over_threads(loop, above)
    if around is not None and around.kind in AT_ONCE and around.kind != loop.kind:
        raise IllegalSchedule(
            f"{around.name} around it is {around.kind}, and runs at once what is inside; put "
            f"{loop.name} outside of it by order"
        )
    if loop.kind in AT_ONCE:
        _check_at_once(loop, above)


def _check_launch(loop: Loop, above: Sequence[Loop]) -> None:
    """Around a launch are loops that run one after another; loops over blocks are all together."""
    blocks = [n for n in above if n.kind == "block"]
    other = next((n for n in above if n.kind not in ("sequential", "block")), None)
    if other is None and blocks and not _is_chain(blocks[0], loop, ("block",)):
        other = blocks[0]
    if other is not None:
        raise IllegalSchedule(
            f"loops over blocks are directly inside one another, and {other.name} around it is "
            f"{other.kind}; put {loop.name} outside by order"
        )


def _check_over_threads(loop: Loop, above: Sequence[Loop]) -> None:
    others = [n for n in above if n.kind in THREADS]
    first = above.index(others[0]) if others else len(above)
    between = next((n for n in above[first:] if n.kind not in THREADS), None)
    if between is not None or (others and not _is_chain(others[0], loop)):
        name = between.name if between is not None else others[0].name
        raise IllegalSchedule(
            f"loops over threads are directly inside one another, and {name} is between; say "
            f"order, or distribute {others[0].name}"
        )
    if not loop.width:
        raise IllegalSchedule("say thread or warp first, which give each iteration its threads")
    for other in others:
        low, high = sorted((loop, other), key=lambda n: n.apart)
        if high.apart < low.width * low.apart and high.width > 1 and low.width > 1:
            raise IllegalSchedule(
                f"{high.name} has its iterations {high.apart} threads apart, and {low.name} takes "
                f"{low.width * low.apart}; say both in one thread, the last of neighbours"
            )
    if loop.width * loop.apart > MOST_THREADS:
        raise IllegalSchedule(f"a block has at most {MOST_THREADS} threads")
    if loop.kind == "combine":
        alone = isinstance(loop.body, Instances)
        if not alone or loop.apart != 1 or loop.width % WARP:
            raise IllegalSchedule(
                "what threads combine is one sum, innermost, over a multiple of 32 neighbours"
            )


def _is_chain(top: Loop, bottom: Loop, kinds: Sequence[str] = ()) -> bool:
    """Whether there are only loops from one to the other, of some kinds if these are given."""
    node: LoopTree = top
    while isinstance(node, Loop) and node is not bottom and (not kinds or node.kind in kinds):
        node = node.body
    return node is bottom


def _check_at_once(loop: Loop, above: Sequence[Loop]) -> None:
    if len(statements_in(loop)) > 1:
        raise IllegalSchedule(
            f"it is around {', '.join(map(short, sorted(statements_in(loop))))}, and can be around "
            f"one statement; say sink {loop.name} first"
        )
    inner = next((n for n in walk(loop.body) if isinstance(n, Loop)), None)
    alone = loop.kind in ("vector", "copy")
    if inner is not None and (alone or inner.kind != loop.kind):
        raise IllegalSchedule(f"{inner.name} is inside of it; put {loop.name} innermost by order")
    if not any(n.kind == "thread" for n in above):
        raise IllegalSchedule("there is no loop over threads around it, and all would do the same")


def _is(node: LoopTree, kinds: Sequence[str]) -> bool:
    return isinstance(node, Loop) and node.kind in kinds


def _paths(tree: LoopTree, above: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
    """Each loop, behind those around it."""
    if isinstance(tree, Loop):
        above = (*above, tree)
        yield above
    for below in children(tree):
        yield from _paths(below, above)
