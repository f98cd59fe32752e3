"""Whether loops are what an instruction for matrices does: by types, expressions and strides.

    for m in 0 .. 28:  # instruction tile.u8s8
      for n in 0 .. 32:                                     tile.u8s8, where
        for k in 0 .. 64 step 4:                      ->      acc: y, rows 32 apart
          for r in 0 .. 4:                                    a: A, rows 256 apart
            y[m][n] add= mul(i32(A[m][k + r]),                b: B, rows 128 apart
                             i32(B[k / 4][n][r]))

Which loop runs over rows, columns, words or the terms of a word, is told by what moves with it, and
how far. One that runs once may have been left out, and is put in. Several may run over rows, as
those of an image and the pixels in each: `runs` of rows that lie equally far apart. Rows, columns
and words may be more than a register holds: they are cut when they are generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from polyc.loopnest.index import Affine, const, stride
from polyc.loopnest.instructions import Mismatch, unify_all
from polyc.loopnest.nodes import Assign, Block, Element, For, Node, Read, extent_of
from polyc.loopnest.place import Place
from polyc.loopnest.substitute import substitute_node
from polyc.target.instructions.matrices import MatrixInstruction
from polyc.target.instructions.rows import Number, Operand

ONCE = ""
"""The variable of a loop that runs once and has been left out: nothing moves with it."""


@dataclass(frozen=True)
class MatrixNest:
    """Loops around an assignment as an instruction runs them.

    a, b: the places that the factors are read from; rows: loops over them, outermost first; others:
    over columns, words, terms; runs: of rows that are equally far apart, in all of them.
    """

    row: MatrixInstruction
    assign: Assign
    a: Element
    b: Element
    rows: tuple[For, ...]
    others: tuple[For, For, For]
    runs: int

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Runs of rows, rows of each, columns and words."""
        columns, words, _ = (extent_of(loop) or 1 for loop in self.others)
        rows = prod(extent_of(loop) or 1 for loop in self.rows)
        return self.runs, rows // self.runs, columns, words

    @property
    def starts(self) -> dict[str, Affine]:
        """The first values of the loops."""
        return {loop.var: loop.lower for loop in (*self.rows, *self.others)}

    def at_row(self, number: int) -> dict[str, Affine]:
        """The values of the loops over rows in the row of a number, counted through all of them."""
        values = {}
        for loop in reversed(self.rows):
            number, place = divmod(number, extent_of(loop) or 1)
            values[loop.var] = loop.lower + place * loop.step
        return values


def list_loops(loop: For) -> tuple[list[For], tuple[Node, ...]]:
    """(loops of one instruction directly inside one another, the nodes inside of them)."""
    loops, body = [loop], loop.body
    while len(body.body) == 1 and not body.locals:
        inner = body.body[0]
        if not isinstance(inner, For) or inner.instruction != loop.instruction:
            break
        loops.append(inner)
        body = inner.body
    return loops, () if body.locals else body.body


def match_matrices(row: MatrixInstruction, loop: For, place: Place) -> MatrixNest | Mismatch:
    """The outermost of an instruction's loops, where that stands, as that instruction."""
    loops, inside = list_loops(loop)
    place = place.inside(*loops)
    if any(extent_of(each) is None for each in loops):
        return Mismatch("the number of its iterations is known only at run time")
    single = {each.var: each.lower for each in loops if extent_of(each) == 1}
    loops = [each for each in loops if each.var not in single]
    match [substitute_node(node, single) for node in inside]:
        case [Assign() as assign]:
            pass
        case _:
            return Mismatch("there is more than one assignment inside")
    if assign.reduction != row.nest.reduction:
        return Mismatch(f"it is a reduction by {row.nest.reduction}, and this is none")
    reason = "what it computes is another expression"
    for bound in unify_all(row, assign.reduction, assign.value):
        match bound:
            case {"a": Read(a, dynamic=(), guarded=False), "b": Read(b, dynamic=(), guarded=False)}:
                found = _assign_roles(row, assign, a, b, loops, place)
                if not isinstance(found, str):
                    return found
                reason = found
            case _:
                reason = "it is applied to more than elements of memory"
    return Mismatch(reason)


def is_rest(row: MatrixInstruction, loop: For) -> bool:
    """Whether loops take fewer terms of a word than it has: what is left of a longer sum."""
    loops, _ = list_loops(loop)
    extents = [extent_of(each) for each in loops]
    return extents[-1] != row.terms and None not in extents


def _assign_roles(
    row: MatrixInstruction,
    assign: Assign,
    a: Element,
    b: Element,
    loops: Sequence[For],
    place: Place,
) -> MatrixNest | str:
    """The loops in the roles that they play, or why one plays none."""
    operands = (row.nest.result, *row.nest.operands)
    if assign.target.array in (a.array, b.array):
        return "it multiplies what it updates"
    offsets = [place.address(element) for element in (assign.target, a, b)]
    roles: dict[int, For] = {}
    rows: list[For] = []
    steps: list[tuple[int | None, ...]] = []
    for loop in loops:
        known = (stride(offset, loop.var) for offset in offsets)
        moved = tuple(None if s is None else s * loop.step for s in known)
        role = next((k for k in range(4) if k not in roles and _fits(operands, k, moved)), None)
        if role is None:
            lie = ", ".join("none known" if m is None else str(m) for m in moved)
            return f"steps of its loop {loop.var} are {lie} in the result and the factors"
        if role == 0:
            rows.append(loop)
            steps.append(moved)
        else:
            roles[role] = loop
    once = For(ONCE, const(0), const(1), 1, Block(()))
    columns, words, terms = (roles.get(k, once) for k in (1, 2, 3))
    if extent_of(terms) != row.terms:
        return f"a word has {row.terms} terms, and these are {extent_of(terms)}"
    runs = _count_runs(rows, steps)
    return MatrixNest(row, assign, a, b, tuple(rows) or (once,), (columns, words, terms), runs)


def _count_runs(rows: Sequence[For], steps: Sequence[tuple[int | None, ...]]) -> int:
    """Into how many runs the rows of several loops fall.

    7 rows of 7 pixels, 512 bytes apart, are one run if rows of an image are 3584 apart, and 7 if
    they are 4608 apart.
    """
    extents = [extent_of(loop) or 1 for loop in rows]
    for k in range(len(rows) - 1, 0, -1):
        within = tuple(s * extents[k] for s in steps[k] if s is not None)
        if steps[k - 1] != within:
            return prod(extents[:k])
    return 1


def _fits(operands: Sequence[Operand], role: int, moved: Sequence[int | None]) -> bool:
    """Whether a loop moves each operand as the one of a role does."""
    return all(_agrees(operand.steps[role], m) for operand, m in zip(operands, moved, strict=True))


def _agrees(step: Number, moved: int | None) -> bool:
    return moved is not None and (moved > 0 if isinstance(step, str) else moved == step)
