"""The back end for GPUs: a kernel as CUDA, from where its loops go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.launches.verify import Judged
from polyc.analysis.proof import Proof
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import compute_executions
from polyc.analysis.witness import Unproven
from polyc.backends.common import (
    CompiledKernel,
    by_name,
    check_tree,
    comment_on,
    cut_scop,
    find_boundary,
    kernel_scop,
    list_params,
    prove,
)
from polyc.codegen.cuda.grid import DeviceText
from polyc.codegen.cuda.print_kernel import print_device
from polyc.codegen.cuda.settle import settle
from polyc.codegen.generate import generate_nest
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Block, Kernel
from polyc.mapping.cuda.choose import schedule_for_cuda
from polyc.mapping.cuda.instructions import check_instructions
from polyc.mapping.cuda.overwrite import overwrite_named
from polyc.mapping.cuda.scheduled import Scheduled, apply_schedule, begin
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.names import show
from polyc.options import Options
from polyc.promote.keep_in_block import check_kept, list_kept, resolve, shared_by_name
from polyc.promote.local_arrays import LocalArray, promote_to_locals
from polyc.promote.spaces import assign_spaces
from polyc.schedule.canonical import place_made, to_positions
from polyc.schedule.initial import make_tree
from polyc.schedule.keeping import Pack, Prefetch
from polyc.schedule.legal_threads import check_threads
from polyc.schedule.legality import check_given
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell
from polyc.schedule.threads import Pipeline
from polyc.scop.scop import Scop
from polyc.target.cuda import CudaTarget
from polyc.threads.background import wait_for_copies, wait_for_products
from polyc.threads.block_barriers import place_block_barriers
from polyc.trace import Trace
from polyc.types.ranges import assumed_ranges


def compile_for_cuda(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    target: CudaTarget,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, from where its loops go to its CUDA text."""
    # 1. where loops go: blocks, threads, copies; statements in the coordinates of their kernel
    with trace.step("map"), _naming(stored):
        given = stored.schedule if stored.given else None
        chosen = given or schedule_for_cuda(stored, scop.arrays, target, options)
        moved = overwrite_named(stored, chosen, scop.arrays)
        mapped = apply_schedule(chosen, begin(moved, scop.arrays))
        if stored.given:
            _check_foreign(chosen)
            check_instructions(mapped, target)
        part = _mapped_scop(name, mapped, scop)

    # 2. dependences, which the tree must keep
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        if stored.given:
            domains = {s.name: s.domain for s in part.statements}
            start = make_tree(mapped.rewritten.named)
            check_given(chosen, start, domains, dependences, stored.given, check_threads)
        check_tree(mapped.tree, dependences, name, trace, proven=options.verify)

    # 3. to 7. arrays, loops, barriers, the proof and text
    with _naming(stored):
        emitted = _emit(name, stored, mapped, part, target, options, trace)

    whole = kernel_scop(name, stored, scop)
    return CompiledKernel(
        emitted.kernel,
        emitted.device.text,
        str(emitted.schedule),
        emitted.proof,
        count_flops(whole) or 0,
        count_bytes(whole),
        find_boundary(emitted.kernel, stored, part, dependences),
        Judged(emitted.kernel, whole, part, emitted.storages, assumed_ranges()),
        to_positions(emitted.schedule, stored.counted, stored.scheduled, mapped.named),
        place_made(mapped.named, stored.counted, stored.scheduled),
        emitted.device,
    )


@dataclass(frozen=True)
class _Emitted:
    """A kernel as loops and as text; schedule: with the space of each array that it keeps."""

    kernel: Kernel
    schedule: Schedule
    proof: Proof | None
    device: DeviceText
    storages: Mapping[str, Storage]


def _emit(
    name: str,
    stored: StoredKernel,
    mapped: Scheduled,
    part: Scop,
    target: CudaTarget,
    options: Options,
    trace: Trace,
) -> _Emitted:
    """The stages after the tree."""
    storages = {**stored.storages, **mapped.storages}

    # 3. arrays that live inside one tile need no memory
    with trace.step("promote"):
        private, kept = mapped.private, list_kept(mapped.loops)
        local = promote_to_locals(
            mapped.tree, part.statements, private, part.arrays, storages, mapped.folds, kept
        )
        check_kept(mapped.schedule, mapped.loops, local, private, [*mapped.made])

    # 4. loops of fixed size, with conditions at borders
    with trace.step("generate"):
        nest = _generate(mapped, part, storages, local)
        schedule = resolve(mapped.schedule, mapped.loops, local, nest)
        params = list_params((a for a in mapped.touched if a not in local), part, storages)
        kernel = Kernel(name, params, nest, comment_on(stored, str(schedule)))

    # 5. where the threads of a block wait for one another
    with trace.step("schedule"):
        kernel = _with_barriers(kernel, part, storages, mapped.pipelines)
        trace.dump("loopnest", kernel, name)

    # 6. the proof, on these loops: after it they are only unrolled and cut into vectors
    with trace.step("verify"):
        proof = prove(kernel, part, storages) if options.verify else None

    # 7. CUDA
    with trace.step("print"):
        device = print_device(kernel, mapped.threads)
        _check_room(device, target)
        trace.dump("c", device.text, name)

    return _Emitted(kernel, schedule, proof, device, storages)


@contextmanager
def _naming(stored: StoredKernel) -> Iterator[None]:
    """Inside, a schedule that was given is named where it is refused, or does not fit."""
    if not stored.given:
        yield
        return
    head = f"the schedule of {show(stored.given)}"
    try:
        yield
    except Unproven as error:
        raise IllegalSchedule(
            f"{head}: the proof refuses what it makes: {error.broken}; begin with what is printed "
            "here, and change less"
        ) from None
    except IllegalSchedule as error:
        raise IllegalSchedule(f"{head}: {error}") from None
    except AssertionError:
        raise IllegalSchedule(
            f"{head}: a vector, an instruction, or a copy in the background is not made of such "
            "loops, digits and layouts; begin with what is printed here, and change less"
        ) from None


def _check_foreign(schedule: Schedule) -> None:
    """Raise IllegalSchedule for what only CPUs do."""
    foreign = next((d for d in schedule.directives if isinstance(d, Pack | Prefetch)), None)
    if foreign is not None:
        raise IllegalSchedule(f"{spell(foreign)}: that is for CPUs; say stage, or tile")


def _check_room(device: DeviceText, target: CudaTarget) -> None:
    """Raise IllegalSchedule for more shared memory than a block has."""
    for grid in device.grids:
        if grid.shared_bytes > target.shared_per_block:
            raise IllegalSchedule(
                f"a block keeps {grid.shared_bytes} bytes in shared memory, and {target.name} has "
                f"{target.shared_per_block}; keep less there: smaller tiles, or fewer stages"
            )


def _mapped_scop(name: str, mapped: Scheduled, scop: Scop) -> Scop:
    """The kernel's part of the scop after mapping: its statements, with the copies among them."""
    known = replace(scop, arrays={**scop.arrays, **mapped.made})
    return cut_scop(name, mapped.statements, mapped.touched, mapped.private, known)


def _generate(
    mapped: Scheduled,
    part: Scop,
    storages: Mapping[str, Storage],
    local: Mapping[str, LocalArray],
) -> Block:
    """The loops of a tree, with the space of every array."""
    statements = {s.name: s for s in part.statements}
    nest = settle(generate_nest(mapped.tree, statements, storages, local))
    return assign_spaces(nest, mapped.swizzles, shared_by_name(mapped.schedule))


def _with_barriers(
    kernel: Kernel,
    part: Scop,
    storages: Mapping[str, Storage],
    pipelines: Mapping[str, Pipeline],
) -> Kernel:
    """The kernel with barriers between phases in which threads of a block may meet."""
    used = {name: directive.used for name, directive in pipelines.items()}
    kernel = replace(kernel, body=wait_for_products(kernel.body, used))
    around = Surroundings(kernel, part, storages, by_name(kernel))
    runs = compute_executions(kernel, part)
    phases = Phases(around, [a for run in runs for a in compute_accesses(around, run)])
    body = place_block_barriers(kernel.body, phases.conflict)
    ahead = {name: directive.ahead for name, directive in pipelines.items()}
    return replace(kernel, body=wait_for_copies(body, ahead))
