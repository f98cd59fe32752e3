"""Products, convolutions and pools."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.normalization import image
from tests.fuzz.operators.reduction import WHOLE
from tests.fuzz.operators.registry import operator
from tests.fuzz.operators.sampling import NOISE
from tests.fuzz.values import FLOATS, UNSIGNED, Rejected, Value, is_float

NUMBERS = (*WHOLE, *UNSIGNED[:2])
"""Integers that products are defined for."""


def want_small(x: Value) -> None:
    """Raise Rejected for integers whose products may overflow."""
    if not is_float(x.dtype) and any(np.abs(r.shadows[0]).max(initial=0) > 1000 for r in x.runs):
        raise Rejected("an integer may overflow")


@operator("MatMul", weight=4)
def matmul(b: Builder, op: str) -> object:
    """Of vectors, matrices and batches of them."""
    x = b.pick((*FLOATS, *NUMBERS), lambda s: len(s) > 0 and np.prod(s) < 8000)
    want_small(x)
    k, n = x.shape[-1], b.size()
    batch = tuple(m if b.chance(0.6) else 1 for m in x.shape[:-2])
    batch = batch[b.integer(0, len(batch)) :] if b.chance(0.6) else batch
    shape = (k,) if b.chance(0.15) else (*batch, k, n)
    fits = lambda s: s == (k,) or (len(s) == len(shape) and s[:-1] == shape[:-1])  # noqa: E731
    y = b.pick((x.dtype,), fits, shape, fresh=0.5)
    want_small(y)
    return b.add(op, [x, y], Kind.SUM)


@operator("Gemm", weight=2)
def gemm(b: Builder, op: str) -> object:
    """Transposed or not, scaled, with any bias that broadcasts."""
    x = b.pick((*FLOATS, *NUMBERS), lambda s: len(s) == 2)
    left, right = (int(b.chance(0.3)) for _ in "ab")
    m, k = x.shape[::-1] if left else x.shape
    n = b.size()
    inputs = [x, b.make((n, k) if right else (k, n), x.dtype)]
    if b.chance(0.7):
        inputs.append(b.make(b.one_of(((n,), (m, n), (1, n), (m, 1), (1,), ())), x.dtype))
    if not is_float(x.dtype):
        want_small(x)
        return b.add(op, inputs, Kind.SUM, transA=left, transB=right)
    scales = {a: b.one_of((0.375, 0.5, 2.0)) for a in ("alpha", "beta") if b.chance(0.3)}
    return b.add(op, inputs, Kind.SUM, transA=left, transB=right, **scales)


_EQUATIONS = (
    "ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "bij,bkj->bki", "ij->ji", "ij->j", "ij,ij->",
    "i,j->ij", "ii->i", "bii->b", "ij,j", "abc,cd->abd", "abc,abc->ac", "abcd,abed->abce", "i,i",
    "...i,ij->...j", "ijk->kij", "ab,bc,cd->ad", "bhid,bhjd->bhij",
)  # fmt: skip


@operator("Einsum", weight=1)
def einsum(b: Builder, op: str) -> object:
    """Products, traces, sums and permutations."""
    equation = b.one_of(_EQUATIONS)
    sizes: dict[str, int] = {}
    inputs = []
    dtype = b.float_type()
    for term in equation.split("->")[0].split(","):
        letters = term.replace("...", "yz")
        shape = tuple(sizes.setdefault(c, b.size()) for c in letters)
        if np.prod(shape) > 5000:
            raise Rejected("large")
        inputs.append(b.pick((dtype,), shape=shape))
    return b.add(op, inputs, Kind.SUM, equation=equation)


def _window(b: Builder, rank: int, sizes: tuple[int, ...]) -> dict[str, list[int]]:
    """A kernel shape with strides, dilations and pads that fit an image."""
    shape = [b.integer(1, min(n, b.one_of((1, 3, 3, 5)))) for n in sizes]
    strides = [b.one_of((1, 1, 2, 3)) for _ in range(rank)]
    dilations = [
        2 if b.chance(0.2) and 2 * k - 1 <= n else 1 for k, n in zip(shape, sizes, strict=True)
    ]
    pads = [b.integer(0, k // 2) if b.chance(0.6) else 0 for k in shape * 2]
    return {"kernel_shape": shape, "strides": strides, "dilations": dilations, "pads": pads}


def _padded(b: Builder, window: dict[str, list[int]]) -> dict[str, object]:
    """Sometimes pads by rule in place of numbers; strides that skip elements leave no rule."""
    window = dict(window)
    skips = any(k < s for k, s in zip(window["kernel_shape"], window["strides"], strict=True))
    if b.chance(0.25) and set(window["dilations"]) == {1}:
        del window["pads"]
        rules = ("VALID",) if skips else ("SAME_UPPER", "SAME_LOWER", "VALID")
        return {**window, "auto_pad": b.one_of(rules)}
    return window


def _image(b: Builder, types: tuple[np.dtype, ...] = FLOATS) -> Value:
    space = b.integer(1, 2) if b.chance(0.9) else 3
    channels = b.one_of((1, 2, 3, 4, 6, 8, 16, 17))
    side = (1, 4, 5, 7, 9, 12, 14) if space < 3 else (3, 4, 5)
    shape = (b.integer(1, 3), channels, *(b.one_of(side) for _ in range(space)))
    return b.pick(types, lambda s: image(s) and np.prod(s) < 9000, shape)


@operator("Conv", weight=3)
def conv(b: Builder, op: str) -> object:
    """Of 1 to 3 dimensions, grouped, dilated and strided."""
    x = _image(b)
    c, space = x.shape[1], x.shape[2:]
    window = _window(b, len(space), space)
    group = b.one_of([g for g in range(1, c + 1) if c % g == 0]) if b.chance(0.4) else 1
    out = group * b.integer(1, 4) if group > 1 else b.size() or 1
    w = b.make((out, c // group, *window["kernel_shape"]), x.dtype, high=0.5, finite=True)
    inputs = [x, w, b.make((out,), x.dtype)] if b.chance(0.6) else [x, w]
    return b.add(op, inputs, Kind.SUM, group=group, **_padded(b, window))


@operator("ConvTranspose", weight=1)
def conv_transpose(b: Builder, op: str) -> object:
    """Transposed convolutions; an infinite weight would meet the zeros around the image."""
    x = _image(b)
    c, space = x.shape[1], x.shape[2:]
    if np.prod(space) > 200:
        raise Rejected("large")
    window = _window(b, len(space), (9,) * len(space))
    group = b.one_of([g for g in range(1, c + 1) if c % g == 0]) if b.chance(0.3) else 1
    w = b.make((c, b.integer(1, 4), *window["kernel_shape"]), x.dtype, high=0.5, finite=True)
    inputs = [x, w, b.make((w.shape[1] * group,), x.dtype)] if b.chance(0.6) else [x, w]
    extra = [b.integer(0, s - 1) for s in window["strides"]] if b.chance(0.3) else None
    return b.add(op, inputs, Kind.SUM, group=group, output_padding=extra, **window)


@operator("MaxPool", "AveragePool", "LpPool", weight=1)
def pool(b: Builder, op: str) -> object:
    """With padding by number or by rule, and rounding of the size up."""
    # The reference pools wrongly for this norm, and ONNX Runtime knows it for float32 alone.
    bytes_ = (np.dtype(np.int8), np.dtype(np.uint8)) if op == "MaxPool" and b.chance(0.2) else ()
    x = _image(b, FLOATS[:1] if op == "LpPool" else bytes_ or FLOATS)
    if b.traits.special and not all(np.isfinite(run.shadows[0]).all() for run in x.runs):
        raise Rejected("the reference passes over a NaN, which it takes for padding")
    window = _window(b, len(x.shape) - 2, x.shape[2:])
    attributes = _padded(b, window)
    if "auto_pad" not in attributes:
        attributes["ceil_mode"] = int(b.chance(0.3))
    outputs = 1
    if op == "AveragePool":
        attributes["count_include_pad"] = b.integer(0, 1)
    elif op == "LpPool":
        attributes["p"] = b.integer(1, 3)
    elif b.chance(0.3) and "auto_pad" not in attributes and x.dtype in FLOATS[:2]:
        # Of narrow floats ONNX Runtime knows nothing, and the reference no channel of an index.
        outputs = 2
        attributes["storage_order"] = b.integer(0, 1)
    return b.add(
        op, [x], Kind.EXACT if op == "MaxPool" else Kind.SUM, outputs=outputs, **attributes
    )


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", weight=0.5)
def global_pool(b: Builder, op: str) -> object:
    """Over all of the space."""
    x = b.pick(FLOATS, image)
    return b.add(op, [x], Kind.EXACT if op == "GlobalMaxPool" else Kind.SUM)


@operator("Det", weight=0.3)
def determinant(b: Builder, op: str) -> object:
    """Of small matrices."""
    n = b.integer(1, 4)
    return b.add(
        op, [b.pick(FLOATS[:2], lambda s: s[-2:] == (n, n), (b.integer(1, 4), n, n))], Kind.SUM
    )


@operator("DeformConv", weight=0.2, symbolic=False)
def deform_conv(b: Builder, op: str) -> object:
    """A convolution whose window is bent."""
    n, c, side, k = b.integer(1, 2), b.integer(1, 3), b.integer(4, 7), b.integer(1, 3)
    x = b.make((n, c, side, side), FLOATS[0])
    w = b.make((b.integer(1, 3), c, k, k), FLOATS[0])
    out = side - k + 1
    offset = b.make((n, 2 * k * k, out, out), FLOATS[0], high=0.7)
    inputs = [x, w, offset]
    if b.chance(0.5):
        inputs += [b.make((w.shape[0],), FLOATS[0]), b.make((n, k * k, out, out), FLOATS[0])]
    return b.add(op, inputs, Kind.SUM, noise=NOISE, kernel_shape=[k, k], pads=[0] * 4)
