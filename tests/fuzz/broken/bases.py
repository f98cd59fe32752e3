"""The models that are broken: the standard's own cases, and some that have more in them."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from pathlib import Path

import numpy as np

from polyc import Graph, ops
from polyc.graph.onnx.export import export_onnx
from tests.staged import model_of

LARGEST = 4096
"""Bytes of a model: what is small is quickly refused, and compiled."""

CONTROL = {
    "branches": """g (float[2, 3] x, bool c) => (float[2, 3] y) {
        y = If (c) <then_branch = t () => (float[2, 3] r) { r = Exp(x) },
                    else_branch = e () => (float[2, 3] r) { r = Neg(x) }> }""",
    "steps": """g (float[3] x, int64 n) => (float[3] y, float[k, 3] all) {
        on = Constant<value_int = 1>() go = Cast<to = 9>(on)
        y, all = Loop (n, go, x) <body = b (int64 i, bool c, float[3] s) =>
            (bool d, float[3] t, float[3] u) { d = Identity(c) t = Add(s, s) u = Mul(s, t) }> }""",
    "scanned": """g (float[4, 3] x, float[3] h) => (float[3] last, float[4, 3] y) {
        last, y = Scan (h, x) <num_scan_inputs = 1, body = b (float[3] s, float[3] v) =>
            (float[3] t, float[3] u) { t = Add(s, v) u = Tanh(t) }> }""",
    "found": """g (float[3, 4] x, float[5, 4] w) => (float[i, j] y) {
        p = NonZero(x) one = Constant<value_ints = [0]>() q = Gather<axis = 0>(p, one)
        r = Squeeze(q) y = Gather<axis = 0>(w, r) }""",
    "reshaped": """g (float[n, 4] x, int64[2] t) => (float[i, j] y) {
        s = Shape(x) z = Reshape(x, t) y = Relu(z) }""",
    "sequences": """g (float[2] a, float[3] b, seq(float[k]) s) => (float[n] y) {
        t = SequenceConstruct(a, b) u = SequenceInsert(s, a) at = Constant<value_int = -1>()
        v = SequenceAt(u, at) w = ConcatFromSequence<axis = 0>(t) y = Concat<axis = 0>(v, w) }""",
    "open": """g (float[batch, seq, 8] x, float[8, 8] w) => (float[batch, seq, 8] y) {
        q = MatMul(x, w) k = Transpose<perm = [0, 2, 1]>(x) s = MatMul(q, k)
        p = Softmax<axis = -1>(s) y = MatMul(p, x) }""",
}
"""What one case of a single operator has not: bodies, stages, sequences, sizes."""


def _weights(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _network() -> Graph:
    x = ops.input("x", (1, 3, 9, 9))
    h = ops.relu(ops.conv(x, _weights(8, 3, 3, 3), _weights(8), pads=(1, 1, 1, 1)))
    one = np.ones(8, np.float32)
    h = ops.batch_normalization(h, one, one, one, one)
    h = ops.max_pool(h, kernel_shape=(2, 2), strides=(2, 2))
    return Graph.of(y=ops.softmax(ops.gemm(ops.flatten(h), _weights(128, 10), _weights(10))))


def _block() -> Graph:
    x = ops.input("x", (6, 8))
    q, k, v = (ops.matmul(x, _weights(8, 8)) for _ in range(3))
    h = x + ops.matmul(ops.softmax(ops.matmul(q, ops.transpose(k))), v)
    h = ops.layer_normalization(h, _weights(8), _weights(8))
    return Graph.of(y=h, z=ops.concat([h, x], axis=0))


@cache
def read_bases(file: Path | None = None) -> tuple[tuple[str, bytes], ...]:
    """(name, message) of each; from a file where another process has written it."""
    if file is not None:
        return tuple(pickle.loads(file.read_bytes()))
    from tests.conformance.cases import all_cases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {name: case.model for name, case in all_cases().items()}
    own = {name: model_of(text) for name, text in CONTROL.items()}
    own |= {"network": export_onnx(_network(), 21), "block": export_onnx(_block(), 21)}
    small = {name: model.SerializeToString() for name, model in cases.items()}
    small = {name: data for name, data in small.items() if len(data) <= LARGEST}
    # A tenth of all cases are our own.
    many = max(1, len(small) // (10 * len(own)))
    ours = {f"{n}/{k}": m.SerializeToString() for n, m in own.items() for k in range(many)}
    return tuple({**small, **ours}.items())
