"""What a kernel takes: its loops, at the prices of a target, whatever stands around it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from polyc.loopnest.nodes import Kernel
from polyc.predict.core import measure_core
from polyc.predict.nest import Loop, Tree, read_nest
from polyc.predict.traffic import measure_touched, measure_traffic
from polyc.program.work import Work
from polyc.target.costs import STAYS, price
from polyc.target.machine import Target


def measure_work(kernel: Kernel, target: Target) -> Work:
    """The work of one execution of a kernel, at typical sizes."""
    nest, prices = read_nest(kernel), price(target)
    pieces = ((measure_core([tree], nest, prices), prod(_shared_out(tree))) for tree in nest.trees)
    touched = measure_touched(nest)
    once = sum(touched.values())
    near, again, afar = (
        sum(measure_traffic(nest, STAYS * capacity).values())
        for capacity in (target.l1d, target.l2, target.l3)
    )
    return Work(
        tuple(pieces),
        near,
        max(0.0, again - once),
        max(0.0, afar - once),
        tuple(touched.get(p.name, 0.0) for p in kernel.params),
    )


def _shared_out(tree: Tree) -> Iterator[int]:
    """The iterations of the parallel loops that stand directly inside one another."""
    while isinstance(tree, Loop) and tree.node.kind == "parallel":
        yield tree.trips
        if len(tree.body) != 1:
            break
        (tree,) = tree.body
