"""Models of bytes beside the reference: where a float is halfway between two, either is right.

The reference adds up floats that polyc adds up as integers, exactly. Now and then the two sums are
on different sides of a half, and the bytes that they are rounded to are a step apart, as is all
that follows. So a model is cut where bytes are made: each part gets what the reference made before.

    q = QuantizeLinear(x);  y = DequantizeLinear(q)   ->   q = …;  y = DequantizeLinear(q_given)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from polyc.names import fresh

ROUNDING = frozenset({"DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear"})
"""Operators that round floats to bytes."""

MOST_TIES = 1e-3
"""The share of a tensor's bytes that may be a step apart."""


def cut_at_bytes(
    exposed: onnx.ModelProto, feeds: Mapping[str, Any], reference: Mapping[str, np.ndarray]
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model whose nodes read given bytes, for the sizes of these feeds; and all of its feeds.

    exposed: a model all of whose tensors are outputs; reference: what they are.
    """
    cut = onnx.ModelProto()
    cut.CopyFrom(exposed)
    taken = {name for node in exposed.graph.node for name in (*node.input, *node.output)}
    given = dict(feeds)
    renamed: dict[str, str] = {}
    for made in find_bytes(exposed):
        if made in reference:
            renamed[made] = fresh(f"{made}_given", taken)
            taken.add(renamed[made])
            given[renamed[made]] = reference[made]
    for node in cut.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = renamed.get(name, name)
    types = {info.name: info for info in (*exposed.graph.output, *exposed.graph.input)}
    old = {new: made for made, new in renamed.items()}
    for name, value in given.items():
        kind = types[old.get(name, name)].type.tensor_type.elem_type
        shape = np.shape(value)
        info = next((i for i in cut.graph.input if i.name == name), None) or cut.graph.input.add()
        info.CopyFrom(helper.make_tensor_value_info(name, kind, shape))
    del cut.graph.value_info[:]
    for info in cut.graph.output:
        info.type.tensor_type.ClearField("shape")
    return cut, given


def keep_outputs(cut: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """Take all outputs off a model but those that another one has."""
    names = {info.name for info in model.graph.output}
    kept = [info for info in cut.graph.output if info.name in names]
    del cut.graph.output[:]
    cut.graph.output.extend(kept)


def find_bytes(model: onnx.ModelProto) -> list[str]:
    """The tensors of bytes that nodes round floats to."""
    return [node.output[0] for node in model.graph.node if node.op_type in ROUNDING]


def count_ties(
    model: onnx.ModelProto, ours: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]
) -> dict[str, int]:
    """How many bytes of a tensor are a step apart, by tensor; none for one that is not as near."""
    names = [name for name in find_bytes(model) if name in ours and name in reference]
    counts = {name: _count_ties(ours[name], reference[name]) for name in names}
    return {name: count for name, count in counts.items() if count is not None}


def _count_ties(ours: np.ndarray, reference: np.ndarray) -> int | None:
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return None
    apart = np.abs(ours.astype(np.int32) - reference.astype(np.int32))
    count = int(np.count_nonzero(apart))
    return None if apart.max(initial=0) > 1 or count > max(1, MOST_TIES * apart.size) else count
