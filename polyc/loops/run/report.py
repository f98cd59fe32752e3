"""What `explain()` says of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from polyc.loopnest.nodes import For, walk_nodes
from polyc.loops.run.compile import CompiledLoops
from polyc.poly.show import show_tree


def explain(compiled: CompiledLoops) -> str:
    """Statements, the schedule, which loops are parallel, and what was proven."""
    return "\n".join(_lines(compiled))


def _lines(compiled: CompiledLoops) -> Iterator[str]:
    lowered, signature = compiled.lowered, compiled.signature
    arguments = ", ".join(f"{n}: {a}" for n, a in signature.arguments.items())
    yield f"kernel {lowered.scop.name}({arguments})"
    yield ""
    yield "statements"
    for statement in lowered.scop.statements:
        iterators = ", ".join(statement.iterators)
        place = lowered.places[statement.name]
        written = str(statement).splitlines()[-1].strip()
        yield f"  {statement.name}[{iterators}]  line {place.line}: {written}"
    yield ""
    yield f"schedule: {compiled.plan.origin}"
    for line in show_tree(compiled.plan.tree).splitlines():
        yield f"  {line}"
    for note in compiled.plan.notes:
        yield f"  {note}"
    yield ""
    kinds = [n.kind for n in walk_nodes(compiled.kernel.body) if isinstance(n, For)]
    shown = {"parallel": "in parallel", "simd": "in lanes"}
    found = [f"{kinds.count(k)} {what}" for k, what in shown.items() if k in kinds]
    yield f"loops: {len(kinds)}, of which {' and '.join(found) or 'all run one after another'}"
    yield f"proven: {compiled.proof.facts if compiled.proof else 'nothing, as the options say'}"
    checked = (f"line {r.place.line}: {r.what}" for r in compiled.requirements)
    yield from (f"checked at each call: {what}" for what in dict.fromkeys(checked))
