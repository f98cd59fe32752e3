"""Parts of a graph that are repeated: loops over steps, between nodes like any others.

    t = Step(n)                             the number of the step: 0, 1, … n - 1
    h = Carried(t, h0; state=0)             h0 in the first step, then what the step before gave
    g = Tanh(Add(Gather(x, t), MatMul(h, r)))
    last, all = Repeat(t, n, g, g; states=1)    the last state; the g of all steps, one on another

No node lies inside of another. What depends on t is repeated, until Repeat; all else is not,
wherever it stands in the list. So rewrites see all of the graph, and what is the same in every step
is computed once. t is no tensor in memory, but a size like those known only at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.branches import list_needed
from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Graph, Tensor
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import STEP, Step, assume
from polyc.types.sizes import Extent, Size, bounds


class Loop:
    """A loop over steps that is being composed.

    steps: a tensor, their number; initial: the states before the first one. `step` and `states`
    are what a step may read: its number, and what the one before it gave to `finish`.
    """

    def __init__(self, compose: Composer, steps: str, initial: Sequence[str]) -> None:
        self._compose, self._steps = compose, steps
        self.step = compose("Step", steps, domain=INTERNAL)
        self.states = [
            compose("Carried", self.step, state, domain=INTERNAL, state=k)
            for k, state in enumerate(initial)
        ]

    def position(self, backwards: bool) -> str:
        """Where a step reads a sequence: at its number, or as far from the end."""
        if not backwards:
            return self.step
        last = self._compose("Sub", self._steps, self._compose.constant(np.int64(1)))
        return self._compose("Sub", last, self.step)

    def finish(
        self, states: Sequence[str], results: Sequence[str], backwards: Sequence[bool]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(the states after the last step, what each result was in all steps, along axis 0).

        backwards[k]: the first step's comes last.
        """
        count = len(states) + len(results)
        if not count:
            return (), ()
        outputs = self._compose.several(
            "Repeat",
            count,
            self.step,
            self._steps,
            *states,
            *results,
            domain=INTERNAL,
            states=len(states),
            backwards=tuple(map(int, backwards)),
        )
        return outputs[: len(states)], outputs[len(states) :]


def find_steps(graph: Graph) -> tuple[tuple[Step, ...], ...]:
    """The loops that each node is in, outermost first; one without end is that of dead nodes.

    Raises NotFixed for a loop that may have no step at all.
    """
    known = {step.name: step for step in _repeated(graph)}
    order = list(known)
    inside: dict[str, frozenset[str]] = {
        name: steps_in(tensor) for name, tensor in graph.tensors.items()
    }
    found = []
    for node in graph.nodes:
        steps = frozenset[str]().union(*(inside[name] for name in node.inputs if name))
        kept = steps - steps_in(graph.tensors[node.inputs[0]]) if node.op == "Repeat" else steps
        inside.update((name, inside[name] | kept) for name in node.outputs if name)
        ordered = sorted(steps, key=lambda s: -order.index(s) if s in known else 1)
        found.append(tuple(known.get(name, Step.of(name, 1)) for name in ordered))
    return tuple(found)


def step_of(tensor: Tensor) -> str:
    """The name of the step that a tensor is the number of."""
    (name,) = steps_in(tensor)
    return name


def read_extent(tensor: Tensor) -> Extent:
    """The number that a tensor holds, if it is known, or is once sizes are."""
    if tensor.value is not None:
        return int(tensor.value.reshape(-1)[0])
    if tensor.entries is None:
        raise NotFixed(
            "the number of steps is computed at run time", "make it a constant", tensor.name
        )
    extent: Extent = tensor.entries.reshape(-1)[0]
    return extent


def _repeated(graph: Graph) -> Iterator[Step]:
    """The steps of each Repeat, in order."""
    for node, needs in zip(graph.nodes, list_needed(graph), strict=True):
        if node.domain == INTERNAL and node.op == "Repeat":
            number, count = (graph.tensors[name] for name in node.inputs[:2])
            steps = read_extent(count)
            with assume(needed_ranges(needs)):
                least = bounds(steps)[0]
            if least < 1:
                raise NotFixed(f"a loop of {steps} steps may have none", "let its size begin at 1")
            yield Step.of(step_of(number), steps)


def steps_in(tensor: Tensor) -> frozenset[str]:
    """The names of the steps that a tensor consists of."""
    entries: Any = () if tensor.entries is None else tensor.entries.flat
    names = {name for entry in entries if isinstance(entry, Size) for name in entry.names}
    return frozenset(name for name in names if name.startswith(STEP))
