"""What back ends share: a kernel with all that is said about it, and the scop that it executes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.footprints import compute_footprints
from polyc.analysis.launches.verify import Judged
from polyc.analysis.proof import Proof
from polyc.analysis.verify import verify_kernel
from polyc.codegen.cuda.grid import DeviceText
from polyc.loopnest.nodes import Kernel
from polyc.loopnest.prototype import Param, Prototype
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.poly.parameters import parameters_of
from polyc.poly.show import show_tree
from polyc.printing.template import Template
from polyc.program.work import Work
from polyc.schedule.canonical import NOTHING, Made
from polyc.schedule.legality import check_legal
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array, Scop, Statement
from polyc.trace import Trace
from polyc.types.sizes import names_in


@dataclass(frozen=True)
class Boundary:
    """What a kernel is given, by its parameters in order.

    `bound` are their positions among the arrays of the stored kernel. `reads` are the elements, by
    parameter, that must have been written before a launch, and `writes` those that it writes.
    """

    bound: tuple[int, ...]
    reads: Mapping[int, isl.Set]
    writes: Mapping[int, isl.Set]


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel and all that is said about it.

    `schedule` is its text; `directives` are the schedule, where each array has its place, with
    positions for names, and `made` what it makes itself. `source` is the text, `template` the same
    for all names, if it is C; of a kernel for a GPU `device` says how it is launched. `judged` is
    what the proof spoke of; `work` is what an execution takes, on a CPU.
    """

    kernel: Prototype
    source: str
    schedule: str
    proof: Proof | None
    flops: int
    bytes: int
    boundary: Boundary
    judged: Judged
    directives: Schedule
    made: Made = NOTHING
    device: DeviceText | None = None
    template: Template | None = None
    work: Work | None = None

    @property
    def file(self) -> str:
        """The name of its C file."""
        return f"{self.kernel.name}.c"


def kernel_scop(name: str, stored: StoredKernel, scop: Scop) -> Scop:
    """What a kernel computes as a scop of its own."""
    return cut_scop(name, stored.statements, stored.arrays, stored.private, scop)


def cut_scop(
    name: str,
    statements: tuple[Statement, ...],
    touched: Iterable[str],
    private: Collection[str],
    scop: Scop,
) -> Scop:
    """Statements that touch some arrays, of which nobody else touches the private ones."""
    arrays: dict[str, Array] = {
        a: scop.arrays[a]
        if a in private or scop.arrays[a].kind != "temporary"
        else replace(scop.arrays[a], kind="output")
        for a in touched
    }
    written = {s.array for s in statements}
    outside = {
        a: replace(arrays[a], kind="input")
        for a in arrays
        if a not in written and arrays[a].kind != "constant"
    }
    return Scop(
        name,
        statements,
        {**arrays, **outside},
        tuple(outside),
        tuple(a for a in arrays if a in written and a not in private),
    )


def list_params(
    names: Iterable[str],
    part: Scop,
    storages: Mapping[str, Storage],
    inside: Collection[str] = (),
) -> tuple[Param, ...]:
    """Parameters for the arrays of a scop that are not local; some are room for its own values."""
    written = {s.array for s in part.statements}
    return tuple(
        Param(a, part.arrays[a].dtype, storages[a].shape, a in written, a in inside) for a in names
    )


def list_sizes(part: Scop, storages: Mapping[str, Storage]) -> tuple[str, ...]:
    """The sizes known only at run time that a kernel's loops and addresses depend on."""
    found = {name for s in part.statements for name in parameters_of(s.domain)}
    shapes = (storages[a].shape for a in part.arrays if a in storages)
    return tuple(sorted(found.union(*map(names_in, shapes))))


def check_tree(
    tree: isl.Schedule, dependences: Dependences, name: str, trace: Trace, *, proven: bool
) -> None:
    """Refuse a schedule tree that breaks a dependence; else it is what a dump shows.

    proven: the loops that are made of it will be held against all dependences (`prove`).
    """
    if not proven:
        check_legal(tree, dependences, name)
    if trace.wants("schedule"):
        trace.dump("schedule", show_tree(tree), name)


def prove(
    kernel: Kernel, part: Scop, storages: Mapping[str, Storage], *, team: bool = False
) -> Proof:
    """The proof that a kernel executes `part`; for a CPU, where a team of threads goes through."""
    return verify_kernel(kernel, part, storages, by_name(kernel), team)


def by_name(kernel: Kernel) -> dict[str, str]:
    """The parameter of each array of the kernel's scop: of the same name."""
    return {p.name: p.name for p in kernel.params}


def find_boundary(
    kernel: Prototype,
    stored: StoredKernel,
    part: Scop,
    dependences: Dependences,
) -> Boundary:
    """The boundary of a kernel that executes `part`."""
    reads, writes = _touched_outside(part, dependences)
    names = {p.name: position for position, p in enumerate(kernel.params)}
    return Boundary(
        tuple(stored.arrays.index(a) for a in names),
        {names[a]: elements for a, elements in reads.items()},
        {names[a]: elements for a, elements in writes.items() if a in names},
    )


def _touched_outside(
    part: Scop, dependences: Dependences
) -> tuple[dict[str, isl.Set], dict[str, isl.Set]]:
    """(elements that must exist before, elements written), by array, private arrays left out."""
    footprints = compute_footprints(part)
    reads = {a: footprints.reads[a] for a in part.inputs if a in footprints.reads}
    for _, array, missing in maps(dependences.uninitialised):
        elements = missing.range()
        reads[array] = reads[array].union(elements) if array in reads else elements
    return reads, {a: footprints.writes[a] for a in part.outputs}


def comment_on(stored: StoredKernel, schedule: str) -> tuple[str, ...]:
    """What a kernel computes, from which nodes, and how."""
    lines = []
    for s in stored.body:
        operator = f"{s.reduction}=" if s.reduction else "="
        reads = ", ".join(dict.fromkeys(load.array for load in s.loads)) or "a constant"
        lines.append(f"{s.array}[{', '.join(s.iterators)}] {operator} f({reads})")
    origin = dict.fromkeys(o for s in stored.body for o in s.origin)
    return (f"Nodes: {', '.join(origin)}", *lines, f"Schedule: {schedule}")
