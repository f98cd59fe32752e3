"""Reduction iterators that index through a reshape are split into digits."""

import islpy as isl
import numpy as np

from polyc.poly.affine import outputs, single_aff
from polyc.scop.delinearise import delinearise
from polyc.scop.expr import Load, call
from polyc.scop.scop import Array, Scop
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.scop.rewrites import check, get


def flattened(extent: int, access: str, shape: tuple[int, ...]) -> Scop:
    """acc[n] += X[access(k)] * W[n, k], for k below `extent`."""
    value = call("mul", load(f"{{ S[n, k] -> X[{access}] }}"), load("{ S[n, k] -> W[n, k] }"))
    weights = np.arange(3 * extent, dtype=np.float32).reshape(3, extent) % 7
    of = scop(
        [
            array("X", shape, "input"),
            array("W", [3, extent], "constant"),
            array("acc", [3], "output"),
        ],
        statement("{ Z[n] : 0 <= n < 3 }", "{ Z[n] -> acc[n] }", ZERO),
        statement(
            f"{{ S[n, k] : 0 <= n < 3 and 0 <= k < {extent} }}",
            "{ S[n, k] -> acc[n] }",
            value,
            "add",
        ),
    )
    arrays = {**of.arrays, "W": Array("W", F32, (3, extent), "constant", weights)}
    return Scop(of.name, of.statements, arrays, of.inputs, of.outputs)


def has_division(load: Load) -> bool:
    affs = [single_aff(pw) for pw in outputs(load.index)]
    return any(aff is None or aff.dim(isl.dim_type.div) for aff in affs)


def test_a_flattened_tensor_is_walked_in_its_own_dimensions():
    before = flattened(42, "floor(k/14), floor((k mod 14)/7), k mod 7", (3, 2, 7))
    after = check(delinearise, before)
    update = get(after, "S")
    assert len(update.iterators) == 4
    assert not any(map(has_division, update.loads))
    assert update.domain.is_equal(
        isl.Set("{ S[n, a, b, c] : 0 <= n < 3 and 0 <= a < 3 and 0 <= b < 2 and 0 <= c < 7 }")
    )
    weights = next(ld for ld in update.loads if ld.array == "W")
    assert weights.index.is_equal(isl.PwMultiAff("{ S[n, a, b, c] -> W[n, 14a + 7b + c] }"))


def test_divisors_that_do_not_divide_each_other_are_left():
    before = flattened(30, "floor(k/6), (floor(k/4)) mod 3", (5, 3))
    after = check(delinearise, before)
    assert get(after, "S").iterators == ("n", "k")


def test_an_extent_that_is_not_a_multiple_is_left():
    before = flattened(10, "floor(k/4), k mod 4", (3, 4))
    assert get(check(delinearise, before), "S").iterators == ("n", "k")


def test_statements_without_divisions_are_left_alone():
    before = flattened(6, "k", (6,))
    assert delinearise(before).statements == before.statements


def test_pointwise_statements_keep_their_iterators():
    before = scop(
        [array("X", [2, 3], "input"), array("Y", [6], "output")],
        statement(
            "{ P[i] : 0 <= i < 6 }", "{ P[i] -> Y[i] }", load("{ P[i] -> X[floor(i/3), i mod 3] }")
        ),
    )
    assert delinearise(before) == before


def test_iterators_of_the_result_stay_whole():
    """The statements that begin and use the sum go through m as one loop, and so does the sum."""
    shuffled = load("{ S[m, k] -> X[m mod 4, floor(m/4), k] }")
    before = scop(
        [array("X", [4, 3, 5], "input"), array("acc", [12], "output")],
        statement("{ Z[m] : 0 <= m < 12 }", "{ Z[m] -> acc[m] }", ZERO),
        statement(
            "{ S[m, k] : 0 <= m < 12 and 0 <= k < 5 }", "{ S[m, k] -> acc[m] }", shuffled, "add"
        ),
    )
    assert delinearise(before).statements == before.statements
