"""Compiled operators that sum: reductions, softmax, norms, products, convolutions and pools."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.e2e.cases import FLOATS, Case, family, ints, seeds, shapes, small, special

Sum = Callable[..., np.ndarray]

REDUCTIONS: Mapping[str, Sum] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
    "ReduceMax": np.max,
    "ReduceMin": np.min,
}


def _precision(dtype: str) -> float:
    return 2e-5 if dtype == "float32" else 1e-12


def _floats(
    data: st.DataObject, low: int, high: int = 4, types: Sequence[str] = FLOATS
) -> tuple[np.ndarray, float]:
    """A tensor of moderate floats that is not empty, and how precise sums of it are."""
    dtype, shape = data.draw(st.sampled_from(types)), data.draw(shapes(low, high, empty=False))
    return small(data.draw(seeds()), dtype, shape), _precision(dtype)


def _axis(data: st.DataObject, rank: int) -> int:
    return data.draw(st.integers(-rank, rank - 1))


def reductions(data: st.DataObject) -> list[Case]:
    """All Reduce* over any axes, in floats and integers."""
    cases = []
    for op, function in REDUCTIONS.items():
        whole = st.sampled_from((*FLOATS, "int32", "int64"))
        dtype = data.draw(st.sampled_from(FLOATS) if "Log" in op else whole)
        x = small(data.draw(seeds()), dtype, data.draw(shapes(1, 4, empty=False)), -2, 2)
        x = np.abs(x) + x.dtype.type(1) if op in ("ReduceLogSum", "ReduceProd") else x
        x = np.minimum(x, x.dtype.type(1.5)) if op == "ReduceProd" else x
        axes = data.draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True))
        keep = data.draw(st.booleans())
        wide = x.astype(np.longdouble) if x.dtype.kind == "f" else x
        with np.errstate(all="ignore"):
            expected = function(wide, axis=tuple(axes), keepdims=keep)
        expected = np.asarray(expected).astype(x.dtype)
        precision = _precision(dtype)
        cases.append(
            Case(op, [x, ints(*axes)], {"keepdims": int(keep)}, (1,), expected=[expected],
                 rtol=precision, atol=0 if op == "ReduceProd" else precision)
        )  # fmt: skip
    return cases


def extremes(data: st.DataObject) -> list[Case]:
    """Maxima and their positions among NaN, infinities and ties."""
    cases = []
    for op in ("ReduceMax", "ReduceMin"):
        for dtype in (*FLOATS, "int8", "uint8", "int32", "bool"):
            x = special(data.draw(seeds()), dtype, data.draw(shapes(1, 4, empty=False)))
            axis = _axis(data, x.ndim)
            expected = (np.max if op == "ReduceMax" else np.min)(x, axis=axis, keepdims=True)
            # of -0.0 and 0.0 either may be the larger
            cases.append(Case(op, [x, ints(axis)], {}, (1,), expected=[expected], rtol=1e-45))
    for op in ("ArgMax", "ArgMin"):
        for last in (0, 1):
            dtype = data.draw(st.sampled_from((*FLOATS, "int32", "uint8")))
            shape = data.draw(shapes(1, 4, empty=False))
            x = np.round(small(data.draw(seeds()), dtype, shape))
            attributes = {"axis": _axis(data, x.ndim), "keepdims": data.draw(st.integers(0, 1))}
            cases.append(Case(op, [x], {**attributes, "select_last_index": last}))
    return cases


def softmax(data: st.DataObject) -> list[Case]:
    """Softmax, LogSoftmax and Hardmax along any axis, with values that would overflow."""
    cases = []
    for op in ("Softmax", "LogSoftmax"):
        for scale in (1, 200):
            x, precision = _floats(data, 1)
            axis = _axis(data, x.ndim)
            wide = scale * x.astype(np.longdouble)
            shifted = wide - wide.max(axis, keepdims=True)
            logs = shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
            expected = (logs if op == "LogSoftmax" else np.exp(logs)).astype(x.dtype)
            inputs = [x * x.dtype.type(scale)]
            cases.append(Case(op, inputs, {"axis": axis}, expected=[expected], atol=4 * precision))
    x, _ = _floats(data, 1)
    cases.append(Case("Hardmax", [x], {"axis": _axis(data, x.ndim)}))
    return cases


def norms(data: st.DataObject) -> list[Case]:
    """Layer, group, instance, batch and local response normalisation, and LpNormalization."""
    x, precision = _floats(data, 1, 4, ["float32"])
    axis = _axis(data, x.ndim)
    tail = x.shape[axis:]
    scale, bias = (small(data.draw(seeds()), str(x.dtype), tail) for _ in range(2))
    flags = {"axis": axis, "epsilon": 1e-2}
    cases = [Case("LayerNormalization", [x, scale, bias], flags, atol=10 * precision)]
    # the reference computes its moments in float32
    image, precision = _floats(data, 4, 4, ["float32"])
    rng, c = data.draw(seeds()), image.shape[1]
    scale, bias, mean = (small(rng, str(image.dtype), (c,)) for _ in range(3))
    variance = np.abs(mean) + image.dtype.type(0.5)
    known = data.draw(st.sampled_from([(), (1, 2, 3, 4)]))
    inputs = [image, scale, bias, mean, variance]
    cases.append(Case("BatchNormalization", inputs, {}, known, atol=precision))
    groups = data.draw(st.sampled_from([k for k in range(1, c + 1) if c % k == 0]))
    flags = {"num_groups": groups, "epsilon": 1e-2}
    cases.append(Case("GroupNormalization", inputs[:3], flags, atol=10 * precision))
    flags = {"epsilon": 1e-2}
    cases.append(Case("InstanceNormalization", inputs[:3], flags, atol=10 * precision))
    x = small(rng, "float32", image.shape)
    cases.append(Case("LRN", [x], {"size": 3, "alpha": 0.5, "bias": 1.5}, atol=2e-5))
    x, precision = _floats(data, 1)
    axis, p = _axis(data, x.ndim), data.draw(st.integers(1, 2))
    expected = [x / np.linalg.norm(x, p, axis, keepdims=True)]
    attributes = {"axis": axis, "p": p}
    cases.append(Case("LpNormalization", [x], attributes, expected=expected, atol=precision))
    return cases


def products(data: st.DataObject) -> list[Case]:
    """MatMul with broadcasting, Gemm with every flag; sizes that tiles do not divide."""
    cases = []
    sizes = st.sampled_from([0, 1, 2, 5, 8, 17, 33, 70])
    for k in range(5):
        dtype = data.draw(st.sampled_from((*FLOATS, "float32", "int32"))) if k else "float32"
        m, k, n = (data.draw(sizes) for _ in range(3))
        batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
        shorter = [data.draw(st.sampled_from([1, b])) for b in batch]
        rng = data.draw(seeds())
        a = small(rng, dtype, (*batch, m, k))
        b = small(rng, dtype, (*shorter[data.draw(st.integers(0, len(batch))) :], k, n))
        known = data.draw(st.sampled_from([(), (1,), (0,)]))
        precision = _precision(dtype) if dtype in FLOATS else 0.0
        cases.append(Case("MatMul", [a, b], {}, known, atol=precision))
    v, w = (small(data.draw(seeds()), "float32", (k,)) for k in (9, 9))
    cases.append(Case("MatMul", [v, w], atol=1e-5))
    cases.append(Case("MatMul", [small(data.draw(seeds()), "float32", (5, 9)), v], atol=1e-5))
    for _ in range(4):
        m, k, n = (max(1, data.draw(sizes)) for _ in range(3))
        across, turned = (data.draw(st.integers(0, 1)) for _ in range(2))
        rng = data.draw(seeds())
        a = small(rng, "float32", (k, m) if across else (m, k))
        b = small(rng, "float32", (n, k) if turned else (k, n))
        bias = data.draw(st.sampled_from([None, (), (n,), (m, 1), (m, n)]))
        c = [] if bias is None else [np.asarray(small(rng, "float32", bias))]
        flags = {"transA": across, "transB": turned, "alpha": 0.5, "beta": 2.0}
        known = data.draw(st.sampled_from([(), (1,)]))
        cases.append(Case("Gemm", [a, b, *c], flags, known, atol=2e-5))
    return cases


def _window(data: st.DataObject, rank: int) -> tuple[list[int], dict[str, Any]]:
    """(spatial extents, attributes) of a window that fits them."""

    def each(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(rank)]

    kernel, strides, dilations = each(1, 3), each(1, 3), each(1, 2)
    spatial = [n + 4 for n in each(1, 3 if rank == 3 else 13)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if data.draw(st.booleans()):
        begin, end = ([min(p, k - 1) for p, k in zip(each(0, 2), kernel, strict=True)]
                      for _ in range(2))  # fmt: skip
        return spatial, attributes | {"pads": begin + end, "dilations": dilations}
    # a stride beyond the kernel would need negative padding, which runtimes read differently
    attributes["strides"] = [min(s, k) for s, k in zip(strides, kernel, strict=True)]
    return spatial, attributes | {"auto_pad": data.draw(st.sampled_from(
        ["SAME_UPPER", "SAME_LOWER", "VALID"]))}  # fmt: skip


def convolutions(data: st.DataObject) -> list[Case]:
    """Conv and ConvTranspose in one to three dimensions, with groups and known weights or not."""
    cases = []
    for rank in (1, 2, 2, 3):
        spatial, attributes = _window(data, rank)
        groups = data.draw(st.sampled_from([1, 1, 2, 3]))
        c, o = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 2, 5, 16, 19]))
        rng, n = data.draw(seeds()), data.draw(st.integers(1, 2))
        x = small(rng, "float32", (n, c * groups, *spatial))
        w = small(rng, "float32", (o * groups, c, *attributes["kernel_shape"]))
        bias = [small(rng, "float32", (o * groups,))] if data.draw(st.booleans()) else []
        known = data.draw(st.sampled_from([(), (1, 2), (1, 2)]))
        attributes["group"] = groups
        cases.append(Case("Conv", [x, w, *bias], attributes, known, atol=2e-5))
        if rank == 3:
            continue
        strides = attributes["strides"]
        kernel = [max(k, s) for k, s in zip(attributes["kernel_shape"], strides, strict=True)]
        w = small(rng, "float32", (c * groups, o, *kernel))
        flags = {"strides": strides, "group": groups}
        cases.append(Case("ConvTranspose", [x, w, *bias], flags, known, atol=2e-5))
    return cases


def pools(data: st.DataObject) -> list[Case]:
    """Pools of all kinds, with rounding up, padding that counts, and positions of maxima."""
    cases = []
    for op in ("MaxPool", "MaxPool", "AveragePool", "LpPool"):
        spatial, attributes = _window(data, data.draw(st.integers(1, 3)))
        if "pads" in attributes:
            attributes["ceil_mode"] = data.draw(st.integers(0, 1))
        rng, n, c = data.draw(seeds()), data.draw(st.integers(1, 2)), data.draw(st.integers(1, 17))
        x = small(rng, "float32", (n, c, *spatial))
        if op == "AveragePool":
            attributes["count_include_pad"] = data.draw(st.integers(0, 1))
        outputs = 2 if op == "MaxPool" and data.draw(st.booleans()) else 1
        cases.append(Case(op, [x], attributes, n_outputs=outputs, atol=2e-5))
    for op in ("GlobalMaxPool", "GlobalAveragePool"):
        x = small(data.draw(seeds()), "float32", data.draw(shapes(3, 5, empty=False)))
        cases.append(Case(op, [x], atol=2e-5))
    return cases


def nothing_to_sum(data: st.DataObject) -> list[Case]:
    """Reductions of no elements give the neutral element."""
    x = np.zeros((3, 0, 2), np.float32)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [
            Case(op, [x, ints(1)], {"keepdims": 0}, (1,), expected=[value * np.ones((3, 2), "f4")])
            for op, value in (
                ("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf), ("ReduceMin", np.inf)
            )
        ]  # fmt: skip


test_reductions = family(reductions)
test_extremes = family(extremes)
test_softmax = family(softmax)
test_norms = family(norms)
test_products = family(products)
test_convolutions = family(convolutions)
test_pools = family(pools)
test_nothing_to_sum = family(nothing_to_sum)
