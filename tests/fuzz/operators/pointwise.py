"""Elementwise operators, comparisons, logic and conversions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import helper

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import (
    BOOL,
    FLOAT8,
    FLOATS,
    INT4,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    Rejected,
    Value,
    is_float,
)

NUMBERS = (*FLOATS, *INTEGERS)

_DOMAINS: dict[str, tuple[float, float]] = {
    "Acos": (-0.95, 0.95),
    "Acosh": (1.1, 9),
    "Asin": (-0.95, 0.95),
    "Atanh": (-0.9, 0.9),
    "Log": (0.05, 9),
    "Reciprocal": (0.1, 4),
    "Sqrt": (0, 9),
}
"""Where an operator is defined; elsewhere anything goes."""

_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "Elu": ("alpha",),
    "Celu": ("alpha",),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    "Shrink": ("lambd", "bias"),
    "ThresholdedRelu": ("alpha",),
    "Swish": ("alpha",),
}


@operator(
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Reciprocal", "Selu", "Sigmoid", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Gelu",
    weight=0.6,
)  # fmt: skip
def unary(b: Builder, op: str) -> object:
    """A function of one float."""
    types = FLOATS[:1] if op == "Celu" else FLOATS
    low, high = _DOMAINS.get(op, (-3, 3))
    x = b.pick(types, fresh=0.4 if op in _DOMAINS else 0.15, low=low, high=high)
    attributes: dict[str, object] = {
        a: b.real(0.125, 0.25, 0.5, 0.75, 1.5, dtype=x.dtype) for a in _ATTRIBUTES.get(op, ())
    }
    if op == "Gelu" and b.chance(0.5):
        attributes["approximate"] = "tanh"
    kind = Kind.SUM if op in ("Gelu", "Mish", "Softplus", "Elu", "Celu", "Selu") else Kind.POINTWISE
    return b.add(op, [x], kind, **attributes)


@operator("Abs", "Identity", "Neg", "Relu", "Sign", "Shrink", weight=0.8)
def unary_of_numbers(b: Builder, op: str) -> object:
    """Exact functions of one number."""
    types = (*FLOATS, *SIGNED) if op in ("Neg", "Relu") else NUMBERS
    types = (*types, BOOL) if op == "Identity" else types
    return b.add(op, [b.pick(types)], Kind.POINTWISE if op == "Shrink" else Kind.EXACT)


@operator("Ceil", "Floor", "Round", weight=0.6)
def rounding(b: Builder, op: str) -> object:
    """To whole numbers, where rounding before does not matter."""
    x = b.pick(FLOATS, high=4.0)
    (y,) = b.add(op, [x], Kind.EXACT)
    if not x.exact:
        _want_agreement(b, y)
    return y


def _want_agreement(b: Builder, y: Value) -> None:
    """Take the last node back unless all shadows agree on its result."""
    if all(np.array_equal(s, r.shadows[0], equal_nan=True) for r in y.runs for s in r.shadows):
        return
    take_back(b, [y])
    raise Rejected("a jump hangs on rounding")


def take_back(b: Builder, values: list[Value]) -> None:
    """Remove the last node, which gave these."""
    b.nodes.pop()
    b.values = [v for v in b.values if v not in values]


def operands(
    b: Builder, types: tuple[np.dtype, ...], count: int = 2, **draw: object
) -> list[Value]:
    """Tensors of one type whose shapes broadcast."""
    first = b.pick(types, **draw)
    rest = [partner(b, first.shape, first.dtype, **draw) for _ in range(count - 1)]
    found = [first, *rest]
    b.rng.shuffle(found)  # type: ignore[arg-type]
    return found


def partner(b: Builder, shape: tuple[int, ...], dtype: np.dtype, **draw: object) -> Value:
    """A tensor that broadcasts with a shape: equal, or with ones, fewer or more dimensions."""
    if b.chance(0.6):
        return b.pick((dtype,), lambda s: broadcast(s, shape), _spread(b, shape), **draw)
    return b.make(_spread(b, shape), dtype, **draw)


def broadcast(s: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether two shapes fit each other, and the result is not much larger."""
    pairs = zip(reversed(s), reversed(shape), strict=False)
    if not all(m == n or 1 in (m, n) for m, n in pairs):
        return False
    return bool(np.prod(np.broadcast_shapes(s, shape)) <= 8000)


def _spread(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    kept = shape[b.integer(0, len(shape)) :] if b.chance(0.3) else shape
    made = tuple(1 if b.chance(0.2) else n for n in kept)
    if b.chance(0.05) and len(kept) == len(shape) < 4 and np.prod(shape) < 1000:
        made = (b.integer(1, 3), *made)
    return made


@operator("Add", "Sub", "Mul", weight=3)
def arithmetic(b: Builder, op: str) -> object:
    """Sums and products of numbers; of integers without an overflow."""
    x, y = operands(b, NUMBERS, low=1 if b.chance(0.1) else None)
    want_no_overflow(op, [x, y])
    return b.add(op, [x, y], Kind.POINTWISE)


def want_no_overflow(op: str, inputs: list[Value], **attributes: object) -> None:
    """Raise Rejected if integers would overflow: the standard does not say what then is."""
    dtype = inputs[0].dtype
    if is_float(dtype) or dtype == BOOL:
        return
    x, y, *_ = (*(v.array.astype(object) for v in inputs), None)
    results = {
        "Add": lambda: x + y,
        "Sub": lambda: x - y,
        "Mul": lambda: x * y,
        "Pow": lambda: x**y,
    }
    z = np.asarray(results[op]())
    info = np.iinfo(dtype) if dtype in INTEGERS else ml_dtypes.iinfo(dtype)
    if z.size and (z.min() < info.min or z.max() > info.max):
        raise Rejected("an integer overflows")


@operator("Div", weight=1.5)
def division(b: Builder, op: str) -> object:
    """Quotients; the standard cuts those of integers towards zero, the reference down."""
    x = b.pick(NUMBERS)
    y = b.make(_spread(b, x.shape), x.dtype, low=1 if not is_float(x.dtype) else 0.3, high=5)
    if not is_float(x.dtype) and any((r.shadows[0] < 0).any() for r in x.runs):
        raise Rejected("the reference rounds down")
    return b.add(op, [x, y], Kind.POINTWISE)


@operator("Mod", weight=0.6)
def remainder(b: Builder, op: str) -> object:
    """Remainders."""
    x = b.pick(NUMBERS)
    floating = is_float(x.dtype)
    y = b.make(_spread(b, x.shape), x.dtype, low=1 if not floating else 0.5, high=5)
    (z,) = b.add(
        op,
        [x, y],
        Kind.SUM if floating else Kind.EXACT,
        fmod=1 if floating or b.chance(0.3) else None,
    )
    return z


@operator("Pow", weight=0.6)
def power(b: Builder, op: str) -> object:
    """Powers of positive numbers, or whole powers."""
    x = b.pick((*FLOATS, *SIGNED[:2]), low=0.2, high=3, fresh=0.5)
    other = x.dtype if b.chance(0.7) else b.one_of((*FLOATS[:2], *SIGNED[:2]))
    y = b.make(_spread(b, x.shape), other, low=1 if b.chance(0.7) else 2, high=3)
    if x.dtype in SIGNED:
        if y.dtype not in SIGNED:
            raise Rejected("a broken power of an integer")
        want_no_overflow(op, [x, y])
    return b.add(op, [x, y], Kind.SUM)


@operator("Max", "Min", "Sum", "Mean", weight=0.8)
def variadic(b: Builder, op: str) -> object:
    """Of one to four tensors."""
    types = FLOATS if op in ("Sum", "Mean") else NUMBERS
    exact = op in ("Max", "Min")
    return b.add(op, operands(b, types, b.integer(1, 4)), Kind.EXACT if exact else Kind.SUM)


@operator("And", "Or", "Xor", weight=0.6)
def logic(b: Builder, op: str) -> object:
    """Of truth values."""
    return b.add(op, operands(b, (BOOL,)), Kind.EXACT)


@operator("Not", weight=0.5)
def negation(b: Builder, op: str) -> object:
    """Of truth values."""
    return b.add(op, [b.pick((BOOL,))], Kind.EXACT)


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", weight=0.4)
def bitwise(b: Builder, op: str) -> object:
    """Of integers."""
    return b.add(op, operands(b, INTEGERS), Kind.EXACT)


@operator("BitwiseNot", weight=0.4)
def complement(b: Builder, op: str) -> object:
    """Of integers."""
    return b.add(op, [b.pick(INTEGERS)], Kind.EXACT)


@operator("BitShift", weight=0.4)
def shift(b: Builder, op: str) -> object:
    """By less than the width."""
    x = b.pick(UNSIGNED)
    y = b.make(_spread(b, x.shape), x.dtype, low=0, high=7)
    return b.add(op, [x, y], Kind.EXACT, direction=b.one_of(("LEFT", "RIGHT")))


@operator("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", weight=0.8)
def comparison(b: Builder, op: str) -> object:
    """Of numbers that rounding does not make equal."""
    types = (*NUMBERS, BOOL) if op == "Equal" else NUMBERS
    return b.add(op, operands(b, types), Kind.EXACT)


@operator("IsNaN", weight=0.5)
def is_nan(b: Builder, op: str) -> object:
    """Of floats."""
    return b.add(op, [b.pick(FLOATS)], Kind.EXACT)


@operator("IsInf", weight=0.5)
def is_inf(b: Builder, op: str) -> object:
    """Of floats, of either sign."""
    signs = {s: 0 for s in ("detect_negative", "detect_positive") if b.chance(0.3)}
    return b.add(op, [b.pick(FLOATS)], Kind.EXACT, **signs)


@operator("Where", weight=2)
def where(b: Builder, op: str) -> object:
    """A choice between two tensors of any one type."""
    x = b.pick((*NUMBERS, BOOL))
    y = partner(b, x.shape, x.dtype)
    shape = np.broadcast_shapes(x.shape, y.shape)
    return b.add(op, [partner(b, shape, BOOL), x, y], Kind.EXACT)


@operator("Clip", weight=1)
def clip(b: Builder, op: str) -> object:
    """With either bound, both or none."""
    x = b.pick(NUMBERS)
    low = b.make((), x.dtype, low=0, high=1, constant=b.chance(0.8)) if b.chance(0.7) else None
    high = b.make((), x.dtype, low=1, high=3, constant=b.chance(0.8)) if b.chance(0.7) else None
    return b.add(op, [x, low, high], Kind.EXACT)


@operator("PRelu", weight=0.6)
def prelu(b: Builder, op: str) -> object:
    """With a slope that broadcasts to the input."""
    x = b.pick(FLOATS)
    shape = tuple(1 if b.chance(0.5) else n for n in x.shape[b.integer(0, len(x.shape)) :])
    return b.add(op, [x, b.make(shape, x.dtype)], Kind.POINTWISE)


@operator("Cast", "CastLike", weight=2.5)
def cast(b: Builder, op: str) -> object:
    """Between any two types, within the range of the target."""
    x = b.pick((*NUMBERS, BOOL, *FLOAT8, *INT4), high=5)
    to = np.dtype(b.one_of((*FLOATS, *NUMBERS, BOOL, *FLOAT8, *INT4)))
    if is_float(x.dtype) and not (is_float(to) or to == BOOL):
        info = ml_dtypes.iinfo(to) if to in INT4 else np.iinfo(to)
        for run in x.runs:
            numbers = run.shadows[0]
            if not np.isfinite(numbers).all() or (
                numbers.size and (numbers.min() < info.min or numbers.max() > float(info.max) / 2)
            ):
                raise Rejected("outside of the target's range")
    if op == "CastLike":
        return b.add(op, [x, b.make((1,), to)], Kind.TYPED)
    return b.add(op, [x], Kind.TYPED, to=helper.np_dtype_to_tensor_dtype(to))


@operator("BitCast", weight=0.4)
def bit_cast(b: Builder, op: str) -> object:
    """Between types of one width, of what is known to the last bit."""
    same = {
        8: ("int64", "uint64"),
        4: ("int32", "uint32"),
        2: ("int16", "uint16"),
        1: ("int8", "uint8"),
    }
    x = b.pick(INTEGERS)
    to = np.dtype(b.one_of(same[x.dtype.itemsize]))
    return b.add(op, [x], Kind.TYPED, to=helper.np_dtype_to_tensor_dtype(to))


@operator("Dropout", weight=0.3)
def dropout(b: Builder, op: str) -> object:
    """As inference has it: nothing is dropped."""
    return b.add(op, [b.pick(FLOATS)], Kind.EXACT, outputs=b.integer(1, 2))
