"""LoopNest passes after the proof: partial sums, unrolling, and cutting vector loops to SIMD width.

    1. privatise   acc max= x[…]  over vector loops  ->  a partial result a lane, combined after
    2. transpose   accesses across the lanes of a vector loop  ->  vectors, transposed in registers
    3. unroll      loops of kind unroll are replaced by copies of their bodies
    4. cut         a vector loop of constant extent 21 becomes one vector of 16 lanes and one of 8

After them a loop of kind "vector" has a power of two of lanes, and a body of assignments only.
"""

from __future__ import annotations

from dataclasses import replace

from polyc.codegen.partial_results import privatise
from polyc.codegen.transpose import transpose_tiles
from polyc.loopnest.index import Affine
from polyc.loopnest.lanes import LARGEST_UNROLL, cut_lanes
from polyc.loopnest.nodes import Assign, Block, For, Node, extent_of, lanes_of, rewrite_nodes
from polyc.loopnest.substitute import substitute_block
from polyc.target.vectors import Vectors


def vectorise(block: Block, vectors: Vectors) -> Block:
    """The nest with its vector and unroll loops in printable form."""
    names = iter(range(1 << 30))
    private = privatise(block, vectors, names)
    straight = transpose_tiles(private, vectors, names)
    return rewrite_nodes(straight, lambda n: _expand(n, vectors))


def _expand(node: Node, vectors: Vectors) -> Node:
    if not isinstance(node, For):
        return node
    if node.kind == "unroll":
        return unroll(node)
    if node.kind == "vector" and not node.idle:
        return _cut(node, vectors)
    return node


def unroll(loop: For) -> Node:
    """Copies of the body of a loop of constant extent; the loop itself if they were too many."""
    extent = extent_of(loop)
    if extent is None or extent > LARGEST_UNROLL:
        return replace(loop, kind="sequential")
    return Block(tuple(_at(loop, loop.lower + k * loop.step) for k in range(extent)))


def _cut(loop: For, vectors: Vectors) -> Node:
    """A vector loop as full vectors, then what is left of one; statement by statement.

        for v in 0 .. 48:  s0; s1   ->   s0[0..16], s0[16..32], s0[32..48], s1[0..16], …

    The lanes carry no dependence, so each statement may run over all of them before the next. In a
    register tile that keeps one broadcast alive at a time, and not one for each row.
    """
    known = bool(loop.lanes) or extent_of(loop) is not None
    flat = _flatten(loop.body)
    assigns = [n for n in flat if isinstance(n, Assign)]
    if not known or loop.step != 1 or len(assigns) < len(flat):
        return replace(loop, kind="sequential", lanes=0)
    widest = max(assign.widest for assign in assigns)
    pieces = [loop]
    if not loop.lanes:
        pieces = [*cut_lanes(loop, vectors.lanes(widest), vectors.masked)]
    parts: list[Node] = []
    for assign in assigns:
        for vector in pieces:
            alone = replace(vector, body=Block((assign,)))
            parts.append(alone if lanes_of(vector) > 1 else _at(alone, vector.lower))
    return parts[0] if len(parts) == 1 else Block(tuple(parts))


def _flatten(block: Block) -> tuple[Node, ...]:
    """The nodes of a block with blocks that declare nothing opened up."""
    body: list[Node] = []
    for node in block.body:
        body.extend(_flatten(node) if isinstance(node, Block) and not node.locals else (node,))
    return tuple(body)


def _at(loop: For, value: Affine) -> Block:
    return substitute_block(loop.body, {loop.var: value})
