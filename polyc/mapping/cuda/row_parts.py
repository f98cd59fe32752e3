"""Rows as parts of trees, for row tiles."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

import islpy as isl

from polyc.codegen.loopnest import LoopKind
from polyc.coordinates.change import change_coordinates, digits
from polyc.mapping.cuda.loops import Loop, Part
from polyc.memory.layout import compute_strides
from polyc.memory.storage import Storage
from polyc.poly.affine import box_extents
from polyc.scop.expr import Const, Load
from polyc.scop.scop import Array, Statement, identity

OWN_ELEMENTS = 64


@dataclass(frozen=True)
class Row:
    """How threads share a row: `threads` of them, each vectors of `lanes`; `rows` a block."""

    threads: int
    lanes: int
    rows: int

    @property
    def step(self) -> int:
        """Elements that the threads take at a time."""
        return self.threads * self.lanes

    def around(self, e: str) -> list[Loop]:
        """The loop over the rows of a block, around what threads do with one."""
        return [Loop("thread", f"{e} mod {self.rows}", self.rows, self.threads)] * (self.rows > 1)

    def walk(self, s: Statement) -> list[Loop]:
        """Loops over the elements of a row, whose places a statement has as [e, k, t, v]."""
        _, k, t, v = s.iterators
        steps = box_extents(s.domain)[1]
        kind: LoopKind = "unroll" if steps * self.lanes <= OWN_ELEMENTS else "sequential"
        return [
            Loop("thread", t, self.threads),
            Loop(kind, k),
            *([Loop("vector", v)] if self.lanes > 1 else []),
        ]


def share_rows(
    statements: Sequence[Statement],
    row: Row,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> tuple[list[Part], dict[str, Array]]:
    """(what threads do with `row.rows` rows at a time, arrays of parts of sums).

    The statements' first iterator counts rows, the others are elements of a row.
    """
    parts: list[Part] = []
    known, made = dict(arrays), {}
    for s in statements:
        e = s.iterators[0]
        if len(s.iterators) == 1:
            parts.append(Part([s], row.around(e)))
            continue
        s = _cut(s, row, known, storages)
        if s.reduction is None:
            parts.append(Part([s], [*row.around(e), *row.walk(s)]))
        else:
            array, new = _split(s, row, known)
            known[array.name] = made[array.name] = array
            parts += [Part([x], [*row.around(e), *loops]) for x, loops in new]
    return parts, made


def _cut(
    s: Statement, row: Row, arrays: Table[str, Array], storages: Table[str, Storage]
) -> Statement:
    """The statement as S[e, k, t, v]: an element's place in its row, for its own iterators."""
    own = list(range(1, len(s.iterators)))
    steps = compute_strides(s, arrays, storages)
    own.sort(key=lambda p: -max(abs(a.steps[p] or 0) for a in steps))
    sizes = box_extents(s.domain)
    extents = [sizes[p] for p in own]
    e, k, t, v = s.iterators[0], *(_fresh(s, name) for name in "ktv")
    place = f"({row.step}*{k} + {row.lanes}*{t} + {v})"
    formulas = [e, *s.iterators[1:]]
    for p, digit in zip(own, digits(place, extents), strict=True):
        formulas[p] = digit
    length = prod(extents)
    bounds = (
        f"0 <= {k} < {ceil(length / row.step)} and 0 <= {t} < {row.threads} "
        f"and 0 <= {v} < {row.lanes} and {place} < {length}"
    )
    return change_coordinates(s, [e, k, t, v], formulas, bounds)


def _fresh(s: Statement, name: str) -> str:
    while name in s.iterators:
        name += "_"
    return name


def _split(
    s: Statement, row: Row, arrays: Table[str, Array]
) -> tuple[Array, list[tuple[Statement, list[Loop]]]]:
    """A sum over a row as one for each thread, and one over threads.

    total[e] += x[e, k, t, v]  ->  parts[e, t] = 0;  parts[e, t] += x[e, k, t, v];
                                   total[e] += parts[e, t]
    """
    assert s.reduction is not None
    e, k, t, v = s.iterators
    count = box_extents(s.domain)[0]
    total, name = arrays[s.array], f"{s.array}_parts"
    while name in arrays:
        name += "_"
    parts = Array(name, total.dtype, (count, row.threads), "temporary")
    start, combine = f"{s.name}_start", f"{s.name}_combine"

    def place(name: str, iterators: str) -> isl.PwMultiAff:
        return isl.PwMultiAff(f"{{ {name}[{iterators}] -> {parts.name}[{e}, {t}] }}")

    def on_threads(name: str) -> Statement:
        # S -> T: all threads, for each row that there is
        on = isl.Map(f"{{ {s.name}[{e}, k, p, v] -> {name}[{e}, {t}] : 0 <= {t} < {row.threads} }}")
        domain = s.domain.apply(on).coalesce().set_dim_name(isl.dim_type.set, 0, e)
        domain = domain.set_dim_name(isl.dim_type.set, 1, t)
        return replace(s, name=name, domain=domain, iterators=(e, t))

    neutral = Const(identity(s.reduction, total.dtype), total.dtype)
    first = isl.PwMultiAff(f"{{ {combine}[{e}, {t}] -> {s.name}[{e}, 0, 0, 0] }}")
    begun = replace(
        on_threads(start),
        array=parts.name,
        write=place(start, f"{e}, {t}"),
        value=neutral,
        reduction=None,
    )
    update = replace(s, array=parts.name, write=place(s.name, f"{e}, {k}, {t}, {v}"))
    combined = replace(
        on_threads(combine),
        write=s.write.pullback_pw_multi_aff(first),
        value=Load(parts.name, place(combine, f"{e}, {t}"), total.dtype),
    )
    return parts, [
        (begun, [Loop("thread", t, row.threads)]),
        (update, row.walk(s)),
        (combined, [Loop("combine", t, row.threads)]),
    ]
