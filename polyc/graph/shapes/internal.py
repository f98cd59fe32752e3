"""Operators that are no standard's: what other operators are made of, where nothing else says it.

| operator | result |
|---|---|
| Greedy(valid[r, n], low y, low x, high y, high x, area, threshold) | bool[r, n]: i is kept if it is valid and overlaps no earlier one that is kept |
| Places(totals[r, n], wanted) | int64[r, wanted]: the least i with totals[r, i] > p, at most n - 1 |
| Merged(keys[r, n], half: int32[1]) | int64[r, n]: where the elements were, when runs of `half` falling keys are merged, two and two |
| ScatterTrue(x, places, updates, mask; reduction) | as x: ScatterND at the places where a mask is true, of which there are as many as updates |
| AssignTrue(x, mask, totals, updates; reduction) | as x: where the mask is true, the update of the number that totals say |
| Count(x; rank) | int64[1, …] of a rank: how many of all booleans are true, as a Found (`graph/inference/sources.py`) |
| Computed(x; to, most) | as x: floats that become whole numbers, each of at most what `most` says, as a Found (`graph/inference/computed.py`) |
| Found(value, most, instead; most) | int64[1]: the one element of an int64, of 0 to `most`, as a size, which is an attribute where it is no tensor; where none can be found, `instead`, by default `most` (`graph/inference/found.py`) |
| Windows(x[a, n]; size, step) | as x, [a, windows, size]: step elements apart, as many as fit |
| Step(steps) | int64: the number of the step, 0 to steps - 1 (`graph/steps.py`) |
| Choose(condition, then, else) | as both: the first where the condition holds (`graph/branches.py`) |
| Carried(step, initial; state) | as initial: it in the first step, then the state of the step before |
| Repeat(step, steps, states…, results…; states, backwards) | the last states; results[steps, …] |
| BlockProduct(a[…, k], b: uint8[n, blocks, bytes], scales[n, blocks], zeros?[n, blocks]; bits, integers) | as a, […, n]: a times the transposed weights (b - zero) * scale, whose blocks lie along k; integers: of a in bytes (`scop/lower/products/blocks.py`) |
| RandomBits(key[2], shape; stream) | uint32[shape]: what Philox gives for the element's number |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.checks import given, known_extents, known_int, require_at_least
from polyc.types.sizes import Size

Types = Callable[[Node, Sequence[Tensor | None]], tuple[Tensor, ...]]


def infer_greedy(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as valid"""
    return (Tensor(node.outputs[0], np.dtype(np.bool_), given(inputs[0]).shape),)


def infer_block_product(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """[…, k], [n, …] -> […, n]"""
    a, b = given(inputs[0]), given(inputs[1])
    return (Tensor(node.outputs[0], a.dtype, (*a.shape[:-1], b.shape[0])),)


def infer_random_bits(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """shape (3, 5) -> (3, 5)"""
    shape = known_extents(given(inputs[1]), "shape")
    return (Tensor(node.outputs[0], np.dtype(np.uint32), shape),)


def infer_places(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """(r, n) -> (r, wanted)"""
    shape = (given(inputs[0]).shape[0], known_int(given(inputs[1]), "wanted"))
    return (Tensor(node.outputs[0], np.dtype(np.int64), shape),)


def infer_merged(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as keys"""
    return (Tensor(node.outputs[0], np.dtype(np.int64), given(inputs[0]).shape),)


def infer_windows(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """(a, n) -> (a, (n - size)//step + 1, size)"""
    x, size = given(inputs[0]), int(node.attributes["size"])
    count, length = x.extents
    windows = (length - size) // int(node.attributes["step"]) + 1
    return (Tensor(node.outputs[0], x.dtype, (count, windows, size)),)


def infer_assign_true(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as x"""
    x = given(inputs[0])
    return (Tensor(node.outputs[0], x.dtype, x.shape),)


def infer_step(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """A scalar"""
    return (Tensor(node.outputs[0], np.dtype(np.int64), ()),)


def infer_carried(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as initial"""
    initial = given(inputs[1])
    return (Tensor(node.outputs[0], initial.dtype, initial.shape),)


def infer_choose(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """as both, which are of one type"""
    one = given(inputs[1])
    return (Tensor(node.outputs[0], one.dtype, one.shape),)


def infer_repeat(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """states as they are; a result (a, b) -> (steps, a, b)"""
    count, states = given(inputs[1]), int(node.attributes["states"])
    steps = (count.value if count.entries is None else count.entries).item()  # type: ignore[union-attr]
    if isinstance(steps, Size):
        require_at_least(steps, 1, "the steps of a loop", steps, "let its size begin at 1")
    types = []
    for k, (name, tensor) in enumerate(zip(node.outputs, map(given, inputs[2:]), strict=True)):
        shape = tensor.shape if k < states else (steps, *tensor.shape)
        types.append(Tensor(name, tensor.dtype, shape))
    return tuple(types)


INTERNAL_TYPES: dict[str, Types] = {
    "AssignTrue": infer_assign_true,
    "BlockProduct": infer_block_product,
    "Carried": infer_carried,
    "Choose": infer_choose,
    "Greedy": infer_greedy,
    "Merged": infer_merged,
    "Places": infer_places,
    "RandomBits": infer_random_bits,
    "Repeat": infer_repeat,
    "Step": infer_step,
    "Windows": infer_windows,
}
"""Operator -> the types of its outputs."""
