"""Steps of a random graph that compute: pointwise, reductions, contractions, windows, norms."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.e2e.graph_builder import Value
from tests.e2e.random_graphs import LARGEST, Generator, step

_SMOOTH = (
    "Sigmoid Tanh Softplus Erf Softsign Gelu Mish HardSigmoid HardSwish Elu Selu Celu Sin Cos Atan"
)

SMOOTH = _SMOOTH.split()
EXACT = ["Relu", "Neg", "Abs"]
INTEGER = ["Add", "Sub", "Mul", "Max", "Min", "Mod", "BitwiseAnd", "BitwiseXor", "Div"]


@step
def unary(g: Generator) -> list[Value] | None:
    x = g.pick()
    if x is None:
        return None
    if g.chance(0.4):
        return g.graph.node(g.choose(EXACT), [x], exact=True)
    return g.graph.node(g.choose(SMOOTH), [x], exact=False)


@step
def root(g: Generator) -> list[Value] | None:
    """Sqrt(|x| + 1/8) or Log of it: two nodes."""
    x = g.pick()
    if x is None:
        return None
    (size,) = g.graph.node("Abs", [x], exact=True)
    (moved,) = g.graph.node("Add", [size, g.constant(np.float32(0.125))], exact=False)
    return g.graph.node(g.choose(["Sqrt", "Log", "Reciprocal"]), [moved], exact=False)


@step
def clip(g: Generator) -> list[Value] | None:
    x = g.pick()
    low, high = (g.constant(np.float32(v)) for v in (-1.0, 0.75))
    return None if x is None else g.graph.node("Clip", [x, low, high], exact=True)


def _second(g: Generator, x: Value, kind: str = "f") -> Value:
    """An operand for a binary operator with x: a tensor at hand that broadcasts, or a new one."""
    fitting = [v for v in g.pool if v.dtype == x.dtype and _broadcasts(v.shape, x.shape)]
    return g.choose(fitting) if fitting and g.chance(0.6) else g.operand(x.shape, kind)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return prod(np.broadcast_shapes(a, b)) <= LARGEST
    except ValueError:
        return False


@step
def binary(g: Generator) -> list[Value] | None:
    x = g.pick()
    if x is None:
        return None
    op = str(g.choose(["Add", "Sub", "Mul", "Max", "Min"]))
    pair = [x, _second(g, x)]
    if g.chance(0.3):
        pair.reverse()
    return g.graph.node(op, pair, exact=op in ("Max", "Min"))


@step
def compare_and_choose(g: Generator) -> list[Value] | None:
    """Where(x < y, x, z): two nodes."""
    x = g.pick(exact=True)
    if x is None:
        return None
    op = g.choose(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
    y = _second(g, x)
    if not y.exact:
        return None
    (condition,) = g.graph.node(op, [x, y], exact=True)
    if g.chance(0.3):
        (condition,) = g.graph.node("Not", [condition], exact=True)
    wide = Value(x.name, np.broadcast_to(x.array, condition.shape), x.exact)
    return [condition, *g.graph.node("Where", [condition, x, _second(g, wide)], exact=True)]


@step
def logic(g: Generator) -> list[Value] | None:
    x = g.pick("b")
    if x is None:
        return None
    return g.graph.node(g.choose(["And", "Or", "Xor"]), [x, _second(g, x, "b")], exact=True)


@step
def convert(g: Generator) -> list[Value] | None:
    x = g.pick("fib", exact=True)
    if x is None:
        return None
    target = {"f": 7, "i": 1, "b": g.choose([1, 7])}[x.dtype.kind]
    return g.graph.node("Cast", [x], exact=True, to=target)


@step
def integers(g: Generator) -> list[Value] | None:
    x = g.pick("i")
    if x is None or np.abs(x.array).max(initial=0) > 1 << 20:
        return None
    op = str(g.choose(INTEGER))
    y = g.operand(x.shape, "i")
    if op in ("Mod", "Div"):
        y = g.constant(np.abs(g.data((), "i")) + 1)
    if op == "Div":  # the standard leaves the rounding of negative quotients open
        (x,) = g.graph.node("Abs", [x], exact=True)
    return g.graph.node(op, [x, y], exact=True)


@step
def reduce(g: Generator) -> list[Value] | None:
    x = g.pick(low=1)
    if x is None or 0 in x.shape:
        return None
    op = str(g.choose(["Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp"]))
    order = g.permutation(x.rank)[: int(g.rng.integers(1, x.rank + 1))]
    axes = g.constant(np.array(order, np.int64))
    exact = op in ("Max", "Min")
    return g.graph.node(f"Reduce{op}", [x, axes], exact=exact, keepdims=int(g.chance(0.6)))


@step
def positions(g: Generator) -> list[Value] | None:
    x = g.pick(low=1, exact=True)
    if x is None or 0 in x.shape:
        return None
    return g.graph.node(
        g.choose(["ArgMax", "ArgMin"]), [x], exact=True, axis=g.axis(x.rank),
        keepdims=int(g.chance(0.6)), select_last_index=int(g.chance(0.3)),
    )  # fmt: skip


@step
def softmax(g: Generator) -> list[Value] | None:
    x = g.pick(low=1)
    if x is None:
        return None
    axis = g.axis(x.rank)
    if g.chance(0.5) or not x.array.size:
        return g.graph.node("Softmax", [x], exact=False, axis=axis)
    shifted = x.array - x.array.max(axis, keepdims=True)  # the logarithm of a softmax would vanish
    expected = [shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))]
    return g.graph.node("LogSoftmax", [x], exact=False, expected=expected, axis=axis)


@step
def cumulate(g: Generator) -> list[Value] | None:
    x = g.pick(low=1)
    if x is None:
        return None
    axis = g.constant(np.array(g.axis(x.rank), np.int64))
    flags = {"exclusive": int(g.chance(0.3)), "reverse": int(g.chance(0.3))}
    return g.graph.node("CumSum", [x, axis], exact=False, **flags)


@step
def normalize_layer(g: Generator) -> list[Value] | None:
    x = g.pick(low=1)
    if x is None or 0 in x.shape:
        return None
    axis = g.axis(x.rank)
    inner = x.shape[axis:]
    if prod(inner) < 3:  # one or two elements have a variance near 0, or outputs of +-1
        return None
    scale = [g.constant(g.data(inner)) for _ in range(1 + g.chance(0.5))]
    return g.graph.node("LayerNormalization", [x, *scale], exact=False, axis=axis, epsilon=1e-2)


@step
def normalize_channels(g: Generator) -> list[Value] | None:
    x = g.pick(low=3)
    if x is None or prod(x.shape[2:]) < 3:
        return None
    c = x.shape[1]
    scale, bias, mean = (g.constant(g.data([c])) for _ in range(3))
    variance = g.constant(np.abs(g.data([c])) + np.float32(0.5))
    kind = g.choose(["batch", "instance", "group", "lrn"] if x.rank == 4 else ["batch", "group"])
    if kind == "batch":
        return g.graph.node("BatchNormalization", [x, scale, bias, mean, variance], exact=False)
    if kind == "instance":
        op = "InstanceNormalization"
        return g.graph.node(op, [x, scale, bias], exact=False, epsilon=1e-2)
    if kind == "group":
        groups = int(g.choose([k for k in range(1, c + 1) if c % k == 0]))
        inputs, op = [x, scale, bias], "GroupNormalization"
        return g.graph.node(op, inputs, exact=False, num_groups=groups, epsilon=1e-2)
    return g.graph.node("LRN", [x], exact=False, size=int(g.choose([1, 3, 5])))


@step
def matrix_product(g: Generator) -> list[Value] | None:
    x = g.pick(low=1, high=5)
    if x is None or x.shape[-1] == 0:
        return None
    k, n = x.shape[-1], int(g.choose([1, 3, 8, 17, 32, 40]))
    if x.array.size // k * n > LARGEST:
        return None
    pairs = [v for v in g.pool if v.rank >= 2 and v.dtype == x.dtype and v.shape[-2] == k]
    pairs = [v for v in pairs if _broadcasts(v.shape[:-2], x.shape[:-2])]
    pairs = [v for v in pairs if v.array.size * max(x.array.size // k, 1) <= 8 * LARGEST]
    if pairs and g.chance(0.6):
        y: Value = g.choose(pairs)
    else:
        y = g.constant(g.data([k, n], scale=1 / np.sqrt(k)))
    return g.graph.node("MatMul", [x, y], exact=False)


@step
def gemm(g: Generator) -> list[Value] | None:
    x = g.pick(low=2, high=2)
    if x is None or 0 in x.shape:
        return None
    across, turned = g.chance(0.3), g.chance(0.5)
    m, k = reversed(x.shape) if across else x.shape
    n = int(g.choose([1, 5, 16, 24]))
    weight = g.constant(g.data([n, k] if turned else [k, n], scale=1 / np.sqrt(k)))
    bias = [g.operand((m, n))] if g.chance(0.7) else []
    flags = {"transA": int(across), "transB": int(turned), "alpha": 0.5, "beta": 2.0}
    return g.graph.node("Gemm", [x, weight, *bias], exact=False, **flags)


def _window(g: Generator, spatial: tuple[int, ...], dilate: bool) -> dict[str, list[int]] | None:
    """kernel_shape, strides, dilations and pads of a window that fits."""
    kernel, strides, dilations, begin, end = [], [], [], [], []
    for n in spatial:
        size = int(g.choose([1, 2, 3, 3, 5]))
        kernel.append(size)
        strides.append(int(g.choose([1, 1, 2, 3])))
        dilations.append(int(g.choose([1, 1, 2])) if dilate else 1)
        begin.append(int(g.rng.integers(0, (size + 1) // 2 + 1)) if size > 1 else 0)
        end.append(int(g.rng.integers(0, (size + 1) // 2 + 1)) if size > 1 else 0)
        begin[-1], end[-1] = min(begin[-1], size - 1), min(end[-1], size - 1)
        if n + begin[-1] + end[-1] < dilations[-1] * (size - 1) + 1:
            return None
    named = {"kernel_shape": kernel, "strides": strides, "pads": begin + end}
    return named | ({"dilations": dilations} if dilate else {})


@step
def convolve(g: Generator) -> list[Value] | None:
    x = g.pick(low=3, high=5)
    if x is None or 0 in x.shape or x.shape[1] > 64:
        return None
    c = x.shape[1]
    groups = int(g.choose([1, 1, c, *[k for k in (2, 3, 4) if c % k == 0]]))
    filters = groups * int(g.choose([1, 2, 3, 8] if groups > 1 else [1, 3, 8, 17, 32]))
    window = _window(g, x.shape[2:], dilate=True)
    inner = c // groups * prod(window["kernel_shape"]) if window else 0
    if window is None or x.array.size * filters * inner // groups > 4_000_000:
        return None
    shape = [filters, c // groups, *window["kernel_shape"]]
    weight = g.constant(g.data(shape, scale=1 / np.sqrt(inner)))
    bias = [g.constant(g.data([filters]))] if g.chance(0.5) else []
    return g.graph.node("Conv", [x, weight, *bias], exact=False, group=groups, **window)


@step
def convolve_transposed(g: Generator) -> list[Value] | None:
    x = g.pick(low=3, high=4)
    if x is None or 0 in x.shape or x.array.size > LARGEST // 8 or x.shape[1] > 32:
        return None
    filters, rank = int(g.choose([1, 2, 5, 8])), x.rank - 2
    kernel = [int(k) for k in g.rng.integers(1, 4, size=rank)]
    strides = [int(k) for k in g.rng.integers(1, 4, size=rank)]
    inner = x.shape[1] * prod(kernel)
    weight = g.constant(g.data([x.shape[1], filters, *kernel], scale=1 / np.sqrt(inner)))
    bias = [g.constant(g.data([filters]))] if g.chance(0.5) else []
    return g.graph.node("ConvTranspose", [x, weight, *bias], exact=False, strides=strides)


@step
def pool(g: Generator) -> list[Value] | None:
    x = g.pick(low=3, high=5)
    if x is None or 0 in x.shape:
        return None
    if g.chance(0.2):
        op = str(g.choose(["GlobalAveragePool", "GlobalMaxPool"]))
        return g.graph.node(op, [x], exact=op == "GlobalMaxPool")
    window = _window(g, x.shape[2:], dilate=False)
    if window is None:
        return None
    if g.chance(0.5):
        return g.graph.node("MaxPool", [x], exact=True, **window)
    include = int(g.chance(0.5))
    return g.graph.node("AveragePool", [x], exact=False, count_include_pad=include, **window)
