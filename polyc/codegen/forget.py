"""Register tiles that begin with all registers, as gcc keeps nothing there of the tile before.

    for x in 0 .. 5:  # forgets
      acc[13][32] = 0
      for k in 0 .. 256:
        acc[r][v] += x[x + r][k] * w[k][v]
      y[x + r][v] = acc[r][v] + bias[v]

What an iteration reads again and none writes, gcc loads once, before the loop: the two vectors of
this bias. But 26 of 32 registers hold sums; room for the others it makes in the innermost loop,
where it puts the vectors of w on the stack, and reads them from there for each product: this tile
ran at 69 Gflop/s of 115 (Zen 4, Xception). To load a bias once a tile costs nothing beside its
products. Literals that gcc keeps in vectors of their own are no reads, and stay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from polyc.loopnest.index import variables
from polyc.loopnest.nodes import Assign, Block, For, Node, extent_of, rewrite_nodes, walk_nodes
from polyc.target.vectors import Vectors

OPEN = 1 / 4
"""The share of registers that a tile holds at least, in a loop of which sizes say how often it
runs. gcc keeps more across it than across one of which it sees that it is short."""

FULL = 3 / 4
"""The same of a tile in any other loop, beside which few are left. Tiles of bytes of which it
writes out all 4 steps of a sum, with 3 vectors of weights each, took 2.7 times as long without
beside 9 x 3 sums (MobileNetV2, Zen 4)."""

MOST_TAPS = 16
"""Iterations that gcc writes out at most (its max-completely-peel-times)."""


def forget_between_tiles(block: Block, sizes: Collection[str], vectors: Vectors) -> Block:
    """The nest with loops marked whose iterations begin so; sizes: what a call decides."""
    opened = frozenset(sizes)

    def mark(node: Node) -> Node:
        if not isinstance(node, For) or node.kind in ("simd", "vector"):
            return node
        forgets = _is_tile(node, opened, vectors) or _is_written_out(node)
        return replace(node, forgets=True) if forgets else node

    return rewrite_nodes(block, mark)


def _is_tile(loop: For, sizes: frozenset[str], vectors: Vectors) -> bool:
    """Whether an iteration is a tile of sums that needs most registers."""
    runs = (n for n in walk_nodes(loop.body) if isinstance(n, Assign) and n.reduction)
    sums = {run.target.array for run in runs} if loop.body.locals else set()
    tiles = (t for t in loop.body.locals if t.in_registers and t.name in sums)
    held = max((prod(t.shape) * t.dtype.itemsize for t in tiles), default=0) // vectors.bytes
    is_open = not sizes.isdisjoint(variables(loop.lower) | variables(loop.upper))
    return held >= (OPEN if is_open else FULL) * vectors.registers


def _is_written_out(loop: For) -> bool:
    """Whether gcc writes out the iterations of a product's tile, as many as a window has taps.

    It would then keep an element in a register, beside the sums, until a later tap reads it as
    well: a tile of 6 rows by 2 vectors in 16 registers spilled half of its sums, and took 1.4 times
    as long (3x3 taps, stride 2, Zen 3).
    """
    extent = extent_of(loop)
    operands = any(local.is_operand for local in loop.body.locals)
    return operands and extent is not None and extent <= MOST_TAPS
