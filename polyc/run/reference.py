"""Comparing every tensor of a model with ONNX's reference, to find the first node that differs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import external_data_helper, shape_inference
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from polyc.errors import InvalidModel, RuntimeFailure, UnsupportedOp
from polyc.files.external import find_locations, locate
from polyc.files.model_file import read_model_file
from polyc.graph.ir import Graph
from polyc.graph.onnx.export import export_onnx
from polyc.run.feeds import random_feeds
from polyc.run.model import CompiledModel
from polyc.run.reference_bytes import count_ties, cut_at_bytes, find_bytes, keep_outputs
from polyc.types.element_types import is_float

LIMITS = {"bfloat16": 5e-2, "float16": 1e-2, "float32": 1e-4, "float64": 1e-10}
"""Largest error, relative to the tensor's largest magnitude; other types must agree exactly."""

BYTES_LIMIT = 5e-2
"""The same for outputs of a model some of whose bytes are a step apart."""


@dataclass(frozen=True)
class Difference:
    """How far a tensor is from the reference: max |ours - reference| / max |reference|."""

    node: str
    op: str
    tensor: str
    error: float
    limit: float

    @property
    def agrees(self) -> bool:
        return self.error <= self.limit

    def __str__(self) -> str:
        return (
            f"node {self.node!r} ({self.op}) computes tensor {self.tensor!r} with relative error "
            f"{self.error:.2e}, more than {self.limit:.0e}"
        )


@dataclass(frozen=True)
class NumericReport:
    """What agreed with onnx's reference: tensors, outputs of the fused model, and how well.

    ties: bytes that are a step apart, of floats that are halfway between two but for a rounding.
    """

    tensors: int
    outputs: int
    error: float
    ties: int = 0

    def __str__(self) -> str:
        return (
            f"{self.tensors} tensors agree with onnx's reference, and so do {self.outputs} outputs "
            f"of the fused model; largest error {self.error:.1e}"
            + (f"; bytes a step apart, of floats between two: {self.ties}" if self.ties else "")
        )


def verify_numbers(
    model: Any,
    compile: Callable[[Any], CompiledModel],
    feeds: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> NumericReport:
    """Compare every tensor of a model with the reference, then the outputs of it fused.

    What only a call decides must be among the feeds. Raises RuntimeFailure for the first node that
    differs, UnsupportedOp, which says what to give, where feeds are missing.
    """
    proto = as_proto(model)
    exposed = expose_intermediates(proto)
    apart = compile(exposed)
    given = _draw(apart, dict(feeds or {}), seed)
    reference = run_reference(exposed, given)
    differences = compare(exposed, apart.run(given), reference)
    ties: dict[str, int] = {}
    if find_bytes(exposed) and not all(difference.agrees for difference in differences):
        cut, bytes_given = cut_at_bytes(exposed, given, reference)
        ours = compile(cut).run(bytes_given)
        ties = count_ties(cut, ours, reference)
        differences = compare(cut, ours, reference, ties)
    for difference in differences:
        if not difference.agrees:
            raise RuntimeFailure(f"{difference}; the nodes before it agree; please report this")
    ends = compare(proto, compile(proto).run(given), reference)
    outputs = len(ends)
    if any(ties.values()):
        # What follows from other bytes is as near as bytes are. Given bytes, it is as near as ever.
        near = [replace(d, limit=BYTES_LIMIT) for d in ends if d.limit and d.tensor not in ties]
        cut, bytes_given = cut_at_bytes(exposed, given, reference)
        keep_outputs(cut, proto)
        ends = [*near, *compare(proto, compile(cut).run(bytes_given), reference, ties)]
    for difference in ends:
        if not difference.agrees:
            raise RuntimeFailure(
                f"{difference} when the model is fused, though every node agrees on its own; "
                "please report this"
            )
    worst = max((d.error for d in (*differences, *ends)), default=0.0)
    return NumericReport(len(differences), outputs, worst, sum(ties.values()))


def _draw(model: CompiledModel, feeds: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The feeds, and random ones for other inputs; UnsupportedOp where those would mean nothing."""
    missing = sorted(set(model.needed) - feeds.keys())
    if missing:
        names = ", ".join(f"{name!r}: …" for name in missing)
        raise UnsupportedOp(
            f"model {model.name!r} is completed by a call, and random values of its inputs "
            f"{', '.join(map(repr, missing))} would mean nothing; give them by "
            f"polyc.verify(model, feeds={{{names}}}), or make them initializers of the model"
        )
    free = [spec for spec in model.inputs if spec.name not in feeds]
    return {**random_feeds(free, seed, model.sizes), **feeds}


def as_proto(model: Any) -> onnx.ModelProto:
    """A path, bytes, a Graph or a ModelProto as the reference reads it; else InvalidModel."""
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, Graph):
        return export_onnx(model)
    if isinstance(model, bytes):
        return _parse("the model", model)
    if isinstance(model, str | os.PathLike):
        return read_model(os.fspath(model))
    kind = type(model).__name__
    raise InvalidModel(f"a {kind} is no model; give a path, bytes, a ModelProto or a polyc.Graph")


def read_model(path: str) -> onnx.ModelProto:
    """An ONNX file as a proto; InvalidModel if it is none."""
    data, folder = read_model_file(Path(path)), Path(path).parent
    for location in find_locations(data):
        locate(location, folder, f"model {path}")
    return _parse(path, data, folder)


def _parse(name: str, data: bytes, folder: Path | None = None) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(data)
        if folder is not None:
            external_data_helper.load_external_data_for_model(model, str(folder))
        return model
    except Exception as error:  # protobuf and onnx raise many kinds here
        raise InvalidModel(f"{name} cannot be read as an ONNX model: {error}") from error


def expose_intermediates(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the output of every node of its graph as an output, in the nodes' order."""
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    types = {v.name: v for v in (*inferred.graph.value_info, *inferred.graph.output)}
    exposed = onnx.ModelProto()
    exposed.CopyFrom(inferred)
    del exposed.graph.output[:]
    for node in inferred.graph.node:
        for name in node.output:
            info = types.get(name)
            if info is not None and info.type.HasField("tensor_type"):
                exposed.graph.output.append(info)
    # An output that no node computes is an input or a constant.
    made = {o.name for o in exposed.graph.output}
    exposed.graph.output.extend(o for o in inferred.graph.output if o.name not in made)
    return exposed


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """{output: array} by ONNX's reference evaluator; RuntimeFailure where that cannot run it."""
    try:
        evaluator = ReferenceEvaluator(model, new_ops=_corrections(model))
        values = evaluator.run(None, dict(feeds))
    except Exception as error:  # each operator raises what it likes
        raise RuntimeFailure(
            f"onnx's reference evaluator cannot run model {model.graph.name!r}: "
            f"{' '.join(str(error).split())[:300]}; there is nothing to compare with"
        ) from error
    return dict(zip(evaluator.output_names, map(np.asarray, values), strict=True))


class BatchNormalization(OpRun):
    """Before version 14 a single output means inference: with the given mean and variance.

    onnx's evaluator mixes in the statistics of its input instead.
    """

    op_domain = ""

    def _run(
        self,
        x: np.ndarray,
        scale: np.ndarray,
        shift: np.ndarray,
        mean: np.ndarray,
        variance: np.ndarray,
        epsilon: float = 1e-5,
        **_: Any,
    ) -> tuple[np.ndarray]:
        scale, shift, mean, variance = (
            v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, shift, mean, variance)
        )
        y = scale * (x - mean) / np.sqrt(variance + epsilon) + shift
        return (y.astype(x.dtype),)


class DequantizeLinear(OpRun):
    """y = (x - zero_point) * scale, along one dimension; onnx's evaluator has it from 19 on."""

    op_domain = ""

    def _run(
        self,
        x: np.ndarray,
        scale: np.ndarray,
        zero_point: np.ndarray | None = None,
        axis: int = 1,
        **_: Any,
    ) -> tuple[np.ndarray]:
        shape = [1] * x.ndim
        if scale.ndim:
            shape[axis] = scale.size
        zero = np.zeros_like(scale, x.dtype) if zero_point is None else zero_point
        whole = x.astype(np.int64) - zero.astype(np.int64).reshape(shape)
        return (whole.astype(scale.dtype) * scale.reshape(shape),)


def _corrections(model: onnx.ModelProto) -> list[type[OpRun]]:
    """Operators that the evaluator gets wrong in the model's version of the standard."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    wrong: list[type[OpRun]] = [BatchNormalization] if version < 14 else []
    return [*wrong, DequantizeLinear] if version < 19 else wrong


def compare(
    model: onnx.ModelProto,
    ours: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    agreed: Collection[str] = (),
) -> list[Difference]:
    """The difference of every tensor that both sides hold, in the order of the nodes.

    agreed: tensors that are known to agree, though they may differ.
    """
    differences = []
    for position, node in enumerate(model.graph.node):
        for name in node.output:
            if name in ours and name in reference:
                same = name in agreed
                error = 0.0 if same else relative_error(ours[name], reference[name])
                limit = LIMITS.get(str(reference[name].dtype), 0.0)
                label = node.name or f"#{position}"
                differences.append(Difference(label, node.op_type, name, error, limit))
    return differences


def relative_error(ours: np.ndarray, reference: np.ndarray) -> float:
    """max |ours - reference| / max |reference|; infinite if shapes, NaNs or infinities differ."""
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return float("inf")
    if not is_float(reference.dtype):
        return 0.0 if np.array_equal(ours, reference) else float("inf")
    a, b = ours.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    if not np.isfinite(a[finite]).all():
        return float("inf")
    scale = max(float(np.abs(b[finite]).max()), float(ml_dtypes.finfo(reference.dtype).tiny))
    return float(np.abs(a[finite] - b[finite]).max()) / scale
