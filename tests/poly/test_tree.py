"""Edits of schedule trees, on trees built from literals."""

import islpy as isl
import pytest

from polyc.errors import IllegalSchedule
from polyc.poly.show import show_tree
from polyc.poly.tree import (
    BAND,
    drop_idle_loops,
    edit_leaf_bands,
    make_atomic,
    mark_members,
    tile,
)

DOMAIN = "{ S[i, j] : 0 <= i < 8 and 0 <= j < 20 }"
MARKS = {"parallel", "vector"}
BAND_IJ = "[{ S[i, j] -> [(i)] }, { S[i, j] -> [(j)] }]"


def band(permutable: bool = True) -> isl.ScheduleNode:
    """domain -> band [i, j]; the band."""
    schedule = isl.Schedule.from_domain(isl.UnionSet(DOMAIN))
    node = schedule.get_root().child(0)
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(BAND_IJ))
    return node.band_set_permutable(int(permutable))


def lines(node: isl.ScheduleNode) -> list[str]:
    return show_tree(node.get_schedule()).splitlines()[1:]


def test_tile_gives_a_band_of_tiles_over_a_band_of_points():
    tiled = tile(band(), [1, 16])
    assert lines(tiled) == [
        "└ band  i, 16*floor(j/16)  permutable",
        "  └ band  0, (j mod 16)  permutable",
    ]


def test_a_band_that_is_not_permutable_is_not_tiled():
    with pytest.raises(IllegalSchedule, match="not permutable"):
        tile(band(permutable=False), [4, 4])


def test_marks_split_the_band_at_the_members_that_carry_them():
    marked = mark_members(band(), ["parallel", "vector"])
    assert lines(marked) == [
        "└ mark  parallel",
        "  └ band  i  permutable",
        "    └ mark  vector",
        "      └ band  j  permutable",
    ]
    assert marked.get_type() == isl.schedule_node_type.mark


def test_a_member_without_mark_stays_a_band():
    assert lines(mark_members(band(), ["", "unroll"])) == [
        "└ band  i  permutable",
        "  └ mark  unroll",
        "    └ band  j  permutable",
    ]
    plain = mark_members(band(), ["", ""])
    assert lines(plain) == ["└ band  i  permutable", "  └ band  j  permutable"]
    assert plain.get_type() == BAND


def test_atomic_members_are_printed_as_one_loop():
    atomic = make_atomic(band())
    assert lines(atomic) == ["└ band  i, j  permutable  atomic"]
    kinds = [atomic.band_member_get_ast_loop_type(k) for k in range(2)]
    assert kinds == [isl.ast_loop_type.atomic] * 2


def test_leaf_bands_are_edited_wherever_they_are():
    domain = isl.UnionSet("{ S[i] : 0 <= i < 4; T[i] : 0 <= i < 4 }")
    filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, 2)
    filters = filters.add(isl.UnionSet("{ S[i] }")).add(isl.UnionSet("{ T[i] }"))
    node = isl.Schedule.from_domain(domain).get_root().child(0).insert_sequence(filters)
    for k, name in enumerate("ST"):
        inner = isl.MultiUnionPwAff(f"[{{ {name}[i] -> [(i)] }}]")
        node = node.child(k).child(0).insert_partial_schedule(inner).ancestor(2)
    edited = edit_leaf_bands(node.get_schedule(), lambda band: band.insert_mark(isl.Id("vector")))
    assert show_tree(edited).splitlines()[1:] == [
        "└ sequence",
        "  ├ filter  S",
        "  │ └ mark  vector",
        "  │   └ band  i",
        "  └ filter  T",
        "    └ mark  vector",
        "      └ band  i",
    ]


def test_loops_of_one_iteration_go_with_their_marks():
    tiled = tile(band(), [1, 32])
    inside = mark_members(tiled.child(0), ["", "vector"]).parent()
    outside = mark_members(inside, ["parallel", "parallel"])
    assert lines(outside) == [
        "└ mark  parallel",
        "  └ band  i  permutable",
        "    └ mark  parallel",
        "      └ band  32*floor(j/32)  permutable",
        "        └ band  0  permutable",
        "          └ mark  vector",
        "            └ band  (j mod 32)  permutable",
    ]
    assert lines(drop_idle_loops(outside.get_schedule(), MARKS).get_root()) == [
        "└ mark  parallel",
        "  └ band  i  permutable",
        "    └ mark  vector",
        "      └ band  (j mod 32)  permutable",
    ]


def test_idle_members_leave_a_band_and_the_scope_stays():
    domain = isl.UnionSet("{ S[i, j, k, n] : 0 <= i < 8 and j = 3 and 0 <= k < 2 and n = 0 }")
    node = isl.Schedule.from_domain(domain).get_root().child(0)
    rows = ", ".join(f"{{ S[i, j, k, n] -> [({x})] }}" for x in "ijkn")
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(f"[{rows}]"))
    tidy = drop_idle_loops(node.insert_mark(isl.Id("scope")).get_schedule(), MARKS)
    assert lines(tidy.get_root()) == ["└ mark  scope", "  └ band  i", "    └ band  k"]


def test_a_member_that_orders_two_statements_is_no_idle_loop():
    domain = isl.UnionSet("{ S[i] : 0 <= i < 8; T[i] : 0 <= i < 8 }")
    node = isl.Schedule.from_domain(domain).get_root().child(0)
    order = "[{ S[i] -> [(0)]; T[i] -> [(1)] }]"
    schedule = node.insert_partial_schedule(isl.MultiUnionPwAff(order)).get_schedule()
    assert len(lines(drop_idle_loops(schedule, MARKS).get_root())) == 1
