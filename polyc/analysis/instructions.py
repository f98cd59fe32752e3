"""Loops that a schedule gives to an instruction are what the table says that it does.

    for l: # vector                                      for l in 0 .. lanes:
      for r in 0 .. 4: # instruction dot4.u8s8     =       for r in 0 .. 4:
        y[l] add= mul(i32(A[r]), i32(B[l][r]))               acc[l] add= mul(i32(a[…]), i32(b[…]))

The proof of the nest holds for the instruction as it does for vector loops: both run all iterations
at once, so that they may carry nothing but a declared reduction (`legality.py`), and touch what the
iterations touch. What is left to show is that the instruction computes just these iterations. One
that multiplies matrices runs several loops, which stand directly inside one another.
"""

from __future__ import annotations

from collections.abc import Iterator

from polyc.errors import IllegalSchedule
from polyc.loopnest.instructions import Match, Mismatch, match_nest
from polyc.loopnest.matrices import MatrixNest, is_rest, match_matrices
from polyc.loopnest.nodes import Assign, Block, For, If, Kernel, Node, extent_of
from polyc.loopnest.place import Place
from polyc.names import show
from polyc.target.vectors import Vectors


def check_instructions(kernel: Kernel, vectors: Vectors) -> None:
    """Raise IllegalSchedule if loops of kind instruction are not that instruction.

    Fewer iterations than it has are what is left of a longer sum, and loops outside of lanes what
    is left of vectors: they run one by one. But somewhere it must be the whole of it.
    """
    used: dict[str, bool] = {}
    reasons: dict[str, str] = {}
    for loop, place, lanes in _uses(kernel.body, Place.of(kernel.params), None):
        name = str(loop.instruction)
        used.setdefault(name, False)
        matrices = vectors.find_matrices(name)
        if matrices is None and lanes is None:
            reasons.setdefault(name, "no loop around it is in lanes")
            continue
        found = _match(loop, place, lanes, vectors)
        if isinstance(found, Match | MatrixNest):
            used[name] = True
        elif is_rest(matrices, loop) if matrices else _is_rest(loop, vectors):
            reasons.setdefault(name, found.reason)
        else:
            _refuse(kernel.name, name, found.reason)
    for name, whole in used.items():
        if not whole:
            _refuse(kernel.name, name, reasons[name])


def _refuse(kernel: str, name: str, reason: str) -> None:
    raise IllegalSchedule(
        f"kernel {show(kernel)}: use {show(name)}: these loops are not that instruction: {reason}"
    )


def _match(
    loop: For, place: Place, lanes: For | None, vectors: Vectors
) -> Match | MatrixNest | Mismatch:
    matrices = vectors.find_matrices(str(loop.instruction))
    if matrices is not None:
        return match_matrices(matrices, loop, place)
    row = vectors.find(str(loop.instruction))
    if row is None or lanes is None:
        return Mismatch("the target has no such row")
    match loop.body:
        case Block(body=(Assign() as assign,), locals=()):
            return match_nest(row, (lanes, loop), assign, place.address)
        case _:
            return Mismatch("there is more than one assignment inside")


def _is_rest(loop: For, vectors: Vectors) -> bool:
    """Whether there are fewer iterations than the instruction has."""
    row, extent = vectors.find(str(loop.instruction)), extent_of(loop)
    (whole,) = row.inner if row else (0,)
    return extent is not None and isinstance(whole, int) and extent < whole


def _uses(node: Node, place: Place, lanes: For | None) -> Iterator[tuple[For, Place, For | None]]:
    """Each loop of kind instruction, the outermost of one, where it stands, and the vector loop
    around it."""
    match node:
        case For(kind="instruction"):
            yield node, place, lanes
        case For(body=body, kind=kind):
            yield from _uses(body, place.inside(node), node if kind == "vector" else lanes)
        case Block(body=body, locals=locals_):
            for child in body:
                yield from _uses(child, place.with_locals(locals_), lanes)
        case If(then=then, otherwise=otherwise):
            yield from _uses(then, place, lanes)
            if otherwise:
                yield from _uses(otherwise, place, lanes)
