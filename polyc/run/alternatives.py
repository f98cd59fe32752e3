"""Other ways to run a model that cannot be compiled as it is.

1. Where sizes decide what is computed, as how many dimensions it has: one model for each case.
2. Where shapes follow from values of inputs: one model that takes these values for sizes.
3. Else it is compiled when it is called (`run/specialise.py`).

The first two are compiled ahead. What calls of the one are refused for is left to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from polyc.budget import Budget
from polyc.errors import NeedsValues, ShapeError, TooLarge, UnsupportedOp, UnusedSchedule
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from polyc.run.model import CompiledModel
from polyc.types.parameters import needed_ranges, tightened
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size

T = TypeVar("T")

Attempt = Callable[[Any, Options], CompiledModel]
"""Compiles a model; UnsupportedOp if it cannot be."""

MOST_CASES = 4
"""For how many cases models are compiled, where some depend on others."""


def find_alternative(
    model: Any, unknown: UnsupportedOp, options: Options, on_cpu: bool, attempt: Attempt
) -> CompiledModel | None:
    """What runs a model that `unknown` says cannot be compiled; None if nothing does."""
    from polyc.run.specialise import complete_in_call

    chained = on_cpu and not options.states
    if chained and (cases := _compile_cases(model, unknown, options, attempt)):
        names = {name for case in unknown.cases for need in case for name in need.names}
        for one, other in pairwise(cases):
            one.otherwise, one.split_by = other, tuple(sorted(names))
        return cases[0]
    general = try_with_values(unknown, options, lambda chosen: attempt(model, chosen))
    if options.states:
        return general
    later, budget = stage_compiler(options, attempt), Budget.start(options)
    completed = complete_in_call(model, unknown, options.sizes, later, budget, on_cpu)
    if isinstance(general, CpuModel):
        general.otherwise = completed
        return general
    return completed


def _compile_cases(
    model: Any, unknown: UnsupportedOp, options: Options, attempt: Attempt
) -> list[CpuModel]:
    """A model for each case of those that calls can be in; none if one cannot be compiled.

    y = Squeeze(x)    x: [n, 3]    ->    y: [3], where n is 1;  y: [n, 3], where n is 2 or more
    """
    waiting = _narrowed(options, unknown)
    compiled: list[CpuModel] = []
    while waiting:
        options = waiting.pop(0)
        try:
            found = attempt(model, options)
        except UnsupportedOp as more:
            waiting = [*_narrowed(options, more), *waiting]
            if not more.cases or len(waiting) + len(compiled) > MOST_CASES:
                return []
            continue
        except ShapeError:
            continue  # no call can be in this case
        if not isinstance(found, CpuModel):
            return []
        compiled.append(found)
    return compiled


def _narrowed(options: Options, unknown: UnsupportedOp) -> list[Options]:
    """The options for each of two cases."""
    return [replace(options, sizes=_narrow(options.sizes, case)) for case in unknown.cases]


def _narrow(sizes: Iterable[SizeRange], needs: Sequence[Size]) -> tuple[SizeRange, ...]:
    """Ranges of sizes, where besides something is needed of them."""
    with assume(sizes), assume(needed_ranges(needs)):
        names = sorted({name for need in needs for name in need.names})
        narrowed = {name: tightened(name) for name in names}
    known = {size.name: size for size in sizes} | narrowed
    return tuple(known[name] for name in sorted(known))


def try_with_values(
    unknown: UnsupportedOp, options: Options, attempt: Callable[[Options], T]
) -> T | None:
    """What succeeds where values of inputs from which shapes follow are sizes; None if nothing.

    unknown: why the first attempt failed; each may find that more inputs are needed.
    """
    states = {given for given, _ in options.states}
    while isinstance(unknown, NeedsValues):
        wanted = tuple(dict.fromkeys((*options.values, *unknown.inputs)))
        if wanted == options.values or not states.isdisjoint(wanted):
            break
        options = replace(options, values=wanted)
        try:
            return attempt(options)
        except (ShapeError, TooLarge):
            break
        except UnsupportedOp as more:
            unknown = more
    return None


def stage_compiler(
    options: Options, attempt: Attempt
) -> Callable[[Any, tuple[SizeRange, ...]], CompiledModel]:
    """What compiles a stage of a model, for the sizes that it is given.

    Of the given schedules each stage takes those of its own kernels.
    """

    def compile_stage(graph: Any, sizes: tuple[SizeRange, ...]) -> CompiledModel:
        chosen = replace(options, sizes=sizes)
        try:
            return attempt(graph, chosen)
        except UnusedSchedule as unused:
            own = tuple(s for s in options.schedules if s[0] not in unused.names)
            return attempt(graph, replace(chosen, schedules=own))

    return compile_stage
