"""The back end for GPUs: a kernel as CUDA, from where its loops go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.launches.verify import Judged
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import compute_executions
from polyc.backends.common import (
    CompiledKernel,
    by_name,
    check_tree,
    comment_on,
    find_boundary,
    kernel_scop,
    list_params,
    prove,
)
from polyc.codegen.cuda.print_kernel import print_device
from polyc.codegen.cuda.settle import settle
from polyc.codegen.generate import generate_nest
from polyc.codegen.loopnest import Block, Kernel
from polyc.coordinates.rewrite import begin
from polyc.mapping.cuda.choose import schedule_for_cuda
from polyc.mapping.cuda.mapped import Mapped
from polyc.mapping.cuda.scheduled import apply_schedule, list_kept
from polyc.mapping.open_cluster import list_touched
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage, row_major
from polyc.options import Options
from polyc.promote.local_arrays import LocalArray, promote_to_locals
from polyc.promote.spaces import assign_spaces
from polyc.schedule.background import wait_for_copies
from polyc.schedule.block_barriers import place_block_barriers
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Scop
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace


def compile_for_cuda(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    target: CudaTarget,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, from where its loops go to its CUDA text."""
    whole = kernel_scop(name, stored, scop)

    # 1. where loops go: blocks, threads, copies; statements in the coordinates of their kernel
    with trace.step("map"):
        chosen = schedule_for_cuda(stored, scop.arrays, target, options)
        named = None
        if isinstance(chosen, Mapped):
            mapped = chosen
        else:
            applied = apply_schedule(chosen, begin(stored, scop.arrays))
            now = applied.rewritten
            mapped = Mapped(
                Cluster(now.statements, (), False),
                applied.made,
                now.touched_private,
                applied.tree,
                applied.threads,
                str(chosen),
                applied.storages,
                applied.swizzles,
                applied.folds,
            )
            named = list_kept(applied.loops)
        touched = list_touched(mapped.cluster)
        part = _mapped_scop(name, stored, mapped, touched, scop)
        made = {n: row_major(a) for n, a in mapped.arrays.items()}
        storages = {**stored.storages, **made, **mapped.storages}

    # 2. dependences, which the tree must keep
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        check_tree(mapped.tree, dependences, name, trace)

    # 3. arrays that live inside one tile need no memory
    with trace.step("promote"):
        private = mapped.private
        promoted = promote_to_locals(
            mapped.tree, part.statements, private, part.arrays, storages, mapped.folds, named or {}
        )

    # 4. loops of fixed size, with conditions at borders
    with trace.step("generate"):
        nest = _generate(mapped, part, storages, promoted)
        params = list_params((a for a in touched if a not in promoted), part, storages)
        kernel = Kernel(name, params, nest, comment_on(stored, mapped.schedule))

    # 5. where the threads of a block wait for one another
    with trace.step("schedule"):
        kernel = _with_barriers(kernel, part, storages, mapped.folds)
        trace.dump("loopnest", kernel, name)

    # 6. the proof, on these loops: after it they are only unrolled and cut into vectors
    with trace.step("verify"):
        proof = prove(kernel, part, storages) if options.verify else None

    # 7. CUDA
    with trace.step("print"):
        device = print_device(kernel, mapped.threads)
        trace.dump("c", device.text, name)

    return CompiledKernel(
        kernel,
        device.text,
        mapped.schedule,
        proof,
        count_flops(whole) or 0,
        count_bytes(whole),
        find_boundary(kernel, stored, part, dependences),
        Judged(kernel, whole, part, storages),
        device,
    )


def _mapped_scop(
    name: str, stored: StoredKernel, mapped: Mapped, touched: tuple[str, ...], scop: Scop
) -> Scop:
    """The kernel's part of the scop after mapping: its statements, with the copies among them."""
    mine = replace(stored.parts[0], cluster=mapped.cluster, arrays=touched, private=mapped.private)
    arrays = {**scop.arrays, **mapped.arrays}
    return kernel_scop(name, StoredKernel((mine,)), replace(scop, arrays=arrays))


def _generate(
    mapped: Mapped,
    part: Scop,
    storages: Mapping[str, Storage],
    promoted: Mapping[str, LocalArray],
) -> Block:
    """The loops of a tree, with the space of every array."""
    statements = {s.name: s for s in part.statements}
    nest = settle(generate_nest(mapped.tree, statements, storages, promoted))
    return assign_spaces(nest, mapped.swizzles)


def _with_barriers(
    kernel: Kernel,
    part: Scop,
    storages: Mapping[str, Storage],
    folds: Mapping[str, Mapping[int, int]],
) -> Kernel:
    """The kernel with barriers between phases in which threads of a block may meet."""
    around = Surroundings(kernel, part, storages, by_name(kernel))
    runs = compute_executions(kernel, part)
    phases = Phases(around, [a for run in runs for a in compute_accesses(around, run)])
    body = place_block_barriers(kernel.body, phases.conflict)
    ahead = {name: n - 1 for name, fold in folds.items() for n in fold.values()}
    return replace(kernel, body=wait_for_copies(body, ahead))
