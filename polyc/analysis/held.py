"""Loops of kind `hold`: what they hold in registers meanwhile, nothing else in them touches.

    for k:  # hold
      for j in 16 .. 32:  A[i, j] = A[i, j] - A[i, k] * A[k, j]       k < 16: other elements

`codegen/hold.py` loads A[i, j] before such a loop, and stores it behind. That is the same if, for
equal counters of the loops around it, no other access inside is to an element that is held.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.analysis.accesses import Access, Surroundings
from polyc.analysis.witness import show_first_pair
from polyc.loopnest.show import show_element

SET = isl.dim_type.set


def check_held(around: Surroundings, accesses: Sequence[Access]) -> int:
    """IllegalSchedule with an element that is held and touched; gives the pairs of accesses."""
    checked = 0
    for write in accesses:
        run = write.execution
        kinds = [loop.kind for loop in run.place.loops]
        if "hold" not in kinds or write.element != run.assign.target:
            continue
        depth = kinds.index("hold")
        held = _touched(write, depth)
        for other in accesses:
            if other.execution is not run or other.array != write.array:
                continue
            if other.element == write.element:
                continue
            checked += 1
            meeting = held.intersect(_touched(other, depth))
            if not meeting.is_empty():
                rule = (
                    f"loop {run.place.loops[depth].var} keeps {show_element(write.element)}, and "
                )
                rule += f"touches it as {show_element(other.element)}"
                raise around.illegal(rule, show_first_pair(meeting))
    return checked


def _touched(access: Access, depth: int) -> isl.Map:
    """# P -> A: the elements that an access touches, by the counters of so many loops around."""
    inside = access.points.dim(SET) - depth
    elements = access.index.as_map().intersect_domain(access.points)
    return elements.project_out(isl.dim_type.in_, depth, inside)
