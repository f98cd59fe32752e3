"""Whether two statements are the same but for the names of what they touch, decided on values.

    S[i] : 0 <= i < n     a[i] = exp(b[i])       and       T[i] : 0 <= i < n     c[i] = exp(d[i])

are, with a for c and b for d. Domains and accesses are compared as sets and maps, and expressions
node by node; no text of them is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import islpy as isl

from polyc.poly.parameters import rename_parameters
from polyc.poly.remember import remember
from polyc.scop.expr import Call, Cast, Const, Expr, Index, Load, Within
from polyc.scop.scop import Statement
from polyc.scop.sizes import list_sizes
from polyc.types.other_names import NO_NAMES, rename_extent

IN, OUT = isl.dim_type.in_, isl.dim_type.out

Leaf = Callable[[Expr, Expr], bool]
"""Whether two leaves of expressions are the same: literals, positions, conditions, or loads."""


def same_tree(one: Expr, other: Expr, leaf: Leaf) -> bool:
    """Whether two expressions are the same calls and conversions, applied to the same leaves."""
    if one.dtype != other.dtype:
        return False
    match one, other:
        case Call(function, arguments), Call(again, others):
            if function != again or len(arguments) != len(others):
                return False
            return all(same_tree(a, b, leaf) for a, b in zip(arguments, others, strict=True))
        case Cast(argument, _, stored), Cast(also, _, again):
            return stored == again and same_tree(argument, also, leaf)
        case (Call() | Cast(), _) | (_, Call() | Cast()):
            return False
        case _:
            return leaf(one, other)


def same_dynamic(one: Load, other: Load, leaf: Leaf) -> bool:
    """Whether two loads compute the same coordinates in the same dimensions."""
    return len(one.dynamic) == len(other.dynamic) and all(
        d == e and same_tree(a, b, leaf)
        for (d, a), (e, b) in zip(one.dynamic, other.dynamic, strict=True)
    )


def same_literal(one: int | float | bool, other: int | float | bool) -> bool:
    """Whether two literals are one number, its sign and NaN included."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and one == other


@dataclass
class Renaming:
    """The names of one kernel's arrays, of its sizes and its step -> those of another's.

    Arrays are renamed one to one.
    """

    sizes: Mapping[str, str] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)

    def keeps_apart(self, sizes: Set[str]) -> bool:
        """Whether sizes have names of their own under the others."""
        return len({self.sizes.get(name, name) for name in sizes}) == len(sizes)

    def joins(self, one: str, other: str) -> bool:
        """Whether an array may stand for another, and it alone; if so, it does from now on."""
        if one not in self.arrays and other not in self.arrays.values():
            self.arrays[one] = other
        return self.arrays.get(one) == other

    def same_map(self, one: isl.Map, other: isl.Map, domain: isl.Set) -> bool:
        """Whether two relations are equal on a domain of the first, names aside."""
        one, other = self.rename(_plain(one)), _plain(other)
        if one.plain_is_equal(other):
            return True
        inside = self.rename(_plain(isl.Map.from_domain(domain))).domain()
        return bool(one.intersect_domain(inside).is_equal(other.intersect_domain(inside)))

    def same_set(self, one: isl.Set, other: isl.Set) -> bool:
        """Whether two domains are equal, names aside."""
        maps = [_plain(isl.Map.from_domain(s)) for s in (one, other)]
        mine, theirs = self.rename(maps[0]).domain(), maps[1].domain()
        return bool(mine.plain_is_equal(theirs)) or _equal(mine, theirs)

    def same_leaf(self, one: Expr, other: Expr, domains: tuple[isl.Set, isl.Set]) -> bool:
        """Whether two literals, positions or conditions are equal on their domains; not loads."""
        match one, other:
            case Index(value), Index(again):
                return self.same_map(value.as_map(), again.as_map(), domains[0])
            case Within(inside), Within(also):
                return self.same_set(inside.intersect(domains[0]), also.intersect(domains[1]))
            case Const(value), Const(again):
                return same_literal(value, again)
            case _:
                return False

    def rename(self, relation: isl.Map) -> isl.Map:
        """A relation of the first in terms of the sizes of the other."""
        return rename_parameters(relation, self.sizes)


def _plain(relation: isl.Map) -> isl.Map:
    """A relation without names of tuples."""
    return relation.reset_tuple_id(IN).reset_tuple_id(OUT)


def find_renaming(
    ones: Sequence[Statement], others: Sequence[Statement], sizes: Mapping[str, str] = NO_NAMES
) -> Renaming | str:
    """The arrays that make two lists of statements the same, in order; or what differs.

    sizes: what those of the first are called in the other, if otherwise.
    """
    if len(ones) != len(others):
        return f"{len(others)} statements, not {len(ones)}"
    if not sizes and all(one is other for one, other in zip(ones, others, strict=True)):
        touched = {name for s in ones for name in (s.array, *(x.array for x in s.loads))}
        return Renaming(arrays={name: name for name in touched})
    steps = ones[0].step, others[0].step
    named = {steps[0].name: steps[1].name} if steps[0] and steps[1] else {}
    renaming = Renaming({**sizes, **named})
    if sizes and not renaming.keeps_apart({name for s in ones for name in list_sizes(s)}):
        return "two sizes under one name"
    for one, other in zip(ones, others, strict=True):
        difference = compare(one, other, renaming)
        if difference:
            return f"{other.name} differs from {one.name} in {difference}"
    return renaming


def compare(one: Statement, other: Statement, renaming: Renaming) -> str:
    """What two statements differ in; empty if they are the same."""
    if (one.step is None) != (other.step is None) or len(one.iterators) != len(other.iterators):
        return "its loops"
    steps = [s.step.steps for s in (one, other) if s.step]
    if steps and rename_extent(steps[0], renaming.sizes) != steps[1]:
        return "its steps"
    if not renaming.same_set(one.domain, other.domain):
        return "its domain"
    if one.reduction != other.reduction:
        return "its reduction"
    if not renaming.joins(one.array, other.array):
        return "the array that it writes"
    if not renaming.same_map(one.write.as_map(), other.write.as_map(), one.domain):
        return "the elements that it writes"

    def leaf(a: Expr, b: Expr) -> bool:
        match a, b:
            case Load(), Load():
                return (
                    renaming.joins(a.array, b.array)
                    and renaming.same_map(a.index.as_map(), b.index.as_map(), one.domain)
                    and same_dynamic(a, b, leaf)
                )
            case _:
                return renaming.same_leaf(a, b, (one.domain, other.domain))

    return "" if same_tree(one.value, other.value, leaf) else "what it computes"


@remember
def _equal(one: isl.Set, other: isl.Set) -> bool:
    return bool(one.is_equal(other))
