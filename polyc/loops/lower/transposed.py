"""Transposed copies: what a product reads down a column is copied into rows before.

    for i: for k: for j: C[i, j] += A[i, k] * A[j, k]

    ->   for a: for b: A_t[b, a] = A[a, b]
         for i: for k: for j: C[i, j] += A[i, k] * A_t[k, j]

An array that is only read is copied at the beginning. Of one that is written, each element is
copied when it has its last value for all who read it so:

    A[i, j] = A[i, j] / A[j, j]     ->     A[i, j] = A[i, j] / A[j, j];  A_t[j, i] = A[i, j]

A copy takes as much time as an element has, and a product with a loop more than it has dimensions
reads each of them many times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.order import LoopNode, OrderNode, StatementLeaf, time_of
from polyc.names import fresh
from polyc.poly.affine import coefficients, outputs, tuple_id
from polyc.poly.boxes import box
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Scop, Statement

OUT, SET = isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Column:
    """A load that a product makes down a column, the dimension of the column, and who writes it."""

    reader: str
    load: Load
    dimension: int
    writer: str | None


def copy_columns(lowered: Lowered, dependences: Dependences) -> tuple[Lowered, frozenset[str]]:
    """The kernel with copies for what products read down columns, and these products."""
    columns = list(_columns(lowered.bare, dependences))
    made: dict[tuple[str, int, str | None], str] = {}
    for column in columns:
        key = (column.load.array, column.dimension, column.writer)
        if key not in made:
            lowered, made[key] = _with_copy(lowered, column)
        lowered = replace(
            lowered,
            scop=_reading(lowered.scop, column, made[key]),
            bare=_reading(lowered.bare, column, made[key]),
        )
    return lowered, frozenset(column.reader for column in columns)


# -- what is read down a column -------------------------------------------------------------------


def _columns(scop: Scop, dependences: Dependences) -> Iterator[Column]:
    for s in scop.statements:
        for load, dimension in _found(s):
            writers = _writers(scop, dependences, s, load)
            if writers is not None and len(writers) < 2:
                yield Column(s.name, load, dimension, next(iter(writers), None))


def _found(s: Statement) -> Iterator[tuple[Load, int]]:
    """The loads of a product that keep it from running in lanes, with the dimension that moves."""
    if len(s.iterators) < 3 or any(load.dynamic for load in s.loads):
        return
    written = _steps(s.write)
    loads = [x for x in s.loads if not (x.array == s.array and x.index.plain_is_equal(s.write))]
    for lanes in range(len(s.iterators)):
        if written is None or not _is_unit([row[lanes] for row in written]):
            continue
        found: list[tuple[Load, int]] = []
        for load in loads:
            steps = _steps(load.index)
            moves = None if steps is None else [row[lanes] for row in steps]
            if moves is None or sum(map(abs, moves)) > 1 or -1 in moves:
                return
            if any(moves) and not _is_unit(moves):
                found.append((load, moves.index(1)))
        yield from found
        return


def _steps(index: isl.PwMultiAff) -> list[list[int]] | None:
    """For each dimension, by how much it moves along each iterator; None if that varies."""
    rows = [coefficients(function) for function in outputs(index)]
    if any(None in row for row in rows):
        return None
    return [[c or 0 for c in row] for row in rows]


def _is_unit(moves: Sequence[int]) -> bool:
    return list(moves[-1:]) == [1] and not any(moves[:-1])


def _writers(
    scop: Scop, dependences: Dependences, reader: Statement, load: Load
) -> set[str] | None:
    """The statements whose values a load gets; None if some come from outside of a kernel that
    writes the array, or if it is not known which they are."""
    writing = {s.name for s in scop.statements if s.array == load.array}
    if not writing:
        return set()
    elements = load.index.as_map().intersect_domain(reader.domain)  # T -> A
    found, read = set(), isl.Set.empty(reader.domain.space)
    by_name = {s.name: s for s in scop.statements}
    for source, sink, pairs in maps(dependences.flow):
        if sink != reader.name or source not in writing:
            continue
        same = pairs.reverse().apply_range(by_name[source].write.as_map()).intersect(elements)
        if not same.is_empty():
            found.add(source)
            read = read.union(same.domain())
    return found if reader.domain.is_subset(read) else None


# -- copies ---------------------------------------------------------------------------------------


def _with_copy(lowered: Lowered, column: Column) -> tuple[Lowered, str]:
    """The kernel with a transposed copy of an array, and its name."""
    array = lowered.scop.arrays[column.load.array]
    name = fresh(f"{array.name}_t", lowered.scop.arrays)
    label = fresh("T0", {s.name for s in lowered.scop.statements})
    shape = tuple(_swapped(list(array.shape), column.dimension))
    copied = replace(array, name=name, shape=shape, kind="temporary")
    order: tuple[OrderNode, ...]
    if column.writer is None:
        order = (_nest(label, len(array.shape)), *lowered.order)
    else:
        order = _behind(lowered.order, column.writer, label)

    def extended(scop: Scop) -> Scop:
        statement = _copy(scop, label, array, copied, column)
        domains = {s.name: s.domain for s in (*scop.statements, statement)}
        times = time_of(order, domains)
        names = list(_leaves(order))
        statements = sorted((*scop.statements, statement), key=lambda s: names.index(s.name))
        timed = tuple(replace(s, time=times[s.name]) for s in statements)
        return replace(scop, statements=timed, arrays={**scop.arrays, name: copied})

    reader = lowered.places[column.reader]
    return (
        replace(
            lowered,
            scop=extended(lowered.scop),
            bare=extended(lowered.bare),
            order=order,
            places={**lowered.places, label: reader},
        ),
        name,
    )


def _copy(scop: Scop, label: str, array: Array, copied: Array, column: Column) -> Statement:
    """copied[b, a] = array[a, b], for all elements, or for those that a statement writes."""
    if column.writer is None:
        domain = box(label, array.shape)
        if scop.context is not None:
            domain = domain.intersect_params(scop.context)
        iterators = tuple(f"a{k}" for k in range(len(array.shape)))
        for k, iterator in enumerate(iterators):
            domain = domain.set_dim_name(SET, k, iterator)
        index = isl.PwMultiAff.from_multi_aff(
            isl.MultiAff.identity(domain.space.map_from_set())
        ).set_tuple_id(OUT, tuple_id(array.name))
    else:
        writer = next(s for s in scop.statements if s.name == column.writer)
        domain, iterators = writer.domain.set_tuple_name(label), writer.iterators
        index = writer.write.set_tuple_id(isl.dim_type.in_, domain.get_tuple_id())
    value = Load(array.name, index, array.dtype)
    write = _transposed(index, column.dimension, copied.name)
    return Statement(label, domain, iterators, copied.name, write, value)


def _transposed(index: isl.PwMultiAff, dimension: int, name: str) -> isl.PwMultiAff:
    """# S -> A_t, of  S -> A: two coordinates exchanged."""
    function = isl.MultiPwAff.from_pw_multi_aff(index)
    last = index.dim(OUT) - 1
    parts = function.get_pw_aff(dimension), function.get_pw_aff(last)
    function = function.set_pw_aff(dimension, parts[1]).set_pw_aff(last, parts[0])
    return isl.PwMultiAff.from_multi_pw_aff(function).set_tuple_id(OUT, tuple_id(name))


def _swapped(values: list, dimension: int) -> list:
    values[dimension], values[-1] = values[-1], values[dimension]
    return values


def _reading(scop: Scop, column: Column, copied: str) -> Scop:
    """The scop with a load that reads the copy."""

    def leaf(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.array != column.load.array:
            return expr
        if not expr.index.plain_is_equal(column.load.index):
            return expr
        index = _transposed(expr.index, column.dimension, copied)
        return replace(expr, array=copied, index=index)

    statements = tuple(
        replace(s, value=rebuild(s.value, leaf)) if s.name == column.reader else s
        for s in scop.statements
    )
    return replace(scop, statements=statements)


# -- the original order ---------------------------------------------------------------------------


def _nest(label: str, depth: int) -> OrderNode:
    node: OrderNode = StatementLeaf(label)
    for k in reversed(range(depth)):
        node = LoopNode(f"a{k}", k, False, (node,))
    return node


def _behind(order: Sequence[OrderNode], writer: str, label: str) -> tuple[OrderNode, ...]:
    """The order with a statement right behind another one."""
    nodes: list[OrderNode] = []
    for node in order:
        if isinstance(node, LoopNode):
            nodes.append(replace(node, body=_behind(node.body, writer, label)))
        else:
            nodes += [node, StatementLeaf(label)] if node.name == writer else [node]
    return tuple(nodes)


def _leaves(order: Sequence[OrderNode]) -> Iterator[str]:
    for node in order:
        if isinstance(node, LoopNode):
            yield from _leaves(node.body)
        else:
            yield node.name
