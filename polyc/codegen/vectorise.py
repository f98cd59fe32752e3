"""LoopNest passes after the proof: partial sums, unrolling, and cutting vector loops to SIMD width.

    0. diagonals   loops of kind unroll that decide the bounds of loops inside are unrolled first
    1. privatise   acc max= x[…]  over vector loops  ->  a partial result a lane, combined after
    2. transpose   accesses across the lanes of a vector loop  ->  vectors, transposed in registers
    3. unroll      loops of kind unroll are replaced by copies of their bodies
    4. cut         a vector loop of constant extent 21 becomes one vector of 16 lanes and one of 8
    5. divide      by constants once a vector, in indices, where its lanes have one quotient
    6. spell       a loop that an instruction runs in each lane stays one where that is spelled for
                   so many lanes, and is unrolled elsewhere

After them a loop of kind "vector" has a power of two of lanes, and a body of assignments, and of
loops that are instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from polyc.codegen.divide import divide_in_vectors
from polyc.codegen.in_steps import in_steps
from polyc.codegen.load_once import load_once
from polyc.codegen.partial_results import privatise
from polyc.codegen.spell import is_instruction, run_in, spell_instructions, unroll
from polyc.codegen.transpose import transpose_tiles
from polyc.loopnest.index import variables
from polyc.loopnest.lanes import cut_lanes
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    If,
    Node,
    extent_of,
    rewrite_nodes,
    walk_nodes,
)
from polyc.loopnest.uniform import widest_in
from polyc.target.vectors import Vectors


def vectorise(
    block: Block, vectors: Vectors, shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> Block:
    """The nest with its vector and unroll loops in printable form; shapes: of arrays in memory."""
    names = iter(range(1 << 30))
    private = privatise(_unroll_diagonals(block), vectors, names)
    straight = transpose_tiles(private, vectors, names, shapes)
    cut = divide_in_vectors(rewrite_nodes(straight, lambda n: _expand(n, vectors)))
    return spell_instructions(cut, vectors)


def _unroll_diagonals(block: Block) -> Block:
    """The nest without loops of kind unroll that bounds inside of them move with.

    What stays has the same extent in every iteration, as each copy of a body knows its own.

        for i in 0 .. 3:  # unroll                 for u in 0 .. 1: …(0, u)
          for u in max(0, i - 1) .. min(i + 1, 2)  ->  for u in 0 .. 2: …(1, u)
            …(i, u)                                for u in 1 .. 2: …(2, u)
    """

    def visit(node: Node) -> Node:
        match node:
            case Block():
                return _unroll_diagonals(node)
            case If(then=then, otherwise=otherwise):
                other = _unroll_diagonals(otherwise) if otherwise else None
                return replace(node, then=_unroll_diagonals(then), otherwise=other)
            case For(kind="unroll") if _decides_bounds(node):
                return visit(unroll(node))
            case For(body=body):
                return replace(node, body=_unroll_diagonals(body))
            case _:
                return node

    return replace(block, body=tuple(map(visit, block.body)))


def _decides_bounds(loop: For) -> bool:
    """Whether a loop of constant extent has loops inside whose extent it decides."""
    inner = (n for n in walk_nodes(loop.body) if isinstance(n, For))
    return extent_of(loop) is not None and any(
        extent_of(n) is None and loop.var in variables(n.upper - n.lower) for n in inner
    )


def _expand(node: Node, vectors: Vectors) -> Node:
    if not isinstance(node, For):
        return node
    if node.kind == "unroll":
        return unroll(node)
    if node.kind == "vector" and not node.idle:
        return _cut(node, vectors)
    match node.body:
        case Block(body=(Block() as inside,), locals=(), near=()) if node.kind == "sequential":
            return replace(node, body=inside)
    return node


def _cut(loop: For, vectors: Vectors) -> Node:
    """A vector loop as full vectors, then what is left of one; statement by statement.

        for v in 0 .. 48:  s0; s1   ->   s0[0..16], s0[16..32], s0[32..48], s1[0..16], …

    The lanes carry no dependence, so each statement may run over all of them before the next. In a
    register tile that keeps one broadcast alive at a time, and not one for each row, if registers
    are not too few for what waits then (`load_once.py`).
    """
    known = bool(loop.lanes) or extent_of(loop) is not None
    flat = _flatten(loop.body)
    runs = [n for n in flat if isinstance(n, Assign) or is_instruction(n)]
    if not known or loop.step != 1 or len(runs) < len(flat):
        return replace(loop, kind="sequential", lanes=0)
    pieces = [loop]
    if not loop.lanes:
        pieces = [*cut_lanes(loop, vectors.lanes(widest_in(loop)), vectors.masked)]
    shared = load_once(loop, runs, pieces, vectors)
    if shared is not None:
        return shared
    parts: list[Node] = []
    for run in runs:
        steps = in_steps(loop, pieces, run) if isinstance(run, Assign) else None
        parts += [steps] if steps else [run_in(vector, run) for vector in pieces]
    return parts[0] if len(parts) == 1 else Block(tuple(parts))


def _flatten(block: Block) -> tuple[Node, ...]:
    """The nodes of a block with blocks that declare nothing opened up."""
    body: list[Node] = []
    for node in block.body:
        opens = isinstance(node, Block) and not (node.locals or node.near)
        body.extend(_flatten(node) if isinstance(node, Block) and opens else (node,))
    return tuple(body)
