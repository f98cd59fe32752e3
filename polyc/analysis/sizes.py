"""What is assumed of sizes holds in calls.

All else is proven for the sizes that are assumed. Were these none, because two ranges contradict
each other, everything would be proven and nothing true; so sizes that calls may have are looked up
in the set: the least, the hints, and some more. That is a sample, and no proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.poly.parameters import PARAM, assumptions, parameters_of
from polyc.types.estimate import estimate
from polyc.types.parameters import complete
from polyc.types.ranges import SizeRange
from polyc.types.sizes import Extent, Size, evaluate

_SAMPLES = 1, 2, 3, 8, 13, 32, 61, 224
"""Values of sizes that say nothing else: small, odd, a power of two, prime."""


def verify_sizes(sizes: Sequence[SizeRange]) -> int:
    """How many calls were looked at; to be called where the sizes are assumed."""
    known, count = assumptions(), 0
    for values in _calls(sizes):
        outside = [s for s in sizes if not s.admits(values[s.name])]
        if outside or _without(known, values):
            said = ", ".join(f"{s.name} = {values[s.name]}" for s in sizes)
            of = f"{outside[0]} was concluded" if outside else "what was concluded says otherwise"
            raise IllegalSchedule(f"a call may have {said}, but {of}")
        count += 1
    return count


def _calls(sizes: Sequence[SizeRange]) -> Iterator[dict[str, int]]:
    """Sizes that calls may have, some of them."""
    told = [size for size in sizes if size.same is None]
    if not told:
        return
    choices = [{s.name: s.lower for s in told}, {s.name: estimate(Size.of(s.name)) for s in told}]
    for k in range(len(_SAMPLES)):
        drawn = (_SAMPLES[(k + j) % len(_SAMPLES)] for j in range(len(told)))
        choices.append({s.name: value for s, value in zip(told, drawn, strict=True)})
        choices.append({s.name: _SAMPLES[k] for s in told})
    for chosen in choices:
        values = complete(sizes, chosen)
        if all(_may_have(size, values) for size in sizes):
            yield values


def _may_have(size: SizeRange, values: Mapping[str, int]) -> bool:
    """Whether a call is not refused for what was said of a size, or is needed of it."""
    if size.same is None and not size.admits(values[size.name]):
        return False
    grows = size.next is not None and size.upper is not None
    if grows and evaluate(cast(Extent, size.next), values) > cast(int, size.upper):
        return False
    return all(evaluate(need, values) >= 0 for need in size.needs)


def _without(known: isl.Set, values: Mapping[str, int]) -> bool:
    """Whether a set of parameters has not got these."""
    for position, name in enumerate(parameters_of(known)):
        known = known.fix_val(PARAM, position, isl.Val(values[name]))
    return bool(known.is_empty())
