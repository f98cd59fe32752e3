"""Private arrays in local storage: their boxes, their places, and what does not fit."""

from dataclasses import replace

import islpy as isl
import pytest

from polyc.memory.storage import permuted, row_major
from polyc.poly.tree import MARK
from polyc.promote.local_arrays import LARGEST_LOCAL, promote_to_locals
from polyc.scop.expr import Load
from polyc.scop.scop import Scop, Statement
from tests.analysis.nests import F32, ZERO, array, load, matmul_scop, scop, statement


def tree(statements: tuple[Statement, ...], band: str) -> isl.Schedule:
    """domain -> band -> mark scope, from one row `S[i] -> [f(i)]` a statement."""
    domain = isl.UnionSet.from_set(statements[0].domain)
    for s in statements[1:]:
        domain = domain.union(isl.UnionSet.from_set(s.domain))
    node = isl.Schedule.from_domain(domain).get_root().child(0)
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(band)).child(0)
    return node.insert_mark(isl.Id("scope")).get_schedule()


def promote(of: Scop, band: str, *private: str):
    return promote_to_locals(
        tree(of.statements, band), of.statements, frozenset(private), of.arrays, as_stored(of)
    )


def as_stored(of: Scop):
    return {name: row_major(array) for name, array in of.arrays.items()}


def is_place(place: isl.PwMultiAff, expected: str) -> bool:
    """Whether a place in a local is the expected one, on the domain of the latter."""
    wanted = isl.PwMultiAff(expected)
    anonymous = place.reset_tuple_id(isl.dim_type.out).intersect_domain(wanted.domain())
    return anonymous.as_map().is_equal(wanted.as_map())


PANELS = "floor(j/16) - 2*floor(j/32), k, j mod 16"

MATMUL_BAND = (
    "[{ Z[i,j] -> [(i)]; S[i,j,k] -> [(i)]; T[i,j] -> [(i)] }, { Z[i,j] -> [(16*floor(j/16))];"
    " S[i,j,k] -> [(16*floor(j/16))]; T[i,j] -> [(16*floor(j/16))] }]"
)


def test_accumulators_of_a_tile():
    promoted = promote(matmul_scop(), MATMUL_BAND, "acc")
    assert set(promoted) == {"acc"}
    local = promoted["acc"]
    assert (local.name, local.source, local.shape) == ("acc_local", "acc", (1, 16))
    assert is_place(
        local.place("S", isl.PwMultiAff("{ S[i,j,k] -> acc[i,j] }")),
        "{ S[i,j,k] -> [0, j mod 16] : 0 <= i < 4 and 0 <= j < 32 and 0 <= k < 5 }",
    )


def test_a_partial_tile_has_the_box_of_a_full_one():
    promoted = promote(matmul_scop(4, 37, 5), MATMUL_BAND, "acc")
    assert promoted["acc"].shape == (1, 16)


def test_only_private_arrays_are_promoted():
    assert promote(matmul_scop(), MATMUL_BAND) == {}


@pytest.mark.parametrize(
    ("width", "shape", "place"), [(16, (5, 16), "k, j mod 16"), (32, (2, 5, 16), PANELS)]
)
def test_a_panel_keeps_its_rows_whole(width, shape, place):
    """P[k, j], stored [j/16][k][j mod 16]: a panel is 5 rows of 16, as it would lie in memory.

    Of two panels each is whole, too, and not their rows side by side.
    """
    of = scop(
        [array("P", [5, 64], "temporary"), array("Y", [5, 64], "output")],
        statement("{ W[k, j] : 0 <= k < 5 and 0 <= j < 64 }", "{ W[k, j] -> P[k, j] }", ZERO),
        statement(
            "{ R[k, j] : 0 <= k < 5 and 0 <= j < 64 }",
            "{ R[k, j] -> Y[k, j] }",
            load("{ R[k, j] -> P[k, j] }"),
        ),
    )
    tile = f"{width}*floor(j/{width})"
    band = f"[{{ W[k, j] -> [({tile})]; R[k, j] -> [({tile})] }}]"
    panels = permuted(of.arrays["P"], (1, 0), [(1, 16)])
    stored = {**as_stored(of), "P": panels}
    marked = tree(of.statements, band)
    local = promote_to_locals(marked, of.statements, frozenset("P"), of.arrays, stored)["P"]
    assert local.shape == shape
    assert is_place(
        local.place("R", isl.PwMultiAff("{ R[k, j] -> P[k, j] }")),
        f"{{ R[k, j] -> [{place}] : 0 <= k < 5 and 0 <= j < 64 }}",
    )


def test_a_window_has_its_lower_corner_in_the_prefix():
    """A[i], A[i + 1], A[i + 2] are read in iteration i: a local of 3 elements from i on."""
    of = scop(
        [array("A", [10], "temporary"), array("Y", [8], "output")],
        statement("{ W[i, r] : 0 <= i < 8 and 0 <= r < 3 }", "{ W[i, r] -> A[i + r] }", ZERO),
        statement("{ R[i] : 0 <= i < 8 }", "{ R[i] -> Y[i] }", load("{ R[i] -> A[i + 2] }")),
    )
    local = promote(of, "[{ W[i, r] -> [(i)]; R[i] -> [(i)] }]", "A")["A"]
    assert local.shape == (3,)
    assert is_place(
        local.place("R", isl.PwMultiAff("{ R[i] -> A[i + 2] }")), "{ R[i] -> [2] : 0 <= i < 8 }"
    )


def test_a_box_that_is_too_large_stays_in_memory():
    def row(n: int) -> Scop:
        return scop(
            [array("A", [8, n], "temporary"), array("Y", [8, n], "output")],
            statement(
                f"{{ W[i, j] : 0 <= i < 8 and 0 <= j < {n} }}", "{ W[i, j] -> A[i, j] }", ZERO
            ),
            statement(
                f"{{ R[i, j] : 0 <= i < 8 and 0 <= j < {n} }}",
                "{ R[i, j] -> Y[i, j] }",
                load("{ R[i, j] -> A[i, j] }"),
            ),
        )

    band = "[{ W[i, j] -> [(i)]; R[i, j] -> [(i)] }]"
    fits = LARGEST_LOCAL // F32.itemsize
    assert promote(row(fits), band, "A")["A"].shape == (1, fits)
    assert promote(row(fits + 1), band, "A") == {}


def test_data_dependent_reads_keep_arrays_in_memory():
    key = Load("K", isl.PwMultiAff("{ R[i] -> K[i] }"), F32)
    of = scop(
        [array("A", [8], "temporary"), array("K", [8], "input"), array("Y", [8], "output")],
        statement("{ W[i] : 0 <= i < 8 }", "{ W[i] -> A[i] }", ZERO),
        statement(
            "{ R[i] : 0 <= i < 8 }",
            "{ R[i] -> Y[i] }",
            replace(load("{ R[i] -> A[0] }"), dynamic=((0, key),)),
        ),
    )
    assert promote(of, "[{ W[i] -> [(i)]; R[i] -> [(i)] }]", "A") == {}


def test_the_tree_is_left_as_it_was():
    of = matmul_scop()
    schedule = tree(of.statements, MATMUL_BAND)
    before = str(schedule)
    private = frozenset({"acc"})
    assert promote_to_locals(schedule, of.statements, private, of.arrays, as_stored(of))
    assert str(schedule) == before
    assert schedule.get_root().child(0).child(0).get_type() == MARK
