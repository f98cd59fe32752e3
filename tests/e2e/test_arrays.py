"""Compiled operators that move elements: views, copies, and reads at computed positions."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st
from onnx import helper

from tests.e2e.cases import (
    EXTENTS,
    NUMBERS,
    Case,
    family,
    ints,
    seeds,
    shapes,
    small,
    special,
)

TYPES = (*NUMBERS, "bool")


def _tensor(data: st.DataObject, low: int = 1, high: int = 4, empty: bool = True) -> np.ndarray:
    """A tensor of any type."""
    dtype, shape = data.draw(st.sampled_from(TYPES)), data.draw(shapes(low, high, empty))
    return special(data.draw(seeds()), dtype, shape)


def _axis(data: st.DataObject, rank: int) -> int:
    return data.draw(st.integers(-rank, rank - 1))


def reordering(data: st.DataObject) -> list[Case]:
    """Reshape, Transpose, Flatten, Squeeze, Unsqueeze."""
    cases = []
    for _ in range(4):
        x = _tensor(data, 1, 5)
        order = data.draw(st.permutations(range(x.ndim)))
        cases.append(Case("Transpose", [x], {"perm": order}, expected=[x.transpose(order)]))
    for _ in range(5):
        x = _tensor(data, empty=False)
        new, rest = [], x.size
        for _ in range(data.draw(st.integers(0, 3))):
            divisors = [d for d in range(1, min(rest, 99) + 1) if rest % d == 0]
            new.append(data.draw(st.sampled_from(divisors)))
            rest //= new[-1]
        new.insert(data.draw(st.integers(0, len(new))), rest)
        cases.append(Case("Reshape", [x, ints(*new)], {}, (1,), expected=[x.reshape(new)]))
    x = _tensor(data)
    axis = data.draw(st.integers(-x.ndim, x.ndim))
    flat = (prod(x.shape[:axis]), prod(x.shape[axis:])) if axis else (1, x.size)
    cases.append(Case("Flatten", [x], {"axis": axis}, expected=[x.reshape(flat)]))
    x = np.expand_dims(_tensor(data), (0, 2))
    cases.append(Case("Squeeze", [x, ints(0, 2)], {}, (1,), expected=[x.squeeze((0, 2))]))
    x = _tensor(data)
    cases.append(Case("Unsqueeze", [x, ints(-1, 1)], {}, (1,)))
    return cases


def cutting(data: st.DataObject) -> list[Case]:
    """Slice with steps of both signs, Split, Concat."""
    cases = []
    for _ in range(4):
        x = _tensor(data)
        axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1))
        index, bounds = [slice(None)] * x.ndim, st.integers(-20, 20)
        lists: list[list[int]] = [[], [], []]
        for axis in axes:
            # a start before the first element and a negative step is none to NumPy, one to ONNX
            start = max(data.draw(bounds), -x.shape[axis])
            cut = [start, data.draw(bounds), data.draw(st.sampled_from([1, 2, -1, -3]))]
            index[axis] = slice(*cut)
            for values, value in zip(lists, cut, strict=True):
                values.append(value)
        starts, ends, steps = (ints(*v) for v in lists)
        inputs = [x, starts, ends, ints(*axes), steps]
        cases.append(Case("Slice", inputs, {}, (1, 2, 3, 4), expected=[x[tuple(index)]]))
    x, axis = _tensor(data, empty=False), 0
    first = data.draw(st.integers(0, x.shape[axis]))
    sizes = ints(first, x.shape[axis] - first)
    parts = np.split(x, [first], axis)
    cases.append(Case("Split", [x, sizes], {"axis": axis}, (1,), 2, expected=parts))
    for _ in range(3):
        x = _tensor(data)
        axis = _axis(data, x.ndim)
        others = [np.repeat(x, k, axis) for k in data.draw(st.lists(st.integers(0, 3), max_size=3))]
        order = data.draw(st.permutations(range(len(others) + 1)))
        parts = [[x, *others][k] for k in order]
        known = {k for k in range(1, len(parts)) if data.draw(st.booleans())}
        joined = np.concatenate(parts, axis)
        cases.append(Case("Concat", parts, {"axis": axis}, known, expected=[joined]))
    return cases


def padding(data: st.DataObject) -> list[Case]:
    """Pad in all modes, with crops, and with a fill that is data."""
    cases = []
    for mode in ("constant", "constant", "edge", "reflect", "wrap"):
        x = small(data.draw(seeds()), "float32", data.draw(shapes(1, 4, empty=False)))
        most = [n - 1 if mode == "reflect" else 5 for n in x.shape]
        pads = [[data.draw(st.integers(0, min(m, 5))) for m in most] for _ in range(2)]
        expected = np.pad(x, list(zip(*pads, strict=True)), mode=mode)
        inputs, known = [x, ints(*pads[0], *pads[1])], {1}
        if mode == "constant":
            inputs.append(np.array(-1.5, np.float32))
            expected = np.pad(x, list(zip(*pads, strict=True)), constant_values=-1.5)
            known |= {2} if data.draw(st.booleans()) else set()
        cases.append(Case("Pad", inputs, {"mode": mode}, known, expected=[expected]))
    x = small(data.draw(seeds()), "int32", (5, 9))
    framed = np.pad(x[1:, :7], ((0, 2), (3, 0)), constant_values=7)
    inputs = [x, ints(-1, 3, 2, -2), np.array(7, np.int32)]
    cases.append(Case("Pad", inputs, {}, {1}, expected=[framed]))
    cases.append(Case("Pad", inputs, {}, {1, 2}, expected=[framed]))
    return cases


def repeating(data: st.DataObject) -> list[Case]:
    """Expand, Tile, blocks to and from depth."""
    x = _tensor(data)
    shape = [n if n != 1 else data.draw(st.sampled_from(EXTENTS)) for n in x.shape]
    shape = [*data.draw(st.lists(st.sampled_from([1, 2]), max_size=2)), *shape]
    shape = shape if prod(shape) <= 20_000 else list(x.shape)
    cases = [Case("Expand", [x, ints(*shape)], {}, (1,), expected=[np.broadcast_to(x, shape)])]
    x = _tensor(data, high=3)
    counts = [data.draw(st.integers(0, 3)) for _ in x.shape]
    cases.append(Case("Tile", [x, ints(*counts)], {}, (1,), expected=[np.tile(x, counts)]))
    for mode in ("DCR", "CRD"):
        block, (n, c, h, w) = data.draw(st.integers(1, 3)), (data.draw(shapes(4, 4)))
        c, h, w = c % 4, h % 6, w % 6
        rng = data.draw(seeds())
        deep = small(rng, "float32", (n % 4, c * block**2, h, w))
        cases.append(Case("DepthToSpace", [deep], {"blocksize": block, "mode": mode}))
        wide = small(rng, "float32", (n % 4, c, h * block, w * block))
        cases.append(Case("SpaceToDepth", [wide], {"blocksize": block}))
    return cases


def gathering(data: st.DataObject) -> list[Case]:
    """Gather, GatherElements and GatherND; indices constant or fed, of both widths and signs."""
    cases = []
    for _ in range(4):
        x = _tensor(data, empty=False)
        axis, rng = _axis(data, x.ndim), data.draw(seeds())
        extent, kind = x.shape[axis], data.draw(st.sampled_from([np.int32, np.int64]))
        index = rng.integers(-extent, extent, data.draw(shapes(0, 2))).astype(kind)
        if x.size // extent * index.size > 20_000:
            index = index.reshape(-1)[:2]
        known = data.draw(st.sampled_from([(), (1,)]))
        expected = [np.take(x, index, axis)]
        cases.append(Case("Gather", [x, index], {"axis": axis}, known, expected=expected))
        shape = [data.draw(st.integers(1, n)) for n in x.shape]
        index = rng.integers(-extent, extent, shape).astype(kind)
        chosen = x[tuple(slice(m) if k != axis % x.ndim else slice(None)
                         for k, m in enumerate(shape))]  # fmt: skip
        expected = [np.take_along_axis(chosen, index.astype(np.int64) % extent, axis)]
        inputs = [x, index]
        cases.append(Case("GatherElements", inputs, {"axis": axis}, known, expected=expected))
    x, rng = _tensor(data, 3, 3, empty=False), data.draw(seeds())
    depth = data.draw(st.integers(1, 3))
    index = np.stack([rng.integers(-n, n, (4, 5)) for n in x.shape[:depth]], -1)
    cases.append(Case("GatherND", [x, index], expected=[x[tuple(np.moveaxis(index, -1, 0))]]))
    return cases


def generating(data: st.DataObject) -> list[Case]:
    """Tensors out of shapes and positions: Trilu, EyeLike, OneHot, Shape, Size, CumSum."""
    cases, rng = [], data.draw(seeds())
    for upper in (0, 1):
        x = _tensor(data, 2, 4)
        k = data.draw(st.integers(-5, 5))
        expected = [(np.triu if upper else np.tril)(x, k)]
        known = data.draw(st.sampled_from([(), (1,)]))
        inputs = [x, np.array(k)]
        cases.append(Case("Trilu", inputs, {"upper": upper}, known, expected=expected))
    x = _tensor(data, 2, 2)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))
    eye = np.eye(*x.shape, k=1)
    cases.append(Case("EyeLike", [x], {"k": 1, "dtype": code}, expected=[eye]))
    index = rng.integers(-7, 7, data.draw(shapes(0, 3)))
    inputs = [index, np.array(7), np.array([2, 5], np.int32)]
    cases.append(Case("OneHot", inputs, {"axis": _axis(data, index.ndim + 1)}, (1,)))
    x = _tensor(data)
    cases.append(Case("Shape", [x], expected=[ints(*x.shape)]))
    cases.append(Case("Size", [x], expected=[np.array(x.size)]))
    for dtype in ("float64", "int32"):
        x = small(rng, dtype, data.draw(shapes(1)))
        flags = {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}
        inputs = [x, np.array(_axis(data, x.ndim))]
        cases.append(Case("CumSum", inputs, flags, (1,), rtol=1e-12, atol=1e-12))
    return cases


test_reordering = family(reordering)
test_cutting = family(cutting)
test_padding = family(padding)
test_repeating = family(repeating)
test_gathering = family(gathering)
test_generating = family(generating)
