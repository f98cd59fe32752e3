"""What `explain()` says of a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from polyc.analysis.proof import Proof
from polyc.codegen.cuda.grid import Grid, HostNode, Steps, When
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.nodes import For, walk_nodes
from polyc.loops.lower.lowered import Lowered
from polyc.loops.read.sizes import Signature
from polyc.loops.run.compile import CompiledLoops
from polyc.loops.run.compile_cuda import CompiledForCuda
from polyc.loops.schedule.schedule import LoopSchedule
from polyc.poly.show import show_tree


def explain(compiled: CompiledLoops) -> str:
    """Statements, the schedule, which loops are parallel, and what was proven."""
    kinds = [n.kind for n in walk_nodes(compiled.kernel.body) if isinstance(n, For)]
    shown = {"parallel": "in parallel", "simd": "in lanes", "vector": "in lanes"}
    counts = Counter(shown[kind] for kind in kinds if kind in shown)
    found = [f"{counts[what]} {what}" for what in dict.fromkeys(shown.values()) if counts[what]]
    lines = [
        *_head(compiled.lowered, compiled.signature, compiled.plan),
        f"loops: {len(kinds)}, of which {' and '.join(found) or 'all run one after another'}",
        _proven(compiled.proof),
    ]
    checked = (f"line {r.place.line}: {r.what}" for r in compiled.requirements)
    lines += [f"checked at each call: {what}" for what in dict.fromkeys(checked)]
    return "\n".join(lines)


def explain_for_cuda(compiled: CompiledForCuda) -> str:
    """The same of a kernel for a GPU: what is launched, and how often."""
    lines = [*_head(compiled.lowered, compiled.signature, compiled.plan), "launches"]
    lines += _launches(compiled.device.launched, compiled.device.grids, "  ")
    lines.append(_proven(compiled.proof))
    return "\n".join(lines)


def _head(lowered: Lowered, signature: Signature, plan: LoopSchedule) -> Iterator[str]:
    arguments = ", ".join(f"{n}: {a}" for n, a in signature.arguments.items())
    yield f"kernel {lowered.scop.name}({arguments})"
    yield from (f"  {name} = {value}" for name, value in signature.given.items())
    yield ""
    yield "statements"
    for statement in lowered.scop.statements:
        iterators = ", ".join(statement.iterators)
        place = lowered.places[statement.name]
        written = str(statement).splitlines()[-1].strip()
        yield f"  {statement.name}[{iterators}]  line {place.line}: {written}"
    yield ""
    yield f"schedule: {plan.origin}"
    for line in show_tree(plan.tree).splitlines():
        yield f"  {line}"
    for note in plan.notes:
        yield f"  {note}"
    yield ""


def _launches(nodes: Sequence[HostNode], grids: Sequence[Grid], indent: str) -> Iterator[str]:
    for node in nodes:
        match node:
            case int():
                alone = grids[node].blocks == grids[node].threads == (1, 1, 1)
                yield f"{indent}{grids[node]}{', one thread' if alone else ''}"
            case Steps(name, lower, upper, _, body):
                yield f"{indent}for {name} from {show_index(lower)} to below {show_index(upper)}:"
                yield from _launches(body, grids, f"{indent}  ")
            case When(condition, then, otherwise):
                yield f"{indent}if {show_condition(condition)}:"
                yield from _launches(then, grids, f"{indent}  ")
                if otherwise:
                    yield f"{indent}else:"
                    yield from _launches(otherwise, grids, f"{indent}  ")


def _proven(proof: Proof | None) -> str:
    return f"proven: {proof.facts if proof else 'nothing, as the options say'}"
