"""The recipe for a GPU: a kernel for arguments of known sizes, to CUDA that is proven.

Function ──lower──▶ Scop ──schedule──▶ tree ──generate──▶ LoopNest ──verify──▶ ──print──▶ CUDA

Loops over blocks and threads have fixed extents, so sizes are known, as those of models for a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.proof import Proof
from polyc.analysis.same_values import check_same_values
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import compute_executions
from polyc.analysis.verify import verify_kernel
from polyc.codegen.cuda.grid import DeviceText
from polyc.codegen.cuda.launches import place_launches, print_launches
from polyc.codegen.cuda.settle import settle
from polyc.codegen.generate import generate_nest
from polyc.loopnest.nodes import Kernel
from polyc.loops.lower.lower import lower
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.narrow_locals import narrow_locals
from polyc.loops.lower.usual import usual_sizes
from polyc.loops.read.sizes import Signature, admits, leaves
from polyc.loops.read.syntax import Function
from polyc.loops.run.build import make_program
from polyc.loops.run.compile import check_initialised, comment_on, list_params, name_kernel
from polyc.loops.schedule.arrange import (
    Arranged,
    Strategy,
    arrange,
    arrange_as_given,
    expand_all,
)
from polyc.loops.schedule.given import schedule_as_given_for_gpu
from polyc.loops.schedule.schedule import (
    NO_SCHEDULE,
    Found,
    LoopSchedule,
    find_for_gpu,
    keep_order_on_gpu,
    schedule_for_gpu,
)
from polyc.options import Options
from polyc.poly.show import show_tree
from polyc.program.program import Program
from polyc.promote.spaces import assign_spaces
from polyc.schedule.schedule import Schedule
from polyc.scop.picks import find_walks
from polyc.threads.block_barriers import place_block_barriers
from polyc.trace import make_trace
from polyc.types.ranges import assume


@dataclass(frozen=True)
class Front:
    """A kernel for a GPU and arguments of some types, before their sizes are known.

    lowered: for any sizes, of which it says which are allowed. For the usual ones it has a
    schedule: isl's, which is found, or that of a user, which is given.
    """

    function: Function
    signature: Signature
    lowered: Lowered
    usual: isl.Set  # of parameters alone
    found: Found
    given: Schedule | None = None

    def check(self, sizes: Sequence[int]) -> None:
        """ShapeError for sizes with which Python would leave an array."""
        values = dict(zip((s.name for s in self.signature.sizes), sizes, strict=True))
        for requirement in self.lowered.requirements:
            if admits(requirement.sizes, values):
                raise leaves(requirement.what, str(requirement.place), self.signature, sizes)

    def at(self, values: Mapping[str, int]) -> Front:
        """For some sizes: without a schedule if they are not usual."""
        if admits(self.usual, values):
            return self
        return replace(self, found=Found(NO_SCHEDULE), given=None)


def begin(
    function: Function, signature: Signature, options: Options, given: Schedule | None
) -> Front:
    """What is done once for arguments of some types; UnsupportedLoop as on a CPU."""
    with assume(signature.sizes):
        lowered = lower(function, signature)
        check_initialised(lowered, compute_dependences(lowered.scop).uninitialised)
        _check_bounds(lowered)
        usual = usual_sizes(lowered, signature)
        found = Found(NO_SCHEDULE)
        if given is None and lowered.scop.statements:
            best = expand_all(lower(function, signature, usual), signature)
            found = find_for_gpu(best, options.max_operations)
    return Front(function, signature, lowered, usual, found, given)


def _check_bounds(lowered: Lowered) -> None:
    """No loop has bounds that are data: all that it could walk would be walked."""
    for s in lowered.scop.statements:
        if find_walks(s):
            lowered.places[s.name].refuse(
                "the bounds of a loop around this are data, which kernels for a GPU cannot have",
                "compile it for a CPU",
            )


@dataclass(frozen=True)
class CompiledForCuda:
    """A kernel for arguments of known sizes: what it executes, its CUDA, and what was proven."""

    lowered: Lowered
    signature: Signature
    plan: LoopSchedule
    kernel: Kernel
    device: DeviceText
    program: Program
    proof: Proof | None


def compile_for_cuda(
    front: Front, sizes: Sequence[int], options: Options
) -> CompiledForCuda | None:
    """The CUDA of a kernel for arguments of some sizes; None if it does nothing with them.

    ShapeError if Python would leave an array with these sizes.
    """
    front.check(sizes)
    signature = front.signature.at(sizes)
    values = dict(zip((s.name for s in front.signature.sizes), sizes, strict=True))
    trace = make_trace(options)
    with assume(()):
        # 1. statements and their original order
        with trace.step("lower"):
            lowered = narrow_locals(lower(front.function, signature), signature)
            trace.dump("scop", lowered.scop)
            if not lowered.scop.statements:
                return None

        # 2. which loops run over blocks and threads, and where locals are kept
        with trace.step("schedule"):
            arranged = _arrange(lowered, signature, front.at(values), values)
            stated, lowered = lowered.scop, arranged.lowered
            scop, storages = lowered.scop, dict(arranged.storages)
            if trace.wants("schedule"):
                trace.dump("schedule", show_tree(arranged.tree))

        # 3. loops of fixed size, those over blocks as launches, and barriers in these
        with trace.step("generate"):
            kernel = _generate(arranged)
            trace.dump("loopnest", kernel)

        # 4. the proof, on these loops
        with trace.step("verify"):
            proof = None
            if options.verify:
                check_same_values(kernel.name, stated, scop)
                parameters = {p.name: p.name for p in kernel.params}
                proof = verify_kernel(kernel, scop, storages, parameters)

        # 5. CUDA
        with trace.step("print"):
            device = print_launches(kernel)
            program = make_program(kernel, scop, storages, signature)
            trace.dump("c", device.text)
    return CompiledForCuda(lowered, signature, arranged.plan, kernel, device, program, proof)


def _arrange(
    lowered: Lowered, signature: Signature, front: Front, values: Mapping[str, int]
) -> Arranged:
    if front.given is not None:
        by_user = partial(schedule_as_given_for_gpu, schedule=front.given)
        return arrange_as_given(lowered, signature, by_user)
    best = partial(schedule_for_gpu, found=front.found, values=values)
    return arrange(lowered, signature, Strategy(best, keep_order_on_gpu))


def _generate(arranged: Arranged) -> Kernel:
    """The loops of a tree as launches, with the space of every local."""
    lowered, storages, promoted = arranged.lowered, arranged.storages, arranged.promoted
    scop = lowered.scop
    statements = {s.name: s for s in scop.statements}
    nest = generate_nest(arranged.tree, statements, storages, promoted, scop.context)
    nest = assign_spaces(place_launches(settle(nest)), {}, arranged.plan.shared)
    params = list_params(scop, arranged)
    kernel = Kernel(name_kernel(scop, "k0"), params, nest, comment_on(lowered))
    around = Surroundings(kernel, scop, storages, {p.name: p.name for p in params})
    runs = compute_executions(kernel, scop)
    phases = Phases(around, [a for run in runs for a in compute_accesses(around, run)])
    return replace(kernel, body=place_block_barriers(kernel.body, phases.conflict))
