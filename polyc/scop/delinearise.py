"""Split iterators that index through a reshape, so that accesses become affine again.

    S[n, k]:      … X[floor(k/49), floor((k mod 49)/7), k mod 7] …  W[n, k]
    -> S[n, a, b, c]: … X[a, b, c] …                                 W[n, 49 a + 7 b + c]

A flattened tensor read by a fully connected layer is the common case: the layer then walks the
unflattened tensor directly, without a division. Iterators that say which element is written stay
whole: those of the statements that begin a sum and use it are theirs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import islpy as isl

from polyc.poly.affine import outputs, simplify, single_aff
from polyc.scop.expr import pull_back
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Scop, Statement
from polyc.scop.uses import find_uses


def delinearise(scop: Scop) -> Scop:
    """The scop with the reduction iterators split whose loads divide by constants."""
    accumulators = find_uses(scop.statements)
    statements = tuple(
        split_divided(s) if s.reduction and accumulators.is_accumulator(s.array) else s
        for s in scop.statements
    )
    return replace(scop, statements=statements)


def split_divided(statement: Statement) -> Statement:
    """A reduction with the iterators split that its loads divide."""
    kept = _positions_written(statement)
    for position in reversed(range(len(statement.iterators))):
        if position in kept:
            continue
        extent = _extent(statement.domain, position)
        steps = _divisors(statement, position)
        if extent is None or not steps or not _is_chain([*steps, extent]):
            continue
        statement = _split_iterator(statement, position, [*steps, extent])
    return statement


def _positions_written(statement: Statement) -> set[int]:
    """The iterators that the place of the result depends on."""
    count = len(statement.iterators)
    return {k for k in range(count) if statement.write.involves_dims(isl.dim_type.in_, k, 1)}


def _divisors(statement: Statement, position: int) -> list[int]:
    """The constants by which loads divide the iterator, smallest first."""
    found: set[int] = set()
    for load in statement.loads:
        for function in outputs(load.index):
            aff = single_aff(function)
            for d in range(aff.dim(isl.dim_type.div) if aff is not None else 0):
                assert aff is not None
                div = aff.get_div(d)
                if not div.get_coefficient_val(isl.dim_type.in_, position).is_zero():
                    found.add(int(div.get_denominator_val().to_python()))
    return sorted(found)


def _extent(domain: isl.Set, position: int) -> int | None:
    low, high = domain.dim_min_val(position), domain.dim_max_val(position)
    return int(high.to_python()) + 1 if low.is_zero() and high.is_int() else None


def _is_chain(steps: list[int]) -> bool:
    """Whether each step divides the next, so that the iterator is a mixed-radix number."""
    return all(b % a == 0 and b > a for a, b in pairwise(steps))


def _split_iterator(statement: Statement, position: int, steps: list[int]) -> Statement:
    """steps = [7, 49, 512*49]: k = 49 a + 7 b + c with 0 <= c < 7, 0 <= b < 7, 0 <= a < 512."""
    strides = [1, *steps[:-1]]
    name = statement.iterators[position]
    parts = [f"{name}_{j}" for j in reversed(range(len(strides)))]
    inside = list(statement.iterators)
    inside[position : position + 1] = parts
    formula = " + ".join(f"{m}*{p}" for m, p in zip(reversed(strides), parts, strict=True))
    outside = [formula if i == name else i for i in statement.iterators]
    bounds = " and ".join(
        f"0 <= {p} < {n // m}"
        for p, n, m in zip(parts, reversed(steps), reversed(strides), strict=True)
    )
    # T -> S
    split = isl.PwMultiAff(
        f"{{ {statement.name}[{', '.join(inside)}] -> "
        f"{statement.name}[{', '.join(outside)}] : {bounds} }}"
    )
    domain = statement.domain.preimage_pw_multi_aff(split)
    value = simplify_indices(pull_back(statement.value, split), domain)
    return replace(
        statement,
        domain=domain,
        iterators=tuple(inside),
        write=simplify(statement.write.pullback_pw_multi_aff(split), domain),
        value=value,
    )
