"""Nodes that are left to the time of a call: what no kernel computes, and cuts.

No kernel computes with text, with maps, or with image files; such nodes are given to the reference
evaluator of the onnx package, but for those that it lacks or is slow at (`naming.py`). A `Trim` is
what is left of an operator whose result has a size that is data, where a driver cannot find sizes
(for a GPU, in a stage, in a loop or a branch): kernels fill an array of the largest size, and
count; then the rest is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from polyc.errors import NeedsValues, RuntimeFailure
from polyc.graph.ir import INTERNAL, Node, Tensor
from polyc.graph.matching import match_whole
from polyc.graph.naming import ML_DOMAIN, find_naming
from polyc.graph.onnx.export import export_node
from polyc.graph.onnx.nodes import TEXT

RANDOM_KEY = "polyc.random_key"
"""uint32[2], fresh in each call: what random numbers without a seed are computed from."""

_EVALUATED = {
    ("", "ImageDecoder"): "it decodes image files",
    ("ai.onnx.ml", "CastMap"): "it reads maps",
    ("ai.onnx.ml", "DictVectorizer"): "it reads maps",
    ("ai.onnx.ml", "ZipMap"): "it makes maps",
}


IMAGES = "polyc[images]"
"""The extra with what the evaluator decodes image files by."""


def is_trim(node: Node) -> bool:
    """Trim(x, count; axis): the first `count` slices of x, one int64, along an axis."""
    return node.op == "Trim" and node.domain == INTERNAL


def why_evaluated(node: Node, operands: Sequence[Tensor | None]) -> str:
    """Why a node is given to the reference evaluator; empty if it is not."""
    if any(t is not None and t.dtype == TEXT for t in operands):
        return "it reads text"
    writes = node.get("to") == TensorProto.STRING or "values_strings" in node.attributes
    values = (v for v in node.attributes.values() if isinstance(v, np.ndarray))
    if node.op != "Constant" and (writes or any(v.dtype == TEXT for v in values)):
        return "it writes text"
    return _EVALUATED.get((node.domain, node.op), "")


class RunTimeNode(NeedsValues):
    """What is raised for a node of this module where all nodes should be compiled.

    reason: why the reference evaluator computes it, empty for a cut.
    """

    def __init__(self, node: Node, reason: str) -> None:
        self.reason = reason
        told = reason or "the size of its result is data"
        super().__init__(f"{node.op} {node.name!r} waits for a call: {told}", ())


def require_compilable(node: Node, operands: Sequence[Tensor | None], finds: bool = False) -> None:
    """Raise `RunTimeNode` for a node that only a call can compute.

    finds: whether what kernels find may be a size, so that nothing need be cut.
    """
    if is_trim(node):
        count = operands[1]
        if not finds and (count is None or not count.is_known):
            raise RunTimeNode(node, "")
        return
    reason = why_evaluated(node, operands)
    if reason:
        raise RunTimeNode(node, reason)


def run_node(node: Node, values: Sequence[Any]) -> list[Any]:
    """The outputs of such a node: arrays, lists of arrays, or whatever the evaluator gives.

    Raises RuntimeFailure where the evaluator fails.
    """
    if is_trim(node):
        data, count = values
        axis = node.get("axis", 0)
        kept = (slice(None),) * axis + (slice(int(np.asarray(count).item())),)
        return [np.ascontiguousarray(np.asarray(data)[kept])]
    if node.op == "RegexFullMatch" and node.domain == "":
        text = np.asarray(values[0], TEXT)
        return [match_whole(text, node.get("pattern", ""), f"{node.op} {node.name!r}")]
    if node.domain == ML_DOMAIN and (name := find_naming(node)):
        return [name(node, np.asarray(values[0]))]
    from onnx.reference import ReferenceEvaluator  # takes 80 ms, and few models need it

    pairs = zip(node.inputs, values, strict=True)
    feeds = {name: value for name, value in pairs if name}
    try:
        results = ReferenceEvaluator(export_node(node)).run(None, feeds)
    except ImportError as missing:
        raise RuntimeFailure(
            f"{node.op} {node.name!r}: the reference evaluator lacks a package ({missing}); "
            f"install those for image files by: pip install '{IMAGES}'"
        ) from missing
    # The evaluator raises whatever its NumPy code raises.
    except Exception as error:
        raise RuntimeFailure(
            f"{node.op} {node.name!r}: the reference evaluator fails "
            f"({type(error).__name__}: {error}); check its inputs"
        ) from error
    return [_plain(r) for r in results]


def _plain(value: Any) -> Any:
    """Numbers and strings of NumPy as arrays, text in arrays of objects."""
    if isinstance(value, np.ndarray | np.generic | str | int | float):
        array = np.asarray(value)
        return array.astype(TEXT) if array.dtype.kind == "U" else array
    return value
