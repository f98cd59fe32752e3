"""Reductions, running totals, and selections along an axis."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.movement import axis_of, some_axes
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import BOOL, FLOATS, INTEGERS, SIGNED, UNSIGNED, Rejected, Value, is_float

WHOLE = (np.dtype(np.int64), np.dtype(np.int32))


@operator(
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
def reduce(b: Builder, op: str) -> object:
    """Along some axes, all or none, with the axes as a constant."""
    extreme = op in ("ReduceMax", "ReduceMin")
    whole = extreme or op in ("ReduceSum", "ReduceL1", "ReduceSumSquare")
    types = (*FLOATS, *WHOLE, *UNSIGNED[:2]) if whole else FLOATS
    types = (*FLOATS, *INTEGERS, BOOL) if extreme else types
    positive = {"low": 0.3, "high": 2} if op in ("ReduceLogSum", "ReduceProd") else {}
    x = b.pick(types, fresh=0.4 if positive else 0.15, **positive)
    _want_values(x)
    if op == "ReduceProd":
        _want_moderate(x)
    axes = some_axes(b, len(x.shape))
    inputs = [x, b.integers(axes)] if axes or b.chance(0.3) else [x]
    empty = int(b.chance(0.5)) if len(inputs) > 1 and not axes else 0
    return b.add(
        op, inputs, Kind.EXACT if extreme else Kind.SUM,
        keepdims=b.integer(0, 1), noop_with_empty_axes=empty or None,
    )  # fmt: skip


def _want_values(x: Value) -> None:
    """Raise Rejected for an extreme or a mean of nothing, and sums that may overflow."""
    if 0 in x.shape:
        raise Rejected("of nothing")
    if not is_float(x.dtype) and any(r.array(x.dtype).astype(float).max() > 1000 for r in x.runs):
        raise Rejected("an integer may overflow")


def _want_moderate(x: Value) -> None:
    """Raise Rejected where the order of factors decides whether a product overflows."""
    for run in x.runs:
        factors = np.abs(run.shadows[0])
        factors = factors[(factors > 0) & np.isfinite(factors)]
        if np.abs(np.log2(factors)).sum() > 100:
            raise Rejected("a product may overflow on the way")


@operator("ArgMax", "ArgMin", weight=1)
def arg_extreme(b: Builder, op: str) -> object:
    """Where the extreme is; the first or the last of equal ones."""
    x = b.pick((*FLOATS, *INTEGERS), lambda s: len(s) > 0 and 0 not in s)
    last = 1 if b.chance(0.3) else None
    return b.add(
        op,
        [x],
        Kind.EXACT,
        axis=axis_of(b, len(x.shape)),
        keepdims=b.integer(0, 1),
        select_last_index=last,
    )


@operator("CumSum", "CumProd", weight=0.8)
def running(b: Builder, op: str) -> object:
    """Running totals, in either direction."""
    types = (*FLOATS, *WHOLE, *UNSIGNED[:2]) if op == "CumSum" else FLOATS
    x = b.pick(types, lambda s: len(s) > 0, low=0.4 if op == "CumProd" else None, high=1.5)
    if op == "CumSum" and 0 not in x.shape:
        _want_values(x)
    if op == "CumProd":
        _want_moderate(x)
    flags = {f: int(b.chance(0.4)) for f in ("exclusive", "reverse")}
    axis = b.integers(axis_of(b, len(x.shape)), b.one_of((np.int64, np.int32)))
    return b.add(op, [x, axis], Kind.SUM, **flags)


@operator("TopK", weight=1.2)
def top_k(b: Builder, op: str) -> object:
    """The largest or smallest, in order."""
    x = b.pick((*FLOATS, *INTEGERS), lambda s: len(s) > 0 and 0 not in s)
    axis = axis_of(b, len(x.shape))
    k = b.integers([b.integer(1, x.shape[axis])])
    return b.add(op, [x, k], Kind.EXACT, outputs=2, axis=axis, largest=b.integer(0, 1), sorted=1)


@operator("Softmax", "LogSoftmax", weight=1.2)
def softmax(b: Builder, op: str) -> object:
    """Along any axis."""
    x = b.pick(FLOATS, lambda s: len(s) > 0 and 0 not in s)
    return b.add(op, [x], Kind.SUM, axis=axis_of(b, len(x.shape)))


@operator("Hardmax", weight=0.4)
def hardmax(b: Builder, op: str) -> object:
    """One where the first maximum is."""
    x = b.pick(FLOATS, lambda s: len(s) > 0 and 0 not in s)
    return b.add(op, [x], Kind.TYPED, axis=axis_of(b, len(x.shape)))


@operator("OneHot", weight=0.6)
def one_hot(b: Builder, op: str) -> object:
    """Of indices counted from either end."""
    depth = b.integer(2, 7)
    dtype = b.one_of(WHOLE)
    shape = b.shape(b.integer(0, 3), 300)
    indices = b.make(shape, dtype, low=-depth, high=depth - 1)
    kind = np.dtype(b.one_of((*FLOATS, *INTEGERS, BOOL)))
    values = b.make((2,), kind)
    n = b.integers([depth])
    return b.add(op, [indices, n, values], Kind.EXACT, axis=b.integer(-1, len(shape)))


@operator("NonZero", weight=0.5, symbolic=False)
def non_zero(b: Builder, op: str) -> object:
    """Where elements are that are not zero."""
    x = b.pick((*SIGNED[:2], np.dtype(bool), FLOATS[0]), lambda s: len(s) > 0)
    return b.add(op, [x], Kind.EXACT)


@operator("Unique", weight=0.5, symbolic=False)
def unique(b: Builder, op: str) -> object:
    """Different elements, or slices along an axis, which the reference sorts in any case."""
    x = b.pick((*INTEGERS[:4], FLOATS[0]), lambda s: len(s) > 0 and 0 not in s)
    axis = axis_of(b, len(x.shape)) if b.chance(0.5) else None
    if not x.exact:
        raise Rejected("whether elements are equal hangs on rounding")
    ordered = 1 if axis is not None else b.integer(0, 1)
    wanted = [True, *(b.chance(0.6) for _ in range(3))]
    while len(wanted) > 1 and not wanted[-1]:
        wanted.pop()
    return b.add(op, [x], Kind.EXACT, outputs=wanted, axis=axis, sorted=ordered)


@operator("Compress", weight=0.5, symbolic=False)
def compress(b: Builder, op: str) -> object:
    """The slices, or elements, for which a condition holds."""
    x = b.pick((*FLOATS, *INTEGERS), lambda s: len(s) > 0 and 0 not in s)
    axis = axis_of(b, len(x.shape)) if b.chance(0.6) else None
    n = int(np.prod(x.shape)) if axis is None else x.shape[axis]
    condition = b.make((b.integer(1, n),), np.dtype(bool))
    return b.add(op, [x, condition], Kind.EXACT, axis=axis)


@operator("MatMulInteger", weight=0.6)
def matmul_integer(b: Builder, op: str) -> object:
    """A product of bytes, with zero points."""
    m, k, n = (b.size() for _ in "mkn")
    left, right = (np.dtype(b.one_of((np.int8, np.uint8))) for _ in "ab")
    batch = b.shape(b.integer(0, 2), 6)
    x = b.pick((left,), lambda s: len(s) >= 2, (*batch, m, k))
    y = b.make((x.shape[-1], n), right, low=0 if right.kind == "u" else -40, high=60)
    inputs = [x, y]
    if b.chance(0.6):
        inputs.append(b.make((), x.dtype, low=0, high=9))
        if b.chance(0.6):
            inputs.append(b.make((n,) if b.chance(0.4) else (), right, low=0, high=9))
    return b.add(op, inputs, Kind.EXACT)
