"""The value of a node whose inputs are constants, by the reference evaluator of the onnx package.

What an operator means is said there, not here; only the trivial operators that every model with
shape computations is full of (ConstantOfShape, Identity, Constant), and those of no standard, are
done directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from polyc.errors import UnsupportedOp
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes import infer_node
from polyc.graph.shapes.creation import find_constant, find_fill
from polyc.graph.shapes.signature import find_signature

Arrays = Sequence[np.ndarray | None]


def evaluate_node(node: Node, inputs: Arrays) -> tuple[np.ndarray, ...]:
    """The outputs of a node on constants, in the order of `node.outputs`.

        Concat(int64[1] (2,), int64[1] (3,); axis=0) -> (int64[2] (2, 3),)

    An absent input is None; an absent output's array may be anything. Arrays may be read-only, and
    a filled one may repeat one element in memory. Raises what `infer_node` raises, and
    UnsupportedOp if the evaluator fails or its result has not the inferred type.
    """
    types = infer_node(
        node, [_constant(name, a) for name, a in zip(node.inputs, inputs, strict=True)]
    )
    with np.errstate(all="ignore"):
        results = _evaluate(node, inputs, types)
    return tuple(_check(node, t, r) if t.name else r for t, r in zip(types, results, strict=True))


def _evaluate(node: Node, inputs: Arrays, types: Sequence[Tensor]) -> Sequence[np.ndarray]:
    direct = _DIRECT.get(node.op)
    if direct is not None:
        return (direct(node, inputs, types[0]),)
    feeds = {f"x{i}": a for i, a in enumerate(inputs) if a is not None}
    try:
        evaluator = _find_evaluator(_canonical_form(node))
        return [np.asarray(r) for r in evaluator.run(evaluator.output_names, feeds)]
    # The evaluator raises whatever its NumPy code raises; all of it means that it has no value.
    except Exception as error:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: cannot be evaluated when compiling "
            f"({type(error).__name__}: {error}); replace its result by an initializer"
        ) from error


def _check(node: Node, expected: Tensor, result: np.ndarray) -> np.ndarray:
    if result.dtype == expected.dtype and result.shape == expected.shape:
        return result
    raise UnsupportedOp(
        f"{node.op} {node.name!r}: the reference evaluator returned {result.dtype}{result.shape} "
        f"for {expected}; replace its result by an initializer"
    )


def _constant(name: str, value: np.ndarray | None) -> Tensor | None:
    return None if value is None else Tensor(name, value.dtype, value.shape, value)


def _canonical_form(node: Node) -> bytes:
    """The node under fixed names, so that equal applications share one evaluator."""
    kinds = find_signature(node.op).attributes
    proto = onnx.NodeProto(op_type=node.op)
    proto.input.extend(f"x{i}" if name else "" for i, name in enumerate(node.inputs))
    proto.output.extend(f"y{i}" if name else "" for i, name in enumerate(node.outputs))
    for name, value in sorted(node.attributes.items()):
        given = onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        kind = onnx.AttributeProto.AttributeType.Value(kinds[name])
        proto.attribute.append(onnx.helper.make_attribute(name, given, attr_type=kind))
    return proto.SerializeToString()


@lru_cache(maxsize=1024)
def _find_evaluator(form: bytes) -> Any:
    from onnx.reference import ReferenceEvaluator  # takes 80 ms, and most models need none

    return ReferenceEvaluator(onnx.NodeProto.FromString(form))


def _fill(node: Node, inputs: Arrays, result: Tensor) -> np.ndarray:
    # One element, repeated by zero strides: a large fill costs no memory until someone copies it.
    return np.broadcast_to(find_fill(node), result.extents)


def _copy(node: Node, inputs: Arrays, result: Tensor) -> np.ndarray:
    (value,) = inputs
    assert value is not None
    return value


def _choose(node: Node, inputs: Arrays, result: Tensor) -> np.ndarray:
    condition, one, other = inputs
    assert condition is not None
    chosen = one if condition.item() else other
    assert chosen is not None
    return chosen


def _find_places(node: Node, inputs: Arrays, result: Tensor) -> np.ndarray:
    totals, _ = inputs
    assert totals is not None
    rows, wanted = result.extents
    places = np.zeros((rows, wanted), np.int64)
    for row, total in zip(places, totals, strict=True):
        row[:] = np.searchsorted(total, np.arange(wanted), side="right")
    return np.minimum(places, totals.shape[1] - 1)


def _merge(node: Node, inputs: Arrays, result: Tensor) -> np.ndarray:
    keys, half = inputs
    assert keys is not None
    assert half is not None
    places, run = np.zeros(result.extents, np.int64), 2 * half.item()
    for row, key in zip(places, keys, strict=True):
        for first in range(0, len(key), run):
            falling = -key[first : first + run].astype(object)  # the lowest integer has no negative
            row[first : first + run] = first + np.argsort(falling, kind="stable")
    return places


_DIRECT: dict[str, Callable[[Node, Arrays, Tensor], np.ndarray]] = {
    "Choose": _choose,
    "Constant": lambda node, inputs, result: find_constant(node),
    "ConstantOfShape": _fill,
    "Identity": _copy,
    "Merged": _merge,
    "Places": _find_places,
}
