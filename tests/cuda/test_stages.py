"""Models in stages on the emulator: what a kernel finds decides what is compiled next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc.options import options_from_environment
from tests.staged import assert_same, model_of, run_ort

pytestmark = pytest.mark.cuda

EMULATED = replace(options_from_environment(), emulated=True)
RNG = np.random.default_rng(2)


def compiled(source):
    return polyc.compile(source, target="cuda:sm_80", options=EMULATED)


def test_what_is_found():
    source = model_of("""g (float[5, 9] x, float[9, 2] w) => (int64[2, n] i, float[n, 2] y) {
        i = NonZero(x) last = Constant<value_int = 1>() k = Gather(i, last)
        rows = Gather(w, k) y = Exp(rows) }""")
    x = np.where(RNG.random((5, 9)) < 0.4, 1, 0).astype(np.float32)
    feeds = {"x": x, "w": RNG.random((9, 2)).astype(np.float32)}
    got = compiled(source).run(feeds)
    for name, want in zip("iy", run_ort(source, feeds), strict=True):
        assert_same(np.asarray(got[name]), want)


@pytest.mark.thorough
def test_suppression():
    source = model_of("""g (float[1, 17, 4] b, float[1, 2, 17] s, int64[1] m, float[1] o,
        float[1] l) => (int64[k, 3] y) { y = NonMaxSuppression(b, s, m, o, l) }""")
    low = RNG.random((1, 17, 2))
    feeds = {"b": np.concatenate([low, low + 0.6], -1).astype(np.float32)}
    feeds |= {"s": RNG.random((1, 2, 17)).astype(np.float32), "m": np.array([6])}
    feeds |= {"o": np.float32([0.4]), "l": np.float32([0.1])}
    np.testing.assert_array_equal(compiled(source).run(feeds)["y"], run_ort(source, feeds)[0])


def test_random_numbers_are_those_of_the_cpu():
    source = model_of("g () => (float[7, 9] y) { y = RandomUniform<shape = [7, 9], seed = 4.0>() }")
    np.testing.assert_array_equal(compiled(source)(), polyc.compile(source, target="baseline")())
