"""Control flow that is decided when compiling: branches that are chosen, steps that are counted.

y = If(true; then, else)   ->   the nodes of `then`
s, y = Scan(s0, x; body)   ->   s1, y0 = body(s0, x[0]);  s2, y1 = body(s1, x[1]);  …
s = Loop(3, true, s0; body) -> c, s1 = body(0, true, s0);  s = Loop(3, c, s1; body from step 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from polyc.budget import Budget
from polyc.errors import NotFixed, UnsupportedOp
from polyc.graph.bodies import Names, instantiate
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import constant_scalar
from polyc.graph.shapes.dims import fixed, normalize_axis

MAX_STEPS = 10_000
"""The most steps of a Loop."""

Operands = Sequence[Tensor | None]


def choose_branch(node: Node, inputs: Operands, _: Budget) -> Body:
    """The nodes of one branch of an If whose condition is a constant."""
    condition = inputs[0]
    if condition is None or condition.value is None:
        _refuse("its condition", node.inputs[0])
    branch = "then_branch" if constant_scalar(condition, "the condition") else "else_branch"
    chosen: Body = node.attributes[branch]
    return replace(chosen, inputs=node.inputs)


def unroll_scan(node: Node, inputs: Operands, budget: Budget) -> Body:
    """The steps of a Scan, one after the other; slices and stacks are views and copies."""
    body: Body = node.attributes["body"]
    scanned = int(node.attributes["num_scan_inputs"])
    states, data = node.inputs[:-scanned], node.inputs[len(node.inputs) - scanned :]
    types = inputs[len(states) :]
    axes = node.get("scan_input_axes") or (0,) * scanned
    backwards = node.get("scan_input_directions") or (0,) * scanned
    steps = _count_steps(node, types, axes)
    budget.check_nodes(steps * len(body.nodes), f"{node.op} {node.name!r}, its steps written out,")
    nodes: list[Node] = []
    names = Names({*node.inputs, *node.outputs})
    stacked: list[list[str]] = [[] for _ in body.outputs[len(states) :]]
    for step in range(steps):
        slices = []
        for name, axis, back in zip(data, axes, backwards, strict=True):
            at = names.fresh(f"{name}.at{step}")
            position = np.array(steps - 1 - step if back else step, np.int64)
            nodes += [
                Node(f"{at}.position", "Constant", (), (f"{at}.position",), {"value": position}),
                Node(at, "Gather", (name, f"{at}.position"), (at,), {"axis": axis}),
            ]
            slices.append(at)
        results = [names.fresh(f"{o}.step{step}") for o in body.outputs]
        call = Node(f"step{step}", node.op, (*states, *slices), tuple(results))
        nodes += instantiate(call, body, names)
        states = tuple(results[: len(states)])
        for parts, result in zip(stacked, results[len(states) :], strict=True):
            parts.append(result)
    outputs = [names.fresh(f"stacked{k}") for k in range(len(stacked))]
    nodes += _stack_all(node, stacked, outputs)
    return Body(node.inputs, tuple(nodes), (*states, *outputs))


def is_left_of_loop(node: Node) -> bool:
    """Whether a node is what is left of a Loop behind its first steps."""
    return node.op == "Loop" and not node.domain and "first" in node.attributes


def step_by_step(node: Node) -> Node:
    """What is left of a Loop in whose steps a call decides: it is not written out any further."""
    return replace(node, attributes={**node.attributes, "alone": True})


def peel_loop(node: Node, inputs: Operands, _: Budget) -> Body:
    """One step of a Loop, and a Loop of those that are left; what decides must be constant.

    So a condition that follows from the step's number is known when its turn comes. The attribute
    `first` is the number of the step, `of` the name of the whole Loop, under which all steps are
    written down; inputs behind the states are what earlier steps gave.
    """
    body: Body = node.attributes["body"]
    step, states = int(node.get("first", 0)), len(body.inputs) - 2
    if "alone" in node.attributes:
        _refuse("what comes next in its steps", node.inputs[1])
    limit, going = (_known(inputs, k) for k in (0, 1))
    if going is False or (limit is not None and step >= limit):
        return _finish_loop(node, body, states)
    if limit is None and going is None:
        raise UnsupportedOp(f"{node.op} {node.name!r} never ends; give it a count or a condition")
    if step >= MAX_STEPS:
        raise UnsupportedOp(f"{node.op} {node.name!r} has more than {MAX_STEPS} steps")
    names = Names({*node.inputs, *node.outputs})
    number, always = names.fresh("step"), names.fresh("going")
    nodes = [
        Node(number, "Constant", (), (number,), {"value": np.array(step, np.int64)}),
        Node(always, "Constant", (), (always,), {"value": np.array(True)}),
    ]
    results = tuple(names.fresh(f"{o}.step") for o in body.outputs)
    carried = node.inputs[2 : 2 + states]
    call = Node(f"step{step}", "Loop", (number, always, *carried), results)
    nodes += instantiate(call, body, names)
    earlier = node.inputs[2 + states :]
    again = (node.inputs[0], results[0], *results[1 : 1 + states], *earlier, *results[1 + states :])
    attributes = {"body": body, "first": step + 1, "of": node.get("of", node.name)}
    outputs = tuple(names.fresh(o or "unused") for o in node.outputs)
    rest = Node(f"rest{step}", "Loop", again, outputs, attributes)
    return Body(node.inputs, (*nodes, rest), outputs)


def _known(inputs: Operands, position: int) -> int | bool | None:
    """The constant at an input, None where it is absent; an error where it is data."""
    tensor = inputs[position]
    if tensor is None:
        return None
    if tensor.value is None:
        _refuse(("the number of steps", "its condition")[position], tensor.name)
    value: int | bool = constant_scalar(tensor, f"input {position}")
    return value


def _finish_loop(node: Node, body: Body, states: int) -> Body:
    """What a Loop gives: its last states, and for each other output the values of all steps."""
    parts = node.inputs[2 + states :]
    kinds = len(body.outputs) - 1 - states
    if kinds and not parts:
        raise UnsupportedOp(
            f"{node.op} {node.name!r} makes no step, so that its outputs have no type; remove it"
        )
    stacked = [parts[k::kinds] for k in range(kinds)]
    outputs = [f"{node.name}.stacked{k}" for k in range(kinds)]
    nodes = _stack_all(node, stacked, outputs)
    return Body(node.inputs, tuple(nodes), (*node.inputs[2 : 2 + states], *outputs))


def _count_steps(node: Node, types: Operands, axes: Sequence[int]) -> int:
    extents = {
        fixed(t.shape[normalize_axis(axis, t.rank)], f"the scanned dimension of {t.name!r}")
        for t, axis in zip(types, axes, strict=True)
        if t is not None
    }
    if len(extents) != 1 or 0 in extents:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: its scanned dimensions have the extents {sorted(extents)}; "
            "make them equal, and at least 1"
        )
    (steps,) = extents
    return steps


def _stack_all(node: Node, stacked: Sequence[Sequence[str]], outputs: Sequence[str]) -> list[Node]:
    """Unsqueeze(part; axis) of each step, concatenated; the last step first where asked for."""
    axes = node.get("scan_output_axes") or (0,) * len(stacked)
    backwards = node.get("scan_output_directions") or (0,) * len(stacked)
    nodes = []
    for parts, output, axis, back in zip(stacked, outputs, axes, backwards, strict=True):
        where = f"{output}.axis"
        value = {"value": np.array([axis], np.int64)}
        nodes.append(Node(where, "Constant", (), (where,), value))
        rows = [f"{part}.row" for part in parts]
        nodes += [
            Node(row, "Unsqueeze", (part, where), (row,))
            for part, row in zip(parts, rows, strict=True)
        ]
        ordered = tuple(rows[::-1] if back else rows)
        nodes.append(Node(output, "Concat", ordered, (output,), {"axis": axis}))
    return nodes


def _refuse(what: str, tensor: str) -> NoReturn:
    raise NotFixed(
        f"{what} is computed at run time, but must be known",
        "export the model so that it becomes a constant",
        tensor,
    )


CONTROL_FLOW: dict[str, Callable[[Node, Operands, Budget], Body]] = {
    "If": choose_branch,
    "Loop": peel_loop,
    "Scan": unroll_scan,
}
"""Operator -> what it stands for, within a budget of nodes."""
