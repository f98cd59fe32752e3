"""What is left of a graph that failed when all goes that the failure does not need.

A part of a graph is itself one: tensors that were computed before become inputs, with what they
held, and tensors that were read later become outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnx import NodeProto, printer

from tests.fuzz.compare import Outcome, check
from tests.fuzz.generate import Case, generate, reads
from tests.fuzz.values import Value, hold


def shrink(case: Case, kind: str) -> Case:
    """The smallest part that was found whose outcome is still of this kind."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if check(smaller).kind == kind:
                case, changed = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Parts of a graph, the smallest first as far as that is known."""
    if len(case.outputs) > 1:
        for name in case.outputs:
            yield _until(case, (name,))
    for node in case.nodes[:-1]:  # what ends earlier
        yield _until(case, tuple(filter(None, node.output)))
    for node in case.nodes:  # what begins later
        if len(case.nodes) > 1:
            smaller = _without(case, node)
            if smaller is not None:
                yield smaller


def _until(case: Case, outputs: tuple[str, ...]) -> Case:
    """What some tensors need."""
    needed, nodes = set(outputs), []
    for node in reversed(case.nodes):
        if needed & set(node.output):
            nodes.append(node)
            needed |= reads(node)
    return replace(case, nodes=tuple(reversed(nodes)), outputs=outputs)


def _without(case: Case, node: NodeProto) -> Case | None:
    """The graph where what a node gives is fed; None if that leaves nothing."""
    outputs = tuple(n for n in case.outputs if n not in node.output)
    if not outputs:
        return None
    known = {**case.known, **{n: _fed(case.known[n]) for n in node.output if n}}
    nodes = tuple(n for n in case.nodes if n is not node)
    return _until(replace(case, nodes=nodes, known=known), outputs)


def _fed(value: Value) -> Value:
    runs = tuple(hold(run.array(value.dtype)) for run in value.runs)
    return Value(value.name, value.dtype, runs)


def shrink_seed(seed: int) -> str:
    """The graph of a seed, made small, as text, and what became of it."""
    case = generate(seed)
    outcome = check(case)
    if outcome.kind in ("agrees", "peer"):
        return f"{seed}: {outcome.kind}"
    small = shrink(case, outcome.kind)
    return f"{show(small)}\n{_say(check(small))}"


def show(case: Case) -> str:
    """A graph with its shapes, and the beginning of what it is fed."""
    lines = [printer.to_text(node).strip() for node in case.nodes]
    for value in case.sources:
        shapes = " or ".join(str(s) for s in dict.fromkeys(run.shape for run in value.runs))
        role = "constant" if value.is_constant else "input"
        lines.append(f"{role} {value.name}: {value.dtype}{shapes} {value.array.ravel()[:8]}")
    lines.append(f"outputs {', '.join(case.outputs)}; {case.traits}")
    return "\n".join(lines)


def _say(outcome: Outcome) -> str:
    return f"{outcome.kind}: {outcome.detail}"
