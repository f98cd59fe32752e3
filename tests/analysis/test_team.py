"""What threads of a team do in a kernel on a CPU: barriers are enough, and stand where all come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from polyc.loopnest.index import Compare, const
from polyc.loopnest.nodes import Barrier, Block, For, If, Node, rewrite_nodes, walk_nodes
from polyc.threads.team import share_out
from tests.analysis.mutate import check_refused
from tests.analysis.nests import ZERO, Case, at, ci, copy_at, loop, pointwise, read, recurrence, run

ALWAYS = Compare("ge", const(0))


def shared(case: Case) -> Case:
    return replace(case, kernel=share_out(case.kernel))


def with_body(case: Case, body: Block) -> Case:
    return replace(case, kernel=replace(case.kernel, body=body))


def chain() -> Case:
    """R[0]; then five loops of one step, all of them parallel: each reads what the last wrote."""
    step = run("R", [ci], at("Y", ci), read("Y", ci - 1))
    steps = [loop("i", n + 1, step, lower=n, kind="parallel") for n in range(1, 6)]
    return shared(recurrence().with_body(run("B", [], at("Y", 0), ZERO), *steps))


def without_one(block: Block) -> Iterator[Block]:
    """The block without each of its barriers."""
    for k, node in enumerate(block.body):
        if node == Barrier():
            yield replace(block, body=(*block.body[:k], *block.body[k + 1 :]))


def test_every_barrier_is_needed() -> None:
    right = chain()
    assert right.verify().parallel_loops == 5
    damaged = list(without_one(right.kernel.body))
    assert len(damaged) == 5
    for body in damaged:
        check_refused(with_body(right, body), "joins what runs at the same time", "->")


def test_what_is_independent_needs_none() -> None:
    halves = loop("i", 5, copy_at(ci), kind="parallel"), loop("i", 10, copy_at(ci), lower=5)
    case = shared(pointwise(Block(halves, concurrent=True)))
    assert not any(isinstance(n, Barrier) for n in walk_nodes(case.kernel.body))
    assert case.verify().statements == 1


def repeated() -> Case:
    """Ten steps, each a parallel loop of one iteration that reads what the last step wrote."""
    start = run("B", [], at("Y", 0), ZERO)
    step = run("R", [ci], at("Y", ci), read("Y", ci - 1))
    once = loop("j", 1, step, kind="parallel")
    return shared(recurrence().with_body(start, loop("i", 6, once, lower=1)))


def test_steps_of_a_loop_end_in_a_barrier() -> None:
    right = repeated()
    assert right.verify()

    def drop(node: Node) -> Node:
        if isinstance(node, For) and node.body.team:
            return replace(node, body=replace(node.body, body=node.body.body[:-1]))
        return node

    wrong = with_body(right, rewrite_nodes(right.kernel.body, drop))
    check_refused(wrong, "threads of a team may be in different iterations of loop i")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Block((run("P", [0], at("Y", 0), ZERO),), team=True), "executed by every thread"),
        (Block((loop("i", 10, copy_at(ci)),), team=True), "different iterations of loop i"),
        (
            Block((loop("i", 10, Barrier(), copy_at(ci), kind="parallel"),), team=True),
            "a barrier stands where only one thread comes",
        ),
        (
            Block((Block((Barrier(), loop("i", 10, copy_at(ci)))),), team=True),
            "a barrier stands where only one thread comes",
        ),
        (
            Block((Block((Block((), team=True),)),), team=True),
            "a barrier stands where only one thread comes",
        ),
        (
            Block((If(ALWAYS, Block((copy_at(const(0)),), team=True)),), team=True),
            "P is executed by every thread",
        ),
    ],
)
def test_who_executes_what_is_clear(body: Block, said: str) -> None:
    check_refused(with_body(pointwise(), body), said)
