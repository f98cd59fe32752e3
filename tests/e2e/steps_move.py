"""Steps of a random graph that move elements: views, copies, and reads at computed positions."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.e2e.graph_builder import Value
from tests.e2e.random_graphs import LARGEST, Generator, step

ANY = "fib"


def _ints(g: Generator, values: list[int]) -> Value:
    return g.constant(np.array(values, np.int64))


@step
def reshape(g: Generator) -> list[Value] | None:
    x = g.pick(ANY)
    if x is None or not x.array.size:
        return None
    rest, shape = x.array.size, []
    for _ in range(int(g.rng.integers(0, 4))):
        divisors = [d for d in range(1, min(rest, 64) + 1) if rest % d == 0]
        shape.append(int(g.choose(divisors)))
        rest //= shape[-1]
    shape.insert(int(g.rng.integers(len(shape) + 1)), rest)
    if g.chance(0.3):
        shape[int(g.rng.integers(len(shape)))] = -1
    return g.graph.node("Reshape", [x, _ints(g, shape)], exact=True)


@step
def transpose(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=2)
    order = g.permutation(x.rank) if x is not None else None
    return None if x is None else g.graph.node("Transpose", [x], exact=True, perm=order)


@step
def flatten(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=1)
    if x is None:
        return None
    return g.graph.node("Flatten", [x], exact=True, axis=int(g.rng.integers(0, x.rank + 1)))


@step
def squeeze(g: Generator) -> list[Value] | None:
    x = g.pick(ANY)
    if x is None:
        return None
    ones = [k for k, n in enumerate(x.shape) if n == 1]
    if ones and g.chance(0.5):
        return g.graph.node("Squeeze", [x, _ints(g, ones)], exact=True)
    if x.rank >= 5:
        return None
    at = int(g.rng.integers(0, x.rank + 1))
    return g.graph.node("Unsqueeze", [x, _ints(g, [at])], exact=True)


@step
def cut(g: Generator) -> list[Value] | None:
    """Slice, with negative steps too."""
    x = g.pick(ANY, low=1)
    if x is None or 0 in x.shape:
        return None
    axes = g.permutation(x.rank)[: int(g.rng.integers(1, x.rank + 1))]
    starts, ends, steps = [], [], []
    for k in axes:
        low, high = sorted(int(v) for v in g.rng.integers(0, x.shape[k] + 1, size=2))
        if low == high:
            low, high = 0, x.shape[k]
        stride = int(g.choose([1, 1, 2, 3]))
        back = g.chance(0.3)
        starts.append(high - 1 if back else low)
        ends.append(low - 1 - x.shape[k] if back else high)
        steps.append(-stride if back else stride)
    lists = [_ints(g, v) for v in (starts, ends, axes, steps)]
    return g.graph.node("Slice", [x, *lists], exact=True)


@step
def join(g: Generator) -> list[Value] | None:
    """Concat of tensors that differ along one axis only."""
    x = g.pick(ANY, low=1)
    if x is None:
        return None
    axis = int(g.rng.integers(x.rank))

    def fits(v: Value) -> bool:
        shapes = [list(t.shape) for t in (v, x)]
        if v.dtype != x.dtype or v.rank != x.rank:
            return False
        for s in shapes:
            del s[axis]
        return shapes[0] == shapes[1]

    parts = [v for v in g.pool if fits(v)]
    chosen = [x, *(g.choose(parts) for _ in range(int(g.rng.integers(1, 3))))]
    if g.chance(0.3):
        chosen.append(g.constant(g.data(x.shape, x.dtype.kind).astype(x.dtype)))
    if sum(v.array.size for v in chosen) > LARGEST:
        return None
    chosen = [chosen[k] for k in g.permutation(len(chosen))]
    return g.graph.node("Concat", chosen, exact=True, axis=axis)


@step
def split(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=1)
    if x is None:
        return None
    axis = int(g.rng.integers(x.rank))
    n = x.shape[axis]
    if n < 2:
        return None
    first = int(g.rng.integers(1, n))
    sizes = _ints(g, [first, n - first])
    return g.graph.node("Split", [x, sizes], exact=True, n_outputs=2, axis=axis)


@step
def pad(g: Generator) -> list[Value] | None:
    x = g.pick("f", low=1, high=5)
    if x is None or 0 in x.shape:
        return None
    mode = str(g.choose(["constant", "constant", "edge", "reflect", "wrap"]))
    pads = g.rng.integers(0, 4, size=(2, x.rank))
    pads[:, g.rng.random(x.rank) < 0.4] = 0
    if mode in ("reflect", "wrap"):
        pads = np.minimum(pads, np.array(x.shape) - 1)
    elif mode == "constant" and g.chance(0.3):  # crop
        pads -= (np.array(x.shape) > 4) & (g.rng.random((2, x.rank)) < 0.4)
    if prod(np.array(x.shape) + pads.sum(0)) > LARGEST:
        return None
    fill = [g.constant(np.float32(g.choose([0.0, -1.5])))] if mode == "constant" else []
    return g.graph.node("Pad", [x, _ints(g, pads.ravel().tolist()), *fill], exact=True, mode=mode)


@step
def expand(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, high=4)
    if x is None:
        return None
    shape = [n if n != 1 or g.chance(0.5) else int(g.choose([2, 3, 8])) for n in x.shape]
    shape = [*([2] if g.chance(0.3) else []), *shape]
    if prod(shape) > LARGEST:
        return None
    return g.graph.node("Expand", [x, _ints(g, shape)], exact=True)


@step
def repeat(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=1)
    if x is None or x.array.size > LARGEST // 8:
        return None
    counts = [int(g.choose([1, 1, 2, 3])) for _ in x.shape]
    if prod(counts) > 8:
        return None
    return g.graph.node("Tile", [x, _ints(g, counts)], exact=True)


@step
def shuffle_blocks(g: Generator) -> list[Value] | None:
    """DepthToSpace or SpaceToDepth with blocks of 2."""
    x = g.pick("f", low=4, high=4)
    if x is None:
        return None
    if x.shape[1] % 4 == 0:
        mode = g.choose(["DCR", "CRD"])
        return g.graph.node("DepthToSpace", [x], exact=True, blocksize=2, mode=mode)
    if x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0:
        return g.graph.node("SpaceToDepth", [x], exact=True, blocksize=2)
    return None


def _positions(g: Generator, shape: list[int], extent: int) -> Value:
    """Indices into a dimension, some from its end: a constant or an input."""
    array = g.rng.integers(-extent, extent, size=shape)
    return g.graph.input(array) if g.chance(0.5) else g.constant(array)


@step
def gather(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=1)
    if x is None or 0 in x.shape:
        return None
    axis = int(g.rng.integers(x.rank))
    shape = [int(n) for n in g.rng.integers(1, 6, size=int(g.rng.integers(0, 3)))]
    if x.rank + len(shape) > 6 or x.array.size // x.shape[axis] * prod(shape) > LARGEST:
        return None
    indices = _positions(g, shape, x.shape[axis])
    if g.chance(0.3) and shape:  # an arithmetic progression, which is a view
        indices = g.constant(np.arange(prod(shape)).reshape(shape) % x.shape[axis])
    return g.graph.node("Gather", [x, indices], exact=True, axis=axis)


@step
def gather_elements(g: Generator) -> list[Value] | None:
    x = g.pick(ANY, low=1)
    if x is None or 0 in x.shape:
        return None
    axis = int(g.rng.integers(x.rank))
    shape = [int(g.rng.integers(1, n + 1)) for n in x.shape]
    indices = _positions(g, shape, x.shape[axis])
    return g.graph.node("GatherElements", [x, indices], exact=True, axis=axis)


@step
def triangle(g: Generator) -> list[Value] | None:
    x = g.pick("f", low=2)
    if x is None:
        return None
    shift = g.constant(np.array(g.rng.integers(-2, 3), np.int64))
    return g.graph.node("Trilu", [x, shift], exact=True, upper=int(g.chance(0.5)))


@step
def one_hot(g: Generator) -> list[Value] | None:
    """Positions of maxima as a one-hot code: two nodes."""
    x = g.pick("f", low=1, high=4, exact=True)
    if x is None or 0 in x.shape or x.array.size > LARGEST // 9:
        return None
    (index,) = g.graph.node("ArgMax", [x], exact=True, axis=g.axis(x.rank), keepdims=0)
    depth = g.constant(np.array(9, np.int64))
    values = g.constant(np.array([0.0, 1.0], np.float32))
    return g.graph.node("OneHot", [index, depth, values], exact=True, axis=-1)
