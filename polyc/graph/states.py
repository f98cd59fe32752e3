"""States: outputs that a model is given again as inputs in the next call, in the same memory.

    h' = tanh(x W + h U)                  as large as before: h' is h in the next call
    keys' = Concat(keys, new keys)        grows: keys[past], keys'[past + tokens]

A state that grows lies in memory for the largest size that it may have, its capacity, with the
strides of that; so what is there already stays where it is, and only new rows are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from polyc.errors import ShapeError, UnsupportedOp
from polyc.types.ranges import SizeRange
from polyc.types.sizes import Size, assumed_range

if TYPE_CHECKING:
    from polyc.graph.ir import Graph, Tensor

Dim = TypeVar("Dim")

Pairs = tuple[tuple[str, str], ...]
"""The names of a state's input and output, of each state."""


@dataclass(frozen=True)
class State:
    """A state of a model.

    input, output: positions among those of the model; axis, capacity: the dimension along which it
    grows, if it does, and how far. in_place: input and output are one array; if not, there are two,
    which change places from call to call.
    """

    input: int
    output: int
    axis: int | None = None
    capacity: int = 0
    in_place: bool = False

    def stored(self, shape: Sequence[Dim]) -> tuple[Dim | int, ...]:
        """The shape of the state's memory; `shape` is that of its input."""
        if self.axis is None:
            return tuple(shape)
        return (*shape[: self.axis], self.capacity, *shape[self.axis + 1 :])


def read_states(state: Mapping[str, str] | None) -> Pairs:
    """{"past": "present"} -> pairs; ShapeError where an output is named twice."""
    pairs = tuple((state or {}).items())
    outputs = [output for _, output in pairs]
    for name in outputs:
        if outputs.count(name) > 1:
            raise ShapeError(f"output {name!r} is given as two states; give each its own output")
    return pairs


def find_states(graph: Graph, pairs: Pairs) -> tuple[tuple[State, ...], tuple[SizeRange, ...]]:
    """The states of a graph, and the sizes that they change, with `SizeRange.next`.

    Raises ShapeError for names that are none, and for pairs that cannot be one state.
    """
    sizes: dict[str, SizeRange] = {}
    states = []
    for given, result in pairs:
        places = _find(given, graph.inputs, "input"), _find(result, graph.outputs, "output")
        before, after = graph.tensors[given], graph.tensors[result]
        axis = _growing_axis(before, after)
        if axis is None:
            states.append(State(*places))
            continue
        size = _grow(sizes, before, after, axis)
        sizes[size.name] = size
        states.append(State(*places, axis, size.upper or 0))
    return tuple(states), tuple(sizes.values())


def _find(name: str, names: Sequence[str], kind: str) -> int:
    if name not in names:
        raise ShapeError(f"state {name!r} is no {kind} of the model; it has {', '.join(names)}")
    return names.index(name)


def _growing_axis(before: Tensor, after: Tensor) -> int | None:
    """The one dimension in which a state differs from what it was."""
    pairs = zip(before.shape, after.shape, strict=False)
    differing = [k for k, (old, new) in enumerate(pairs) if old != new]
    if before.rank != after.rank or before.dtype != after.dtype or len(differing) > 1:
        raise ShapeError(
            f"state {before} cannot become {after}: types must be equal, and shapes but for one "
            "dimension that grows"
        )
    return differing[0] if differing else None


def _grow(sizes: Mapping[str, SizeRange], before: Tensor, after: Tensor, axis: int) -> SizeRange:
    """The size of a growing dimension, with what it is in the next call."""
    name, grown = str(before.shape[axis]), after.extents[axis]
    if before.shape[axis] != Size.of(name):
        raise ShapeError(
            f"state {before} becomes {after}, but dimension {axis} is no size that may change; "
            "name it in the model, and give its range in dims"
        )
    size = sizes.get(name) or assumed_range(name)
    if size.upper is None:
        raise ShapeError(
            f"state {before} becomes {after}, but how large {name!r} may get is not known; give "
            f"its capacity in dims: {{{name!r}: (0, 1024)}}"
        )
    if size.next is not None and size.next != grown:
        raise ShapeError(
            f"state {before} becomes {after}, but by another state {name!r} becomes {size.next}; "
            "let them grow alike, or give their sizes different names"
        )
    return replace(size, next=grown)


def states_refused(where: str) -> UnsupportedOp:
    return UnsupportedOp(
        f"states are kept by models for CPUs that are compiled once, but {where}; compile without "
        "`state`, and give outputs back as inputs"
    )
