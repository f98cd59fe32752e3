"""Attention whose length a call says: short scores stay near, and all are right."""

from __future__ import annotations

import re

import numpy as np
import pytest

from polyc import Graph, Options, compile, load, ops
from polyc.errors import IllegalSchedule
from polyc.poly import conditions
from polyc.promote import keep
from tests.planted import Proven, prove

rng = np.random.default_rng(3)


def attention(heads: int = 2, width: int = 8) -> Graph:
    q, k, v = (ops.input(name, ("n", heads, "length", width)) for name in "qkv")
    scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * np.float32(width**-0.5)
    return Graph.of(y=ops.matmul(ops.softmax(scores, axis=-1), v))


def expected(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ v


def draw(n: int, length: int, heads: int = 2, width: int = 8) -> list[np.ndarray]:
    return [rng.standard_normal((n, heads, length, width)).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("threads", [1, 2])
def test_any_length(threads):
    model = compile(attention(), options=Options(threads=threads))
    assert "_near[" in model.source
    for n, length in [(1, 1), (3, 2), (1, 29), (2, 30), (1, 31), (2, 128), (1, 500), (1, 1025)]:
        given = draw(n, length)
        np.testing.assert_allclose(model(*given), expected(*given), rtol=2e-5, atol=2e-6)


def block(heads: int, width: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Attention of an image's pixels, all heads in one product, added to them and projected."""
    c = heads * width
    w, o = ((rng.standard_normal(s) / c**0.5).astype(np.float32) for s in ((c, 3 * c), (c, c)))
    x = ops.relu(ops.input("x", ("n", c, "h", "w")))
    rows = ops.transpose(ops.reshape(x, (0, c, -1)), (0, 2, 1))
    parts = ops.split(rows @ w, axis=2, parts=3)
    q, k, v = (
        ops.transpose(ops.reshape(part, (0, -1, heads, width)), (0, 2, 1, 3)) for part in parts
    )
    scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * np.float32(width**-0.5)
    seen = ops.matmul(ops.softmax(scores, axis=-1), v)
    together = ops.reshape(ops.transpose(seen, (0, 2, 1, 3)), (0, -1, c))
    return Graph.of(y=(rows + together) @ o), w, o


@pytest.mark.parametrize("threads", [1, 2])
def test_scores_of_all_heads_stay_near_in_one_run(threads):
    """Tiles of 14 rows with those of 4 heads are one run of memory, whatever is left of them."""
    heads, width = 4, 32
    c = heads * width
    graph, w, o = block(heads, width)
    hint = {"n": 1, "h": 8, "w": 40}
    model = compile(graph, options=Options(threads=threads), target="avx512", hint=hint)
    assert "_near[" in model.source
    near = set(re.findall(r"(\w+)_fits = 56 \* ", model.source))  # 14 rows of 4 heads
    assert len(near) == 1  # scores, exponentials and softmax share an array
    for n, h, wide in [(1, 1, 1), (2, 1, 3), (1, 2, 7), (3, 3, 5), (1, 13, 13), (2, 8, 11)]:
        x = rng.standard_normal((n, c, h, wide)).astype(np.float32)
        rows = np.maximum(x, 0).reshape(n, c, -1).swapaxes(1, 2).astype(np.float64)
        q, k, v = (
            part.reshape(n, -1, heads, width).swapaxes(1, 2) for part in np.split(rows @ w, 3, 2)
        )
        seen = expected(q, k, v).swapaxes(1, 2).reshape(n, -1, c)
        np.testing.assert_allclose(model(x), (rows + seen) @ o, rtol=1e-4, atol=2e-5)


def test_scores_too_long_for_the_stack(tmp_path):
    """Rows of this length are in memory, those of calls before and after it are not."""
    model = compile(attention(heads=1), options=Options(threads=2))
    for length in (70, 4600, 71):
        given = draw(1, length, heads=1)
        np.testing.assert_allclose(model(*given), expected(*given), rtol=5e-5, atol=5e-6)
    model.save(tmp_path / "kept")
    given = draw(2, 33, heads=1)
    np.testing.assert_allclose(
        load(tmp_path / "kept")(*given), expected(*given), rtol=2e-5, atol=2e-6
    )


def test_rows_whose_number_is_bounded_by_a_product(tmp_path, monkeypatch):
    """There are at most 10^18; that times the length of one is a negative number at 128.

    Here isl is told so, which it is not of sizes that may be this large.
    """
    monkeypatch.setattr(conditions, "FAR", 1 << 62)
    x = ops.max_pool(ops.input("x", ("n", 4, "h", "w")), (1, 1), strides=(8, 4))
    x = x + ops.slice(x, (0, 0), (10**9, 10**9), (2, 3))
    flat = ops.reshape(x, (0, 4, -1))
    graph = Graph.of(y=ops.softmax(ops.matmul(ops.transpose(flat, (0, 2, 1)), flat), axis=1))
    model = compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    assert "_near[" in model.source
    for n, h, w in [(1, 64, 32), (2, 64, 64), (1, 121, 31)]:
        given = rng.standard_normal((n, 4, h, w)).astype(np.float32)
        rows = 2 * given[:, :, ::8, ::4].reshape(n, 4, -1).astype(np.float64)
        scores = np.exp(rows.swapaxes(1, 2) @ rows)
        wanted = scores / scores.sum(1, keepdims=True)
        np.testing.assert_allclose(model(given), wanted, rtol=2e-5, atol=2e-6)


def test_rows_whose_number_is_bounded_by_the_user(tmp_path):
    """What a call has decides, and not the most that one might have."""
    x = ops.input("x", ("n", 4, "length"))
    graph = Graph.of(y=ops.softmax(ops.matmul(ops.transpose(x, (0, 2, 1)), x), axis=1))
    chosen = Options(threads=1, cache_dir=tmp_path)
    model = compile(graph, dims={"length": (1, 30_000)}, options=chosen)
    assert "_fits = size_length * size_length <= " in model.source


def test_an_array_that_others_read_is_not_near(tmp_path, monkeypatch):
    """Who reads it later would find what was in its memory before."""
    q, k, v = (ops.input(name, ("n", 2, "length", 8)) for name in "qkv")
    rows = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))), axis=-1)
    graph = Graph.of(y=rows @ v, z=ops.transpose(rows, (0, 1, 3, 2)) @ v)
    with pytest.raises(Proven):
        prove(graph, tmp_path / "right", "avx2")
    right = keep.find_near

    def wrong(tree, statements, private, *others):
        rows = {s.array for s in statements if not s.array.endswith("_acc")}
        return right(tree, statements, rows, *others)

    monkeypatch.setattr(keep, "find_near", wrong)
    with pytest.raises(IllegalSchedule, match="for itself, and others read that"):
        prove(graph, tmp_path / "wrong", "avx2")
