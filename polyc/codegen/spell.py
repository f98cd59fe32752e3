"""Loops that instructions run, as they are going to be written for a vector unit.

    for l in 0 .. 16:  # vector                     for l in 0 .. 16:  # vector
      for r in 0 .. 4:  # instruction dot4.u8s8       for r in 0 .. 4:  # as vpdpbusd
        acc[l] add= …                          ->       acc[l] add= …
    for l in 0 .. 16:  # vector                     for l in 0 .. 16:  # vector
      for r in 0 .. 3:  # instruction dot4.u8s8       acc[l] add= …(0); acc[l] add= …(1); …
        acc[l] add= …

What is left of a sum whose length the instruction does not divide, and what stands in no lanes, is
unrolled. That what stays is the instruction, `analysis/instructions.py` has made sure of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from polyc.loopnest.index import Affine
from polyc.loopnest.lanes import LARGEST_UNROLL
from polyc.loopnest.nodes import Block, For, If, Node, extent_of, lanes_of, walk_nodes
from polyc.loopnest.substitute import substitute_block
from polyc.target.instructions.rows import Spelled
from polyc.target.vectors import Vectors


def is_instruction(node: Node) -> TypeGuard[For]:
    """Whether a node is a loop that an instruction runs in each lane."""
    return isinstance(node, For) and node.kind == "instruction"


def spell_instructions(block: Block, vectors: Vectors) -> Block:
    """The nest with loops of kind instruction spelled inside of vectors, or unrolled."""
    if not any(map(is_instruction, walk_nodes(block))):
        return block
    body = tuple(new for node in block.body for new in _spell(node, None, vectors))
    return replace(block, body=body)


def _spell(node: Node, lanes: For | None, vectors: Vectors) -> Iterator[Node]:
    """A node, which stands directly in a vector loop if that is given."""
    match node:
        case For(kind="instruction"):
            spelled = _spelling(node, lanes, vectors) if lanes else None
            if spelled:
                yield replace(node, instruction=spelled)
                return
            count = extent_of(node)
            assert count is not None, "an instruction has so many iterations, or fewer"
            for k in range(count):
                yield from iteration(node, node.lower + k * node.step).body
        case For(body=body, kind=kind):
            around = node if kind == "vector" else None
            inner = tuple(new for child in body.body for new in _spell(child, around, vectors))
            yield replace(node, body=replace(body, body=inner))
        case Block():
            yield spell_instructions(node, vectors)
        case If(then=then, otherwise=otherwise):
            other = spell_instructions(otherwise, vectors) if otherwise else None
            yield replace(node, then=spell_instructions(then, vectors), otherwise=other)
        case _:
            yield node


def _spelling(loop: For, lanes: For, vectors: Vectors) -> Spelled | None:
    """How the loop is written in these lanes; None if it is not the whole of an instruction."""
    row = vectors.find(str(loop.instruction))
    if row is None or row.inner != (extent_of(loop),):
        return None
    spelling = row.spell(frozenset(vectors.features), lanes_of(lanes))
    return Spelled(row, spelling) if spelling else None


def unroll(loop: For) -> Node:
    """Copies of the body of a loop of constant extent; the loop itself if they were too many."""
    extent = extent_of(loop)
    if extent is None or extent > LARGEST_UNROLL:
        return replace(loop, kind="sequential")
    return Block(tuple(iteration(loop, loop.lower + k * loop.step) for k in range(extent)))


def iteration(loop: For, value: Affine) -> Block:
    """The body of a loop where its variable has a value."""
    return substitute_block(loop.body, {loop.var: value})


def run_in(vector: For, run: Node) -> Node:
    """What a vector loop executes alone in one of its vectors, or in its only lane."""
    alone = replace(vector, body=Block((run,)))
    return alone if lanes_of(vector) > 1 else iteration(alone, vector.lower)
