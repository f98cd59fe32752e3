"""PolyBench's data mining: correlation and covariance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid


@polyc.kernel
def correlation(data, corr, mean, stddev):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        stddev[j] = 0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] /= n
        stddev[j] = math.sqrt(stddev[j])
        stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= math.sqrt(n) * stddev[j]
    for i in range(m - 1):
        corr[i, i] = 1
        for j in range(i + 1, m):
            corr[i, j] = 0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1


def correlation_data(m: int, n: int) -> dict[str, Any]:
    i, j = grid(n, m)
    data = i * j / m + i
    return {
        "data": data,
        "corr": np.zeros((m, m)),
        "mean": np.zeros(m),
        "stddev": np.zeros(m),
    }


def correlation_numpy(data: Any, corr: Any, mean: Any, stddev: Any) -> None:
    data.mean(axis=0, out=mean)
    data.std(axis=0, out=stddev)
    stddev[stddev <= 0.1] = 1
    data -= mean
    data /= math.sqrt(len(data)) * stddev
    np.matmul(data.T, data, out=corr)
    np.fill_diagonal(corr, 1)


@polyc.kernel
def covariance(data, cov, mean):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1
            cov[j, i] = cov[i, j]


def covariance_data(m: int, n: int) -> dict[str, Any]:
    i, j = grid(n, m)
    return {"data": i * j / m, "cov": np.zeros((m, m)), "mean": np.zeros(m)}


def covariance_numpy(data: Any, cov: Any, mean: Any) -> None:
    data.mean(axis=0, out=mean)
    data -= mean
    np.matmul(data.T, data, out=cov)
    cov /= len(data) - 1


BOTH = by_size((28, 32), (80, 100), (240, 260), (1200, 1400), (2600, 3000))

PROBLEMS = (
    Problem("correlation", correlation, BOTH, correlation_data, ("corr",), correlation_numpy),
    Problem("covariance", covariance, BOTH, covariance_data, ("cov",), covariance_numpy),
)
