"""Inline pointwise producers into their readers, so that a chain of them is one statement.

    P: X[f(i)] = e(i)         S: Y[j] = … X[g(j)] …
    ->                        S: Y[j] = … e(f^-1(g(j))) …

The substitution is exact: f is injective, and a scop assigns each element once, so what P would
have stored is what its expression yields wherever it is evaluated. Whether it *pays* is a question
of work done again: a value is inlined where it is read once per element computed, or costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import islpy as isl

from polyc.budget import UNLIMITED, Budget
from polyc.poly.affine import is_affine, is_simple, outputs, simplify, single_aff
from polyc.poly.injective import is_injective
from polyc.poly.parameters import is_part
from polyc.scop.expr import (
    Cast,
    Expr,
    Load,
    drop_roundings,
    operations,
    pull_back,
    pull_back_leaf,
    rebuild,
)
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses
from polyc.types.element_types import is_narrow

LARGEST_EXPRESSION = 160
"""Weight of one expression; beyond it a value is stored, so that register pressure stays bounded,
and the C compiler's time."""

CHEAP = 2
"""Scalar operations that cost less to repeat in a second reader than to store and load again."""

FEW = 8
"""Uses of an element of a constant up to which it is converted in registers: as many as rows of a
tile. 4096 x 4096 weights of float16 in memory, on a Zen 4: for 2, 4 and 8 rows 0.9, 1.3 and 2.9 ms,
and as float32 2.0, 1.9 and 3.7 ms; 512 x 512 weights, in the cache: no difference."""


def inline_pointwise(scop: Scop, widen_late: bool = False, budget: Budget = UNLIMITED) -> Scop:
    """The scop with every producer inlined for which that saves more than it repeats.

    widen_late: narrow types are converted wherever they are read, also where that repeats it, and
    what a reduction reads is stored in them; or else a reduction that reads an element several
    times reads what is converted already.
    """
    statements = {s.name: s for s in scop.statements}
    uses = find_uses(scop.statements)
    live_readers = {a: {s.name for s, _ in r} for a, r in uses.readers.items()}
    writer_count = {a: len(w) for a, w in uses.writers.items()}
    for producer in budget.over(scop.statements, "fuse"):
        current = statements[producer.name]
        array = scop.arrays[current.array]
        names = live_readers.get(current.array, set())
        if array.kind != "temporary" or writer_count[current.array] != 1 or not names:
            continue
        readers = [statements[n] for n in sorted(names)]
        few = _is_read_by_few(current, readers, scop.arrays)
        if not _pays(current, readers, uses, widen_late, few):
            continue
        inverse = _inverse(current)
        if inverse is None:
            continue
        for reader in readers:
            new = replace(reader, value=_replace_loads(reader, current, inverse))
            new = replace(new, origin=tuple(dict.fromkeys((*current.origin, *reader.origin))))
            statements[reader.name] = new
            for load in new.loads:
                live_readers.setdefault(load.array, set()).add(new.name)
        live_readers[current.array] = set()
        for load in current.loads:
            live_readers[load.array].discard(current.name)
    return drop_dead(replace(scop, statements=tuple(statements[s.name] for s in scop.statements)))


def _pays(
    producer: Statement, readers: list[Statement], uses: Uses, widen_late: bool, is_few: bool
) -> bool:
    """Whether the producer should be computed where it is read."""
    if producer.reduction:
        return False
    sites = [(r, load) for r in readers for load in r.loads if load.array == producer.array]
    if any(not can_move(producer, reader, load) for reader, load in sites):
        return False
    if any(load.dynamic for _, load in sites):
        return False
    if any(inner.dynamic for inner in producer.loads) and not all(
        is_affine(load.index) for _, load in sites
    ):
        return False  # what data picks are rows, which the reader would cut
    if not all(is_simple(inner.index, load.index) for inner in producer.loads for _, load in sites):
        return False
    if any(r.weight + producer.weight > LARGEST_EXPRESSION for r in readers):
        return False
    finishes = any(uses.is_accumulator(load.array) for load in producer.loads)
    if widen_late and _narrows(producer.value) and _is_reduced(producer.array, uses):
        return False
    work = operations(producer.value)
    if work > CHEAP and any(map(_is_recurrence, readers)):
        return False
    if finishes:  # the accumulator is in registers here: its reader comes to it (distribute.py)
        return False
    if _narrows_a_sum(producer, uses):  # so does this: what is stored then are bytes
        return False
    if work == 0 or ((widen_late or is_few) and _only_widens(producer.value)):
        return all(_stays_affine(producer, r) for r in readers)
    if len({id(r) for r, _ in sites}) == 1 and reads_once(sites):
        return True
    return work <= CHEAP and all(reads_once([s]) for s in sites)


def _narrows_a_sum(producer: Statement, uses: Uses) -> bool:
    """Whether it makes a narrower number of each result of a sum, as quantising does.

        sum -> a     quantise a -> q     restore q -> d     d + another sum, later

    With q and d inlined the later sum would read a, of four times as many bytes.
    """
    size = producer.value.dtype.itemsize
    return all(size < load.dtype.itemsize for load in producer.loads) and any(
        uses.is_accumulator(inner.array)
        for load in producer.loads
        for writer in uses.writes(load.array)
        for inner in writer.loads
    )


def _is_recurrence(reader: Statement) -> bool:
    """Whether instances wait for one another: what is dear is computed before, in vectors."""
    return any(load.array == reader.array for load in reader.loads)


def can_move(producer: Statement, reader: Statement, load: Load) -> bool:
    """Whether a value may be computed where it is read, as far as loops and branches go.

    Not outside of its loop, and in no other step; nor again in each step, unless it costs nothing.
    It may in a branch that it was not in.
    """
    if reader.branches[: len(producer.branches)] != producer.branches:
        return False
    if producer.step is reader.step is None:
        return True
    if producer.step == reader.step:
        read = load.index.as_map().intersect_domain(reader.domain).range()
        written = producer.write.as_map().intersect_domain(producer.domain).range()
        return is_part(read, written)
    if producer.step or not reader.step:
        return False
    parameter = isl.dim_type.param
    index = load.index.as_map().intersect_domain(reader.domain)
    position = index.find_dim_by_name(parameter, reader.step.name)
    if operations(producer.value) == 0 or position < 0:
        return operations(producer.value) == 0
    return bool(index.move_dims(isl.dim_type.in_, 0, parameter, position, 1).is_injective())


def _only_widens(value: Expr) -> bool:
    """Whether a value is an element of a narrow type, in its wide type."""
    source = value.argument if isinstance(value, Cast) else None
    return isinstance(source, Load) and is_narrow(source.dtype)


def _is_read_by_few(
    producer: Statement, readers: list[Statement], arrays: Mapping[str, Array]
) -> bool:
    """Whether a constant of 16 bits is converted for so few uses that these wait for memory.

    They do so for half as long if it stays as it is, and is converted in registers.
    """
    if any(arrays[x.array].value is None or x.dtype.itemsize != 2 for x in producer.loads):
        return False
    return all(
        prod(
            n
            for p, n in enumerate(reader.estimated_extents)
            if not load.index.involves_dims(isl.dim_type.in_, p, 1)
        )
        <= FEW
        for reader in readers
        for load in reader.loads
        if load.array == producer.array
    )


def _narrows(value: Expr) -> bool:
    """Whether a value is rounded to the narrow type that it is stored in."""
    return isinstance(value, Cast) and value.for_storage


def _is_reduced(array: str, uses: Uses) -> bool:
    """Whether a reduction reads an array, or what is widened of it."""
    return any(
        r.reduction or (_only_widens(r.value) and _is_reduced(r.array, uses))
        for r, _ in uses.readers.get(array, ())
    )


def reads_once(sites: list[tuple[Statement, Load]]) -> bool:
    """Whether a reader's loads touch one element an instance, and no element twice."""
    reader, first = sites[0][0], sites[0][1].index
    once = is_injective(first, reader.domain)
    return once and all(load.index.is_equal(first) for _, load in sites[1:])


def _stays_affine(producer: Statement, reader: Statement) -> bool:
    """A reduction reads its operands many times: no copy with divisions is inlined there."""
    if not reader.reduction:
        return True
    functions = [producer.write, *(load.index for load in producer.loads)]
    affs = [single_aff(pw) for function in functions for pw in outputs(function)]
    return all(aff is not None and not aff.dim(isl.dim_type.div) for aff in affs)


def _inverse(producer: Statement) -> isl.PwMultiAff | None:
    """# X -> P, where the write P -> X is injective."""
    backwards = producer.write.as_map().intersect_domain(producer.domain).reverse()
    return isl.PwMultiAff.from_map(backwards) if backwards.is_single_valued() else None


def _replace_loads(reader: Statement, producer: Statement, inverse: isl.PwMultiAff) -> Expr:
    """The reader's expression with its loads of the producer's array replaced by the value."""

    def leaf(expr: Expr) -> Expr:
        if not (isinstance(expr, Load) and expr.array == producer.array):
            return expr
        substitution = inverse.pullback_pw_multi_aff(expr.index)  # reader -> X -> producer
        return _move(producer.value, substitution, reader.domain)

    return drop_roundings(rebuild(reader.value, leaf))


def _move(value: Expr, substitution: isl.PwMultiAff, domain: isl.Set) -> Expr:
    """The value with its iterators substituted, its index functions simplified on `domain`.

    Affine functions stay affine: most loads, in long chains, need nothing more.
    """
    affine = simplify(substitution, domain)
    if not is_affine(affine):
        return simplify_indices(pull_back(value, substitution), domain)

    def leaf(e: Expr) -> Expr:
        if isinstance(e, Load) and is_affine(e.index):
            return Load(e.array, e.index.pullback_pw_multi_aff(affine), e.dtype, e.dynamic)
        return _simplify_leaf(pull_back_leaf(e, substitution), domain)

    return rebuild(value, leaf)


def simplify_indices(expr: Expr, domain: isl.Set) -> Expr:
    """Index functions with what `domain` already says taken out."""

    return rebuild(expr, lambda e: _simplify_leaf(e, domain))


def _simplify_leaf(leaf: Expr, domain: isl.Set) -> Expr:
    return replace(leaf, index=simplify(leaf.index, domain)) if isinstance(leaf, Load) else leaf
