"""Distribute a pointwise reader over the statements that write what it reads.

    W0: X[2i] = a(i)      W1: X[2i + 1] = b(i)      R: Y[j] = f(X[j], Z[j])
    ->
    W0: Y[2i] = f(a(i), Z[2i])                      W1: Y[2i + 1] = f(b(i), Z[2i + 1])

So the activation after a tiled convolution, or after a concatenation, is computed where the value
is still in a register. The pieces stand where the reader stood: everything that it reads is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from polyc.budget import UNLIMITED, Budget
from polyc.poly.affine import outputs, simplify, single_aff
from polyc.poly.parameters import is_part
from polyc.scop.expr import Expr, Load, drop_roundings, pull_back, rebuild
from polyc.scop.inline import LARGEST_EXPRESSION, reads_once, simplify_indices
from polyc.scop.scop import Scop, Statement
from polyc.scop.uses import drop_dead


def distribute(scop: Scop, budget: Budget = UNLIMITED) -> Scop:
    """The scop with each reader distributed whose input is written for it alone."""
    table = _Table.of(scop)
    accumulators = {s.array for s in scop.statements if s.reduction}
    for array in budget.over(scop.arrays.values(), "fuse"):
        if array.kind != "temporary":
            continue
        writers = [table.statements[n] for n in table.writers.get(array.name, ())]
        finishes = any(load.array in accumulators for w in writers for load in w.loads)
        if len(writers) > 1 or finishes:
            _distribute(array.name, table)
    return drop_dead(replace(scop, statements=table.in_order()))


@dataclass
class _Table:
    """The statements while some are replaced: by name, by array, and where each stands."""

    statements: dict[str, Statement]
    places: dict[str, tuple[int, int]]
    writers: dict[str, dict[str, None]]
    readers: dict[str, dict[str, None]]

    @staticmethod
    def of(scop: Scop) -> _Table:
        table = _Table({}, {}, {}, {})
        for position, s in enumerate(scop.statements):
            table.add(s, (position, 0))
        return table

    def add(self, s: Statement, place: tuple[int, int]) -> None:
        self.statements[s.name], self.places[s.name] = s, place
        self.writers.setdefault(s.array, {})[s.name] = None
        for load in s.loads:
            self.readers.setdefault(load.array, {})[s.name] = None

    def remove(self, s: Statement) -> None:
        del self.statements[s.name], self.writers[s.array][s.name]
        for load in s.loads:
            self.readers[load.array].pop(s.name, None)

    def last_write(self, array: str) -> tuple[int, int]:
        return max((self.places[w] for w in self.writers.get(array, ())), default=(-1, 0))

    def in_order(self) -> tuple[Statement, ...]:
        return tuple(sorted(self.statements.values(), key=lambda s: self.places[s.name]))


def _distribute(array: str, table: _Table) -> None:
    """Replace the one reader of an array and its writers by pieces, where that is exact."""
    writers = [table.statements[n] for n in table.writers[array]]
    names = list(table.readers.get(array, ()))
    if len(names) != 1 or any(w.reduction for w in writers):
        return
    reader = table.statements[names[0]]
    reads = [load for load in reader.loads if load.array == array]
    if any((w.step, w.branches) != (reader.step, reader.branches) for w in writers):
        return
    if reader.reduction or reader.group or any(load.dynamic for load in reader.loads):
        return
    others = {load.array for load in reader.loads} - {array}
    if reader.array in others:
        return  # a recurrence needs its order
    first = min(table.places[w.name] for w in writers)
    if any(table.last_write(a) > first for a in others) and not all(w.group for w in writers):
        # Legal, but a writer that finishes a reduction would leave its kernel. A group is a kernel
        # of its own, which can as well run later.
        return
    once = reads[0].index.as_map().intersect_domain(reader.domain)
    if not is_part(reader.domain, once.domain()):
        return  # where a guard forbids the read, no writer would compute the rest
    if not reads_once([(reader, load) for load in reads]):
        return
    largest = max(w.weight for w in writers)
    if reader.weight + len(reads) * largest > LARGEST_EXPRESSION:
        return
    back = isl.PwMultiAff.from_map(once.reverse())  # X -> R
    parts = [_piece(reader, writer, back) for writer in writers]
    parts = [part for part in parts if not part.domain.is_empty()]
    if any(single_aff(f) is None for part in parts for f in outputs(part.write)):
        return  # windows put together to an image: each access would ask which piece it is in
    place, _ = table.places[reader.name]
    for s in (*writers, reader):
        table.remove(s)
    for k, piece in enumerate(parts):
        table.add(piece, (place, k))


def _piece(reader: Statement, writer: Statement, back: isl.PwMultiAff) -> Statement:
    """The part of the reader that uses what `writer` wrote, over the writer's iterators."""
    into = back.pullback_pw_multi_aff(writer.write)  # W -> X -> R
    whole = is_part(writer.domain, into.domain())
    domain = writer.domain if whole else writer.domain.intersect(into.domain()).coalesce()
    into = simplify(into, domain)

    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array == writer.array:
            return writer.value
        return pull_back(expr, into)

    return replace(
        writer,
        domain=domain,
        array=reader.array,
        write=simplify(reader.write.pullback_pw_multi_aff(into), domain),
        value=simplify_indices(drop_roundings(rebuild(reader.value, leaf)), domain),
        origin=tuple(dict.fromkeys((*writer.origin, *reader.origin))),
    )
