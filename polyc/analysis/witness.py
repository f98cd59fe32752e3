"""Witnesses: one concrete point of a set of violations, and the error that shows it."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.poly.parameters import PARAM, parameters_of

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set

WAY_OUT = (
    "This is a defect of polyc, not of the model: no code was run. Please report it with the "
    "output of POLYC_DUMP=scop,loopnest"
)


class Unproven(IllegalSchedule):
    """A proof that does not hold; `broken` is the rule, with a witness, whoever is to blame."""

    def __init__(self, broken: str) -> None:
        super().__init__(f"{broken}. {WAY_OUT}")
        self.broken = broken


def illegal(place: str, rule: str, witness: str = "") -> Unproven:
    """The error for a broken rule:  place: rule, e.g. witness. Way out."""
    example = f", e.g. {witness}" if witness else ""
    return Unproven(f"{place}: {rule}{example}")


def show_first(points: isl.Set) -> str:
    """The lexicographically first point of a bounded set that is not empty: "S[4, 4]"."""
    name = points.get_tuple_name() or ""
    return name + str(_first(points))


def show_first_pair(relation: isl.Map) -> str:
    """The first pair of a bounded relation that is not empty: "S[4, 4] -> T[5, 3]"."""
    coordinates = _first(relation.wrap())
    split = relation.dim(IN)
    source, sink = (relation.get_tuple_name(t) or "" for t in (IN, OUT))
    return f"{source}{coordinates[:split]} -> {sink}{coordinates[split:]}"


def show_sizes(sizes: isl.Set) -> str:
    """The first point of a set of parameters that is not empty: "size_h = 5, size_w = 1"."""
    names = parameters_of(sizes)
    points = isl.Set.from_params(sizes).move_dims(SET, 0, PARAM, 0, len(names))
    return ", ".join(f"{n} = {value}" for n, value in zip(names, _first(points), strict=True))


def _first(points: isl.Set) -> list[int]:
    with suppress(isl.Error):  # some sizes have no least value: any point shows the same
        points = points.lexmin()
    point = points.sample_point()
    return [point.get_coordinate_val(SET, k).to_python() for k in range(points.dim(SET))]
