"""What may be computed when compiling: so much work, and so many bytes, that it always ends.

A filled tensor takes no memory whatever its size, and a kilobyte of nodes can ask for any amount of
work, so that each fold is weighed before it is done, and all of them together. What is not folded
is no error: the node stays in the graph, and is compiled like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from polyc.graph.ir import Node, Tensor

MAX_FOLDED = 2**20
"""Elements of the largest result that is computed for the sake of shapes, which have tens: the
attention mask of 1,024 tokens.

Larger constants are weights; transforming them is the business of the graph rewrites.
"""

MAX_WORK = 2**28
"""Elements that one fold may touch: what NumPy sums in a fraction of a second."""

MAX_TOTAL_WORK = 2**31
"""Elements that all folds of one walk may touch together: some seconds."""

MAX_HELD = 2**30
"""Bytes of results that all folds of one walk may hold together."""

MAX_FILLED = 2**26
"""Elements of the largest filled constant: rewrites that look at constants write them out."""

WINDOWED = frozenset({"AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"})
"""The reference evaluator walks their windows in Python: seconds for what runs in milliseconds."""

# The reference evaluator walks their elements in Python.
_SLOW = frozenset(
    {
        "CenterCropPad",
        "Col2Im",
        "DeformConv",
        "GatherElements",
        "GatherND",
        "GridSample",
        "LRN",
        "MaxRoiPool",
        "MaxUnpool",
        "NonMaxSuppression",
        "Resize",
        "ReverseSequence",
        "RoiAlign",
        "ScatterElements",
        "ScatterND",
        "TensorScatter",
        "TfIdfVectorizer",
        "Unique",
    }
)
_STEP = 2**10
"""What a step of Python costs, in elements of NumPy."""

_CONTRACTIONS = frozenset({"Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"})
_DIRECT = frozenset({"Constant", "ConstantOfShape", "Identity"})


class Folds:
    """A tally of what one walk has computed; `held` are the bytes that it may hold in all."""

    def __init__(self, held: int = MAX_HELD) -> None:
        self._work, self._held = MAX_TOTAL_WORK, held

    def admit(
        self, node: Node, operands: Sequence[Tensor | None], results: Sequence[Tensor]
    ) -> bool:
        """Whether a node on constants may be computed; it is counted if so."""
        if node.op in WINDOWED:
            return False
        if node.op in _DIRECT:  # these take no memory
            return all(t.size <= MAX_FILLED for t in results) or node.op != "ConstantOfShape"
        work = weigh(node, [t for t in operands if t is not None], results)
        held = sum(t.size * t.dtype.itemsize for t in results)
        if work > min(MAX_WORK, self._work) or held > self._held:
            return False
        self._work, self._held = self._work - work, self._held - held
        return True


def weigh(node: Node, operands: Sequence[Tensor], results: Sequence[Tensor]) -> int:
    """Elements that the reference evaluator touches, about.

    Add(a[1000], b[1000]) -> 3000;  MatMul(a[100, 50], b[50, 10]) -> 50000 and what is read
    """
    touched = sum(t.size for t in (*operands, *results))
    if node.op == "Einsum":
        return touched + math.prod(t.size for t in operands)
    if node.op in _CONTRACTIONS:
        longest = max((n for t in operands for n in t.extents), default=1)
        return touched + longest * sum(t.size for t in results)
    return touched * _STEP if node.op in _SLOW else touched
