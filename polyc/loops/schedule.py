"""In which order a kernel's instances are executed: as a schedule tree, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyc.loops.lower import Lowered
from polyc.loops.order import original_tree


@dataclass(frozen=True)
class LoopSchedule:
    """A schedule tree; who it is by, and what a reader should know of it."""

    tree: isl.Schedule
    origin: str
    notes: tuple[str, ...] = ()


def keep_order(lowered: Lowered) -> LoopSchedule:
    """The loops as they were written."""
    domains = {s.name: s.domain for s in lowered.scop.statements}
    return LoopSchedule(original_tree(lowered.order, domains), "the original order")
