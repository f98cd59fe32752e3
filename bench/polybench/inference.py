"""Loops of networks and of images of bytes, as people write them."""

from __future__ import annotations

import math

import numpy as np

import polyc
from bench.polybench.everyday import Data, make_problem, random

# -- networks -------------------------------------------------------------------------------------


@polyc.kernel
def softmax(x, y):
    n, m = x.shape
    for i in range(n):
        top = x[i, 0]
        for j in range(1, m):
            top = max(top, x[i, j])
        s = 0.0
        for j in range(m):
            y[i, j] = math.exp(x[i, j] - top)
            s += y[i, j]
        for j in range(m):
            y[i, j] = y[i, j] / s


def softmax_data(n: int) -> Data:
    return {"x": _singles(n, 1000), "y": np.zeros((n, 1000), np.float32)}


@polyc.kernel
def layer_norm(x, scale, shift, y):
    n, m = x.shape
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j]
        mean = s / m
        v = 0.0
        for j in range(m):
            v += (x[i, j] - mean) * (x[i, j] - mean)
        inverse = 1.0 / math.sqrt(v / m + 1e-5)
        for j in range(m):
            y[i, j] = (x[i, j] - mean) * inverse * scale[j] + shift[j]


def layer_norm_data(n: int) -> Data:
    scale, shift = _singles(768), _singles(768)
    return {"x": _singles(n, 768), "scale": scale, "shift": shift, "y": _singles(n, 768)}


@polyc.kernel
def embed(ids, table, out):
    n, k = ids.shape
    for i in range(n):
        for d in range(table.shape[1]):
            s = 0.0
            for j in range(k):
                s += table[ids[i, j], d]
            out[i, d] = s / k


def embed_data(n: int) -> Data:
    ids = (5000 * random(n, 10)).astype(np.int64)
    return {"ids": ids, "table": _singles(5000, 64), "out": np.zeros((n, 64), np.float32)}


@polyc.kernel
def rotate(q, cos, sin, out):
    n, heads, d = q.shape
    for i in range(n):
        for h in range(heads):
            for k in range(d // 2):
                out[i, h, 2 * k] = q[i, h, 2 * k] * cos[i, k] - q[i, h, 2 * k + 1] * sin[i, k]
                out[i, h, 2 * k + 1] = q[i, h, 2 * k] * sin[i, k] + q[i, h, 2 * k + 1] * cos[i, k]


def rotate_data(n: int) -> Data:
    q, cos, sin = _singles(n, 12, 64), _singles(n, 32), _singles(n, 32)
    return {"q": q, "cos": cos, "sin": sin, "out": np.zeros((n, 12, 64), np.float32)}


@polyc.kernel
def lstm_cell(x, w, u, b, h, c, out):
    n = h.shape[0]
    for j in range(n):
        i = b[0, j]
        f = b[1, j]
        g = b[2, j]
        o = b[3, j]
        for e in range(x.shape[0]):
            i += w[0, j, e] * x[e]
            f += w[1, j, e] * x[e]
            g += w[2, j, e] * x[e]
            o += w[3, j, e] * x[e]
        for e in range(n):
            i += u[0, j, e] * h[e]
            f += u[1, j, e] * h[e]
            g += u[2, j, e] * h[e]
            o += u[3, j, e] * h[e]
        c[j] = c[j] / (1.0 + math.exp(-f)) + math.tanh(g) / (1.0 + math.exp(-i))
        out[j] = math.tanh(c[j]) / (1.0 + math.exp(-o))


def lstm_cell_data(n: int) -> Data:
    w, u, b = (0.1 * _singles(4, *shape) for shape in ((n, n // 2), (n, n), (n,)))
    x, h, c = _singles(n // 2), _singles(n), _singles(n)
    return {"x": x, "w": w, "u": u, "b": b, "h": h, "c": c, "out": np.zeros(n, np.float32)}


@polyc.kernel
def sparse_product(values, columns, x, y):
    n, k = values.shape
    for i in range(n):
        s = 0.0
        for j in range(k):
            s += values[i, j] * x[columns[i, j]]
        y[i] = s


def sparse_product_data(n: int) -> Data:
    columns = (n * random(n, 16)).astype(np.int64)
    return {"values": random(n, 16), "columns": columns, "x": random(n), "y": np.zeros(n)}


@polyc.kernel
def quantise(x, scale, q):
    n, m = x.shape
    for i in range(n):
        top = 0.0
        for j in range(m):
            top = max(top, abs(x[i, j]))
        scale[i] = top / 127.0
        for j in range(m):
            q[i, j] = int(min(max(x[i, j] / scale[i], -127.0), 127.0))


def quantise_data(n: int) -> Data:
    scale, q = np.zeros(n, np.float32), np.zeros((n, 1000), np.int8)
    return {"x": _singles(n, 1000), "scale": scale, "q": q}


@polyc.kernel
def product_of_bytes(a, b, c):
    n, k = a.shape
    for i in range(n):
        for j in range(b.shape[0]):
            s = 0
            for e in range(k):
                s += int(a[i, e]) * int(b[j, e])
            c[i, j] = s


def product_of_bytes_data(n: int) -> Data:
    a, b = (_bytes(n, 2 * n).astype(np.int8) for _ in range(2))
    return {"a": a, "b": b, "c": np.zeros((n, n), np.int32)}


# -- images of bytes ------------------------------------------------------------------------------


@polyc.kernel
def brighten(image, scale, out):
    n, m = image.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = int(min(max(scale * image[i, j] - 20.0, 0.0), 255.0))


def brighten_data(n: int) -> Data:
    return {"image": _bytes(n, n + 1), "scale": 1.3, "out": _bytes(n, n + 1)}


@polyc.kernel
def blend(a, b, weight, out):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = (int(a[i, j]) * weight + int(b[i, j]) * (256 - weight)) // 256


def blend_data(n: int) -> Data:
    a = _bytes(n, n + 1)
    return {"a": a, "b": a[::-1].copy(), "weight": 77, "out": np.zeros_like(a)}


@polyc.kernel
def threshold(image, level, out):
    n, m = image.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = 255 if image[i, j] > level else 0


def threshold_data(n: int) -> Data:
    return {"image": _bytes(n, n + 1), "level": 99, "out": _bytes(n, n + 1)}


@polyc.kernel
def box_blur(image, out):
    n, m = image.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            s = 0
            for u in range(-1, 2):
                for v in range(-1, 2):
                    s += int(image[i + u, j + v])
            out[i, j] = s // 9


def box_blur_data(n: int) -> Data:
    return {"image": _bytes(n, n + 1), "out": np.zeros((n, n + 1), np.uint8)}


@polyc.kernel
def match(block, image, out):
    n, m = out.shape
    for y in range(n):
        for x in range(m):
            s = 0
            for i in range(8):
                for j in range(8):
                    s += abs(int(block[i, j]) - int(image[y + i, x + j]))
            out[y, x] = s


def match_data(n: int) -> Data:
    out = np.zeros((n, 2 * n), np.int32)
    return {"block": _bytes(8, 8), "image": _bytes(n + 7, 2 * n + 7), "out": out}


@polyc.kernel
def sum_of_rows(image, out):
    n, m = image.shape
    for i in range(n):
        s = 0
        for j in range(m):
            s += int(image[i, j])
        out[i] = s


def sum_of_rows_data(n: int) -> Data:
    return {"image": _bytes(n, n + 1), "out": np.zeros(n, np.int64)}


def _singles(*shape: int) -> np.ndarray:
    return random(*shape).astype(np.float32)


def _bytes(*shape: int) -> np.ndarray:
    return (256 * random(*shape)).astype(np.uint8)


INFERENCE = (
    make_problem(softmax, softmax_data, 2000, "y"),
    make_problem(layer_norm, layer_norm_data, 2000, "y"),
    make_problem(embed, embed_data, 10000, "out"),
    make_problem(rotate, rotate_data, 2000, "out"),
    make_problem(lstm_cell, lstm_cell_data, 512, "out", "c"),
    make_problem(sparse_product, sparse_product_data, 100000, "y"),
    make_problem(quantise, quantise_data, 2000, "q", "scale"),
    make_problem(product_of_bytes, product_of_bytes_data, 300, "c"),
    make_problem(brighten, brighten_data, 2000, "out"),
    make_problem(blend, blend_data, 2500, "out"),
    make_problem(threshold, threshold_data, 3000, "out"),
    make_problem(box_blur, box_blur_data, 2000, "out"),
    make_problem(match, match_data, 300, "out"),
    make_problem(sum_of_rows, sum_of_rows_data, 3000, "out"),
)
