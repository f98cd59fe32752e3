"""Registers: local arrays whose elements can be named variables.

After unrolling and cutting, an access is either to one element at a literal index, or to a whole
vector that starts at one. An array of which all accesses are of that form, and agree on how its
elements are grouped into vectors, needs no memory: each group is a variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyc.loopnest.index import Var
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    Node,
    Read,
    TileMove,
    Transpose,
    lanes_of,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)


@dataclass(frozen=True)
class Register:
    """`lanes` elements from index `base` on, along one dimension of a local array."""

    base: tuple[int, ...]
    dimension: int
    lanes: int

    def name(self, local: Local) -> str:
        """acc[0][16][3] -> acc_16_3: dimensions of extent 1 say nothing."""
        shown = [str(b) for b, n in zip(self.base, local.shape, strict=True) if n > 1]
        return "_".join([local.name, *shown])

    @property
    def cells(self) -> Iterator[tuple[int, ...]]:
        """The elements that the register holds."""
        if not self.base:
            yield ()
        for k in range(self.lanes if self.base else 0):
            cell = list(self.base)
            cell[self.dimension] += k
            yield tuple(cell)


def register_of(element: Element, lanes: For | None) -> Register | None:
    """The register that an access inside the vector loop `lanes` names, if it names one."""
    base: list[int] = []
    dimension, count = 0, 1
    for d, index in enumerate(element.index):
        if index.is_constant:
            base.append(index.constant)
            continue
        if lanes is None or count != 1 or not lanes.lower.is_constant:
            return None
        if index.terms != ((Var(lanes.var), 1),):
            return None
        base.append(index.constant + lanes.lower.constant)
        dimension, count = d, lanes_of(lanes)
    return Register(tuple(base), dimension, count)


def find_registers(block: Block) -> Block:
    """The nest with the locals marked that can be named variables."""

    def mark(node: Node) -> Node:
        if not isinstance(node, Block) or not node.locals:
            return node
        spoilt = _in_memory(node)
        marked = tuple(
            replace(x, in_registers=x.in_registers or x.name not in spoilt) for x in node.locals
        )
        return replace(node, locals=marked)

    return rewrite_nodes(block, mark)


def _in_memory(block: Block) -> set[str]:
    """The locals of a block, some access to which is not a register of its own."""
    own = {local.name for local in block.locals}
    owners: dict[str, dict[tuple[int, ...], Register]] = {}
    # what is guarded may have an index that no element has, where its guard does not hold
    values = [n.value for n in walk_nodes(block) if isinstance(n, Assign)]
    reads = (e for v in values for e in walk_expr(v) if isinstance(e, Read))
    spoilt = {read.element.array for read in reads if read.guarded}
    spoilt |= {n.array for n in walk_nodes(block) if isinstance(n, Transpose)}
    spoilt |= {n.first.array for n in walk_nodes(block) if isinstance(n, TileMove)}
    asked = (e for n in walk_nodes(block) if isinstance(n, For) for e in n.asked)
    spoilt |= {e.element.array for one in asked for e in walk_expr(one) if isinstance(e, Read)}
    seen: set[tuple[str, Register]] = set()
    for element, lanes in elements(block, None):
        if element.array not in own or element.array in spoilt:
            continue
        register = register_of(element, lanes)
        if register is None:
            spoilt.add(element.array)
            continue
        if (element.array, register) in seen:
            continue
        seen.add((element.array, register))
        held = owners.setdefault(element.array, {})
        if any(held.setdefault(cell, register) != register for cell in register.cells):
            spoilt.add(element.array)
    return spoilt


def elements(node: Node, lanes: For | None) -> Iterator[tuple[Element, For | None]]:
    """Every element accessed below a node, with the vector loop around it, in textual order."""
    waiting: list[tuple[Node, For | None]] = [(node, lanes)]
    while waiting:
        top, around = waiting.pop()
        match top:
            case Block(body=body):
                waiting.extend((child, around) for child in reversed(body))
            case For(body=body, kind=kind):
                waiting.append((body, top if kind == "vector" else around))
            case If(then=then, otherwise=otherwise):
                if otherwise:
                    waiting.append((otherwise, around))
                waiting.append((then, around))
            case TileMove(first=first):
                yield first, None
            case Assign(target=target, value=value):
                yield target, around
                for e in walk_expr(value):
                    if isinstance(e, Read):
                        yield e.element, around
