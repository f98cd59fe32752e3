"""Operations and bytes, against closed formulas."""

import islpy as isl
import pytest

from polyc.analysis.counts import count_bytes, count_flops, count_points
from tests.analysis.nests import ZERO, array, conv_scop, load, matmul_scop, scop, statement


def test_a_matmul_counts_two_operations_a_point_and_its_epilogue() -> None:
    assert count_flops(matmul_scop(7, 3, 5)) == 2 * 7 * 3 * 5 + 7 * 3
    assert count_bytes(matmul_scop(7, 3, 5)) == 4 * (7 * 5 + 5 * 3 + 7 * 3)


def test_a_convolution_is_counted_by_its_box() -> None:
    of = conv_scop(512, 56, 56, 512, 3)
    assert count_flops(of) == 512 * 56 * 56 * (2 * 512 * 9 + 1)
    elements = 512 * 58 * 58 + 512 * 512 * 9 + 512 + 512 * 56 * 56
    assert count_bytes(of) == 4 * elements


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ("{ S[i,j] : 0<=i<4 and 0<=j<=i }", 10),
        ("{ S[i] : 0<=i<10 and i mod 2 = 1 }", 5),
        ("{ S[i] : 0<=i<3 or 7<=i<9 }", 5),
        ("{ S[] }", 1),
        ("{ S[i] : 1 = 0 }", 0),
        ("{ S[i,j] : 0<=i<10000 and 0<=j<=i }", None),
    ],
)
def test_points_are_counted_exactly_or_not_at_all(points: str, expected: int | None) -> None:
    assert count_points(isl.Set(points)) == expected


def test_what_takes_too_long_is_not_counted() -> None:
    """Places that windows of 4 x 4, rolled by 2, take in an image of 56 x 56: each is a search."""
    points = """{ S[0, i, j, 0] : exists (a, b, c : 0 <= j <= 15 and
        168c >= -3135 + i - 52a + 220b and 168c >= -15 + i - 52a + 204b and
        -3 + i - 56a + 220b <= 168c <= i - 56a + 220b and 168c <= i - 52a + 204b and
        168c <= i - 52a + 220b and -223 + i - 52a + 220b <= 392c <= i - 52a + 220b) }"""
    assert count_points(isl.Set(points)) is None
    assert count_points(isl.Set("{ S[i, j] : 0 <= i < 4 and 0 <= j <= i }")) == 10


def test_what_is_not_counted_says_so() -> None:
    domain = "0<=i<10000 and 0<=j<=i"
    product = load("{ S[i,j] -> X[i,j] }")
    of = scop(
        [array("X", [10000, 10000], "input"), array("Y", [10000], "output")],
        statement("{ Z[i] : 0<=i<10000 }", "{ Z[i] -> Y[i] }", ZERO),
        statement(f"{{ S[i,j] : {domain} }}", "{ S[i,j] -> Y[i] }", product, "add"),
    )
    assert count_flops(of) is None
    assert count_bytes(of) == 4 * (10**8 + 10**4)
