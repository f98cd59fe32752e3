"""What constants add to coordinates: no more, and no less, than is said where they do.

x[c + C[o, e]]  with C in 0 .. 63      ->      every element of C is one of these

That all of what is read is in bounds, a kernel's proof shows for this range (`accesses.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyc.analysis.witness import illegal
from polyc.scop.expr import Call, Cast, Load, offset_range
from polyc.scop.scop import Array, Statement


def verify_offsets(
    launch: str, statements: Iterable[Statement], arrays: Mapping[str, Array]
) -> int:
    """Look up all constants that a launch's statements add to coordinates; how many there are.

    Raises IllegalSchedule for an element out of the range that is said of it, or for what is no
    constant.
    """
    checked = 0
    for s in statements:
        for load in s.loads:
            for _, expr in load.dynamic:
                ends = offset_range(expr)
                if ends is not None:
                    assert isinstance(expr, Call)
                    _check(f"launch {launch}", expr, ends, arrays)
                    checked += 1
    return checked


def _check(where: str, expr: Call, ends: tuple[int, int], arrays: Mapping[str, Array]) -> None:
    match expr.arguments[0]:
        case Load(dynamic=()) as load:
            pass
        case Cast(Load(dynamic=()) as load, dtype) if dtype.kind == "i" and dtype.itemsize == 8:
            pass
        case _:
            raise illegal(where, "what is added to a coordinate is computed")
    value = arrays[load.array].value
    if value is None or value.dtype.kind not in "iu":
        raise illegal(where, f"{load.array} is added to a coordinate, and no constant of integers")
    if value.size and not ends[0] <= value.min() <= value.max() <= ends[1]:
        found = f"{value.min()} to {value.max()}"
        rule = f"{load.array} adds {found} to a coordinate, not {ends[0]} to {ends[1]}"
        raise illegal(where, rule)
