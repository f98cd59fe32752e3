"""What back ends share: a kernel with all that is said about it, and the scop that it executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.footprints import compute_footprints
from polyc.analysis.proof import Proof
from polyc.codegen.cuda.grid import DeviceText
from polyc.codegen.loopnest import Kernel
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.scop.scop import Array, Scop


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel and all that is said about it.

    `bound` are the positions, among the arrays of the stored kernel, of the parameters in order;
    `layouts` says how the loops take each of them to be stored.
    `reads` are the elements, by parameter, that must have been written before a launch, and
    `writes` those that it writes. `fallback` says why isl's schedule was not used, if it was not.
    `source` is the text; of a kernel for a GPU `device` says how it is launched.
    """

    kernel: Kernel
    source: str
    schedule: str
    proof: Proof | None
    fallback: str | None
    flops: int
    bytes: int
    bound: tuple[int, ...]
    layouts: tuple[Storage, ...]
    reads: Mapping[int, isl.Set]
    writes: Mapping[int, isl.Set]
    device: DeviceText | None = None

    @property
    def file(self) -> str:
        """The name of its C file."""
        return f"{self.kernel.name}.c"


def kernel_scop(name: str, stored: StoredKernel, scop: Scop) -> Scop:
    """What a kernel computes as a scop of its own."""
    arrays: dict[str, Array] = {
        a: scop.arrays[a]
        if a in stored.private or scop.arrays[a].kind != "temporary"
        else replace(scop.arrays[a], kind="output")
        for a in stored.arrays
    }
    written = stored.written
    outside = {
        a: replace(arrays[a], kind="input")
        for a in arrays
        if a not in written and arrays[a].kind != "constant"
    }
    return Scop(
        name,
        stored.statements,
        {**arrays, **outside},
        tuple(outside),
        tuple(a for a in arrays if a in written and a not in stored.private),
    )


def find_boundary(
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
