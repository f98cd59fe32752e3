"""From a kernel and the types of its arguments to C that is proven: the recipe.

Function ──lower──▶ Scop ──schedule──▶ tree ──generate──▶ LoopNest ──verify──▶ ──print──▶ C

The recipe for a GPU (`compile_cuda.py`) has the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl

from polyc.analysis.dependences import compute_dependences, maps
from polyc.analysis.proof import Proof
from polyc.analysis.same_values import check_same_values
from polyc.analysis.verify import verify_kernel
from polyc.analysis.witness import show_first_pair
from polyc.codegen.accumulate import accumulate
from polyc.codegen.bound_by_data import bound_by_data
from polyc.codegen.carry import carry
from polyc.codegen.forget import forget_between_tiles
from polyc.codegen.generate import generate_nest
from polyc.codegen.hold import cut_results, hold
from polyc.codegen.masks import widen_masks
from polyc.codegen.peel import peel
from polyc.codegen.split import split_loops
from polyc.codegen.vectorise import vectorise
from polyc.loopnest.decided import drop_decided
from polyc.loopnest.index import Condition
from polyc.loopnest.nodes import Block, Kernel
from polyc.loopnest.prototype import Param
from polyc.loopnest.registers import find_registers
from polyc.loops.lower.lower import lower
from polyc.loops.lower.lowered import Lowered, Requirement
from polyc.loops.lower.narrow_locals import narrow_locals
from polyc.loops.lower.usual import usual_sizes
from polyc.loops.read.sizes import Signature
from polyc.loops.read.syntax import Function
from polyc.loops.run.build import condition_of, make_program
from polyc.loops.schedule.arrange import Arranged, Strategy, arrange, arrange_as_given
from polyc.loops.schedule.given import schedule_as_given
from polyc.loops.schedule.given_tree import refused_as_given, schedule_as_tree
from polyc.loops.schedule.schedule import LoopSchedule, keep_order, schedule_by_isl
from polyc.memory.storage import Storage
from polyc.names import identifier
from polyc.options import Options
from polyc.poly.show import show_tree
from polyc.printing.print_c import print_kernel
from polyc.program.program import Program
from polyc.schedule.schedule import Schedule
from polyc.schedule.tree_text import TreeText
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from polyc.target.vectors import Vectors
from polyc.threads.team import share_out
from polyc.trace import make_trace
from polyc.types.ranges import assume


@dataclass(frozen=True)
class CompiledLoops:
    """A kernel for arguments of some types: what it executes, its C, and what was proven.

    sizes: those that it may be called with. requirements: what all sizes must keep to. refused: the
    same as conditions on sizes that must not hold; of what is for the usual sizes the last is that
    they are others.
    """

    lowered: Lowered
    sizes: isl.Set  # of parameters alone
    requirements: tuple[Requirement, ...]
    signature: Signature
    plan: LoopSchedule
    kernel: Kernel
    text: str
    program: Program
    refused: tuple[Condition, ...]
    proof: Proof | None


def compile_loops(
    function: Function,
    signature: Signature,
    target: Target,
    options: Options,
    *,
    usual: bool = True,
    given: Schedule | TreeText | None = None,
) -> CompiledLoops:
    """The C of a kernel; UnsupportedLoop for what is outside of the subset.

    usual: for the usual sizes (`lower/usual.py`) alone, in the best order; else for all, in the
    original. given: the schedule that a user gives for the usual sizes.
    """
    trace = make_trace(options)
    with assume(signature.sizes):
        # 1. statements and their original order
        with trace.step("lower"):
            lowered = narrow_locals(lower(function, signature), signature)
            scop = lowered.scop
            trace.dump("scop", scop)
            check_busy(function, scop)
            dependences = compute_dependences(scop)
            check_initialised(lowered, dependences.uninitialised)
            requirements = lowered.requirements
            if usual:
                sizes = usual_sizes(lowered, signature)
                lowered = narrow_locals(lower(function, signature, sizes), signature)
                scop = lowered.scop

        # 2. the order in which they are executed, and where locals are kept
        with trace.step("schedule"):
            arranged = _arrange(lowered, signature, target, options, usual, given)
            lowered, stated, scop = arranged.lowered, scop, arranged.lowered.scop
            storages = arranged.storages
            if trace.wants("schedule"):
                trace.dump("schedule", show_tree(arranged.tree))

        # 3. loops
        with trace.step("generate"):
            kernel = _generate(arranged, signature, usual, target.vectors.bytes)
            trace.dump("loopnest", kernel)

        # 4. the proof, on these loops
        with trace.step("verify"):
            proof = None
            as_tree = usual and isinstance(given, TreeText)
            if options.verify or as_tree:
                with refused_as_given(scop.name) if as_tree else nullcontext():
                    proof = _prove(kernel, stated, scop, storages)

        # 5. C
        with trace.step("print"):
            final = _in_lanes(kernel, target.vectors)
            text = print_kernel(replace(kernel, body=final))
            trace.dump("c", text)
        assert scop.context is not None
        program = make_program(kernel, scop, storages, signature)
        refused = [r.sizes for r in requirements] + ([scop.context.complement()] if usual else [])
        known = signature.context().params()
        conditions = tuple(condition_of(sizes, known) for sizes in refused)
    return CompiledLoops(
        lowered,
        scop.context,
        requirements,
        signature,
        arranged.plan,
        kernel,
        text,
        program,
        conditions,
        proof,
    )


def _prove(kernel: Kernel, stated: Scop, scop: Scop, storages: Mapping[str, Storage]) -> Proof:
    check_same_values(kernel.name, stated, scop)
    parameters = {p.name: p.name for p in kernel.params}
    return verify_kernel(kernel, scop, storages, parameters, team=True, any_order=True)


def _arrange(
    lowered: Lowered,
    signature: Signature,
    target: Target,
    options: Options,
    usual: bool,
    given: Schedule | TreeText | None,
) -> Arranged:
    if usual and isinstance(given, TreeText):
        by_tree = partial(schedule_as_tree, given=given)
        return arrange_as_given(lowered, signature, by_tree, frozenset(given.iterators))
    if usual and isinstance(given, Schedule):
        return arrange_as_given(lowered, signature, partial(schedule_as_given, schedule=given))
    most = options.max_operations if usual else 0
    strategy = Strategy(
        partial(schedule_by_isl, target=target, most=most),
        lambda one, dependences, reason: keep_order(one, dependences, target, reason),
        copies=most > 0,
    )
    return arrange(lowered, signature, strategy)


def list_params(scop: Scop, arranged: Arranged) -> tuple[Param, ...]:
    """Parameters for the arrays that are kept in memory."""
    written = {s.array for s in scop.statements}
    return tuple(
        Param(name, array.dtype, arranged.storages[name].shape, name in written)
        for name, array in scop.arrays.items()
        if name not in arranged.promoted
    )


def name_kernel(scop: Scop, begins: str) -> str:
    """The name of a C function."""
    return f"{begins}_{identifier(scop.name) or 'kernel'}"


def comment_on(lowered: Lowered) -> tuple[str, ...]:
    """Where each statement stands in the text."""
    return tuple(f"{s.name}: {lowered.places[s.name]}" for s in lowered.scop.statements)


def _generate(arranged: Arranged, signature: Signature, usual: bool, simd_bytes: int) -> Kernel:
    """The loops of a tree as a kernel, shared out among threads.

    Those for the usual sizes have interiors without conditions.
    """
    lowered, storages, promoted = arranged.lowered, arranged.storages, arranged.promoted
    scop = lowered.scop
    statements = {s.name: s for s in scop.statements}
    nest = generate_nest(arranged.tree, statements, storages, promoted, scop.context)
    sizes = tuple(size.name for size in signature.sizes)
    name = name_kernel(scop, "k0" if usual else "k1")
    nest = cut_results(split_loops(nest, sizes) if usual else nest, simd_bytes)
    if arranged.plan.strip:
        nest = peel(nest, sizes, simd_bytes)
    return share_out(
        Kernel(name, list_params(scop, arranged), nest, comment_on(lowered), sizes=sizes)
    )


def _in_lanes(kernel: Kernel, vectors: Vectors) -> Block:
    """The loops with results in registers, and with sums in several vectors."""
    held = bound_by_data(carry(hold(drop_decided(kernel.body))))
    held = accumulate(held, vectors.bytes)
    final = widen_masks(find_registers(vectorise(held, vectors)))
    return forget_between_tiles(final, kernel.sizes, vectors)


def check_busy(function: Function, scop: Scop) -> None:
    """Some sizes have something to do."""
    if not scop.statements:
        function.place.refuse("nothing is ever executed here", "let some loop assign something")


def check_initialised(lowered: Lowered, unwritten: isl.UnionMap) -> None:
    """No local is read before it is assigned."""
    for source, array, reads in maps(unwritten):
        if lowered.scop.arrays[array].kind == "temporary":
            lowered.places[source].refuse(
                f"the local {array!r} may be read before it is assigned, at "
                f"{show_first_pair(reads)}",
                "assign to it first, whatever conditions say",
            )
