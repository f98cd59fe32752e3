"""A cache that is simulated: loops are walked element by element, and lines go by least use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from polyc.loopnest.nodes import Assign, Block, For, If, Kernel, Node, Read, walk_expr
from tests.loopnest.indices import evaluate, holds

LINE = 64

Line = tuple[str, int]
"""An array, and which of its lines."""


def touched_lines(kernel: Kernel) -> list[Line]:
    """The line of each access to memory, in the order in which a kernel makes them."""
    extents = {p.name: p.shape for p in kernel.params}
    lines = []
    for array, index in _touched(kernel.body, {}):
        if array not in extents:
            continue  # in registers
        place = 0
        for i, n in zip(index, extents[array], strict=True):
            place = place * n + i
        lines.append((array, 4 * place // LINE))
    return lines


def simulate(touched: Iterable[Line], capacity: int) -> int:
    """Bytes of the lines that such accesses bring into a cache that was empty."""
    held: OrderedDict[Line, None] = OrderedDict()
    fetched = 0
    for line in touched:
        if line not in held:
            fetched += LINE
        held[line] = None
        held.move_to_end(line)
        if len(held) > capacity // LINE:
            held.popitem(last=False)
    return fetched


def _touched(node: Node, values: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    match node:
        case Block(body=body):
            for child in body:
                yield from _touched(child, values)
        case If(condition, then, otherwise):
            taken = then if holds(condition, values) else otherwise
            if taken:
                yield from _touched(taken, values)
        case For(var, lower, upper, step, body):
            for value in range(evaluate(lower, values), evaluate(upper, values), step):
                yield from _touched(body, {**values, var: value})
        case Assign(target=target, value=value):
            reads = [e.element for e in walk_expr(value) if isinstance(e, Read)]
            for element in (*reads, target):
                yield element.array, tuple(evaluate(i, values) for i in element.index)
