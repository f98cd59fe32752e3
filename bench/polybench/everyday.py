"""Loops as people write them: locals that sum or pick, conditions on data, bytes of images.

They are none of PolyBench's; each has one number for its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size

Data = dict[str, Any]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape)


# -- signals and images --------------------------------------------------------------------------


@polyc.kernel
def moving_average(x, y, w):
    n, m = x.shape
    for i in range(n - w + 1):
        for j in range(m):
            s = 0.0
            for k in range(w):
                s += x[i + k, j]
            y[i, j] = s / w


def moving_average_data(n: int) -> Data:
    return {"x": random(5 * n + 5, 20), "y": np.zeros((5 * n + 5, 20)), "w": 5}


@polyc.kernel
def autocorrelation(x, c):
    n = len(x)
    for lag in range(len(c)):
        s = 0.0
        for i in range(n - lag):
            s += x[i] * x[i + lag]
        c[lag] = s / n


def autocorrelation_data(n: int) -> Data:
    return {"x": random(4 * n), "c": np.zeros(n // 4 + 1)}


@polyc.kernel
def smooth(image, rows, out, w):
    n, m = image.shape
    for i in range(n):
        for j in range(2, m - 2):
            s = 0.0
            for t in range(5):
                s += w[t] * image[i, j + t - 2]
            rows[i, j] = s
    for i in range(2, n - 2):
        for j in range(m):
            s = 0.0
            for t in range(5):
                s += w[t] * rows[i + t - 2, j]
            out[i, j] = s


def smooth_data(n: int) -> Data:
    image = random(n + 4, n + 5)
    return {"image": image, "rows": 0 * image, "out": 0 * image, "w": random(5)}


@polyc.kernel
def erode(image, out):
    n, m = image.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            low = image[i, j]
            for u in range(3):
                for v in range(3):
                    low = min(low, image[i + u - 1, j + v - 1])
            out[i, j] = low


def erode_data(n: int) -> Data:
    image = random(n + 2, n + 3)
    return {"image": image, "out": 0 * image}


@polyc.kernel
def integral(image, table):
    n, m = image.shape
    for i in range(n):
        for j in range(m):
            total = int(image[i, j])
            if i > 0:
                total = total + table[i - 1, j]
            if j > 0:
                total = total + table[i, j - 1]
            if i > 0 and j > 0:
                total = total - table[i - 1, j - 1]
            table[i, j] = total


def integral_data(n: int) -> Data:
    image = (256 * random(n, n + 1)).astype(np.uint8)
    return {"image": image, "table": np.zeros((n, n + 1), np.int32)}


@polyc.kernel
def grey(colours, out):
    n, m, _ = colours.shape
    for i in range(n):
        for j in range(m):
            red, green, blue = colours[i, j, 0], colours[i, j, 1], colours[i, j, 2]
            out[i, j] = (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def grey_data(n: int) -> Data:
    colours = (256 * random(n, n + 1, 3)).astype(np.uint8)
    return {"colours": colours, "out": np.zeros((n, n + 1))}


# -- tables that are filled step by step -----------------------------------------------------------


@polyc.kernel
def viterbi(steps, emitted, score, back):
    n = steps.shape[0]
    for t in range(1, score.shape[0]):
        for j in range(n):
            best = -1e300
            which = 0
            for i in range(n):
                s = score[t - 1, i] + steps[i, j]
                if s > best:
                    best = s
                    which = i
            score[t, j] = best + emitted[t, j]
            back[t, j] = which


def viterbi_data(n: int) -> Data:
    steps, emitted = random(n, n), random(n + 1, n)
    return {
        "steps": steps,
        "emitted": emitted,
        "score": emitted.copy(),
        "back": np.zeros((n + 1, n), np.int64),
    }


@polyc.kernel
def forward(A, B, alpha):
    n = A.shape[0]
    for t in range(1, B.shape[0]):
        total = 0.0
        for j in range(n):
            s = 0.0
            for i in range(n):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * B[t, j]
            total += alpha[t, j]
        for j in range(n):
            alpha[t, j] = alpha[t, j] / total


def forward_data(n: int) -> Data:
    B = random(n + 1, n)
    return {"A": random(n, n), "B": B, "alpha": B.copy()}


@polyc.kernel
def smith_waterman(a, b, H):
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            match = 2 if a[i - 1] == b[j - 1] else -1
            H[i, j] = max(0, H[i - 1, j - 1] + match, H[i - 1, j] - 1, H[i, j - 1] - 1)


def smith_waterman_data(n: int) -> Data:
    a, b = ((4 * random(n + k)[k:]).astype(np.int8) for k in (0, 1))
    return {"a": a, "b": b, "H": np.zeros((n + 1, n + 1), np.int32)}


# -- physics and finance ---------------------------------------------------------------------------


@polyc.kernel
def attract(x, mass, force):
    for i in range(len(mass)):
        fx = 0.0
        fy = 0.0
        fz = 0.0
        for j in range(len(mass)):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            dz = x[j, 2] - x[i, 2]
            d = dx * dx + dy * dy + dz * dz + 1e-6
            s = mass[j] / (d * math.sqrt(d))
            fx += s * dx
            fy += s * dy
            fz += s * dz
        force[i, 0] = fx
        force[i, 1] = fy
        force[i, 2] = fz


def attract_data(n: int) -> Data:
    return {"x": random(n, 3), "mass": random(n), "force": np.zeros((n, 3))}


@polyc.kernel
def mandelbrot(re, im, count):
    for i in range(len(im)):
        for j in range(len(re)):
            a = 0.0
            b = 0.0
            n = 0
            for _ in range(50):
                inside = a * a + b * b < 4.0
                c = a * a - b * b + re[j]
                b = 2 * a * b + im[i] if inside else b
                a = c if inside else a
                n = n + 1 if inside else n
            count[i, j] = n


def mandelbrot_data(n: int) -> Data:
    # Of multiples of 1/64, so that few steps round: the count would tell how.
    re, im = (np.arange(n) % 192 - 128) / 64, (np.arange(n) % 128 - 64) / 64
    return {"re": re, "im": im, "count": np.zeros((n, n), np.int64)}


@polyc.kernel
def equilibrium(f, w, c, u, feq):
    q, n, m = f.shape
    for i in range(n):
        for j in range(m):
            d = 0.0
            for k in range(q):
                d += f[k, i, j]
            uu = u[0, i, j] * u[0, i, j] + u[1, i, j] * u[1, i, j]
            for k in range(q):
                cu = c[k, 0] * u[0, i, j] + c[k, 1] * u[1, i, j]
                feq[k, i, j] = d * w[k] * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * uu)


def equilibrium_data(n: int) -> Data:
    f = random(9, n, n)
    return {"f": f, "w": random(9), "c": random(9, 2), "u": random(2, n, n), "feq": 0 * f}


@polyc.kernel
def options(price, strike, years, rate, spread, value):
    for i in range(len(price)):
        root = spread * math.sqrt(years[i])
        d = (math.log(price[i] / strike[i]) + (rate + 0.5 * spread * spread) * years[i]) / root
        above = 0.5 * (1 + math.erf(d / math.sqrt(2)))
        below = 0.5 * (1 + math.erf((d - root) / math.sqrt(2)))
        value[i] = price[i] * above - strike[i] * math.exp(-rate * years[i]) * below


def options_data(n: int) -> Data:
    given = {name: 1 + random(n) for name in ("price", "strike", "years")}
    return {**given, "rate": 0.02, "spread": 0.3, "value": np.zeros(n)}


# -- learning --------------------------------------------------------------------------------------


@polyc.kernel
def distances(a, b, d):
    n, c = a.shape
    for i in range(n):
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(c):
                s += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
            d[i, j] = math.sqrt(s)


def distances_data(n: int) -> Data:
    return {"a": random(n, 32), "b": 1 - random(n, 32), "d": np.zeros((n, n))}


@polyc.kernel
def nearest(a, b, near):
    n, c = a.shape
    for i in range(n):
        best = 1e30
        which = 0
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(c):
                s += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
            if s < best:
                best = s
                which = j
        near[i] = which


def nearest_data(n: int) -> Data:
    return {"a": random(n, 16), "b": 1 - random(30, 16), "near": np.zeros(n, np.int64)}


@polyc.kernel
def convolve(x, w, b, y):
    batch, channels, height, width = y.shape
    for a in range(batch):
        for o in range(channels):
            for i in range(height):
                for j in range(width):
                    s = b[o]
                    for ci in range(w.shape[1]):
                        for u in range(3):
                            for v in range(3):
                                s += w[o, ci, u, v] * x[a, ci, i + u, j + v]
                    y[a, o, i, j] = max(s, 0.0)


def convolve_data(n: int) -> Data:
    return {
        "x": random(2, 3, n + 2, n + 2) - 0.5,
        "w": random(16, 3, 3, 3) - 0.5,
        "b": random(16),
        "y": np.zeros((2, 16, n, n)),
    }


@polyc.kernel
def attention(q, k, v, p, out):
    n, c = q.shape
    for i in range(n):
        top = -1e30
        for j in range(n):
            s = 0.0
            for e in range(c):
                s += q[i, e] * k[j, e]
            p[i, j] = s
            top = max(top, s)
        total = 0.0
        for j in range(n):
            p[i, j] = math.exp(p[i, j] - top)
            total += p[i, j]
        for e in range(c):
            s = 0.0
            for j in range(n):
                s += p[i, j] * v[j, e]
            out[i, e] = s / total


def attention_data(n: int) -> Data:
    q = random(n, 32)
    return {"q": q, "k": 1 - q, "v": q * q, "p": np.zeros((n, n)), "out": 0 * q}


def make_problem(kernel: Any, make: Callable[..., Data], large: int, *results: str) -> Problem:
    """Sizes from a fiftieth of the large one on; double of it is extra large."""
    numbers = [max(5, large // 50), max(6, large // 20), large // 4, large, 2 * large]
    return Problem(kernel.function.name, kernel, by_size(*((n,) for n in numbers)), make, results)


EVERYDAY = (
    make_problem(moving_average, moving_average_data, 20000, "y"),
    make_problem(autocorrelation, autocorrelation_data, 3000, "c"),
    make_problem(smooth, smooth_data, 1000, "out"),
    make_problem(erode, erode_data, 1000, "out"),
    make_problem(integral, integral_data, 1000, "table"),
    make_problem(grey, grey_data, 1000, "out"),
    make_problem(viterbi, viterbi_data, 300, "score", "back"),
    make_problem(forward, forward_data, 300, "alpha"),
    make_problem(smith_waterman, smith_waterman_data, 2000, "H"),
    make_problem(attract, attract_data, 2000, "force"),
    make_problem(mandelbrot, mandelbrot_data, 400, "count"),
    make_problem(equilibrium, equilibrium_data, 400, "feq"),
    make_problem(options, options_data, 200000, "value"),
    make_problem(distances, distances_data, 700, "d"),
    make_problem(nearest, nearest_data, 10000, "near"),
    make_problem(convolve, convolve_data, 150, "y"),
    make_problem(attention, attention_data, 400, "out"),
)
