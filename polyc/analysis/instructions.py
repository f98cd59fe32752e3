"""Loops that a schedule gives to an instruction are what the table says that it does.

    for l: # vector                                      for l in 0 .. lanes:
      for r in 0 .. 4: # instruction dot4.u8s8     =       for r in 0 .. 4:
        y[l] add= mul(i32(A[r]), i32(B[l][r]))               acc[l] add= mul(i32(a[…]), i32(b[…]))

The proof of the nest holds for the instruction as it does for vector loops: both run all iterations
at once, so that they may carry nothing but a declared reduction (`legality.py`), and touch what the
iterations touch. What is left to show is that the instruction computes just these iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from polyc.errors import IllegalSchedule
from polyc.loopnest.index import Affine
from polyc.loopnest.instructions import Match, Mismatch, address, match_nest
from polyc.loopnest.nodes import Assign, Block, Element, For, If, Kernel, Node, extent_of
from polyc.names import show
from polyc.target.vectors import Vectors
from polyc.types.sizes import Extent

Shapes = Mapping[str, tuple[Extent, ...]]


def check_instructions(kernel: Kernel, vectors: Vectors) -> None:
    """Raise IllegalSchedule if loops of kind instruction are not that instruction.

    Fewer iterations than it has are what is left of a longer sum, and loops outside of lanes what
    is left of vectors: they run one by one. But somewhere it must be the whole of it.
    """
    used: dict[str, bool] = {}
    reasons: dict[str, str] = {}
    shapes = {p.name: p.shape for p in kernel.params}
    for loop, lanes, inside in _uses(kernel.body, None, shapes):
        name = str(loop.instruction)
        used.setdefault(name, False)
        if lanes is None:
            reasons.setdefault(name, "no loop around it is in lanes")
            continue
        found = _match(loop, lanes, inside, vectors)
        if isinstance(found, Match):
            used[name] = True
        elif _is_rest(loop, vectors):
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


def _match(loop: For, lanes: For, shapes: Shapes, vectors: Vectors) -> Match | Mismatch:
    row = vectors.find(str(loop.instruction))
    if row is None:
        return Mismatch("the target has no such row")
    match loop.body:
        case Block(body=(Assign() as assign,), locals=()):
            pass
        case _:
            return Mismatch("there is more than one assignment inside")

    def place(element: Element) -> Affine:
        return address(element, shapes[element.array])

    return match_nest(row, (lanes, loop), assign, place)


def _is_rest(loop: For, vectors: Vectors) -> bool:
    """Whether there are fewer iterations than the instruction has."""
    row, extent = vectors.find(str(loop.instruction)), extent_of(loop)
    (whole,) = row.inner if row else (0,)
    return extent is not None and isinstance(whole, int) and extent < whole


def _uses(
    node: Node, lanes: For | None, shapes: Shapes
) -> Iterator[tuple[For, For | None, Shapes]]:
    """Each loop of kind instruction, the vector loop around it, and the arrays that it sees."""
    match node:
        case For(kind="instruction"):
            yield node, lanes, shapes
        case For(body=body, kind=kind):
            yield from _uses(body, node if kind == "vector" else lanes, shapes)
        case Block(body=body, locals=locals_):
            inside = {**shapes, **{local.name: local.shape for local in locals_}}
            for child in body:
                yield from _uses(child, lanes, inside)
        case If(then=then, otherwise=otherwise):
            yield from _uses(then, lanes, shapes)
            if otherwise:
                yield from _uses(otherwise, lanes, shapes)
