"""What is known of the outputs of a model before a call completes it.

    p = NonZero(x); y = Gather(w, p)     p: int64[2, p_d1], y: float32[2, p_d1, 8]

Types are inferred as far as nothing is missing, and from there on by ONNX's own rules, which know
fewer sizes, but go on where one is unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

import numpy as np
import onnx

from polyc.budget import Budget
from polyc.errors import PolycError
from polyc.graph.inference.infer import Walk
from polyc.graph.ir import Tensor
from polyc.graph.onnx.nodes import OpenInput, read_type
from polyc.graph.onnx_import import UntypedModel, infer_values
from polyc.graph.run_time import RANDOM_KEY
from polyc.types.sizes import spell_shape
from polyc.types.spec import TensorSpec

UNKNOWN_RANK = ("...",)
"""The shape of a tensor of which not even the number of dimensions is known."""


def find_results(model: UntypedModel, budget: Budget) -> tuple[TensorSpec, ...]:
    """The tensors among the outputs, in order; a size that is not known has a name of its own."""
    typed = _infer(model, budget)
    declared = _declared_sizes(model.flat.graph)
    said = {info.name: info for info in infer_values(model.flat)}
    specs = (
        _spec(typed[name]) if name in typed else _read(said[name], declared)
        for name in model.outputs
        if name in typed or name in said
    )
    return tuple(spec for spec in specs if spec is not None)


def _infer(model: UntypedModel, budget: Budget) -> dict[str, Tensor]:
    """The types of all that is computed before something is missing."""
    known = {t.name: t for t in model.inputs if isinstance(t, Tensor)}
    known |= {**model.constants, RANDOM_KEY: Tensor(RANDOM_KEY, np.dtype(np.uint32), (2,))}
    walk = Walk(model.nodes, known, lambda node, reason: None, budget=budget, decides=True)
    with contextlib.suppress(PolycError):
        walk.run()
    return walk.table


def _declared_sizes(graph: onnx.GraphProto) -> set[str]:
    infos = (*graph.input, *graph.output)
    return {d.dim_param for i in infos for d in i.type.tensor_type.shape.dim if d.dim_param}


def _read(info: onnx.ValueInfoProto, declared: Collection[str]) -> TensorSpec | None:
    """What a type of ONNX says; names of sizes that inference has made up are ours to choose."""
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        if not kind.elem_type:
            return None
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        return TensorSpec(info.name, dtype, UNKNOWN_RANK)
    named = onnx.ValueInfoProto()
    named.CopyFrom(info)
    for dim in named.type.tensor_type.shape.dim:
        if dim.dim_param and dim.dim_param not in declared:
            dim.Clear()
    tensor = read_type(named, declared)
    return None if isinstance(tensor, OpenInput) else _spec(tensor)


def _spec(tensor: Tensor) -> TensorSpec:
    return TensorSpec(tensor.name, tensor.dtype, spell_shape(tensor.shape))
