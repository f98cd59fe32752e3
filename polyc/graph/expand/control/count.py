"""How many steps a Loop has, where its condition follows from their number.

    i, s = Loop("", true, 0, s0; i + 1 < n, i + 1, f(s, i))   ->   n steps, and i is t in step t

TensorFlow and Paddle write recurrent layers so. States that grow by the same number in each step
count; the condition then compares sizes, and where it says that there is one more step no longer
holds, the loop ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyc.errors import PolycError
from polyc.graph.bodies import instantiate
from polyc.graph.compose import Composer
from polyc.graph.expand.control.repeat import Around, Operands, Typed, is_bound
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.steps import step_of
from polyc.types.sizes import Extent, Size, greatest, least

ENDLESS = 2**31 - 1
"""The steps of a loop without a limit, until it is known when it ends."""


@dataclass(frozen=True)
class Count:
    """What is known of a loop's steps before they are taken.

    steps: their number; strides: by how much a state grows in each, by its place among the states;
    kept: the places of states that stay what they are.
    """

    steps: Extent
    strides: dict[int, int]
    kept: frozenset[int]


def count_steps(node: Node, inputs: Operands, around: Around) -> Count | None:
    """The steps of a Loop that goes on while what it counts is within bounds; None for others."""
    body: Body = node.attributes["body"]
    kept = _find_kept(body)
    strides = {
        k: 1
        for k, tensor in enumerate(inputs[2:])
        if k not in kept and tensor is not None and _is_number(tensor)
    }
    for _ in range(2 * len(strides) + 1):
        found = _type_condition(node, inputs, strides, kept, around)
        if found is None:
            return None
        typed, step, going, pairs = found
        grown = {k: _growth(typed, *pair) for k, pair in pairs.items()}
        if grown == strides:
            steps = _solve(typed, step, going, inputs[0])
            return None if steps is None else Count(steps, strides, kept)
        strides = {k: by for k, by in grown.items() if by is not None}
    return None


def compose_states(
    c: Composer, states: Sequence[str], types: Operands, step: str, count: Count
) -> dict[int, str]:
    """What the states that are known in each step are, by their places."""
    known = {k: states[k] for k in count.kept}
    for k, stride in count.strides.items():
        tensor = types[k]
        assert tensor is not None
        grown = c("Mul", step, c.constant(np.int64(stride)))
        known[k] = c("Add", states[k], c("Cast", grown, to=_CODES[tensor.dtype.name]))
    return known


_CODES = {"int32": 6, "int64": 7}
"""The standard's numbers of the types that count."""


def _find_kept(body: Body) -> frozenset[int]:
    """The states that a step gives back as they were."""
    same = {node.outputs[0]: node.inputs[0] for node in body.nodes if node.op == "Identity"}

    def origin(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    pairs = zip(body.inputs[2:], body.outputs[1:], strict=False)
    return frozenset(k for k, (state, after) in enumerate(pairs) if origin(after) == state)


def _is_number(tensor: Tensor) -> bool:
    return tensor.is_known and tensor.size == 1 and tensor.dtype.name in _CODES


def _type_condition(
    node: Node, inputs: Operands, strides: dict[int, int], kept: frozenset[int], around: Around
) -> tuple[Typed, str, str, dict[int, tuple[str, str]]] | None:
    """One step, as far as the condition and the states that count need it.

    (types, the step's number, the condition behind it, what is counted before it and behind it).
    """
    body: Body = node.attributes["body"]
    c, states = Composer(around.names), node.inputs[2:]
    steps = node.inputs[0] if inputs[0] is not None else c.constant(np.int64(ENDLESS))
    step = c("Step", c("Reshape", steps, c.constant(np.array([], np.int64))), domain=INTERNAL)
    known = compose_states(c, states, inputs[2:], step, Count(1, strides, kept))
    current = [
        known.get(k) or c("Carried", step, state, domain=INTERNAL, state=k)
        for k, state in enumerate(states)
    ]
    results = [""] * len(body.outputs)
    for k in (-1, *strides):
        results[1 + k] = around.names.fresh(f"{body.outputs[1 + k]}.step")
    call = Node("step", node.op, (step, c.constant(np.array(True)), *current), tuple(results))
    c.nodes += instantiate(call, body, around.names)
    typed = around.attempt(c.nodes, False, False)
    pairs = {k: (current[k], results[1 + k]) for k in strides}
    return None if isinstance(typed, PolycError) else (typed, step, results[0], pairs)


def _growth(typed: Typed, before: str, after: str) -> int | None:
    """By how much a state grows in a step; None if that is not a number."""
    one, other = (_element(typed.tensors[name]) for name in (before, after))
    grown = None if one is None or other is None else other - one
    return grown if isinstance(grown, int) else None


def _element(tensor: Tensor) -> Extent | None:
    if not tensor.is_known or tensor.size != 1:
        return None
    if tensor.entries is not None:
        entry: Extent = tensor.entries.reshape(-1)[0]
        return entry
    assert tensor.value is not None
    return int(tensor.value.reshape(-1)[0])


def _solve(typed: Typed, step: str, going: str, limit: Tensor | None) -> Extent | None:
    """The number of steps: one more than those behind which the condition holds.

    r - k*t is not negative   holds behind the steps t = 0, …, floor(r/k)
    """
    most = None if limit is None else _element(limit)
    condition = typed.tensors[going]
    if condition.value is not None:
        return most if condition.value.item() else 1
    cases, t = typed.cases.get(going), step_of(typed.tensors[step])
    if cases is None or (limit is not None and most is None):
        return None
    if cases[1] is not None and not is_bound(cases):
        return None  # i != n, of which nobody knows whether i ever is n
    steps = most
    for need in cases[0]:
        slope = dict(need.terms).get((t,), 0)
        rest = need - Size.of(t) * slope
        if slope >= 0 or (isinstance(rest, Size) and t in rest.names):
            return None
        behind = greatest(rest // -slope + 2, 1)
        steps = behind if steps is None else least(steps, behind)
    return steps
