"""The back end for CPUs: a kernel as C, from its dependences on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import Dependences, compute_dependences
from polyc.analysis.proof import Proof
from polyc.analysis.verify import verify_kernel
from polyc.backends.common import CompiledKernel, comment_on, find_boundary, kernel_scop
from polyc.codegen.generate import generate_nest
from polyc.codegen.loopnest import Kernel, Param
from polyc.codegen.peel import peel
from polyc.codegen.print_c import print_kernel
from polyc.codegen.registers import find_registers
from polyc.codegen.vectorise import vectorise
from polyc.mapping.choose import choose_mapping
from polyc.mapping.cpu import join_trees, map_to_cpu
from polyc.mapping.mapping import Mapping as Mapped
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.poly.show import show_tree
from polyc.promote.in_place import keep_in_place
from polyc.promote.local_arrays import promote_to_locals
from polyc.schedule.barriers import join_pieces
from polyc.schedule.schedule import check_legal, schedule_outer
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from polyc.trace import Trace


def compile_for_cpu(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    target: Target,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, from its dependences to its C text."""
    arrays = scop.arrays
    part = kernel_scop(name, stored, scop)

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

    # 3. arrays that live inside one tile need no memory of their own
    with trace.step("promote"):
        inner = {name: loops for one in mappings for name, loops in one.inner.items()}
        part, dependences = keep_in_place(part, dependences, tree, inner, stored.storages)
        private = stored.private.intersection(part.arrays)
        promoted = promote_to_locals(tree, part.statements, private, arrays, stored.storages)

    # 4. loops, with partial tiles split off
    with trace.step("generate"):
        statements = {s.name: s for s in part.statements}
        nest = peel(generate_nest(tree, statements, stored.storages, promoted))
        kept = part.arrays.keys() - promoted.keys()
        bound = tuple(k for k, a in enumerate(stored.arrays) if a in kept)
        written = {s.array for s in part.statements}
        params = tuple(
            Param(a, arrays[a].dtype, stored.storages[a].shape, a in written)
            for a in (stored.arrays[k] for k in bound)
        )
        kernel = Kernel(name, params, nest, comment_on(stored, described))

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

    reads, writes = find_boundary(part, dependences)
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


def _prove(kernel: Kernel, part: Scop, stored: StoredKernel, dependences: Dependences) -> Proof:
    parameters = {p.name: p.name for p in kernel.params}
    return verify_kernel(kernel, part, stored.storages, dependences, parameters)
