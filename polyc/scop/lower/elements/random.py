"""Random bits: a function of a key and of the element's number, so that no order is needed.

y[i, j]  =  philox(4*i + j, stream, key[0], key[1])         y: uint32[n, 4]
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import Const, call
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.numbering import row_major

UINT32 = np.dtype(np.uint32)


@lowers("RandomBits")
def lower_random_bits(ctx: Lowering, node: Node) -> None:
    """key[2] -> a number for each element of a shape; `stream` keeps draws apart."""
    key, result = ctx.ref(node.inputs[0]), ctx.result(node)
    space = ctx.grid(node, result.shape)
    number = row_major(space, space.iterators, result.shape, UINT32)
    stream = Const(int(node.attributes["stream"]), UINT32)
    keys = (space.load(key, "0"), space.load(key, "1"))
    bits = call("philox", number, stream, *keys)
    ctx.assign(node, space, result, space.iterators, bits)
