"""The original order of a kernel: its loops as a tree, as times, and as a schedule tree of isl.

for i: S0; for j: S1          S0[i] at [0, i, 0, 0, 0]      S1[i, j] at [0, i, 1, j, 0]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import islpy as isl

SET = isl.dim_type.set


@dataclass(frozen=True)
class StatementLeaf:
    """A statement, by its name."""

    name: str


@dataclass(frozen=True)
class LoopNode:
    """A loop over the iterator at a depth, which counts down if it is `reversed`.

    places: nobody wrote it; it is over the places of which data picks one to be written.
    """

    iterator: str
    depth: int
    reversed: bool
    body: tuple[OrderNode, ...]
    places: bool = False


OrderNode: TypeAlias = StatementLeaf | LoopNode


def innermost_bodies(order: Sequence[OrderNode]) -> Iterator[tuple[str, ...]]:
    """The statements of each loop that has no other inside, in order."""
    for node in order:
        if isinstance(node, LoopNode):
            yield from innermost_bodies(node.body)
            names = [each.name for each in node.body if isinstance(each, StatementLeaf)]
            if len(names) == len(node.body):
                yield tuple(names)


def time_of(order: Sequence[OrderNode], domains: Mapping[str, isl.Set]) -> dict[str, isl.MultiAff]:
    """# S -> [t], for each statement: positions and counters in turns, padded by zeros."""
    length = 2 * _height(order) + 1
    found: dict[str, isl.MultiAff] = {}

    def visit(nodes: Sequence[OrderNode], prefix: list[int | LoopNode]) -> None:
        for position, node in enumerate(nodes):
            here = [*prefix, position]
            if isinstance(node, LoopNode):
                visit(node.body, [*here, node])
            else:
                found[node.name] = _time(domains[node.name], here, length)

    visit(order, [])
    return found


def _height(order: Sequence[OrderNode]) -> int:
    loops = (node for node in order if isinstance(node, LoopNode))
    return max((1 + _height(node.body) for node in loops), default=0)


def _time(domain: isl.Set, path: Sequence[int | LoopNode], length: int) -> isl.MultiAff:
    space = domain.get_space()
    local = isl.LocalSpace.from_space(space)
    target = isl.Space.set_alloc(space.get_ctx(), 0, length).align_params(space)
    time = isl.MultiAff.zero(space.map_from_domain_and_range(target))
    for k, part in enumerate(path):
        if isinstance(part, LoopNode):
            counter = isl.Aff.var_on_domain(local, SET, part.depth)
            value = counter.neg() if part.reversed else counter
        else:
            value = isl.Aff.val_on_domain(local, isl.Val(part))
        time = time.set_aff(k, value)
    return time


def original_tree(order: Sequence[OrderNode], domains: Mapping[str, isl.Set]) -> isl.Schedule:
    """The loops as they were written, as a schedule tree; those over places are left out."""
    whole = isl.UnionSet("{ }")
    for domain in domains.values():
        whole = whole.union(isl.UnionSet.from_set(domain))
    node = isl.Schedule.from_domain(whole).get_root().child(0)
    return _insert(node, order, domains).get_schedule()


def _insert(
    node: isl.ScheduleNode, order: Sequence[OrderNode], domains: Mapping[str, isl.Set]
) -> isl.ScheduleNode:
    """Insert the loops of some nodes below a leaf; gives the node that stands there then."""
    if len(order) > 1:
        filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(order))
        for each in order:
            filters = filters.add(_instances([each], domains))
        node = node.insert_sequence(filters)
        for k, each in enumerate(order):
            node = _insert(node.child(k).child(0), [each], domains).ancestor(2)
        return node
    (only,) = order
    if isinstance(only, StatementLeaf):
        return node
    if only.places:
        return _insert(node, only.body, domains)
    node = node.insert_partial_schedule(
        isl.MultiUnionPwAff.from_union_pw_aff(counter_of(only, domains))
    )
    return _insert(node.child(0), only.body, domains).parent()


def names_below(nodes: Sequence[OrderNode]) -> list[str]:
    """The statements of some nodes, in textual order."""
    found: list[str] = []
    for node in nodes:
        found += names_below(node.body) if isinstance(node, LoopNode) else [node.name]
    return found


def _instances(nodes: Sequence[OrderNode], domains: Mapping[str, isl.Set]) -> isl.UnionSet:
    whole = isl.UnionSet("{ }")
    for name in names_below(nodes):
        space = domains[name].get_space()
        whole = whole.union(isl.UnionSet.from_set(isl.Set.universe(space)))
    return whole


def counter_of(loop: LoopNode, domains: Mapping[str, isl.Set]) -> isl.UnionPwAff:
    """# S -> Z: what a loop counts, for all its statements."""
    whole: isl.UnionPwAff | None = None
    for name in names_below([loop]):
        space = domains[name].get_space()
        counter = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), SET, loop.depth)
        value = isl.PwAff.from_aff(counter.neg() if loop.reversed else counter)
        one = isl.UnionPwAff.from_pw_aff(value)
        whole = one if whole is None else whole.union_add(one)
    assert whole is not None, "a loop without statements has no node"
    return whole
