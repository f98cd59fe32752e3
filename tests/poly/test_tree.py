"""Edits of schedule trees, on trees built from literals."""

import islpy as isl

from polyc.poly.show import show_tree
from polyc.poly.tree import BAND, make_atomic, mark_members

DOMAIN = "{ S[i, j] : 0 <= i < 8 and 0 <= j < 20 }"
BAND_IJ = "[{ S[i, j] -> [(i)] }, { S[i, j] -> [(j)] }]"


def band(permutable: bool = True) -> isl.ScheduleNode:
    """domain -> band [i, j]; the band."""
    schedule = isl.Schedule.from_domain(isl.UnionSet(DOMAIN))
    node = schedule.get_root().child(0)
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(BAND_IJ))
    return node.band_set_permutable(int(permutable))


def lines(node: isl.ScheduleNode) -> list[str]:
    return show_tree(node.get_schedule()).splitlines()[1:]


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
