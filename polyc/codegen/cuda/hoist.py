"""Operands of unrolled products, loaded once and widely.

    for k:                                   for k:
      for i in 0 .. 4, j in 0 .. 4:  # unroll  ->  wide0 = a[k][4 t .. 4 t + 3]; wide1 = b[k][…]
        acc[i][j] += a[k][4 t + i] * b[k][j]      acc[0][0] += wide0[0] * wide1[0]; …

A thread that multiplies a few rows by a few columns meets each of their elements many times. What
it reads of shared memory, all from one iteration, is loaded in front of the products, in vectors of
16 bytes; that also holds where a swizzle hides from the compiler what lies together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from polyc.codegen.cuda.fold import drop_remainders, fold, fold_address
from polyc.loopnest.index import const, var
from polyc.loopnest.multiples import Multiples, multiple_of
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Local,
    LoopExpr,
    Node,
    Read,
    extent_of,
)
from polyc.loopnest.substitute import substitute_node
from polyc.scop.expr import Call, Cast

BYTES = 16


def hoist_loads(
    loop: For, shared: Mapping[str, tuple[int, ...]], names: Iterator[int], known: Multiples
) -> For | None:
    """The loop with its reads of shared memory in front; None if it is not around such products.

    shared: the shapes of arrays in shared memory.
    """
    unrolled: list[For] = []
    node = _only(loop.body)
    while isinstance(node, For) and node.kind == "unroll" and extent_of(node):
        unrolled.append(node)
        node = _only(node.body)
    if not unrolled or not isinstance(node, Assign) or node.reduction is None:
        return None
    loads = _Loads(shared, names, known)
    body: list[Node] = []
    for place in product(*(range(extent_of(x) or 0) for x in unrolled)):
        values = {x.var: x.lower + x.step * k for x, k in zip(unrolled, place, strict=True)}
        copy = substitute_node(node, values)
        assert isinstance(copy, Assign)
        body.append(replace(copy, value=loads.replaced(copy.value)))
    return replace(loop, body=Block((*loads.lines, *body), tuple(loads.locals)))


def _only(block: Block) -> Node | None:
    """The one node of a block, blocks in it opened up."""
    if len(block.body) != 1 or block.locals:
        return None
    (node,) = block.body
    return _only(node) if isinstance(node, Block) else node


@dataclass
class _Loads:
    """What is loaded so far: `held` are vectors by the element that they begin with."""

    shared: Mapping[str, tuple[int, ...]]
    names: Iterator[int]
    known: Multiples
    held: dict[Element, str] = field(default_factory=dict)
    lines: list[For] = field(default_factory=list)
    locals: list[Local] = field(default_factory=list)

    def replaced(self, expr: LoopExpr) -> LoopExpr:
        match expr:
            case Read(element, dtype, (), False) if element.array in self.shared:
                lanes = BYTES // dtype.itemsize
                address = fold_address(element, self.shared[element.array])
                address = fold(drop_remainders(address, lanes, self.known))
                lane = address.constant % lanes
                first = address - lane
                if multiple_of(first, self.known) % lanes:
                    return expr
                zeros = (const(0),) * (len(element.index) - 1)
                start = Element(element.array, (*zeros, first))
                if start not in self.held:
                    self._load(start, expr, lanes)
                return Read(Element(self.held[start], (const(lane),)), dtype)
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(map(self.replaced, arguments)))
            case Cast(argument=argument):
                return replace(expr, argument=self.replaced(argument))
        return expr

    def _load(self, start: Element, read: Read, lanes: int) -> None:
        number = next(self.names)
        name, counter = f"wide{number}", f"l{number}"
        self.held[start] = name
        self.locals.append(Local(name, read.dtype, (lanes,), "", True, is_tile=True))
        *zeros, first = start.index
        source = replace(read, element=Element(start.array, (*zeros, first + var(counter))))
        load = Assign("", (), Element(name, (var(counter),)), source, read.dtype)
        self.lines.append(For(counter, const(0), const(lanes), 1, Block((load,)), "vector"))
