"""Operators that are no standard's: what other operators are made of, where nothing else says it.

| operator | result |
|---|---|
| Greedy(valid[r, n], overlap[r, n, n]) | bool[r, n]: i is kept if it is valid and overlaps no earlier one that is kept |
| Places(totals[r, n]; wanted) | int64[r, wanted]: the least i with totals[r, i] > p, at most n - 1 |
| RandomBits(key[2]; shape, stream) | uint32[shape]: what Philox gives for the element's number |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.checks import given

Types = Callable[[Node, Sequence[Tensor | None]], tuple[Tensor, ...]]


def infer_greedy(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as valid"""
    return (Tensor(node.outputs[0], np.dtype(np.bool_), given(inputs[0]).shape),)


def infer_random_bits(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """the attribute `shape`"""
    return (Tensor(node.outputs[0], np.dtype(np.uint32), tuple(node.attributes["shape"])),)


def infer_places(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """(r, n) -> (r, wanted)"""
    shape = (given(inputs[0]).shape[0], int(node.attributes["wanted"]))
    return (Tensor(node.outputs[0], np.dtype(np.int64), shape),)


INTERNAL_TYPES: dict[str, Types] = {
    "Greedy": infer_greedy,
    "Places": infer_places,
    "RandomBits": infer_random_bits,
}
"""Operator -> the types of its outputs."""
