"""The least time that a problem can take: by what must be computed and what must be moved.

Work is counted from the problem's definition, not from what an engine does about it. A convolution
by Winograd's algorithm multiplies less and may so come out above the roofline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from onnx import shape_inference

from polyc.target.machine import Target

Shapes = Mapping[str, tuple[int, ...]]

_FIT = 2
"""A cache holds a problem if it has room for this many times its data."""

_SMALL = 64
"""Elements of a constant that may be a shape, whose values decide other shapes."""

_BYTES = {
    onnx.TensorProto.DOUBLE: 8,
    onnx.TensorProto.INT64: 8,
    onnx.TensorProto.BFLOAT16: 2,
    onnx.TensorProto.FLOAT16: 2,
    onnx.TensorProto.BOOL: 1,
    onnx.TensorProto.INT8: 1,
    onnx.TensorProto.UINT8: 1,
}
"""Of an element; four for every other type."""


@dataclass(frozen=True)
class Work:
    """flops: of the multiply-adds (two each) of Conv, Gemm and MatMul; other operators are not
    counted. reads: bytes of inputs and weights, each once; writes: bytes of outputs.
    """

    flops: int
    reads: int
    writes: int


def count_work(model: onnx.ModelProto) -> Work:
    """Of a model. Raises ValueError where a shape that matters is not known."""
    graph = shape_inference.infer_shapes(_without_values(model)).graph
    types = {v.name: v.type.tensor_type for v in (*graph.input, *graph.value_info, *graph.output)}
    shapes = {n: tuple(d.dim_value for d in t.shape.dim) for n, t in types.items()}
    sizes = {n: math.prod(shapes[n]) * _BYTES.get(t.elem_type, 4) for n, t in types.items()}
    try:
        flops = sum(_flops(node, shapes) for node in graph.node)
    except KeyError as error:
        raise ValueError(
            f"the shape of {error} is not known; simplify the model to one with static shapes"
        ) from error
    given = {i.name for i in graph.input}
    # Of a table only what is looked up is read.
    tables = {n.input[0]: n.output[0] for n in graph.node if n.op_type == "Gather"}
    used = {name for node in graph.node for name in node.input if name in given}
    reads = sum(min(sizes[n], sizes[tables.get(n, n)]) for n in used)
    return Work(flops, reads, sum(sizes[o.name] for o in graph.output))


def floor_seconds(target: Target, work: Work, threads: int) -> float:
    """max(computing, moving) at the machine's rates; what lies in a cache is moved from there."""
    return max(work.flops / (target.rates.flops * threads), _moving(work, target, threads))


def _moving(work: Work, target: Target, threads: int) -> float:
    rates = target.rates
    total = work.reads + work.writes
    for capacity, rate in (
        (target.l1d * threads, rates.l1 * threads),
        (target.l2 * threads, rates.l2 * threads),
        (target.l3, rates.l3 * threads),
    ):
        if _FIT * total <= capacity:
            return total / rate
    # Bytes written go along with as many that are read, at the speed of a copy.
    copied = 2 * min(work.reads, work.writes)
    copy = _shared(rates.copy, rates.copy_all, threads)
    if work.reads < work.writes:
        return total / copy
    return copied / copy + (total - copied) / _shared(rates.read, rates.read_all, threads)


def _shared(one: float, most: float, threads: int) -> float:
    """The rate of some of the cores, from those of one and of all."""
    return max(one, min(most, one * threads))


def _flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return 0
    a, b, y = shapes[node.input[0]], shapes[node.input[1]], shapes[node.output[0]]
    match node.op_type:
        case "Conv":
            return 2 * math.prod(y) * math.prod(b[1:])
        case "ConvTranspose":
            return 2 * math.prod(a) * math.prod(b[1:])
        case "Gemm":
            transposed = any(t.name == "transA" and t.i for t in node.attribute)
            return 2 * math.prod(y) * (a[0] if transposed else a[1])
        case _:
            return 2 * math.prod(y) * a[-1]


def _without_values(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with large weights as inputs, so that inferring shapes does not copy them."""
    plain = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    graph = plain.graph
    graph.CopyFrom(onnx.GraphProto(node=model.graph.node, output=model.graph.output))
    graph.initializer.extend(t for t in model.graph.initializer if math.prod(t.dims) <= _SMALL)
    weights = {t.name for t in model.graph.initializer}
    graph.input.extend(i for i in model.graph.input if i.name not in weights)
    graph.input.extend(
        onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        for t in model.graph.initializer
    )
    return plain
