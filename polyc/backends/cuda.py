"""The back end for GPUs: a kernel as CUDA, from where its loops go on."""

from __future__ import annotations

from dataclasses import replace

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import compute_executions
from polyc.analysis.verify import verify_kernel
from polyc.backends.common import CompiledKernel, comment_on, find_boundary, kernel_scop
from polyc.codegen.cuda.print_kernel import print_device
from polyc.codegen.cuda.settle import settle
from polyc.codegen.generate import generate_nest
from polyc.codegen.loopnest import Kernel, Param
from polyc.mapping.cuda.choose import map_to_cuda
from polyc.mapping.open_cluster import list_touched
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import row_major
from polyc.options import Options
from polyc.poly.show import show_tree
from polyc.promote.local_arrays import promote_to_locals
from polyc.promote.spaces import assign_spaces
from polyc.schedule.block_barriers import place_block_barriers
from polyc.schedule.schedule import check_legal
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
    """One cluster, from where its loops go to its CUDA text."""
    (one,) = stored.parts
    whole = kernel_scop(name, stored, scop)

    # 1. where loops go: blocks, threads, copies; the cluster in the coordinates of its kernel
    with trace.step("map"):
        mapped = map_to_cuda(one, scop.arrays, target)
        arrays = {**scop.arrays, **mapped.arrays}
        storages = {**stored.storages, **{n: row_major(a) for n, a in mapped.arrays.items()}}
        touched = list_touched(mapped.cluster)
        mine = replace(one, cluster=mapped.cluster, arrays=touched, private=mapped.private)
        part = kernel_scop(name, StoredKernel((mine,)), replace(scop, arrays=arrays))

    # 2. dependences, which the tree must keep
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        check_legal(mapped.tree, dependences, name)
        if trace.wants("schedule"):
            trace.dump("schedule", show_tree(mapped.tree), name)

    # 3. arrays that live inside one tile need no memory
    with trace.step("promote"):
        promoted = promote_to_locals(
            mapped.tree, mapped.cluster.statements, mapped.private, arrays, storages
        )

    # 4. loops of fixed size, with conditions at borders
    with trace.step("generate"):
        statements = {s.name: s for s in part.statements}
        nest = assign_spaces(settle(generate_nest(mapped.tree, statements, storages, promoted)))
        kept = [a for a in touched if a not in promoted]
        bound = tuple(stored.arrays.index(a) for a in kept)
        written = {s.array for s in part.statements}
        params = tuple(Param(a, arrays[a].dtype, storages[a].shape, a in written) for a in kept)
        kernel = Kernel(name, params, nest, comment_on(stored, mapped.schedule))
        parameters = {p.name: p.name for p in kernel.params}

    # 5. where the threads of a block wait for one another
    with trace.step("schedule"):
        around = Surroundings(kernel, part, storages, parameters)
        runs = compute_executions(kernel, part)
        phases = Phases(around, [a for run in runs for a in compute_accesses(around, run)])
        kernel = replace(kernel, body=place_block_barriers(nest, phases.conflict))
        trace.dump("loopnest", kernel, name)

    # 6. the proof, on these loops: after it they are only unrolled and cut into vectors
    with trace.step("verify"):
        proof = None
        if options.verify:
            proof = verify_kernel(kernel, part, storages, dependences, parameters)

    # 7. CUDA
    with trace.step("print"):
        device = print_device(kernel, mapped.threads)
        trace.dump("c", device.text, name)

    reads, writes = find_boundary(part, dependences)
    names = {array: position for position, array in enumerate(kept)}
    return CompiledKernel(
        kernel,
        device.text,
        mapped.schedule,
        proof,
        None,
        count_flops(whole) or 0,
        count_bytes(whole),
        bound,
        tuple(storages[p.name] for p in params),
        {names[a]: elements for a, elements in reads.items()},
        {names[a]: elements for a, elements in writes.items() if a in names},
        device,
    )
