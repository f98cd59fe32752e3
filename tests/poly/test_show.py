"""What people read of isl's functions and trees."""

import islpy as isl
import pytest

from polyc.poly.show import show_function, show_tree, show_value


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("i, j + 1, 0, -3", "i, j + 1, 0, -3"),
        ("2i - 3j - 1, -i", "2*i - 3*j - 1, -i"),
        ("i mod 4, 7 - 2*(j mod 5)", "(i mod 4), -2*(j mod 5) + 7"),
        ("(i + j) mod 4", "((i + j) mod 4)"),
        ("i - (i mod 20)", "20*floor(i/20)"),
        ("floor((i + 3j)/21) + 2i", "2*i + floor((i + 3*j)/21)"),
        ("-2*floor((-i)/3)", "-2*floor(-i/3)"),
        ("i + 16*floor(j/16), 5*(i mod 2) + j", "i + 16*floor(j/16), j + 5*(i mod 2)"),
    ],
)
def test_functions(function, text):
    assert show_function(isl.PwMultiAff(f"{{ S[i, j] -> A[{function}] }}")) == text


def test_a_function_without_coordinates_is_empty():
    assert show_function(isl.PwMultiAff("{ S[i] -> A[] }")) == ""


def test_pieces_are_shown_with_their_domains():
    text = show_value(isl.PwAff("{ S[i] -> [i] : i < 3; S[i] -> [2] : i >= 3 }"))
    assert text == "{2 if { [i] : i >= 3 }; i if { [i] : i <= 2 }}"


def test_equal_texts_mean_equal_functions():
    """A kernel's signature is made of these texts."""
    functions = ["i", "i + 1", "j", "floor(i/2)", "floor(i/3)", "i mod 2", "2i", "2*floor(i/2)"]
    texts = {show_value(isl.PwAff(f"{{ S[i, j] -> [{f}] }}")) for f in functions}
    assert len(texts) == len(functions)


def test_a_tree_is_one_line_a_node_and_statements_scheduled_alike_share_an_entry():
    domain = isl.UnionSet("{ S[i, j] : 0 <= i, j < 9; T[i] : 0 <= i < 9; U[k] : 0 <= k < 9 }")
    outer = isl.MultiUnionPwAff("[{ S[i, j] -> [(i)]; T[i] -> [(i)]; U[k] -> [(k + 1)] }]")
    inner = isl.MultiUnionPwAff("[{ S[i, j] -> [(j)] }]")
    node = isl.Schedule.from_domain(domain).get_root().child(0).insert_partial_schedule(outer)
    node = node.band_set_permutable(1).band_member_set_coincident(0, 1)
    filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, 2)
    filters = filters.add(isl.UnionSet("{ S[i, j] }")).add(isl.UnionSet("{ T[i]; U[k] }"))
    node = node.child(0).insert_mark(isl.Id("scope")).child(0).insert_sequence(filters)
    node = node.child(0).child(0).insert_partial_schedule(inner)
    assert show_tree(node.get_schedule()).splitlines() == [
        "domain  S[i, j], T[i], U[k]",
        "└ band  S, T: i; U: k + 1  permutable  coincident",
        "  └ mark  scope",
        "    └ sequence",
        "      ├ filter  S",
        "      │ └ band  j",
        "      └ filter  T, U",
    ]


def test_a_band_of_which_one_member_is_coincident():
    domain = isl.UnionSet("{ S[i, j] : 0 <= i, j < 9 }")
    members = isl.MultiUnionPwAff("[{ S[i, j] -> [(i)] }, { S[i, j] -> [(i + j)] }]")
    node = isl.Schedule.from_domain(domain).get_root().child(0).insert_partial_schedule(members)
    node = node.band_member_set_coincident(0, 1)
    assert show_tree(node.get_schedule()).splitlines()[1] == "└ band  i, i + j  1 coincident"
