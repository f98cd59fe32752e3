"""torch: the model node by node, eagerly, on its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from bench.engines import Session, Task

Operator = Callable[..., Any]


def open(task: Task, threads: int) -> Session:
    """KeyError for an operator that is not in the table."""
    torch.set_num_threads(threads)
    function = read_model(task.proto(), "cpu")
    inputs = [torch.from_numpy(value) for value in task.inputs().values()]
    last: list[Any] = [None]

    def run() -> None:
        with torch.inference_mode():
            last[0] = function(*inputs)

    return Session(run, lambda: last[0].numpy())


def read_model(model: onnx.ModelProto, device: str) -> Callable[..., Any]:
    """The model's first output as a function of its inputs, in order.

    Weights lie on the device; integers, which are shapes for the most part, stay on the host.
    """
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    constants = {name: _constant(value, device) for name, value in weights.items()}
    steps = []
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            value = numpy_helper.to_array(attributes["value"])
            constants[node.output[0]] = _constant(value, device)
        else:
            steps.append((OPERATORS[node.op_type], node.input, node.output, attributes))
    names = [i.name for i in model.graph.input if i.name not in constants]
    first = model.graph.output[0].name

    def function(*arguments: Any) -> Any:
        values = {**constants, **dict(zip(names, arguments, strict=True))}
        for operator, inputs, outputs, attributes in steps:
            made = operator(*(values[i] if i else None for i in inputs), **attributes)
            several = made if isinstance(made, tuple) else (made,)
            # Some outputs nobody reads: Dropout's mask.
            values.update(zip(outputs, several, strict=False))
        return values[first]

    return function


def _constant(value: np.ndarray, device: str) -> Any:
    tensor = torch.from_numpy(value.copy())
    return tensor.to(device) if value.dtype.kind == "f" else tensor


def _listed(values: Any) -> list[int]:
    """What is an attribute in old models and a tensor in new ones."""
    return list(values) if isinstance(values, list | tuple) else values.tolist()


def _padded(x: Any, pads: Sequence[int], value: float = 0.0) -> Any:
    """ONNX's [begin…, end…] as torch's pairs, the last dimension first."""
    half = len(pads) // 2
    pairs = [p for d in reversed(range(half)) for p in (pads[d], pads[half + d])]
    return F.pad(x, pairs, value=value) if any(pads) else x


def _conv(
    x: Any, w: Any, bias: Any = None, *, pads: Any = (), strides: Any = 1, **rest: Any
) -> Any:
    half = len(pads) // 2
    even = list(pads[:half]) == list(pads[half:])
    x, padding = (x, list(pads[:half]) or 0) if even else (_padded(x, pads), 0)
    dilation, groups = rest.get("dilations", 1), rest.get("group", 1)
    return F.conv2d(x, w, bias, strides, padding, dilation, groups)


def _max_pool(x: Any, *, kernel_shape: Any, strides: Any = 1, pads: Any = (), **rest: Any) -> Any:
    x = _padded(x, pads, float("-inf"))
    return F.max_pool2d(x, kernel_shape, strides, ceil_mode=bool(rest.get("ceil_mode", 0)))


def _average_pool(
    x: Any, *, kernel_shape: Any, strides: Any = 1, pads: Any = (), **rest: Any
) -> Any:
    """The padding counts only if the attribute says so."""
    counted = bool(rest.get("count_include_pad", 0))
    mean = F.avg_pool2d(_padded(x, pads), kernel_shape, strides)
    if counted or not any(pads):
        return mean
    inside = _padded(torch.ones_like(x[:1, :1]), pads)
    return mean / F.avg_pool2d(inside, kernel_shape, strides)


def _batch_norm(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5, **_: Any
) -> Any:
    return F.batch_norm(x, mean, variance, scale, shift, eps=epsilon)


def _gemm(a: Any, b: Any, c: Any = None, *, transA: int = 0, transB: int = 0, **_: Any) -> Any:
    a, b = (a.T if transA else a), (b.T if transB else b)
    return a @ b if c is None else torch.addmm(c, a, b)


def _lrn(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    return F.local_response_norm(x, size, alpha, beta, bias)


def _reduced(function: Operator) -> Operator:
    def reduce(x: Any, axes: Any = None, keepdims: int = 1) -> Any:
        dims = None if axes is None else _listed(axes)
        return function(x, dim=dims, keepdim=bool(keepdims))

    return reduce


def _reshape(x: Any, shape: Any, **_: Any) -> Any:
    sizes = [x.shape[k] if n == 0 else n for k, n in enumerate(_listed(shape))]
    return x.reshape(sizes)


def _gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    if index.ndim == 0:
        return x.select(axis, int(index))
    index = index.to(x.device)
    return F.embedding(index, x) if axis == 0 else x.index_select(axis, index)


def _unsqueeze(x: Any, axes: Any) -> Any:
    for axis in sorted(_listed(axes)):
        x = x.unsqueeze(axis)
    return x


OPERATORS: Mapping[str, Operator] = {
    "Add": torch.add,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": lambda x, to: x.to(torch.float32 if to == onnx.TensorProto.FLOAT else torch.int64),
    "Clip": lambda x, low=None, high=None: torch.clamp(x, low, high),
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Conv": _conv,
    "Div": torch.div,
    "Dropout": lambda x, *_, **__: x,
    "Erf": torch.erf,
    "Flatten": lambda x, axis=1: x.flatten(axis),
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x: x.mean(dim=(2, 3), keepdim=True),
    "LRN": _lrn,
    "LayerNormalization": lambda x, w, b=None, *, axis=-1, epsilon=1e-5: F.layer_norm(
        x, x.shape[axis:], w, b, epsilon
    ),
    "MatMul": torch.matmul,
    "MaxPool": _max_pool,
    "Mul": torch.mul,
    "Pow": torch.pow,
    "ReduceMean": _reduced(torch.mean),
    "ReduceSum": _reduced(torch.sum),
    "Relu": torch.relu,
    "Reshape": _reshape,
    "Sigmoid": torch.sigmoid,
    "Softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "Split": lambda x, split, axis=0: torch.split(x, _listed(split), axis),
    "Sqrt": torch.sqrt,
    "Squeeze": lambda x, axes: x.squeeze(tuple(_listed(axes))),
    "Sub": torch.sub,
    "Sum": lambda *x: sum(x[1:], x[0]),
    "Tanh": torch.tanh,
    "Transpose": lambda x, perm: x.permute(perm),
    "Unsqueeze": _unsqueeze,
}
