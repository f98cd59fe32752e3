"""Weights of 4 or 8 bits in blocks, as MatMulNBits takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from polyc.compression.options import check_choice
from polyc.errors import ShapeError
from polyc.graph.builder import Operand, Value
from polyc.graph.expand.contrib.operators import CONTRIB_DOMAIN
from polyc.ops.quantization import matmul_n_bits

Activations = Literal["float32", "int8"]


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """Weights of a linear layer, scales[j, b] * (number[j, k] - zeros[j, b]) where b = k // block.

    bits: 4 or 8. packed: uint8[n, blocks, block * bits / 8], of 4 bits two to a byte, the lower
    half first. scales: float32[n, blocks]. zeros: float32[n, blocks], or None for 2^(bits - 1).
    In front of these there may be more dimensions, as for experts: weights[i] is what is at place
    i of the first one.
    """

    bits: int
    packed: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None = None

    @property
    def block(self) -> int:
        """How many weights, of those that are summed up, share a scale."""
        return int(self.packed.shape[-1]) * 8 // self.bits

    @property
    def shape(self) -> tuple[int, ...]:
        """[…, n, k]"""
        return (*self.scales.shape[:-1], self.scales.shape[-1] * self.block)

    def __getitem__(self, index: int) -> BlockWeights:
        if len(self.shape) < 3:
            raise ShapeError(
                f"weights {list(self.shape)} are a matrix, of which no part is taken; index those "
                "of three dimensions and more"
            )
        parts = (None if v is None else v[index] for v in (self.packed, self.scales, self.zeros))
        packed, scales, zeros = parts
        assert packed is not None
        assert scales is not None
        return replace(self, packed=packed, scales=scales, zeros=zeros)

    def restored(self) -> np.ndarray:
        """The weights as floats, float32[…, n, k]."""
        numbers = self.packed
        if self.bits == 4:
            numbers = np.stack([numbers & 15, numbers >> 4], axis=-1)
        numbers = numbers.reshape(*self.scales.shape, self.block).astype(np.float32)
        zeros = np.float32(1 << (self.bits - 1)) if self.zeros is None else self.zeros[..., None]
        with np.errstate(invalid="ignore", over="ignore"):  # a file may hold what is no number
            return ((numbers - zeros) * self.scales[..., None]).reshape(self.shape)

    def multiply(
        self, x: Operand, bias: Operand | None = None, activations: Activations = "float32"
    ) -> Value:
        """x @ wᵀ + bias, [… k] -> [… n], in a graph that is built in Python.

        activations: "int8" allows x to be rounded to bytes, block by block.
        """
        n, k = self._matrix()
        arrays = [v for v in (self.packed, self.scales, self.zeros) if v is not None]
        level = _level(activations)
        y = matmul_n_bits(
            x, *arrays, K=k, N=n, bits=self.bits, block_size=self.block, accuracy_level=level
        )
        return y if bias is None else y + bias

    def nodes(
        self, name: str, x: str, y: str, activations: Activations = "float32"
    ) -> tuple[onnx.NodeProto, Sequence[onnx.TensorProto]]:
        """y = x @ wᵀ as a node of an ONNX model and the initializers that it reads.

        The model imports the domain com.microsoft, version 1.
        """
        n, k = self._matrix()
        parts = {"packed": self.packed, "scales": self.scales, "zeros": self.zeros}
        stored = [
            numpy_helper.from_array(np.ascontiguousarray(v), f"{name}_{part}")
            for part, v in parts.items()
            if v is not None
        ]
        attributes: dict[str, Any] = {"K": k, "N": n, "bits": self.bits, "block_size": self.block}
        if _level(activations):
            attributes["accuracy_level"] = _level(activations)
        inputs = [x, *(t.name for t in stored)]
        made = helper.make_node(
            "MatMulNBits", inputs, [y], name=name, domain=CONTRIB_DOMAIN, **attributes
        )
        return made, stored

    def _matrix(self) -> tuple[int, int]:
        if len(self.shape) != 2:
            raise ShapeError(
                f"weights {list(self.shape)} are not one matrix; take one of them, as weights[0]"
            )
        return self.shape[0], self.shape[1]


def _level(activations: Activations) -> int:
    """The accuracy level of MatMulNBits."""
    check_choice("activations", activations, Activations)
    return 4 if activations == "int8" else 0
