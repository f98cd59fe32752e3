"""A cache that is simulated: loops are walked element by element, and lines go by least use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from polyc.loopnest.nodes import Assign, Block, For, If, Kernel, Node, Read, walk_expr
from tests.loopnest.indices import evaluate, holds

LINE = 64


def simulate(kernel: Kernel, capacity: int) -> dict[str, int]:
    """Bytes of lines that each array of a kernel brings into a cache that was empty."""
    extents = {p.name: p.shape for p in kernel.params}
    lines: OrderedDict[tuple[str, int], None] = OrderedDict()
    fetched = dict.fromkeys(extents, 0)
    for array, index in _touched(kernel.body, {}):
        if array not in extents:
            continue  # in registers
        place = 0
        for i, n in zip(index, extents[array], strict=True):
            place = place * n + i
        line = array, 4 * place // LINE
        if line not in lines:
            fetched[array] += LINE
        lines[line] = None
        lines.move_to_end(line)
        if len(lines) > capacity // LINE:
            lines.popitem(last=False)
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
