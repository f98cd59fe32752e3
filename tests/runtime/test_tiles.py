"""Products of registers for matrices: as loops on every machine, and by its instructions."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from polyc.target.machine import host_features
from tests.runtime.native import Isa, Uses, compiled, preamble

ISAS = (
    (
        Isa("tiles", ("-march=x86-64-v3", "-mamx-tile", "-mamx-int8", "-mamx-bf16"), (), 8),
        "amx_bf16",
    ),
    (Isa("loops", (), (), 4), "sse2"),
)
KINDS = {
    "u8i8": (np.uint8, np.int8, np.int32),
    "i8u8": (np.int8, np.uint8, np.int32),
    "i8i8": (np.int8, np.int8, np.int32),
    "bf16bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
}
SHAPES = ((16, 16, 16), (7, 5, 3), (1, 16, 16), (16, 1, 1))
STEP = 80
"""Elements between rows in memory: more than any register has."""


def source() -> str:
    """A function for each kind and shape: result += a * b, and the result of zeros += a * b."""
    uses, texts = Uses(headers={"polyc_tiles.h"}), []
    for kinds in KINDS:
        a, b = ("bf16", "bf16") if kinds == "bf16bf16" else (kinds[:2], kinds[2:])
        acc = "f32" if kinds == "bf16bf16" else "i32"
        for m, n, k in SHAPES:
            sizes = ", ".join(map(str, [4 * n, 4 * n, 4 * k, 4 * n]))
            rows = ", ".join(map(str, [m, m, m, k]))
            texts.append(
                f"void {kinds}_{m}_{n}_{k}({acc} *acc, {acc} *alone, const {a} *a, const {b} *b)\n"
                f"{{ static const pc_shapes shapes = {{1, 0, {{0}}, {{{sizes}}}, {{{rows}}}}};\n"
                f"  PC_TILES; PC_TILES_AS(shapes);\n"
                f"  PC_TILE_LOAD(0, acc, {STEP}); PC_TILE_ZERO(1);\n"
                f"  PC_TILE_LOAD(2, a, {STEP}); PC_TILE_LOAD(3, b, {STEP});\n"
                f"  PC_TILE_PRODUCT({kinds}, 0, 2, 3); PC_TILE_PRODUCT({kinds}, 1, 2, 3);\n"
                f"  PC_TILE_STORE(0, acc, {STEP}); PC_TILE_STORE(1, alone, {STEP});\n"
                f"  PC_TILES_END; }}"
            )
    return preamble(uses) + "\n".join(texts)


def values(rng: np.random.Generator, dtype: type, shape: tuple[int, int]) -> np.ndarray:
    if dtype is ml_dtypes.bfloat16:
        return rng.standard_normal(shape).astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    found = rng.integers(least, most, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice([least, most], shape), found).astype(dtype)


@pytest.mark.parametrize(("isa", "feature"), ISAS, ids=lambda x: getattr(x, "name", ""))
def test_products_and_nothing_beside_them(tmp_path, isa, feature):
    if feature not in (host_features() or ()):
        pytest.skip(f"this CPU has no {feature}")
    library = compiled(source(), isa, tmp_path)
    rng = np.random.default_rng(0)
    for kinds, (a_type, b_type, dtype) in KINDS.items():
        terms = 4 // np.dtype(a_type).itemsize
        for m, n, k in SHAPES:
            a, b = values(rng, a_type, (m, STEP)), values(rng, b_type, (k, STEP))
            acc = values(rng, np.int8, (m, STEP)).astype(dtype)
            old, alone = acc.copy(), acc.copy()
            words = a[:, : terms * k].reshape(m, k, 1, terms).astype(np.float64)
            others = b[:, : terms * n].reshape(1, k, n, terms).astype(np.float64)
            product = (words * others).sum((1, 3))
            places = (ctypes.c_void_p(x.ctypes.data) for x in (acc, alone, a, b))
            getattr(library, f"{kinds}_{m}_{n}_{k}")(*places)
            for found, start in ((acc, old[:, :n]), (alone, np.zeros((m, n)))):
                np.testing.assert_allclose(found[:, :n], start + product, rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(found[:, n:], old[:, n:])


def test_a_sum_that_leaves_32_bits_wraps(tmp_path):
    isa = next(isa for isa, feature in ISAS if feature in (host_features() or ()))
    library = compiled(source(), isa, tmp_path)
    a, b = np.full((16, STEP), 255, np.uint8), np.full((16, STEP), 127, np.int8)
    acc = np.full((16, STEP), 2**31 - 1, np.int32)
    alone = acc.copy()
    places = (ctypes.c_void_p(x.ctypes.data) for x in (acc, alone, a, b))
    library.u8i8_16_16_16(*places)
    assert (acc[:, :16] == 2**31 - 1 + 64 * 255 * 127 - 2**32).all()
