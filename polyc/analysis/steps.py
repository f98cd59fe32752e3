"""Sets that depend on the number of a step, as seen from later steps and from behind the loop.

at step t:  { H[t + 1, i] }     earlier:  { H[s + 1, i] : 0 <= s < t }     in any:  { H[1 .. n, i] }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

import islpy as isl

from polyc.poly.parameters import PARAM
from polyc.types.ranges import Step


class InLoop(Protocol):
    """What may be in a loop over steps."""

    @property
    def step(self) -> Step | None: ...


L = TypeVar("L", bound=InLoop)


def by_loop(launches: Sequence[L]) -> Iterator[tuple[Step | None, list[L]]]:
    """Launches in a row that are in the same loop over steps, or in none."""
    for step, group in groupby(launches, key=lambda launch: launch.step):
        yield step, list(group)


def in_any_step(elements: isl.Set, step: Step) -> isl.Set:
    """Those of some step."""
    position = elements.find_dim_by_name(PARAM, step.name)
    return elements if position < 0 else elements.project_out(PARAM, position, 1).coalesce()


def in_earlier_steps(elements: isl.Set, step: Step) -> isl.Set:
    """Those of some step before step `step.name`; elements of all steps alike are of any before."""
    earlier = f"{step.name}_earlier"
    before = isl.Set(f"[{earlier}, {step.name}] -> {{ : 0 <= {earlier} < {step.name} }}")
    position = elements.find_dim_by_name(PARAM, step.name)
    if position >= 0:
        elements = elements.set_dim_name(PARAM, position, earlier)
    elements = elements.intersect_params(before)
    position = elements.find_dim_by_name(PARAM, earlier)
    return elements.project_out(PARAM, position, 1).coalesce()
