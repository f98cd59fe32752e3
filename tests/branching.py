"""Models whose calls decide what they execute, as ONNX's text, and one like those in use."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import parser

from polyc import Graph
from polyc.graph.onnx_import import import_onnx

RATES = {True: 16000, False: 8000}
UNITS = 5


def read(text: str) -> onnx.ModelProto:
    """A model from the text of its graph."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')


def branching(rows: int = 13, width: int = 24) -> Graph:
    """A condition that is computed, products in both branches, and one that both need."""
    side = "b () => (o) {{ p = MatMul(u, w) {} }}"
    then, other = side.format("o = Relu(p)"), side.format("q = MatMul(p, w) o = Neg(q)")
    text = f"""g (float[{rows}, {width}] x, float[{width}, {width}] w, int64 k) => (y, z) {{
        ten = Constant<value = int64 {{10}}>()
        c = Less(k, ten)
        u = MatMul(x, w)
        y = If(c)<then_branch = {then}, else_branch = {other}>
        z = Softmax(y)
    }}"""
    return import_onnx(read(text), decides=True)


def demanding() -> Graph:
    """A branch that adds arrays, whose numbers of rows must be equal there, and another."""
    then, other = "b () => (o) { s = Add(x, w) o = Exp(s) }", "b () => (o) { o = Relu(x) }"
    text = f"""g (float[n, 7] x, float[m, 7] w, bool c) => (z) {{
        y = If(c)<then_branch = {then}, else_branch = {other}>
        z = Softmax(y)
    }}"""
    return import_onnx(read(text), decides=True)


def detector(seed: int = 0) -> onnx.ModelProto:
    """A voice detector: for each of two sampling rates frames and weights of its own.

    input: float32[batch, samples], state: float32[2, batch, 5], rate: int64[];
    output: float32[batch, 1], next: float32[2, batch, 5].
    """
    branches = "".join(
        f"{name} = {_network(seed + k, width)}{',' if not k else ''}"
        for k, (name, width) in enumerate({"then_branch": 16, "else_branch": 8}.items())
    )
    return read(
        f"""detector (float[batch, samples] input, float[2, batch, {UNITS}] state, int64 rate)
        => (float[batch, 1] output, float[2, batch, {UNITS}] next) {{
            high = Constant<value = int64 {{{RATES[True]}}}>()
            is_high = Equal(rate, high)
            output, next = If(is_high)<{branches}>
        }}"""
    )


def _network(seed: int, width: int) -> str:
    """Frames of so many samples, half of them shared, a convolution, an LSTM, a mean over time."""
    rng = np.random.default_rng(seed)

    def constant(name: str, *shape: int) -> str:
        numbers = rng.uniform(-0.5, 0.5, shape).astype(np.float32)
        values = ", ".join(repr(float(x)) for x in numbers.flat)
        return f"{name} = Constant<value = float[{','.join(map(str, shape))}] {{{values}}}>()"

    return f"""network{width} () => (float[batch, 1] o, float[2, batch, {UNITS}] n) {{
        one = Constant<value = int64[1] {{1}}>()
        {constant("basis", 6, 1, width)}
        {constant("filter", 4, 6, 3)}
        {constant("w", 1, 4 * UNITS, 4)}
        {constant("r", 1, 4 * UNITS, UNITS)}
        {constant("b", 1, 8 * UNITS)}
        {constant("last", UNITS, 1)}
        wave = Unsqueeze(input, one)
        frames = Conv<kernel_shape = [{width}], strides = [{width // 2}]>(wave, basis)
        loud = Abs(frames)
        features = Conv<kernel_shape = [3], pads = [1, 1]>(loud, filter)
        active = Relu(features)
        steps = Transpose<perm = [2, 0, 1]>(active)
        h, c = Split<axis = 0, num_outputs = 2>(state)
        all, hn, cn = LSTM<hidden_size = {UNITS}>(steps, w, r, b, , h, c)
        n = Concat<axis = 0>(hn, cn)
        flat = Squeeze(all, one)
        scores = MatMul(flat, last)
        likely = Sigmoid(scores)
        zero = Constant<value = int64[1] {{0}}>()
        o = ReduceMean<keepdims = 0>(likely, zero)
    }}"""
