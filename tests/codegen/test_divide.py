"""Divisions of indices by constants, in vectors that no multiple of these cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.divide import divide_in_vectors
from polyc.loopnest.index import FloorDiv, const, floordiv, modulo, stride, var
from polyc.loopnest.multiples import divide_once, multiple_of, with_loop
from polyc.loopnest.nodes import Assign, Block, walk_nodes
from tests.analysis.nests import at, loop, read, run
from tests.loopnest.execute import assert_same
from tests.loopnest.indices import evaluate

t, v = var("t"), var("v")


@given(
    step=st.integers(1, 12),
    lower=st.integers(-20, 20),
    extent=st.integers(0, 9),
    scale=st.integers(-3, 3),
    outer=st.integers(-3, 3),
    shift=st.integers(-20, 20),
    divisors=st.tuples(st.integers(1, 24), st.integers(1, 24)),
)
@settings(max_examples=300, deadline=None)
def test_an_index_keeps_its_value(step, lower, extent, scale, outer, shift, divisors):
    around = loop("t", 60, step=step)
    inner = loop("v", lower + extent, lower=lower, kind="vector")
    known = with_loop({}, around)
    whole = t * outer + v * scale + shift
    coarse, fine = divisors
    index = floordiv(whole, coarse) * 7 + modulo(floordiv(whole, fine) + v, coarse) + v
    new = divide_once(index, inner, known)
    for outside in range(0, 60, step):
        for lane in range(lower, lower + extent):
            values = {"t": outside, "v": lane}
            assert evaluate(new, values) == evaluate(index, values)


@pytest.mark.parametrize("lower", [0, 16, 32])
def test_a_vector_within_a_head_has_a_stride(lower):
    inner = loop("v", lower + 16, lower=lower, kind="vector")
    index = floordiv(t + v, 64) * 8192 + modulo(t + v, 64)
    assert stride(index, "v") is None
    assert stride(divide_once(index, inner, {"t": 48}), "v") == 1
    assert stride(divide_once(index, inner, {"t": 24}), "v") is None, "one may be cut"


def test_what_loops_say_is_used():
    copy = run("S", [t, v], at("Y", floordiv(t + v, 64), modulo(t + v, 64)), read("X", t + v))
    nest = Block((loop("t", 192, loop("v", 16, copy, kind="vector"), step=16),))
    after = divide_in_vectors(nest)
    (assign,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert [stride(i, "v") for i in assign.target.index] == [0, 1]
    data = np.arange(192, dtype=np.float32)
    assert_same(nest, after, {"X": data, "Y": np.zeros((3, 64), np.float32)})
    uneven = Block((loop("t", 180, loop("v", 16, copy, kind="vector"), step=12),))
    assert divide_in_vectors(uneven) == uneven


def test_multiples():
    assert multiple_of(const(0), {}) == 0
    assert multiple_of(t * 6 + 9, {}) == 3
    assert multiple_of(modulo(t, 12), {"t": 8}) == 4
    assert multiple_of(floordiv(t, 5), {"t": 8}) == 1
    assert with_loop({"u": 12}, loop("t", 99, lower=var("u"), step=8))["t"] == 4
    assert isinstance(floordiv(t + v, 64).terms[0][0], FloorDiv)
