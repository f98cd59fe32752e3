"""Write down nodes as calls, for operators that are defined here by others.

c = Composer("lstm")
gates = c("Add", c("MatMul", x, w), bias)           # names in, names out
c.body(("x", "w", "bias"), (gates,))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.errors import TooLarge
from polyc.graph.bodies import Names
from polyc.graph.ir import Body, Node


class Composer:
    """Nodes in the order in which they are written; a call gives the name of its output.

    names: those that are in use around, if any of them is read.
    """

    def __init__(self, names: Names | None = None) -> None:
        self.nodes: list[Node] = []
        self._names = names or Names()

    def __call__(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.several(op, 1, *inputs, domain=domain, **attributes)[0]

    def several(
        self, op: str, count: int, *inputs: str, domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """A node with `count` outputs."""
        name = self._names.fresh(f"{op}_{len(self.nodes)}")
        outputs = (name, *(f"{name}.{k}" for k in range(1, count)))
        self.nodes.append(Node(name, op, inputs, outputs, attributes, domain))
        return outputs

    def constant(self, value: Any, dtype: Any = None) -> str:
        return self("Constant", value=np.asarray(value, dtype))

    def integers(self, *values: int) -> str:
        """A list of int64, as shapes and axes are given; TooLarge for what is none."""
        if any(not -(2**63) <= value < 2**63 for value in values):
            raise TooLarge(f"the sizes {values} are beyond 64 bits; use smaller ones")
        return self.constant(np.array(values, np.int64))

    def extent(self, x: str, axis: int) -> str:
        """How many elements a tensor has along a dimension, counted from the front: int64[1]."""
        return self("Shape", x, start=axis, end=axis + 1)

    def extents(self, *parts: int | str) -> str:
        """A list of extents, of numbers and what `extent` gives; TooLarge as `integers`."""
        lists = (part if isinstance(part, str) else self.integers(part) for part in parts)
        return self("Concat", *lists, axis=0)

    def count_up(self, extent: str) -> str:
        """0, 1, …, extent - 1, as int64"""
        first, step = (self.constant(np.int64(k)) for k in (0, 1))
        return self("Range", first, self("Squeeze", extent, self.integers(0)), step)

    def body(self, inputs: Sequence[str], outputs: Sequence[str]) -> Body:
        return Body(tuple(inputs), tuple(self.nodes), tuple(outputs))
