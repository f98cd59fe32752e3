"""isl's AST expressions as index expressions: equal values at every point."""

from collections.abc import Callable, Iterator

import islpy as isl
import numpy as np
import pytest

from polyc.codegen.from_isl import apply_affine, to_condition, to_index
from polyc.loopnest.index import Affine, Condition, Logic, const, var
from polyc.poly.context import isl_options
from tests.loopnest.indices import evaluate, holds
from tests.scop.interpreter import contains, evaluate_piecewise

DOMAIN = "0 <= i < 12 and 0 <= j < 9"


def scan(make: Callable[[isl.AstBuild, isl.PwMultiAff], object]) -> object:
    """What `make` gives for the build, and # loops -> S, inside the loops c0, c1 over S."""
    found: list[object] = []
    errors: list[Exception] = []

    def at_domain(node: isl.AstNode, build: isl.AstBuild) -> isl.AstNode:
        try:  # an exception must not pass through isl
            inverse = isl.PwMultiAff.from_map(build.get_schedule().as_map().reverse())
            found.append(make(build, inverse))
        except Exception as error:
            errors.append(error)
        return node

    node = isl.Schedule.from_domain(isl.UnionSet(f"{{ S[i, j] : {DOMAIN} }}")).get_root().child(0)
    band = isl.MultiUnionPwAff("[{ S[i, j] -> [(i)] }, { S[i, j] -> [(j)] }]")
    schedule = node.insert_partial_schedule(band).get_schedule()
    with isl_options(detect_min_max=1):
        build, handle = isl.AstBuild.alloc(isl.DEFAULT_CONTEXT).set_at_each_domain(at_domain)
        build.node_from_schedule(schedule)
        del handle
    for error in errors:
        raise error
    (result,) = found
    return result


def points() -> Iterator[dict[str, int]]:
    return ({"c0": i, "c1": j} for i in range(12) for j in range(9))


@pytest.mark.parametrize(
    "function",
    [
        "2i - 3j + 4",
        "floor(i/4) + j mod 3",
        "floor((i - 2j)/5)",
        "(3i - j) mod 7",
        "-i",
        "7",
        "i mod 4 + 4*floor(j/2)",
    ],
)
def test_functions(function):
    pw = isl.PwAff(f"{{ S[i, j] -> [{function}] }}")
    index = scan(lambda build, s: to_index(build.expr_from_pw_aff(pw.pullback_pw_multi_aff(s))))
    assert isinstance(index, Affine)
    wanted, _ = evaluate_piecewise(pw, np.array([list(p.values()) for p in points()]))
    assert [evaluate(index, p) for p in points()] == wanted.tolist()


@pytest.mark.parametrize(
    "pieces",
    [
        "S[i, j] -> [i] : i < 5; S[i, j] -> [j] : i >= 5",
        "S[i, j] -> [min(i, j)]",
        "S[i, j] -> [max(2i, j + 3)]",
        "S[i, j] -> [0] : i mod 2 = 0; S[i, j] -> [i] : i mod 2 = 1",
    ],
)
def test_pieces_become_choices_minima_and_maxima(pieces):
    pw = isl.PwAff(f"{{ {pieces} }}")
    index = scan(lambda build, s: to_index(build.expr_from_pw_aff(pw.pullback_pw_multi_aff(s))))
    assert isinstance(index, Affine)
    wanted, _ = evaluate_piecewise(pw, np.array([list(p.values()) for p in points()]))
    assert [evaluate(index, p) for p in points()] == wanted.tolist()


@pytest.mark.parametrize(
    "constraints",
    [
        "i < j",
        "i = j",
        "2 <= i <= 7 and j > 3",
        "i < 3 or j < 2",
        "(i + j) mod 3 = 0",
        "i >= 4 and (j = 1 or j >= 7)",
        "i <= 100",
        "i > 100",
    ],
)
def test_conditions(constraints):
    domain = isl.Set(f"{{ S[i, j] : {constraints} }}")
    condition = scan(
        lambda build, s: to_condition(build.expr_from_set(domain.preimage_pw_multi_aff(s)))
    )
    assert isinstance(condition, Condition)
    inside = contains(domain, np.array([list(p.values()) for p in points()]))
    assert [holds(condition, p) for p in points()] == inside.tolist()


def test_what_the_loops_imply_is_true():
    domain = isl.Set(f"{{ S[i, j] : {DOMAIN} }}")
    implied = scan(lambda b, s: to_condition(b.expr_from_set(domain.preimage_pw_multi_aff(s))))
    assert implied == Logic("and", ())


def test_plain_functions_are_applied_without_isl():
    function = isl.PwMultiAff("[size_n] -> { S[i, j] -> A[2j + 5, i - size_n, 3] }")
    c0, c1 = var("c0"), var("c1") + 4
    placed = (c1 * 2 + 5, c0 - var("size_n"), const(3))
    assert apply_affine(function, (c0, c1)) == placed


@pytest.mark.parametrize(
    "function",
    [
        "S[i, j] -> A[floor(i/4), j]",
        "S[i, j] -> A[i mod 4, j]",
        "S[i, j] -> A[i/5, j] : exists e : i = 5e",
        "S[i, j] -> A[i, j] : i < 5; S[i, j] -> A[5, j] : i >= 5",
    ],
)
def test_functions_that_divide_or_have_pieces_are_left_to_isl(function):
    assert apply_affine(isl.PwMultiAff(f"{{ {function} }}"), (var("c0"), var("c1"))) is None
