"""A schedule tree that a user gives for a kernel: isl's as `explain()` shows it, or an edited one.

Nothing of it is believed. Its order is checked against the dependences, and the proof, which a
tree that is given never goes without, judges its loops, threads, lanes and locals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from polyc.analysis.conflicts import order_but_sums
from polyc.analysis.dependences import Dependences
from polyc.analysis.witness import Unproven
from polyc.errors import IllegalSchedule
from polyc.loops.lower.lowered import Lowered
from polyc.loops.schedule.schedule import LoopSchedule
from polyc.loops.schedule.short import MOST_VALUES, is_short
from polyc.names import show, show_text
from polyc.poly.tree import is_unrolled
from polyc.schedule.build_tree import build_tree
from polyc.schedule.legality import check_order
from polyc.schedule.tree_text import MARKS, TreeNode, TreeText

INSIDE_LANES = ("scope", "unroll")


def schedule_as_tree(lowered: Lowered, dependences: Dependences, given: TreeText) -> LoopSchedule:
    """The tree over a kernel's instances; IllegalSchedule where it does not fit them.

    Sums may run in any order, as they may where isl is asked.
    """
    name = lowered.scop.name
    for mark, above in given.marks:
        _check_mark(mark, above, name)
    tree = build_tree(given, {s.name: s.domain for s in lowered.bare.statements})
    _check_unrolled(tree.get_root(), name)
    order = order_but_sums(lowered.bare, dependences).intersect_params(lowered.sizes)
    check_order(tree, order, dependences, name)
    return LoopSchedule(tree, "as it was given")


def _check_unrolled(node: isl.ScheduleNode, kernel: str) -> None:
    """Refuse to write out loops of many iterations, or of a number that only sizes tell."""
    if is_unrolled(node) and not is_short(node):
        raise IllegalSchedule(
            f"kernel {show(kernel)}: an unrolled band has members of at most {MOST_VALUES} values, "
            f"whatever the sizes are; this one has others: {node.band_get_partial_schedule()}"
        )
    for k in range(node.n_children()):
        _check_unrolled(node.child(k), kernel)


@contextmanager
def refused_as_given(kernel: str) -> Iterator[None]:
    """Inside, what cannot be proven is a fault of the tree that was given."""
    try:
        yield
    except Unproven as error:
        raise IllegalSchedule(
            f"kernel {show(kernel)}: the proof refuses the schedule tree that is given: "
            f"{error.broken}"
        ) from None


def _check_mark(mark: TreeNode, above: tuple[TreeNode, ...], kernel: str) -> None:
    """Refuse a mark that no kernel for a CPU knows, and one where C has no such loop."""
    said = f"kernel {show(kernel)}: mark {show_text(repr(mark.said), 80)}"
    if mark.said not in MARKS:
        raise IllegalSchedule(f"{said}: there are {', '.join(sorted(MARKS))}")
    around = {node.said for node in above if node.kind == "mark"}
    if mark.said == "parallel" and around & {"simd", "vector", "unroll"}:
        raise IllegalSchedule(f"{said}: threads share no loop inside of lanes")
    if mark.said in ("vector", "unroll", "simd"):
        inside = mark.below[0] if mark.below else None
        if inside is None or inside.kind != "band" or ", " in inside.said.split("  ")[0]:
            raise IllegalSchedule(f"{said}: below it stands a band of one member")
    if mark.said == "vector":
        _check_lanes(mark.below[0], said)


def _check_lanes(band: TreeNode, said: str) -> None:
    """Inside of a vector loop all loops are unrolled."""
    for node in band.below:
        if node.kind == "mark" and node.said == "unroll" and node.below:
            _check_lanes(node.below[0], said)
        elif node.kind == "mark" and node.said in INSIDE_LANES:
            _check_lanes(node, said)
        else:
            raise IllegalSchedule(f"{said}: inside of it stand loops that are unrolled, no others")
