"""Damage to a case, and the refusal that it must meet."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Assign, Block, For, If, Node, walk_nodes
from tests.analysis.nests import Case


def check_refused(wrong: Case, *parts: str) -> None:
    """Assert that a case is refused, in a message with these parts, the kernel and a way out."""
    with pytest.raises(IllegalSchedule) as error:
        wrong.verify()
    message = str(error.value)
    for part in ("kernel k", "report", *parts):
        assert part in message, message


def find(of: Case, statement: str) -> Assign:
    (found,) = (
        n for n in walk_nodes(of.kernel.body) if isinstance(n, Assign) and n.statement == statement
    )
    return found


def find_loop(of: Case, name: str) -> For:
    return next(n for n in walk_nodes(of.kernel.body) if isinstance(n, For) and n.var == name)


def swap(of: Case, old: Node, *new: Node) -> Case:
    (body,) = rewrite(of.kernel.body, old, new)
    return replace(of, kernel=replace(of.kernel, body=body))


def rewrite(node: Node, old: Node, new: Sequence[Node]) -> Iterator[Node]:
    """The node with every node equal to `old` replaced by `new`."""
    if node == old:
        yield from new
        return
    match node:
        case Block(body=body):
            yield replace(node, body=tuple(n for b in body for n in rewrite(b, old, new)))
        case For(body=body):
            yield replace(node, body=next(rewrite(body, old, new)))
        case If(then=then):
            yield replace(node, then=next(rewrite(then, old, new)))
        case _:
            yield node
