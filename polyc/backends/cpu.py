"""The back end for CPUs: a kernel as C, from its dependences on."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.launches.verify import Judged
from polyc.analysis.same_values import check_same_values
from polyc.backends.common import (
    CompiledKernel,
    check_tree,
    comment_on,
    find_boundary,
    kernel_scop,
    list_params,
    list_sizes,
    prove,
)
from polyc.codegen.generate import generate_nest
from polyc.codegen.loopnest import Kernel
from polyc.codegen.peel import peel
from polyc.codegen.print_c import print_kernel
from polyc.codegen.registers import find_registers
from polyc.codegen.team import share_out
from polyc.codegen.vectorise import vectorise
from polyc.mapping.choose import choose_mapping
from polyc.mapping.cpu import join_trees, map_to_cpu
from polyc.mapping.mapping import Mapping as Mapped
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.promote.in_place import keep_in_place
from polyc.promote.local_arrays import LocalArray, promote_to_locals
from polyc.schedule.barriers import join_pieces
from polyc.schedule.schedule import OuterBand, schedule_outer
from polyc.scop.scop import Array, Scop
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
    part = stated = kernel_scop(name, stored, scop)

    # 1. dependences, and the order of each cluster's shared loops that they allow
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        most = options.max_operations
        bands = [schedule_outer(one.cluster, dependences, most) for one in stored.parts]

    # 2. where loops go: tiles, threads, registers, SIMD lanes
    with trace.step("map"):
        mappings = _choose_mappings(stored, bands, scop.arrays, target)
        described = _describe(stored, mappings)
        tree = _build_tree(stored, bands, mappings)
        check_tree(tree, dependences, name, trace)

    # 3. arrays that live inside one tile need no memory of their own
    with trace.step("promote"):
        inner = {name: loops for one in mappings for name, loops in one.inner.items()}
        part, dependences = keep_in_place(part, dependences, tree, inner, stored.storages)
        private = stored.private.intersection(part.arrays)
        promoted = promote_to_locals(tree, part.statements, private, scop.arrays, stored.storages)

    # 4. loops, with partial tiles split off
    with trace.step("generate"):
        kernel = _generate(name, stored, part, tree, promoted, described, target.simd_bytes)

    # 5. which of the loops threads may run at the same time, and where they wait
    with trace.step("schedule"):
        kernel = share_out(join_pieces(kernel, part, dependences))
        trace.dump("loopnest", kernel, name)

    # 6. the proof, on these loops: after it they are only unrolled and cut into vectors
    with trace.step("verify"):
        if options.verify:
            check_same_values(name, stated, part)
        proof = prove(kernel, part, stored.storages, team=True) if options.verify else None

    # 7. C
    with trace.step("print"):
        final = find_registers(vectorise(kernel.body, target.simd_bytes))
        source = print_kernel(replace(kernel, body=final))
        trace.dump("c", source, name)

    return CompiledKernel(
        kernel,
        source,
        described,
        proof,
        next((band.fallback for band in bands if band.fallback), None),
        count_flops(part) or 0,
        count_bytes(part),
        find_boundary(kernel, stored, part, dependences),
        Judged(kernel, stated, part, stored.storages),
    )


def _choose_mappings(
    stored: StoredKernel, bands: Sequence[OuterBand], arrays: Table[str, Array], target: Target
) -> list[Mapped]:
    """The mapping of each part, as it would be alone."""
    return [
        choose_mapping(one.cluster, band, one.parameters, arrays, one.storages, target)
        for one, band in zip(stored.parts, bands, strict=True)
    ]


def _build_tree(
    stored: StoredKernel, bands: Sequence[OuterBand], mappings: Sequence[Mapped]
) -> isl.Schedule:
    """The mapped trees of all parts, inside the tiles that they share: then these are parallel."""
    if stored.loops:
        mappings = [replace(mapping, parallel=0) for mapping in mappings]
    parts = zip(stored.parts, bands, mappings, strict=True)
    trees = [map_to_cpu(one.cluster, band, mapping) for one, band, mapping in parts]
    return join_trees(trees, stored.loops, stored.sizes, stored.statements)


def _generate(
    name: str,
    stored: StoredKernel,
    part: Scop,
    tree: isl.Schedule,
    promoted: Table[str, LocalArray],
    described: str,
    simd_bytes: int,
) -> Kernel:
    """The loops of a tree, and what they are given."""
    statements = {s.name: s for s in part.statements}
    sizes = list_sizes(part, stored.storages)
    nest = peel(generate_nest(tree, statements, stored.storages, promoted), sizes, simd_bytes)
    kept = [a for a in stored.arrays if a in part.arrays and a not in promoted]
    params = list_params(kept, part, stored.storages)
    return Kernel(name, params, nest, comment_on(stored, described), sizes)


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
