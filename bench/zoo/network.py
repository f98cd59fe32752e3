"""Writing ONNX graphs in the form that torch.onnx.export gives them (opset 17).

Scalars and shapes are Constant nodes, weights are initializers, a batch normalisation is already
part of its convolution, and node names follow the modules: /layer.0/attention/query/MatMul.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17


@dataclass(frozen=True)
class Example:
    """A model and inputs for it."""

    model: onnx.ModelProto
    feeds: Mapping[str, np.ndarray]


class Network:
    """A graph in the making. Values are names of tensors; weights are drawn from one seed.

    A weight is normal with deviation gain / sqrt(fan-in), so that activations keep their size from
    layer to layer and a wrong index is visible in the output.
    """

    def __init__(self, name: str, seed: int, fused_norms: bool = True) -> None:
        """fused_norms: LayerNormalization nodes; otherwise the chain that opset 16 needs."""
        self.random = np.random.default_rng(seed)
        self._name = name
        self._fused_norms = fused_norms
        self._scopes: list[str] = []
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._names: set[str] = set()

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names within are those of a module of this name."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def input(self, name: str, shape: Sequence[int | str], dtype: str = "float32") -> str:
        self._inputs.append(_value_info(name, shape, dtype))
        return name

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Append a node; the name of its (first) output."""
        return self.ops(kind, *inputs, outputs=outputs, **attributes)[0]

    def ops(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Append a node; the names of its outputs."""
        name = self._unique("/" + "/".join([*self._scopes, kind]))
        made = [f"{name}_output_{k}" for k in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, made, name, **attributes))
        return made

    def constant(self, value: float | Sequence[int]) -> str:
        """A Constant node: a float32 scalar, or a vector of int64 such as a shape."""
        array = np.float32(value) if isinstance(value, int | float) else np.array(value, np.int64)
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(array)))

    def constant_index(self, value: int) -> str:
        """A Constant node: a scalar of int64, which Gather needs to drop its axis."""
        return self.op("Constant", value=numpy_helper.from_array(np.array(value, np.int64)))

    def weight(self, value: np.ndarray, label: str = "weight") -> str:
        """An initializer of float32."""
        name = self._unique(".".join([*self._scopes, label]))
        self._weights.append(numpy_helper.from_array(value.astype(np.float32, copy=False), name))
        return name

    def normal(self, shape: Sequence[int], fan_in: float, gain: float = 1.0) -> np.ndarray:
        """gain * normal / sqrt(fan_in), in float32."""
        return self.random.standard_normal(shape, np.float32) * np.float32(gain / math.sqrt(fan_in))

    def bias(self, size: int) -> str:
        return self.weight(self.normal([size], 100), "bias")

    def matmul(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """A linear layer on a tensor of three or more dimensions: MatMul and Add."""
        w = self.weight(self.normal([inputs, outputs], inputs, gain))
        return self.op("Add", self.bias(outputs), self.op("MatMul", x, w))

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        """A linear layer on a matrix: Gemm with the weight as PyTorch holds it, [out, in]."""
        w = self.weight(self.normal([outputs, inputs], inputs))
        return self.op("Gemm", x, w, self.bias(outputs), transB=1)

    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int,
        stride: int = 1,
        pad: int = 0,
        group: int = 1,
        gain: float = 1.0,
    ) -> str:
        """channels: (in, out); a square kernel; with bias."""
        inner = channels[0] // group
        w = self.normal([channels[1], inner, kernel, kernel], inner * kernel**2, gain)
        return self.op(
            "Conv",
            x,
            self.weight(w),
            self.bias(channels[1]),
            dilations=[1, 1],
            group=group,
            kernel_shape=[kernel] * 2,
            pads=[pad] * 4,
            strides=[stride] * 2,
        )

    def layer_norm(self, x: str, size: int, epsilon: float) -> str:
        """Over the last dimension, of `size`."""
        scale = self.weight(self.random.uniform(0.5, 1.5, size))
        shift = self.bias(size)
        if self._fused_norms:
            return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        square = self.op("Pow", centred, self.constant(2.0))
        variance = self.op("ReduceMean", square, axes=[-1])
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(epsilon)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), scale)
        return self.op("Add", scaled, shift)

    def gelu(self, x: str) -> str:
        """x / 2 * (1 + erf(x / sqrt 2)), in the five nodes of the exporter."""
        error = self.op("Erf", self.op("Div", x, self.constant(math.sqrt(2))))
        raised = self.op("Mul", x, self.op("Add", error, self.constant(1.0)))
        return self.op("Mul", raised, self.constant(0.5))

    def finish(self, outputs: Mapping[str, tuple[str, Sequence[int | str]]]) -> onnx.ModelProto:
        """The model; outputs: {name: (value, shape)}, float32."""
        for name, (value, _) in outputs.items():
            self._rename(value, name)
        infos = [_value_info(name, shape, "float32") for name, (_, shape) in outputs.items()]
        graph = helper.make_graph(self._nodes, self._name, self._inputs, infos, self._weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def _rename(self, value: str, name: str) -> None:
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [name if n == value else n for n in names]

    def _unique(self, name: str) -> str:
        """The name, with a number behind if it is taken."""
        candidate, count = name, 0
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate


def _value_info(name: str, shape: Sequence[int | str], dtype: str) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, list(shape))
