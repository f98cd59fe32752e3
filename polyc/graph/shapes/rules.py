"""The table of shape rules: one function for each operator, registered where it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyc.graph.ir import Node, Shape, Tensor

Inputs = Sequence[Tensor | None]
"""A node's inputs as a rule sees them: absent optional inputs, trailing ones too, are None."""

ShapeFunction = Callable[[Node, Inputs], tuple[Shape, ...]]
TypeFunction = Callable[[Node, Inputs], np.dtype]


@dataclass(frozen=True)
class Rule:
    """How to find the output shapes, and the element type of outputs that no input decides."""

    shapes: ShapeFunction
    dtype: TypeFunction | None


RULES: dict[str, Rule] = {}


def shape_rule(
    *ops: str, dtype: TypeFunction | None = None
) -> Callable[[ShapeFunction], ShapeFunction]:
    """Register a function as the shape rule of operators.

    The function maps (node, inputs) to the shapes of all outputs of the standard's signature;
    element types, number of inputs and attributes are checked before it is called. `dtype` is
    needed only where the standard does not tie an output's element type to an input (Cast).
    """

    def register(function: ShapeFunction) -> ShapeFunction:
        for op in ops:
            assert op not in RULES, f"two shape rules for {op}"
            RULES[op] = Rule(function, dtype)
        return function

    return register
