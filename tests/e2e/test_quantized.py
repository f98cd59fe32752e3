"""Compiled quantised operators: rounding, saturation, and sums of integers that are exact."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.e2e.cases import Case, family, seeds, shapes

TYPES = ("int8", "uint8", "int16", "uint16")


def whole(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def linear(data: st.DataObject) -> list[Case]:
    """There and back, with one scale or one for each position along an axis."""
    cases = []
    for dtype in TYPES:
        rng, shape = data.draw(seeds()), data.draw(shapes(1, 3))
        axis = data.draw(st.integers(0, len(shape) - 1))
        count = data.draw(st.sampled_from([(), (shape[axis],)]))
        scale = np.asarray(2.0 ** rng.integers(-3, 3, count), np.float32)  # quotients are exact
        zero = np.asarray(whole(rng, dtype, count))
        x = (rng.integers(-4000, 4000, shape) / np.float32(8)).astype(np.float32)
        known = data.draw(st.sampled_from([(), (1, 2)]))
        cases.append(Case("QuantizeLinear", [x, scale, zero], {"axis": axis}, known))
        q = whole(rng, dtype, shape)
        cases.append(Case("DequantizeLinear", [q, scale, zero], {"axis": axis}, known, rtol=1e-6))
    return cases


def products(data: st.DataObject) -> list[Case]:
    """MatMulInteger and ConvInteger are exact; the requantised ones are off by one at most."""
    rng = data.draw(seeds())
    m, k, n = (data.draw(st.sampled_from([1, 5, 17, 33])) for _ in range(3))
    left, right = (data.draw(st.sampled_from(["int8", "uint8"])) for _ in range(2))
    known = data.draw(st.sampled_from([(), (1, 3)]))
    a, b = whole(rng, left, (2, m, k)), whole(rng, right, (k, n))
    za, zb = np.asarray(whole(rng, left, ())), whole(rng, right, (n,))
    wide = [v.astype(np.int32) for v in (a, b, za, zb)]
    exact = np.matmul(wide[0] - wide[2], wide[1] - wide[3]).astype(np.int32)
    cases = [Case("MatMulInteger", [a, b, za, zb], {}, known, expected=[exact])]
    x, w = whole(rng, "uint8", (1, 3, 9, 8)), whole(rng, "int8", (5, 3, 3, 3))
    zx, zw = np.asarray(whole(rng, "uint8", ())), np.asarray(np.int8(0))
    flags = {"pads": [1, 0, 1, 2]}
    padded = np.pad(x.astype(np.int32) - zx, ((0, 0), (0, 0), (1, 1), (0, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact = np.einsum("ncyxhw,ochw->noyx", windows, w.astype(np.int32)).astype(np.int32)
    cases.append(Case("ConvInteger", [x, w, zx, zw], flags, known, expected=[exact]))
    return cases


test_linear = family(linear)
test_products = family(products)
