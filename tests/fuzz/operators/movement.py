"""Views, and operators that only move elements."""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper

from tests.fuzz.builder import SYMBOLS, Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import BOOL, FLOAT8, FLOATS, INT4, INTEGERS, Rejected, Value

ANY = (*FLOATS, *FLOATS, *INTEGERS, BOOL, *FLOAT8, *INT4)


def axis_of(b: Builder, rank: int) -> int:
    """An axis, counted from either end."""
    axis = b.integer(0, rank - 1)
    return axis - rank if b.chance(0.3) else axis


def some_axes(b: Builder, rank: int, least: int = 0) -> list[int]:
    """Different axes in increasing order, counted from either end."""
    count = b.integer(min(least, rank), rank)
    axes = sorted(int(a) for a in b.rng.permutation(rank)[:count])
    return [a - rank if b.chance(0.2) else a for a in axes]


@operator("Transpose", weight=3)
def transpose(b: Builder, op: str) -> object:
    """By any permutation."""
    x = b.pick(ANY)
    perm = [int(p) for p in b.rng.permutation(len(x.shape))]
    return b.add(op, [x], Kind.EXACT, perm=perm if b.chance(0.9) and perm else None)


@operator("Reshape", weight=3)
def reshape(b: Builder, op: str) -> object:
    """To other sizes, with a -1 or zeros sometimes."""
    x = b.pick(ANY)
    size = int(np.prod(x.shape))
    if b.traits.symbolic and any(n in SYMBOLS for n in x.shape):
        return _reshape_open(b, x)
    if size == 0:
        target = list(x.shape)
        b.rng.shuffle(target)
        return b.add(op, [x, b.integers(target)], Kind.EXACT, allowzero=1)
    target = b.factors(size, b.integer(1 if size > 1 else 0, 5))
    if target and b.chance(0.4):
        target[b.integer(0, len(target) - 1)] = -1
    kept = min(len(target), len(x.shape))
    if kept and target[0] == x.shape[0] and b.chance(0.5):
        target[0] = 0
    return b.add(op, [x, b.integers(target)], Kind.EXACT)


def _reshape_open(b: Builder, x: Value) -> object:
    """Merge or split what is next to a size that is open."""
    target = [0 if n in SYMBOLS else n for n in x.shape]
    choice = b.integer(0, 2)
    if choice == 0 and target.count(0) == 1:
        target[target.index(0)] = -1
        target.insert(b.integer(0, len(target)), 1)
    elif choice == 1 and len(target) > 1:
        k = b.integer(0, len(target) - 2)
        target[k : k + 2] = [-1]
        if 0 in target[k:]:
            raise Rejected("a 0 would mean another dimension")
    return b.add("Reshape", [x, b.integers(target)], Kind.EXACT)


@operator("Flatten", weight=0.8)
def flatten(b: Builder, op: str) -> object:
    """At any axis."""
    x = b.pick(ANY)
    return b.add(op, [x], Kind.EXACT, axis=b.integer(-len(x.shape), len(x.shape)))


@operator("Squeeze", weight=1)
def squeeze(b: Builder, op: str) -> object:
    """All dimensions of size 1, or some of them."""
    x = b.pick(ANY, lambda s: 1 in s)
    ones = [a for a, n in enumerate(x.shape) if n == 1 and b.chance(0.8)]
    axes = b.integers(ones) if ones and b.chance(0.8) else None
    return b.add(op, [x, axes] if axes else [x], Kind.EXACT)


@operator("Unsqueeze", weight=1)
def unsqueeze(b: Builder, op: str) -> object:
    """New dimensions anywhere."""
    x = b.pick(ANY, lambda s: len(s) < 5)
    rank = len(x.shape) + b.integer(1, 2)
    axes = [int(a) for a in b.rng.permutation(rank)[: rank - len(x.shape)]]
    axes = [a - rank if b.chance(0.2) else a for a in axes]
    return b.add(op, [x, b.integers(axes)], Kind.EXACT)


@operator("Slice", weight=3)
def slice_(b: Builder, op: str) -> object:
    """With steps of either sign, and bounds beyond the ends."""
    x = b.pick(ANY, lambda s: len(s) > 0)
    axes = some_axes(b, len(x.shape), 1)
    starts, ends, steps = [], [], []
    for axis in axes:
        n = x.shape[axis]
        step = b.one_of((1, 1, 1, 2, 3, -1, -2))
        low, high = sorted((b.integer(0, max(n - 1, 0)), b.integer(0, n)))
        high = max(high, low + 1)
        start, end = (low, high) if step > 0 else (high - 1, low - 1)
        end = (-(2**62) if step < 0 else end) if end < 0 else end
        starts.append(start - n if b.chance(0.3) and start < n else start)
        ends.append(2**62 if step > 0 and end == n and b.chance(0.3) else end)
        steps.append(step)
    lists = [starts, ends, axes, steps]
    if all(s == 1 for s in steps) and b.chance(0.4):
        lists.pop()
        if axes == list(range(len(axes))) and b.chance(0.5):
            lists.pop()
    return b.add(op, [x, *map(b.integers, lists)], Kind.EXACT)


@operator("Concat", weight=3)
def concat(b: Builder, op: str) -> object:
    """One to four tensors, or one of them several times."""
    x = b.pick(ANY, lambda s: len(s) > 0)
    axis = axis_of(b, len(x.shape))
    others = []
    for _ in range(b.integer(0, 3)):
        shape = list(x.shape)
        shape[axis] = x.shape[axis] if b.chance(0.3) else b.integer(1, 7)
        fits = lambda s: len(s) == len(x.shape) and _equal_but(s, x.shape, axis)  # noqa: E731
        others.append(b.pick((x.dtype,), fits, shape, fresh=0.4))
    parts = [x, *others]
    b.rng.shuffle(parts)  # type: ignore[arg-type]
    return b.add(op, parts, Kind.EXACT, axis=axis)


def _equal_but(s: tuple[int, ...], t: tuple[int, ...], axis: int) -> bool:
    axis %= len(t)
    return all(m == n for a, (m, n) in enumerate(zip(s, t, strict=True)) if a != axis)


@operator("Split", weight=2)
def split(b: Builder, op: str) -> object:
    """In equal parts, in uneven ones, or in given ones."""
    x = b.pick(ANY, lambda s: any(n > 1 for n in s))
    axis = b.one_of([a for a, n in enumerate(x.shape) if n > 1])
    n = x.shape[axis]
    count = b.integer(1, min(n, 4))
    if b.chance(0.5):
        cuts = sorted(int(c) for c in 1 + b.rng.permutation(n - 1)[: count - 1])
        sizes = np.diff([0, *cuts, n]).tolist()
        return b.add(op, [x, b.integers(sizes)], Kind.EXACT, outputs=count, axis=axis)
    if -(-n // count) * (count - 1) >= n:
        raise Rejected("the last part would be empty")
    return b.add(op, [x], Kind.EXACT, outputs=count, axis=axis, num_outputs=count)


@operator("Pad", weight=2)
def pad(b: Builder, op: str) -> object:
    """Every mode; negative pads cut."""
    x = b.pick(ANY, lambda s: len(s) > 0 and 0 not in s)
    mode = b.one_of(("constant", "constant", "edge", "reflect", "wrap"))
    some = b.chance(0.3)
    axes = some_axes(b, len(x.shape), 1) if some else list(range(len(x.shape)))
    most = {"reflect": lambda n: n - 1, "wrap": lambda n: n}.get(mode, lambda n: 4)
    ends = [[b.integer(0, max(0, min(3, most(x.shape[a])))) for a in axes] for _ in range(2)]
    if mode == "constant" and b.chance(0.2):
        ends[0] = [
            -1 if x.shape[a] > 2 and b.chance(0.5) else p
            for a, p in zip(axes, ends[0], strict=True)
        ]
    inputs: list[Value | None] = [x, b.integers(ends[0] + ends[1])]
    if mode == "constant" and b.chance(0.6):
        inputs.append(b.make((), x.dtype, constant=b.chance(0.8)))
    if some:
        inputs += [None] * (3 - len(inputs)) + [b.integers(axes)]
    return b.add(op, inputs, Kind.EXACT, mode=mode)


@operator("Expand", weight=1.5)
def expand(b: Builder, op: str) -> object:
    """To a shape that broadcasts with the input's."""
    x = b.pick(ANY)
    if np.prod(x.shape) > 2000:
        raise Rejected("large")
    target = [b.integer(1, 6) if n == 1 and b.chance(0.6) else n for n in x.shape]
    target = [1 if b.chance(0.2) else n for n in target]
    target = [b.integer(1, 4) for _ in range(b.integer(0, 2))] + target
    return b.add(op, [x, b.integers(target)], Kind.EXACT)


@operator("Tile", weight=1)
def tile(b: Builder, op: str) -> object:
    """Repeated up to four times."""
    x = b.pick(ANY, lambda s: len(s) < 5)
    repeats = [b.integer(1, 4) if b.chance(0.5) else 1 for _ in x.shape]
    if np.prod(x.shape) * np.prod(repeats) > 10_000:
        raise Rejected("large")
    return b.add(op, [x, b.integers(repeats)], Kind.EXACT)


@operator("DepthToSpace", "SpaceToDepth", weight=0.6)
def blocks(b: Builder, op: str) -> object:
    """Blocks of 2 or 3."""
    k = b.integer(2, 3)
    if op == "DepthToSpace":
        shape = (b.integer(1, 2), k * k * b.integer(1, 3), b.integer(1, 5), b.integer(1, 5))
        x = b.pick(ANY, lambda s: len(s) == 4 and s[1] % (k * k) == 0 and 0 not in s, shape)
        return b.add(op, [x], Kind.EXACT, blocksize=k, mode=b.one_of(("DCR", "CRD")))
    shape = (b.integer(1, 2), b.integer(1, 3), k * b.integer(1, 4), k * b.integer(1, 4))
    x = b.pick(ANY, lambda s: len(s) == 4 and s[2] % k == 0 == s[3] % k, shape)
    return b.add(op, [x], Kind.EXACT, blocksize=k)


@operator("Trilu", weight=0.8)
def trilu(b: Builder, op: str) -> object:
    """Either triangle, at any diagonal."""
    x = b.pick((*FLOATS, *INTEGERS, BOOL), lambda s: len(s) >= 2)
    k = b.make((), np.int64, low=-4, high=4, constant=True) if b.chance(0.6) else None
    return b.add(op, [x, k] if k else [x], Kind.EXACT, upper=b.integer(0, 1))


@operator("CenterCropPad", weight=0.5)
def crop(b: Builder, op: str) -> object:
    """Cut or padded around the middle."""
    x = b.pick((*FLOATS, *INTEGERS), lambda s: len(s) > 0 and 0 not in s)
    axes = some_axes(b, len(x.shape), 1)
    sizes = [b.integer(1, 9) for _ in axes]
    return b.add(op, [x, b.integers(sizes)], Kind.EXACT, axes=axes)


@operator("Shape", weight=0.8)
def shape_of(b: Builder, op: str) -> object:
    """All sizes, or some of them."""
    x = b.pick(ANY, lambda s: len(s) > 0)
    bounds = {"start": b.integer(-2, 1)} if b.chance(0.3) else {}
    return b.add(op, [x], Kind.EXACT, **bounds)


@operator("Size", weight=0.3)
def size_of(b: Builder, op: str) -> object:
    """The number of elements."""
    return b.add(op, [b.pick(ANY)], Kind.EXACT)


@operator("ConstantOfShape", weight=0.5)
def constant_of_shape(b: Builder, op: str) -> object:
    """Filled with a value of any type."""
    shapes = [v for v in b.values if v.dtype == np.int64 and len(v.shape) == 1 and v.is_constant]
    shape = b.one_of(shapes) if shapes else b.integers(list(b.shape()))
    value = None
    if b.chance(0.8):
        value = numpy_helper.from_array(b.draw((1,), np.dtype(b.one_of(ANY))))
    return b.add(op, [shape], Kind.EXACT, value=value)


@operator("Range", weight=0.5)
def range_(b: Builder, op: str) -> object:
    """Of whole numbers."""
    dtype = b.one_of((np.int64, np.int32, np.int16, np.float32, np.float64))
    start, count, step = b.integer(-5, 5), b.integer(1, 20), b.one_of((1, 2, 3, -1, -2))
    ends = (start, start + count * step - b.one_of((0, step // abs(step))), step)
    return b.add(op, [b.integers(e, dtype) for e in ends], Kind.EXACT)


@operator("EyeLike", weight=0.4)
def eye(b: Builder, op: str) -> object:
    """Ones on a diagonal."""
    x = b.pick((*FLOATS, *INTEGERS), lambda s: len(s) == 2)
    to = (
        helper.np_dtype_to_tensor_dtype(np.dtype(b.one_of((*FLOATS[:3], *INTEGERS))))
        if b.chance(0.4)
        else None
    )
    return b.add(op, [x], Kind.TYPED, k=b.integer(-3, 3), dtype=to)


@operator("ReverseSequence", weight=0.5)
def reverse(b: Builder, op: str) -> object:
    """Each batch's beginning turned around."""
    x = b.pick(ANY, lambda s: len(s) >= 2 and 0 not in s)
    time = b.integer(0, 1)
    longest = min(run.shape[time] for run in x.runs)
    lengths = b.make((x.shape[1 - time],), np.int64, low=1, high=longest)
    return b.add(op, [x, lengths], Kind.EXACT, time_axis=time, batch_axis=1 - time)


@operator("Col2Im", weight=0.4, symbolic=False)
def col2im(b: Builder, op: str) -> object:
    """Columns summed into an image."""
    k, stride, pad = (
        [b.integer(1, 3) for _ in "hw"],
        [b.integer(1, 2) for _ in "hw"],
        b.integer(0, 1),
    )
    image = [b.integer(3, 8) for _ in "hw"]
    count = [(n + 2 * pad - m) // s + 1 for n, m, s in zip(image, k, stride, strict=True)]
    shape = (b.integer(1, 2), b.integer(1, 3) * k[0] * k[1], count[0] * count[1])
    x = b.make(shape, FLOATS[0])
    inputs = [x, b.integers(image), b.integers(k)]
    return b.add(op, inputs, Kind.SUM, strides=stride, pads=[pad] * 4)
