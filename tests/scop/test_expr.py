"""Expressions move between iteration spaces by substitution."""

import islpy as isl
import numpy as np

from polyc.scop.expr import (
    BOOL,
    Call,
    Cast,
    Const,
    Index,
    Load,
    Within,
    arithmetic,
    call,
    cast,
    loads,
    operations,
    pull_back,
    rebuild,
    restrict,
    show,
    walk,
)
from tests.scop.interpreter import contains, evaluate_piecewise

F32 = np.dtype(np.float32)
LOAD = Load("A", isl.PwMultiAff("{ S[i, j] -> A[j, 2i] }"), F32)
INDEX = Index(isl.PwAff("{ S[i, j] -> [i + 3j] }"))
WITHIN = Within(isl.Set("{ S[i, j] : i >= 2 and j < i }"))
TREE = call("select", WITHIN, call("mul", LOAD, cast(INDEX, F32)), Const(0.0, F32))
VIEW = isl.PwMultiAff("{ T[k] -> S[k + 1, floor(k/2)] }")


def test_calls_have_the_type_of_their_last_argument_and_comparisons_are_bool():
    assert call("add", LOAD, LOAD).dtype == F32
    assert call("lt", LOAD, LOAD).dtype == BOOL
    assert call("isnan", LOAD).dtype == BOOL
    assert call("f", LOAD, dtype=BOOL).dtype == BOOL
    assert cast(LOAD, F32) is LOAD
    assert cast(LOAD, BOOL) == Cast(LOAD, BOOL)


def test_walk_is_parents_first_and_left_to_right():
    kinds = [type(e) for e in walk(TREE)]
    assert kinds == [Call, Within, Call, Load, Cast, Index, Const]
    assert list(loads(TREE)) == [LOAD]
    assert operations(TREE) == 3
    assert arithmetic(TREE) == 2


def test_walk_and_rebuild_reach_dynamic_indices():
    inner = Load("I", isl.PwMultiAff("{ S[i, j] -> I[i] }"), np.dtype(np.int64))
    outer = Load("A", isl.PwMultiAff("{ S[i, j] -> A[0, j] }"), F32, ((0, inner),))
    assert list(loads(outer)) == [outer, inner]
    moved = pull_back(outer, VIEW)
    assert isinstance(moved, Load)
    ((position, index),) = moved.dynamic
    assert position == 0
    assert isinstance(index, Load)
    assert index.index.is_equal(isl.PwMultiAff("{ T[k] -> I[k + 1] }"))


def test_pull_back_evaluates_at_the_image():
    points = np.arange(-4, 9).reshape(-1, 1)
    images = np.concatenate([points + 1, points // 2], axis=1)
    moved = list(walk(pull_back(TREE, VIEW)))
    (load,) = (e for e in moved if isinstance(e, Load))
    (index,) = (e for e in moved if isinstance(e, Index))
    (within,) = (e for e in moved if isinstance(e, Within))
    assert (contains(within.domain, points) == contains(WITHIN.domain, images)).all()
    for new, old in [
        (index.value, INDEX.value),
        *((load.index.get_pw_aff(k), LOAD.index.get_pw_aff(k)) for k in range(2)),
    ]:
        assert (evaluate_piecewise(new, points)[0] == evaluate_piecewise(old, images)[0]).all()


def test_pull_back_along_a_partial_function_is_partial():
    half = isl.PwMultiAff("{ T[k] -> S[k, k] : k > 0 }")
    moved = pull_back(LOAD, half)
    assert isinstance(moved, Load)
    assert moved.index.domain().is_equal(isl.Set("{ T[k] : k > 0 }"))


def test_restrict_narrows_loads_only():
    half = isl.Set("{ S[i, j] : i >= 2 }")
    narrowed = restrict(TREE, half)
    (load,) = loads(narrowed)
    assert load.index.domain().is_equal(half)
    assert load.index.is_equal(LOAD.index.intersect_domain(half))
    (index,) = (e for e in walk(narrowed) if isinstance(e, Index))
    assert index is INDEX


def test_rebuild_replaces_leaves():
    zero = Const(0.0, F32)
    tree = rebuild(call("add", LOAD, cast(INDEX, F32)), lambda e: zero)
    assert show(tree) == "add(0.0, float32(0.0))"


def test_show_names_arrays_and_functions():
    text = show(TREE)
    assert text.startswith("select(within")
    assert "mul(A[" in text
    assert "float32(index" in text
