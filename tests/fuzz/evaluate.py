"""One node by onnx's reference evaluator, on all shadows of its inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

from tests.fuzz.precise import PRECISE, run_loop
from tests.fuzz.values import SHADOWS, Rejected, Run, Value, is_float, step_of

MAX_SIZE = 40_000
"""Elements that a tensor may have."""

_PARTS = 6
"""Parts of a tensor that are disturbed together."""

Compute = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


class Kind(Enum):
    """How an operator rounds, hence how its shadows are disturbed.

    EXACT: not at all: movement, comparison, rounding to integers. TYPED: as its element type says,
    to the letter: Cast and quantisation. POINTWISE: each result by itself. SUM: what it adds up may
    cancel, so its inputs are disturbed as well.
    """

    EXACT = "exact"
    TYPED = "typed"
    POINTWISE = "pointwise"
    SUM = "sum"


def one_node_model(node: NodeProto, inputs: Sequence[Value], opset: int) -> ModelProto:
    """The node alone, with its inputs and what its bodies take from outside as inputs."""
    named = {v.name: v for v in inputs}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), None)
        for n, v in named.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "node", infos, outputs)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def infer_types(model: ModelProto) -> list[np.dtype]:
    """Element types of a model's outputs, by onnx."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise Rejected(f"types: {error}") from error
    codes = [o.type.tensor_type.elem_type for o in inferred.graph.output]
    if not all(codes):
        raise Rejected("a type is not inferred")
    return [np.dtype(helper.tensor_dtype_to_np_dtype(code)) for code in codes]


def evaluate(
    node: NodeProto,
    inputs: Sequence[Value],
    kind: Kind,
    opset: int,
    rng: np.random.Generator,
    special: bool = False,
    noise: float = 0.0,
) -> list[Value]:
    """What the node gives. special: NaN and infinities may occur. noise: what floats may be off by
    besides, in steps of the largest one: where places are computed, for instance.

    Raises Rejected where the reference does not know the node, where a discrete result hangs on
    rounding, or where numbers are out of hand.
    """
    model = one_node_model(node, inputs, opset)
    dtypes = infer_types(model)
    compute = _make(model)
    runs = [
        _evaluate_run(compute, inputs, r, kind, dtypes, rng, special, noise)
        for r in range(len(inputs[0].runs) if inputs else 1)
    ]
    names = [n for n in node.output if n]
    return [
        Value(name, dtype, tuple(run[i] for run in runs))
        for i, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    ]


def _make(model: ModelProto) -> Compute:
    """What the model's one node computes."""
    node = model.graph.node[0]
    if node.op_type in PRECISE:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return lambda feeds: [PRECISE[node.op_type](*feeds.values(), **attributes)]
    if node.op_type == "Loop":
        return partial(run_loop, node)
    try:
        evaluator = ReferenceEvaluator(model)
    except Exception as error:
        raise Rejected(f"reference: {error}") from error
    return lambda feeds: evaluator.run(None, feeds)


def _evaluate_run(
    compute: Compute,
    inputs: Sequence[Value],
    r: int,
    kind: Kind,
    dtypes: Sequence[np.dtype],
    rng: np.random.Generator,
    special: bool,
    noise: float,
) -> list[Run]:
    """The outputs for one choice of sizes."""
    exact_in = all(v.runs[r].exact or not is_float(v.dtype) for v in inputs)
    same = exact_in and kind is not Kind.SUM
    # Of two factors it is enough to disturb one; and the scales of an image decide its shape.
    summed = lambda v: kind is Kind.SUM and (v is inputs[0] or not v.is_constant)  # noqa: E731
    results = []
    for k in range(1 if same else 1 + SHADOWS):
        feeds = {v.name: _feed(v, r, k, summed(v), kind, rng) for v in inputs}
        results.append([_wide(y, t) for y, t in zip(_run(compute, feeds), dtypes, strict=True)])
    exact_out = exact_in and kind in (Kind.EXACT, Kind.TYPED)
    outputs = []
    for i, dtype in enumerate(dtypes):
        shadows = [result[i] for result in results]
        shadows = shadows * (1 + SHADOWS) if same else shadows
        if is_float(dtype) and not exact_out:
            shadows = [shadows[0], *(_disturb(s, dtype, rng, noise) for s in shadows[1:])]
        _check(shadows, dtype, special)
        outputs.append(Run(tuple(shadows), exact_out or not is_float(dtype)))
    return outputs


def _feed(
    value: Value, r: int, k: int, summed: bool, kind: Kind, rng: np.random.Generator
) -> np.ndarray:
    """One of a tensor's evaluations as a node reads it."""
    run = value.runs[r]
    if not is_float(value.dtype):
        return run.array(value.dtype, k)
    if kind is Kind.TYPED and (run.exact or k % 2):
        return run.array(value.dtype, k)  # otherwise as if it had never been stored
    if summed and k:
        return _disturb(run.shadows[k], value.dtype, rng)
    return run.shadows[k]


def _disturb(
    array: np.ndarray, dtype: np.dtype, rng: np.random.Generator, noise: float = 0.0
) -> np.ndarray:
    """The array as an operator may round it."""
    step = step_of(dtype) / 2
    with np.errstate(all="ignore"):
        moved = array * (1 + step * (rng.standard_normal(array.shape) + _runs(array.shape, rng)))
        if noise and array.size:
            largest = np.max(np.abs(array), where=np.isfinite(array), initial=0)
            moved += noise * step * largest * rng.standard_normal(array.shape)
        return moved


def _runs(shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Noise that neighbours share: a running sum is rounded by its own size, not by the terms'."""
    size = int(np.prod(shape))
    parts = rng.standard_normal(_PARTS)
    return parts[np.arange(size) * _PARTS // max(size, 1)].reshape(shape)


def _run(compute: Compute, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return compute(feeds)
        except Exception as error:
            raise Rejected(f"reference: {type(error).__name__}: {error}") from error


def _wide(y: object, dtype: np.dtype) -> np.ndarray:
    """A result of the reference: floats as float64, all else in the type that it should have."""
    if isinstance(y, list) or y is None:
        raise Rejected("no tensor")
    array = np.asarray(y)
    if array.size > MAX_SIZE:
        raise Rejected("too large")
    with np.errstate(all="ignore"):
        return array.astype(np.float64 if is_float(dtype) else dtype)


def _check(shadows: Sequence[np.ndarray], dtype: np.dtype, special: bool) -> None:
    """Raise Rejected for what cannot be compared."""
    first = shadows[0]
    if any(s.shape != first.shape for s in shadows):
        raise Rejected("a shape hangs on rounding")
    if not is_float(dtype):
        if not all(np.array_equal(s, first) for s in shadows[1:]):
            raise Rejected("a discrete result hangs on rounding")
        return
    finite = np.isfinite(first)
    if any(not np.array_equal(np.isfinite(s), finite) for s in shadows[1:]):
        raise Rejected("an overflow hangs on rounding")
    if not special and not finite.all():
        raise Rejected("not finite")
    numbers = np.abs(first[finite])
    limit = min(1e6, float(ml_dtypes.finfo(dtype).max) / 8)
    if numbers.size and numbers.max() > limit:
        raise Rejected("large numbers")
    scale = numbers.max() if numbers.size else 0.0
    apart = max(
        (np.abs(s[finite] - first[finite]).max() for s in shadows[1:] if numbers.size), default=0
    )
    if apart > max(1e-3, 8 * step_of(dtype)) * max(scale, 1e-3):
        raise Rejected("badly conditioned")
