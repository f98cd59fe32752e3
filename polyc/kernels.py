"""From stored kernels to C: each distinct one is scheduled, generated, proven and printed once.

Two that are equal up to names become two launches of one kernel. What makes them equal is
a signature: the text of their domains, accesses and expressions with names replaced by positions
(`mapping/signature.py`), how their arrays are stored, and what was chosen about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import Dependences, compute_dependences, maps
from polyc.analysis.footprints import compute_footprints
from polyc.analysis.proof import Proof
from polyc.analysis.verify import LaunchAccess, verify_kernel
from polyc.codegen.generate import generate_nest
from polyc.codegen.loopnest import Kernel, Param
from polyc.codegen.peel import peel
from polyc.codegen.print_c import print_kernel
from polyc.codegen.program import Launch
from polyc.codegen.registers import find_registers
from polyc.codegen.vectorise import vectorise
from polyc.mapping.choose import choose_mapping
from polyc.mapping.cpu import join_trees, map_to_cpu
from polyc.mapping.mapping import Mapping as Mapped
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.options import Options
from polyc.poly.show import show_tree
from polyc.promote.local_arrays import promote_to_locals
from polyc.schedule.barriers import join_pieces
from polyc.schedule.schedule import check_legal, schedule_outer
from polyc.scop.expr import Load
from polyc.scop.scop import Array, Scop, Statement
from polyc.target.machine import Target
from polyc.trace import Trace


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel and all that is said about it.

    `bound` are the positions, among the arrays of the stored kernel, of the parameters in order;
    `layouts` says how the loops take each of them to be stored.
    `reads` are the elements, by parameter, that must have been written before a launch, and
    `writes` those that it writes. `fallback` says why isl's schedule was not used, if it was not.
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

    @property
    def file(self) -> str:
        """The name of its C file."""
        return f"{self.kernel.name}.c"


Emit = Callable[[str, str], None]
"""Takes a file of C, by name and text, as soon as it is printed: `LibraryBuild.add` does."""


def ignore(name: str, text: str) -> None:
    """An `Emit` for those who want all files at the end."""


@dataclass(frozen=True)
class CompiledKernels:
    """Distinct kernels, the launches that execute all in order, and what they touch."""

    kernels: tuple[CompiledKernel, ...]
    launches: tuple[Launch, ...]
    touched: tuple[LaunchAccess, ...]


def compile_kernels(
    stored: Sequence[StoredKernel],
    scop: Scop,
    target: Target,
    options: Options,
    trace: Trace,
    emit: Emit = ignore,
) -> CompiledKernels:
    """Compile each distinct kernel once, and launch it as often as it appears."""
    kernels: dict[str, CompiledKernel] = {}
    launches, touched = [], []
    for one in trace.track("kernels", stored):
        signature = one.spell(scop.arrays)
        if signature not in kernels:
            name = f"k{len(kernels)}_{one.body[-1].name.removeprefix('S_')}"
            kernels[signature] = _compile(name, one, scop, target, options, trace)
            emit(kernels[signature].file, kernels[signature].source)
        compiled = kernels[signature]
        arguments = tuple(one.arrays[k] for k in compiled.bound)
        origin = dict.fromkeys(o for s in one.body for o in s.origin)
        launches.append(
            Launch(
                compiled.kernel.name,
                arguments,
                tuple(origin),
                compiled.flops,
                compiled.bytes,
                _copies(one.body),
            )
        )
        reads = {arguments[k]: elements for k, elements in compiled.reads.items()}
        writes = {arguments[k]: elements for k, elements in compiled.writes.items()}
        scratch = one.private.intersection(arguments)
        touched.append(LaunchAccess(compiled.kernel.name, reads, writes, scratch))
    return CompiledKernels(tuple(kernels.values()), tuple(launches), tuple(touched))


def _copies(statements: Sequence[Statement]) -> str:
    """What statements move if they compute nothing: "x -> x_padded"; else empty."""
    moved = []
    for s in statements:
        if s.reduction or not isinstance(s.value, Load):
            return ""
        moved.append(f"{s.value.array} -> {s.array}")
    return ", ".join(moved)


def _compile(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    target: Target,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, from its dependences to its C text."""
    arrays = scop.arrays
    part = _kernel_scop(name, stored, scop)

    # 1. dependences, and the order of each cluster's shared loops that they allow
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        bands = [
            schedule_outer(one.cluster, dependences, options.max_operations) for one in stored.parts
        ]

    # 2. where loops go: tiles, threads, registers, SIMD lanes
    with trace.step("map"):
        mappings = [
            choose_mapping(one.cluster, band, one.parameters, arrays, one.storages, target)
            for one, band in zip(stored.parts, bands, strict=True)
        ]
        described = _describe(stored, mappings)
        if stored.loops:
            mappings = [replace(mapping, parallel=0) for mapping in mappings]
        tree = join_trees(
            [
                map_to_cpu(one.cluster, band, mapping)
                for one, band, mapping in zip(stored.parts, bands, mappings, strict=True)
            ],
            stored.loops,
            stored.sizes,
            stored.statements,
        )
        check_legal(tree, dependences, name)
        if trace.wants("schedule"):
            trace.dump("schedule", show_tree(tree), name)

    # 3. arrays that live inside one tile need no memory
    with trace.step("promote"):
        promoted = promote_to_locals(tree, part.statements, stored.private, arrays, stored.storages)

    # 4. loops, with partial tiles split off
    with trace.step("generate"):
        statements = {s.name: s for s in part.statements}
        nest = peel(generate_nest(tree, statements, stored.storages, promoted))
        bound = tuple(k for k, a in enumerate(stored.arrays) if a not in promoted)
        written = {s.array for s in part.statements}
        params = tuple(
            Param(a, arrays[a].dtype, stored.storages[a].shape, a in written)
            for a in (stored.arrays[k] for k in bound)
        )
        kernel = Kernel(name, params, nest, _comment(stored, described))

    # 5. which of the loops threads may run at the same time
    with trace.step("schedule"):
        kernel = join_pieces(kernel, part, dependences)
        trace.dump("loopnest", kernel, name)

    # 6. the proof, on these loops: after it they are only unrolled and cut into vectors
    with trace.step("verify"):
        proof = _prove(kernel, part, stored, dependences) if options.verify else None

    # 7. C
    with trace.step("print"):
        final = find_registers(vectorise(kernel.body, target.simd_bytes))
        source = print_kernel(replace(kernel, body=final))
        trace.dump("c", source, name)

    reads, writes = _boundary(part, dependences)
    names = {stored.arrays[k]: position for position, k in enumerate(bound)}
    return CompiledKernel(
        kernel,
        source,
        described,
        proof,
        next((band.fallback for band in bands if band.fallback), None),
        count_flops(part) or 0,
        count_bytes(part),
        bound,
        tuple(stored.storages[p.name] for p in params),
        {names[a]: elements for a, elements in reads.items()},
        {names[a]: elements for a, elements in writes.items() if a in names},
    )


def _describe(stored: StoredKernel, mappings: Sequence[Mapped]) -> str:
    """One line for a human: the tiles that parts share, and how each of them is mapped."""
    parts = zip(stored.parts, mappings, strict=True)
    described = [mapping.describe(one.cluster) for one, mapping in parts]
    if not stored.loops:
        return f"{described[0]}, {mappings[0].threads}"
    last = stored.body[-1]
    sizes = zip(stored.loops, stored.sizes, strict=True)
    tiles = [
        last.iterators[loop[last.name]] + (f"/{size}" if size > 1 else "") for loop, size in sizes
    ]
    return f"tiles: {' '.join(tiles)}, {len(tiles)} parallel, each {'; '.join(described)}"


def _kernel_scop(name: str, stored: StoredKernel, scop: Scop) -> Scop:
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


def _prove(kernel: Kernel, part: Scop, stored: StoredKernel, dependences: Dependences) -> Proof:
    parameters = {p.name: p.name for p in kernel.params}
    return verify_kernel(kernel, part, stored.storages, dependences, parameters)


def _boundary(
    part: Scop, dependences: Dependences
) -> tuple[dict[str, isl.Set], dict[str, isl.Set]]:
    """(elements that must exist before, elements written), by array, private arrays left out."""
    footprints = compute_footprints(part)
    reads = {a: footprints.reads[a] for a in part.inputs if a in footprints.reads}
    for _, array, missing in maps(dependences.uninitialised):
        elements = missing.range()
        reads[array] = reads[array].union(elements) if array in reads else elements
    return reads, {a: footprints.writes[a] for a in part.outputs}


def _comment(stored: StoredKernel, schedule: str) -> tuple[str, ...]:
    """What a kernel computes, from which nodes, and how."""
    lines = []
    for s in stored.body:
        operator = f"{s.reduction}=" if s.reduction else "="
        reads = ", ".join(dict.fromkeys(load.array for load in s.loads)) or "a constant"
        lines.append(f"{s.array}[{', '.join(s.iterators)}] {operator} f({reads})")
    origin = dict.fromkeys(o for s in stored.body for o in s.origin)
    return (f"Nodes: {', '.join(origin)}", *lines, f"Schedule: {schedule}")
