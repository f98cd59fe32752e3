"""Loops over steps, written out: one copy of what is repeated for each of them.

    h = Carried(t, h0);  g = f(h, t);  last, all = Repeat(t, 2, g, g)
    ->
    g.0 = f(h0, 0);  g.1 = f(g.0, 1);  last = g.1;  all = [g.0, g.1]

So it is done for a GPU, where there is no loop around kernels; for a loop in a loop; and where
there is so little in all steps together that it is better seen as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.errors import UnsupportedOp
from polyc.graph.inference.fix_sizes import fix_tensor
from polyc.graph.inference.infer import infer_graph
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.steps import find_steps, steps_in
from polyc.types.ranges import Step
from polyc.types.sizes import Size

FEW_NODES = 24
"""Nodes of all steps up to which a loop is written out: small enough to be seen as a whole."""


def unroll_steps(graph: Graph, everything: bool = False, budget: Budget = UNLIMITED) -> Graph:
    """The graph with its short loops written out, and those in others; or with all of them.

    Raises TooLong where that gives more nodes than the budget has.
    """
    while True:
        inside = find_steps(graph)
        inner = [steps[-1] for steps in inside if len(steps) > 1]
        chosen = inner[0] if inner else None
        if chosen is None:
            steps = dict.fromkeys(step for found in inside for step in found)
            chosen = next((s for s in steps if everything or _is_short(s, inside)), None)
        if chosen is None:
            return graph
        graph = _unroll(graph, chosen, [chosen in found for found in inside], budget)


def _is_short(step: Step, inside: Sequence[tuple[Step, ...]]) -> bool:
    if isinstance(step.steps, Size):
        return False
    return step.steps * sum(step in found for found in inside) <= FEW_NODES


def _unroll(graph: Graph, step: Step, inside: Sequence[bool], budget: Budget) -> Graph:
    """The graph with one loop written out, where its Repeat stands."""
    if isinstance(step.steps, Size):
        raise UnsupportedOp("a loop of unknown length cannot be written out; give its size in dims")
    what = f"a loop of {step.steps} steps, written out,"
    budget.check_nodes(step.steps * sum(inside), what)
    body: list[Node] = []
    nodes: list[Node] = []
    known = {name: t for name, t in graph.tensors.items() if t.is_known or name in graph.inputs}
    for node, repeated in zip(graph.nodes, inside, strict=True):
        if not repeated:
            nodes.append(node)
        elif node.op != "Repeat" or step.name not in steps_in(graph.tensors[node.inputs[0]]):
            body.append(node)
        else:
            nodes += _write_out(graph, step, body, node, known)
    return infer_graph(
        graph.name, nodes, known, graph.inputs, graph.outputs, budget, found=graph.found
    )


def _write_out(
    graph: Graph, step: Step, body: Sequence[Node], end: Node, known: dict[str, Tensor]
) -> list[Node]:
    """All steps, and what they give; constants that depend on the step are entered in `known`."""
    count = int(end.get("states", 0))
    numbers = [n for n, t in graph.tensors.items() if step.name in steps_in(t)]
    states: tuple[str, ...] = ()
    results: list[tuple[str, ...]] = []
    nodes: list[Node] = []
    assert isinstance(step.steps, int)
    for k in range(step.steps):
        table = {name: f"{name}.{k}" for name in numbers}
        for name, copy in table.items():
            known[copy] = fix_tensor(replace(graph.tensors[name], name=copy), {step.name: k})
        for node in body:
            if node.op == "Carried" and node.inputs[0] in numbers:
                first = table.get(node.inputs[1], node.inputs[1])
                table[node.outputs[0]] = states[node.attributes["state"]] if k else first
            else:
                nodes.append(_copy(node, k, table))
        given = [table.get(name, name) for name in end.inputs[2:]]
        states = tuple(given[:count])
        results.append(tuple(given[count:]))
    nodes += [
        Node(f"{end.name}.{name}", "Identity", (state,), (name,))
        for name, state in zip(end.outputs, states, strict=False)
        if name
    ]
    for k, name in enumerate(end.outputs[count:]):
        parts = [given[k] for given in results]
        if name:
            nodes += _stack(name, parts[::-1] if end.attributes["backwards"][k] else parts, known)
    return nodes


def _stack(name: str, parts: Sequence[str], known: dict[str, Tensor]) -> list[Node]:
    """Unsqueeze each part, and Concat them."""
    axis = f"{name}.axis"
    known[axis] = Tensor(axis, np.dtype(np.int64), (1,), np.array([0], np.int64))
    rows = [f"{name}.row{k}" for k in range(len(parts))]
    nodes = [
        Node(row, "Unsqueeze", (part, axis), (row,)) for part, row in zip(parts, rows, strict=True)
    ]
    return [*nodes, Node(name, "Concat", tuple(rows), (name,), {"axis": 0})]


def _copy(node: Node, k: int, table: dict[str, str]) -> Node:
    """A node of step k; what it writes is entered in the table."""
    inputs = tuple(table.get(name, name) for name in node.inputs)
    table.update((name, f"{name}.{k}") for name in node.outputs if name)
    outputs = tuple(table.get(name, name) for name in node.outputs)
    return replace(node, name=f"{node.name}.{k}", inputs=inputs, outputs=outputs)
