"""Order and locals together: which schedule, and where locals are kept.

Expanded locals are memory if iterations that hand each other their values end up far apart.
If isl's schedule makes a matrix of one, or rows that tiles keep in memory, and the loops as they
were written do not, or have registers for them (`strips.py`), these are taken, unless isl's run
boxes of products in registers: these are worth more than a matrix costs. They are taken as well if
isl's are several nests, one after another, of what is one loop whose iterations are free: what one
part of it has read is in the caches for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyc.analysis.dependences import Dependences, compute_dependences
from polyc.loops.lower.expand import expand
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.transposed import copy_columns
from polyc.loops.lower.webs import split_locals
from polyc.loops.read.sizes import Signature
from polyc.loops.schedule.band import Band
from polyc.loops.schedule.direction import stride_along
from polyc.loops.schedule.inner import deepest
from polyc.loops.schedule.schedule import LoopSchedule
from polyc.memory.storage import Storage, row_major
from polyc.poly.tree import BAND, MARK, NESTED
from polyc.promote.local_arrays import LocalArray, promote_to_locals
from polyc.scop.scop import Scop

TAKEN_APART = "it takes apart what one loop has together, whose iterations are free"


@dataclass(frozen=True)
class Arranged:
    """A kernel with its locals expanded, its schedule, and where every array is kept."""

    lowered: Lowered
    plan: LoopSchedule
    tree: isl.Schedule
    storages: Mapping[str, Storage]
    promoted: Mapping[str, LocalArray]

    @property
    def remaining(self) -> list[str]:
        """The expanded locals that need memory."""
        arrays = self.lowered.scop.arrays.values()
        found = (a for a in arrays if a.kind == "temporary" and len(a.shape))
        return [a.name for a in found if a.name not in self.promoted]

    @property
    def matrices(self) -> list[str]:
        """Those among them that have two dimensions or more."""
        arrays = self.lowered.scop.arrays
        return [name for name in self.remaining if len(arrays[name].shape) > 1]

    def rows(self, longer: int) -> list[str]:
        """The expanded locals of which more than so many elements are kept at a time."""
        return [local.source for local in self.promoted.values() if prod(local.shape) > longer]


@dataclass(frozen=True)
class Strategy:
    """Who schedules a kernel for a target.

    best: the best schedule; as_written: in the original order, for the reason that is given.
    copies: whether columns are copied into rows where `best` then keeps boxes in registers.
    """

    best: Callable[[Lowered, Dependences], LoopSchedule]
    as_written: Callable[[Lowered, Dependences, str], LoopSchedule]
    copies: bool = False


def arrange(lowered: Lowered, signature: Signature, strategy: Strategy) -> Arranged:
    """The schedule of a kernel, and where arrays are kept."""
    lowered = split_locals(lowered, compute_dependences(lowered.bare))

    def place(one: Lowered) -> Arranged:
        return _place(one, strategy)

    if strategy.copies:
        whole = expand(lowered, compute_dependences(lowered.bare), signature)
        copied, readers = copy_columns(whole, compute_dependences(whole.bare))
        if readers:
            arranged = _arrange(copied, signature, place)
            if readers <= {*arranged.plan.boxed}:
                return arranged
    return _arrange(lowered, signature, place)


def expand_all(lowered: Lowered, signature: Signature) -> Lowered:
    """The kernel with its locals expanded as far as their values allow."""
    lowered = split_locals(lowered, compute_dependences(lowered.bare))
    return expand(lowered, compute_dependences(lowered.bare), signature)


def arrange_as_given(
    lowered: Lowered,
    signature: Signature,
    given: Callable[[Lowered, Dependences], LoopSchedule],
    statements: frozenset[str] = frozenset(),
) -> Arranged:
    """The same by the schedule that a user gives; IllegalSchedule if it cannot be taken.

    statements: those that it speaks of, which may be copies of columns.
    """
    lowered = split_locals(lowered, compute_dependences(lowered.bare))
    if statements - {s.name for s in lowered.scop.statements}:
        lowered, _ = copy_columns(lowered, compute_dependences(lowered.bare))

    def place(one: Lowered) -> Arranged:
        return _promote(one, given(one, compute_dependences(one.bare)))

    return _arrange(lowered, signature, place)


def _arrange(
    lowered: Lowered, signature: Signature, place: Callable[[Lowered], Arranged]
) -> Arranged:
    """The kernel with its locals expanded as far as memory can be given to them, and placed."""
    kept: set[str] = set()
    while True:
        expanded = expand(lowered, compute_dependences(lowered.bare), signature, kept)
        best = place(expanded)
        arrays = best.lowered.scop.arrays
        shapeless = {name for name in best.remaining if 0 in map(_known, arrays[name].shape)}
        if not shapeless:
            return best
        kept |= shapeless  # no memory can be given to these: they stay one element


def _known(extent: object) -> int:
    return extent if isinstance(extent, int) else 1


def _place(lowered: Lowered, strategy: Strategy) -> Arranged:
    """The best schedule, or the original order if that is better for locals."""
    dependences = compute_dependences(lowered.bare)
    best = _promote(lowered, strategy.best(lowered, dependences))
    if best.plan.boxed:
        return best
    rows = [] if _adds_up_columns(lowered.bare) else best.rows(1)
    found = {
        "all values of {} in memory": best.matrices,
        "rows of {}, for which strips have registers": rows,
        "{} out of lanes": best.plan.alone,
    }
    reason = next((f"it keeps {how.format(', '.join(n))}" for how, n in found.items() if n), "")
    apart = TAKEN_APART if _count_nests(best.tree) > 1 else ""
    if not reason and not apart:
        return best
    as_written = _promote(lowered, strategy.as_written(lowered, dependences, reason or apart))
    if apart and _is_one(as_written, dependences):
        return as_written
    if not reason:
        return best
    if len(as_written.matrices) != len(best.matrices):
        return min(as_written, best, key=lambda one: len(one.matrices))
    strip = as_written.plan.strip
    in_registers = strip and not as_written.rows(strip)
    return (
        as_written if in_registers and len(as_written.plan.alone) <= len(best.plan.alone) else best
    )


def _count_nests(tree: isl.Schedule) -> int:
    """The nests of loops that run one after another."""
    node = tree.get_root().child(0)
    return node.n_children() if node.get_type() in NESTED else 1


def _is_one(arranged: Arranged, dependences: Dependences) -> bool:
    """Whether one loop that carries nothing is around all others, and those inside run in lanes."""
    node = arranged.tree.get_root().child(0)
    while node.get_type() == MARK:
        node = node.child(0)
    if node.get_type() != BAND or arranged.matrices or arranged.plan.alone:
        return False
    return Band.of(node, dependences.validity).coincident[0]


def _adds_up_columns(scop: Scop) -> bool:
    """Whether the innermost loops, as they are written, do nothing but add up columns.

    y[j] += a[i, j] * x[i]   in a loop over i: rows of y in the L1 cache cost less than strips of a
    """
    statements = {s.name: s for s in scop.statements}
    inmost = [statements[name] for name in deepest([*statements], statements)]
    depth = len(inmost[0].iterators)
    along = tuple(int(k == depth - 1) for k in range(depth))
    return all(s.reduction for s in inmost) and any(
        not load.dynamic and stride_along(load.index, along) is None
        for s in inmost
        for load in s.loads
    )


def _promote(lowered: Lowered, plan: LoopSchedule) -> Arranged:
    """A schedule, with the locals that fit a tile in it."""
    scop = lowered.scop
    tree = plan.tree  # of the bare scop: the rest is said once, by the context
    storages = {name: row_major(array) for name, array in scop.arrays.items()}
    private = frozenset(a.name for a in scop.arrays.values() if a.kind == "temporary")
    promoted = promote_to_locals(
        tree, scop.statements, private, scop.arrays, storages, named=plan.kept, alone=True
    )
    return Arranged(lowered, plan, tree, storages, promoted)
