"""A schedule tree for any sizes as one for some: isl is asked once, and not again for each sizes.

domain S[i] : 0 <= i < n                    domain S[i] : 0 <= i < 40
└ band i + n                      ->        └ band i + 40
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import islpy as isl

from polyc.loops.schedule.band import joined
from polyc.poly.tree import BAND

PARAM = isl.dim_type.param
SEQUENCE, SET = isl.schedule_node_type.sequence, isl.schedule_node_type.set


def at_sizes(
    tree: isl.Schedule, domains: Mapping[str, isl.Set], values: Mapping[str, int]
) -> isl.Schedule | None:
    """The tree on other domains; None if these are of other statements. values: of parameters."""
    sets = tree.get_domain().get_set_list()
    known = {name: domain.dim(isl.dim_type.set) for name, domain in domains.items()}
    found = (sets.get_at(k) for k in range(sets.n_set()))
    # A number that is known is no data: x[i * step] is then written where i says.
    if known != {one.get_tuple_name(): one.dim(isl.dim_type.set) for one in found}:
        return None

    def visit(node: isl.ScheduleNode) -> isl.Schedule:
        kind = node.get_type()
        if kind in (SEQUENCE, SET):
            join = isl.Schedule.sequence if kind == SEQUENCE else isl.Schedule.set
            return reduce(join, [visit(node.child(k).child(0)) for k in range(node.n_children())])
        if kind != BAND:
            below = node.get_domain().get_set_list()
            chosen = [domains[below.get_at(k).get_tuple_name()] for k in range(below.n_set())]
            return isl.Schedule.from_domain(
                reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, chosen))
            )
        partial = node.band_get_partial_schedule()
        members = range(node.band_n_member())
        functions = [_fix(partial.get_union_pw_aff(k), values) for k in members]
        inner = visit(node.child(0)).insert_partial_schedule(joined(functions))
        band = inner.get_root().child(0).band_set_permutable(int(node.band_get_permutable()))
        return band.get_schedule()

    return visit(tree.get_root().child(0))


def _fix(function: isl.UnionPwAff, values: Mapping[str, int]) -> isl.UnionPwAff:
    """The function with numbers for its parameters."""
    parts = function.get_pw_aff_list()
    fixed = (_fix_part(parts.get_at(k), values) for k in range(parts.n_pw_aff()))
    return reduce(isl.UnionPwAff.union_add, map(isl.UnionPwAff.from_pw_aff, fixed))


def _fix_part(part: isl.PwAff, values: Mapping[str, int]) -> isl.PwAff:
    graph = isl.Map.from_pw_aff(part)
    for name, value in values.items():
        position = graph.find_dim_by_name(PARAM, name)
        if position >= 0:
            graph = graph.fix_val(PARAM, position, isl.Val(value))
            graph = graph.project_out(PARAM, position, 1)
    return isl.PwMultiAff.from_map(graph).get_pw_aff(0)
