"""A band of a schedule tree as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.loops.schedule.direction import Row, is_carried, rows_of
from polyc.poly.tree import BAND, is_unrolled
from polyc.scop.scop import Statement


@dataclass(frozen=True)
class Band:
    """A band as values: a function for each member, which are coincident, and whose they are.

    short: the members of a band directly inside of it, which is unrolled (`short.py`).
    """

    functions: tuple[isl.UnionPwAff, ...]
    coincident: tuple[bool, ...]
    is_permutable: bool
    names: tuple[str, ...]
    short: tuple[isl.UnionPwAff, ...] = ()

    @staticmethod
    def of(node: isl.ScheduleNode, relation: isl.UnionMap) -> Band:
        """The band of a node. A member is coincident if no pair of a relation, of those that no
        loop around keeps in order, is apart along it; isl's own marks forget some pairs."""
        functions = _functions(node)
        domain = node.get_domain()
        outer = node.get_prefix_schedule_union_map().intersect_domain(domain)
        inside = relation.intersect_domain(domain).intersect_range(domain)
        coincident = (not is_carried(inside, outer, as_map([f])) for f in functions)
        return Band(
            tuple(functions),
            tuple(coincident),
            len(functions) == 1 or bool(node.band_get_permutable()),
            names_of(node),
            tuple(_functions(node.child(0))) if is_unrolled(node.child(0)) else (),
        )

    @property
    def order(self) -> list[int]:
        return list(range(len(self.functions)))

    def member(self, k: int) -> isl.UnionMap:
        """# S -> [value of the member]"""
        return as_map([self.functions[k]])

    def rows(self, statement: Statement) -> list[Row]:
        """The coefficients of a statement's iterators in each member, and in short ones inside."""
        members = (*self.functions, *self.short)
        return [row for f in members for row in rows_of(as_map([f]), statement)]

    def insert(self, node: isl.ScheduleNode, order: Sequence[int]) -> isl.ScheduleNode:
        """The band at its node, its members in another order."""
        if list(order) == self.order:
            return node
        node = node.delete()
        node = node.insert_partial_schedule(joined([self.functions[k] for k in order]))
        node = node.band_set_permutable(int(self.is_permutable))
        for place, k in enumerate(order):
            node = node.band_member_set_coincident(place, int(self.coincident[k]))
        return node


def as_map(functions: Sequence[isl.UnionPwAff]) -> isl.UnionMap:
    """# S -> [values]"""
    return isl.UnionMap.from_multi_union_pw_aff(joined(functions))


def joined(functions: Sequence[isl.UnionPwAff]) -> isl.MultiUnionPwAff:
    """Several functions as one of several dimensions."""
    whole = isl.MultiUnionPwAff.from_union_pw_aff(functions[0])
    for function in functions[1:]:
        whole = whole.flat_range_product(isl.MultiUnionPwAff.from_union_pw_aff(function))
    return whole


def names_of(node: isl.ScheduleNode) -> tuple[str, ...]:
    sets = node.get_domain().get_set_list()
    return tuple(sorted(sets.get_at(k).get_tuple_name() for k in range(sets.n_set())))


def falls(function: isl.UnionPwAff, pairs: isl.UnionMap) -> bool:
    """Whether a function is less at the end of some pair than at its beginning."""
    value = as_map([function])
    less = value.apply_range(isl.UnionMap("{ [v] -> [w] : w < v }")).apply_range(value.reverse())
    return not pairs.intersect(less).is_empty()


def _functions(node: isl.ScheduleNode) -> list[isl.UnionPwAff]:
    partial = node.band_get_partial_schedule()
    return [partial.get_union_pw_aff(k) for k in range(node.band_n_member())]


def has_band(node: isl.ScheduleNode) -> bool:
    """Whether there is a band at a node, or below it, that is not unrolled."""
    if node.get_type() == BAND:
        return not is_unrolled(node)
    return any(has_band(node.child(k)) for k in range(node.n_children()))
