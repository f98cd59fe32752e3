"""LoopNest passes after the proof: partial sums, unrolling, and cutting vector loops to SIMD width.

    1. privatise   acc max= x[…]  over a vector loop  ->  a partial result a lane, combined after
    2. transpose   accesses across the lanes of a vector loop  ->  vectors, transposed in registers
    3. unroll      loops of kind unroll are replaced by copies of their bodies
    4. cut         a vector loop of constant extent 21 becomes vectors of 16 and 4 and one scalar

After them a loop of kind "vector" has a power of two of iterations, and a body of assignments only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyc.codegen.index import Affine, var, variables
from polyc.codegen.loopnest import (
    Assign,
    Block,
    Element,
    For,
    Local,
    Node,
    Read,
    extent_of,
    rewrite_nodes,
    substitute_block,
)
from polyc.codegen.transpose import transpose_tiles
from polyc.scop.expr import Const
from polyc.scop.scop import identity

LARGEST_UNROLL = 64
"""Copies of one body; no register file holds the accumulators of more."""


def vectorise(block: Block, simd_bytes: int) -> Block:
    """The nest with its vector and unroll loops in printable form."""
    names = iter(range(1 << 30))
    private = rewrite_nodes(block, lambda n: _privatise(n, names, simd_bytes))
    straight = transpose_tiles(private, simd_bytes, names)
    return rewrite_nodes(straight, lambda n: _expand(n, simd_bytes))


def _privatise(node: Node, names: Iterator[int], simd_bytes: int) -> Node:
    """for j: vector for l: acc op= e   ->   partial[l] op= e, and acc op= partial[l] at the end.

    Only a declared reduction whose target neither loop moves; the proof has allowed its reordering.
    Partial results of several vectors, which are there so that no operation waits for the one
    before, are added up by halves: partial[l] op= partial[l + 32], partial[l] op= partial[l + 16].
    """
    if not (isinstance(node, For) and node.kind == "sequential" and len(node.body.body) == 1):
        return node
    lanes = node.body.body[0]
    if not (isinstance(lanes, For) and lanes.kind == "vector" and len(lanes.body.body) == 1):
        return node
    update = lanes.body.body[0]
    extent = extent_of(lanes)
    if not isinstance(update, Assign) or update.reduction is None or extent is None or extent < 2:
        return node
    moved = {v for i in update.target.index for v in variables(i)}
    if moved & {node.var, lanes.var} or not lanes.lower.is_constant:
        return node
    local = Local(f"partial_{next(names)}", update.dtype, (extent,), update.target.array)
    place = Element(local.name, (var(lanes.var) - lanes.lower.constant,))
    start = replace(
        update,
        target=place,
        value=Const(identity(update.reduction, update.dtype), update.dtype),
        reduction=None,
    )
    body = replace(lanes, body=Block((replace(update, target=place),)))
    folds, width = [], extent
    while width % 2 == 0 and width * update.dtype.itemsize > simd_bytes:
        width //= 2
        other = Element(local.name, (place.index[0] + width,))
        fold = replace(update, target=place, value=Read(other, update.dtype))
        folds.append(replace(lanes, upper=lanes.lower + width, body=Block((fold,))))
    end = replace(update, value=Read(place, update.dtype))
    return Block(
        (
            replace(lanes, body=Block((start,))),
            replace(node, body=Block((body,))),
            *folds,
            replace(lanes, upper=lanes.lower + width, body=Block((end,))),
        ),
        (local,),
    )


def _expand(node: Node, simd_bytes: int) -> Node:
    if not isinstance(node, For):
        return node
    if node.kind == "unroll":
        extent = extent_of(node)
        if extent is None or extent > LARGEST_UNROLL:
            return replace(node, kind="sequential")
        return Block(tuple(_at(node, node.lower + k * node.step) for k in range(extent)))
    if node.kind == "vector" and not node.idle:
        return _cut(node, simd_bytes)
    return node


def _cut(loop: For, simd_bytes: int) -> Node:
    """A vector loop as full vectors, then shorter ones, then a scalar; statement by statement.

        for v in 0 .. 48:  s0; s1   ->   s0[0..16], s0[16..32], s0[32..48], s1[0..16], …

    The lanes carry no dependence, so each statement may run over all of them before the next. In a
    register tile that keeps one broadcast alive at a time, and not one for each row.
    """
    extent = extent_of(loop)
    flat = _flatten(loop.body)
    assigns = [n for n in flat if isinstance(n, Assign)]
    if extent is None or loop.step != 1 or len(assigns) < len(flat):
        return replace(loop, kind="sequential")
    widest = max(assign.widest for assign in assigns)
    vectors = _vectors(extent, max(1, simd_bytes // widest))
    parts: list[Node] = []
    for assign in assigns:
        alone = replace(loop, body=Block((assign,)))
        for start, lanes in vectors:
            low = loop.lower + start
            one = replace(alone, lower=low, upper=low + lanes)
            parts.append(_at(alone, low) if lanes == 1 else one)
    return parts[0] if len(parts) == 1 else Block(tuple(parts))


def _vectors(extent: int, lanes: int) -> list[tuple[int, int]]:
    """(start, lanes) that cover an extent: 21 with 16 lanes -> (0, 16), (16, 4), (20, 1)."""
    parts, start = [], 0
    while start < extent:
        while lanes > extent - start:
            lanes //= 2
        parts.append((start, lanes))
        start += lanes
    return parts


def _flatten(block: Block) -> tuple[Node, ...]:
    """The nodes of a block with blocks that declare nothing opened up."""
    body: list[Node] = []
    for node in block.body:
        body.extend(_flatten(node) if isinstance(node, Block) and not node.locals else (node,))
    return tuple(body)


def _at(loop: For, value: Affine) -> Block:
    return substitute_block(loop.body, {loop.var: value})
