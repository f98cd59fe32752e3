"""A sum over what is not zero of its constant factor, written as a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.scop.expr import INT64, Call, Const, Expr, Index, Load, call, cast, offset, pull_back
from polyc.scop.scop import Array, Statement
from polyc.scop.sparse.phases import Phases, by_phases
from polyc.scop.sparse.weights import Entries, Weights, moved_by, places_of, steps_of
from polyc.types.element_types import INT32, UINT8, UINT16


@dataclass(frozen=True)
class Compressed:
    """A sum over entries, its constant as a table, the arrays that are new, and copies before."""

    statement: Statement
    weights: Weights
    arrays: tuple[Array, ...]
    copies: tuple[Statement, ...] = ()


def write_entries(
    s: Statement,
    factors: tuple[Load, Load],
    weights: Weights,
    entries: Entries,
    phases: Phases | None,
    arrays: Mapping[str, Array],
) -> Compressed:
    """The sum over entries, with their values, positions and numbers as arrays."""
    constant, data = factors
    kept = [p for p in range(len(s.iterators)) if p not in weights.summed]
    names = [f"i{p}" for p in kept]
    before = ", ".join(f"i{p}" if p in kept else "0" for p in range(len(s.iterators)))
    inside = f"{s.name}[{', '.join([*names, 'e'])}]"
    at_start = isl.PwMultiAff(f"{{ {inside} -> {s.name}[{before}] }}")  # entries -> S
    bounds = isl.Set(f"{{ {inside} : 0 <= e < {entries.longest} }}")
    domain = s.domain.preimage_pw_multi_aff(at_start).intersect(bounds)
    iterators = (*(s.iterators[p] for p in kept), fresh("e", s.iterators))
    for k, name in enumerate(iterators):
        domain = domain.set_dim_name(isl.dim_type.set, k, name)
    new = [] if phases is None else [phases.array]
    shape = tuple(s.exact_extents[p] or 0 for p in weights.rows)
    row = [f"i{p}" for p in weights.rows]

    def load(hint: str, value: np.ndarray, *more: str) -> Load:
        name = fresh(f"{constant.array}_{hint}", {*arrays, *(array.name for array in new)})
        content = np.ascontiguousarray(value.reshape(*shape, *value.shape[1:]))
        new.append(Array(name, content.dtype, content.shape, "constant", content))
        index = isl.PwMultiAff(f"{{ {inside} -> {name}[{', '.join([*row, *more])}] }}")
        return Load(name, index, content.dtype)

    values = load("entries", np.take_along_axis(weights.table, entries.order, axis=1), "e")
    there, places = pull_back(data, at_start), list_places(s, data, weights)
    assert isinstance(there, Load)
    if phases is not None:
        there, places = by_phases(there, places, phases)
    added: list[tuple[int, Expr]] = []
    for d, place in places.items():
        steps = place[entries.order]
        ends = int(steps.min()), int(steps.max())
        added.append((d, offset(load(f"place{d}", steps.astype(_narrowest(*ends)), "e"), *ends)))
    there = replace(there, dynamic=tuple(added))
    assert isinstance(s.value, Call)
    first = s.value.arguments[0] is data
    value: Expr = call("mul", *((there, values) if first else (values, there)))
    if entries.counts.min() < entries.longest:
        counts = entries.counts.astype(_narrowest(0, entries.longest))
        number = Index(isl.PwAff(f"{{ {inside} -> [e] }}"))
        left = call("lt", number, cast(load("counts", counts), INT64))
        value = call("select", left, value, Const(0.0, s.value.dtype))
    write = s.write.pullback_pw_multi_aff(at_start)
    changed = replace(s, domain=domain, iterators=iterators, write=write, value=value)
    return Compressed(changed, weights, tuple(new), phases.copies if phases else ())


def list_places(s: Statement, data: Load, weights: Weights) -> dict[int, np.ndarray]:
    """Dimension -> how far each term of a sum is along it from where the sum begins."""
    rows = steps_of(data.index)
    return {d: places_of(rows[d], s, weights) for d in moved_by(data, weights)}


def _narrowest(least: int, most: int) -> np.dtype:
    """The smallest type of these numbers."""
    fitting = (t for t in (UINT8, UINT16) if least >= 0 and most <= np.iinfo(t).max)
    return next(fitting, INT32)
