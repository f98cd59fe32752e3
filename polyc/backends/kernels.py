"""From stored kernels to text: each distinct one is compiled once, and launched where it appears.

Two that are equal up to names become two launches of one kernel. What makes them equal is
a signature: domains, accesses and expressions as values in which names are positions
(`scop/structure.py`, `mapping/signature.py`), how their arrays are stored, and what was chosen
about them. What is done to a kernel is a back end's matter (`polyc/backends/`). Kernels that are
not in the cache are shared among processes (`toolchain/share_work.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import islpy as isl

from polyc.analysis.launches.access import LaunchAccess, behind_found, in_memory
from polyc.analysis.launches.branches import in_branches
from polyc.analysis.launches.verify import Judged
from polyc.analysis.same import find_renaming
from polyc.backends.common import CompiledKernel
from polyc.backends.cpu import compile_for_cpu
from polyc.backends.cuda import compile_for_cuda
from polyc.backends.kept import KeptKernels, pack, unpack
from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.scheduled import find_made
from polyc.mapping.join_rows import join_rows
from polyc.mapping.sign_sizes import sign_sizes
from polyc.mapping.stored_kernel import StoredKernel
from polyc.names import show
from polyc.options import Options
from polyc.poly.parameters import among_sizes, parameters_of, rename_parameters
from polyc.program.program import Launch
from polyc.schedule.canonical import NOTHING, Made, from_positions
from polyc.schedule.initial import initial_tree
from polyc.scop.expr import Load
from polyc.scop.scop import Scop, Statement
from polyc.scop.sizes import list_sizes
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target, available_cores
from polyc.toolchain.share_work import share_work
from polyc.trace import Trace
from polyc.types.branches import needs_in
from polyc.types.estimate import estimate
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import STEP, SizeRange, assume, assume_only

FEW_KERNELS = 3
"""That each process has at least: to fork one takes as long as a small kernel."""

MOST_PROCESSES = 8
"""Each has memory of its own, and what is left for one process grows in relation."""

Emit = Callable[[CompiledKernel], None]
"""Takes a kernel as soon as it is printed, and may have a compiler begin with it."""


def ignore(kernel: CompiledKernel) -> None:
    """An `Emit` for those who want all kernels at the end."""


@dataclass(frozen=True)
class CompiledKernels:
    """Distinct kernels, the launches that execute all in order, and what they touch.

    schedules: that of each launch as text, in its own names.
    """

    kernels: tuple[CompiledKernel, ...]
    launches: tuple[Launch, ...]
    touched: tuple[LaunchAccess, ...]
    schedules: tuple[str, ...]

    @property
    def judged(self) -> dict[str, Judged]:
        """By kernel, what its launches are judged by."""
        return {k.kernel.name: k.judged for k in self.kernels}


def compile_kernels(
    stored: Sequence[StoredKernel],
    scop: Scop,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    emit: Emit = ignore,
    kept: KeptKernels | None = None,
) -> CompiledKernels:
    """Compile each distinct kernel once, and launch it as often as it appears.

    kept: kernels that need not be compiled again, to which those join that are.
    """
    distinct, uses = _find_distinct(stored, scop, target, kept)
    made = _make(distinct, scop, target, options, trace, emit, kept)
    launches, touched, schedules = [], [], []
    for one, use in zip(stored, uses, strict=True):
        compiled = made[use.kernel]
        boundary = compiled.boundary
        arguments = tuple(one.arrays[k] for k in boundary.bound)
        origin = dict.fromkeys(o for s in one.body for o in s.origin)
        launches.append(
            Launch(
                compiled.kernel.name,
                arguments,
                tuple(origin),
                compiled.flops,
                compiled.bytes,
                _copies(one.body),
                one.step,
                one.branches,
                compiled.work,
                estimate(one.step.steps) if one.step else 1,
                use.sizes,
            )
        )
        reads, writes = (
            {arguments[k]: _in_launch(elements, one, use) for k, elements in accesses.items()}
            for accesses in (boundary.reads, boundary.writes)
        )
        schedules.append(_spell_schedule(compiled, one))
        scratch = one.private.intersection(arguments)
        access = LaunchAccess(compiled.kernel.name, reads, writes, scratch, one.step)
        inside = behind_found(in_memory(access, scop.arrays), one.awaited, scop.arrays)
        touched.append(in_branches(inside, one.branches, scop.arrays))
    compiled_once = tuple(made[one.name] for one in distinct)
    return CompiledKernels(compiled_once, tuple(launches), tuple(touched), tuple(schedules))


@dataclass(frozen=True)
class _Distinct:
    """A kernel that differs from all before it, and the key that it is kept by, if it is.

    sizes: what it takes for granted of those that it has to do with, by position in its signature.
    """

    name: str
    stored: StoredKernel
    sizes: tuple[SizeRange, ...]
    key: str = ""

    @property
    def can_move(self) -> bool:
        """Whether it can be compiled in another process, from which it comes back as it is kept."""
        return not self.stored.given and not self.stored.step


@dataclass(frozen=True)
class _Use:
    """The kernel of a launch, and what its sizes are called there, if otherwise."""

    kernel: str
    sizes: Mapping[str, str]


def _find_distinct(
    stored: Sequence[StoredKernel],
    scop: Scop,
    target: Target | CudaTarget,
    kept: KeptKernels | None,
) -> tuple[list[_Distinct], list[_Use]]:
    """The kernels that differ in more than names, and the use that each launch makes of one."""
    distinct: list[_Distinct] = []
    alike: dict[Hashable, list[_Distinct]] = {}
    uses = []
    for one in stored:
        needs = needs_in(scop.demands, one.branches)
        given = _check_given(one, scop, target) if one.given else NOTHING
        schedule, computed = one.sign(scop.arrays, given)
        others = {name for s in one.statements for name in list_sizes(s)}
        with assume(needed_ranges(needs)):
            signed = sign_sizes(computed, others)
        candidates = alike.setdefault((schedule, signed.signature, signed.said), [])
        found = (_use(other, one, signed.sizes) for other in candidates)
        use = next((use for use in found if use is not None), None)
        if use is None:
            made = _Distinct(f"k{len(distinct)}_{one.called}", one, signed.sizes)
            with assume_only(made.sizes):
                key = kept.key(one, (schedule, computed)) if kept else ""
            made = replace(made, key=key)
            candidates.append(made)
            distinct.append(made)
            use = _Use(made.name, {})
        uses.append(use)
    return distinct, uses


def _use(kernel: _Distinct, one: StoredKernel, sizes: Sequence[SizeRange]) -> _Use | None:
    """The use of a kernel for one that is signed alike; None if they differ all the same.

    Signatures leave out of domains what is assumed of sizes in any case, which the proof of
    launches does not.
    """
    pairs = zip(kernel.sizes, sizes, strict=True)
    names = {mine.name: other.name for mine, other in pairs if mine.name != other.name}
    if names and isinstance(find_renaming(kernel.stored.statements, one.statements, names), str):
        return None
    return _Use(kernel.name, names)


def _make(
    distinct: Sequence[_Distinct],
    scop: Scop,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    emit: Emit,
    kept: KeptKernels | None,
) -> dict[str, CompiledKernel]:
    """All kernels by name: those that are kept, and those that are compiled now."""
    made: dict[str, CompiledKernel] = {}
    missing = []
    for one in distinct:
        with assume_only(one.sizes):
            found = kept.find(one.key, one.name, one.stored, scop) if kept and one.key else None
        if found:
            made[one.name] = found
        else:
            missing.append(one)

    def compile(one: _Distinct) -> CompiledKernel:
        with assume_only(one.sizes):
            compiled = _compile(one.name, one.stored, scop, target, options, trace)
        if kept and one.key:
            kept.keep(one.key, compiled)
        return compiled

    def restore(one: _Distinct, content: bytes) -> CompiledKernel:
        with assume_only(one.sizes):
            return unpack(content, one.name, one.stored, scop)

    shared = [one for one in missing if one.can_move]
    rest = ((one, compile(one)) for one in missing if not one.can_move)
    processes = _count_processes(len(shared), target, options)
    with share_work(shared, compile, pack, restore, processes) as results:
        for compiled in made.values():
            emit(compiled)
        for one, compiled in trace.track("kernels", chain(results, rest), len(missing)):
            made[one.name] = compiled
            emit(compiled)
    return made


def _count_processes(kernels: int, target: Target | CudaTarget, options: Options) -> int:
    """How many share kernels: one alone has but a few of them, or writes what it does to a dump."""
    if isinstance(target, CudaTarget) or options.dump:
        return 1
    most = options.processes or available_cores()
    return max(1, min(most, MOST_PROCESSES, kernels // FEW_KERNELS))


def _compile(
    name: str,
    one: StoredKernel,
    scop: Scop,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, in the loop over steps that it is launched in."""
    with assume([one.step] if one.step else []):
        if isinstance(target, CudaTarget):
            return compile_for_cuda(name, one, scop, target, options, trace)
        return compile_for_cpu(name, one, scop, target, options, trace)


def _check_given(one: StoredKernel, scop: Scop, target: Target | CudaTarget) -> Made:
    """What a schedule that is given makes; IllegalSchedule if it does not fit its kernel."""
    try:
        if isinstance(target, CudaTarget):
            return find_made(one, scop.arrays)
        joined = join_rows(one, scop.arrays)
        seen = joined.kernel if joined else one
        seen.schedule.apply(initial_tree(seen.named.clusters))
        return NOTHING
    except IllegalSchedule as error:
        raise IllegalSchedule(f"the schedule of {show(one.given)}: {error}") from None


def _spell_schedule(compiled: CompiledKernel, one: StoredKernel) -> str:
    """The schedule of a launch in its own names."""
    named = one.counted if compiled.device else one.named
    return str(from_positions(compiled.directives, named, one.scheduled, compiled.made))


def _in_launch(elements: isl.Set, one: StoredKernel, use: _Use) -> isl.Set:
    """What a kernel touches with sizes as a call may have them, in the step of the loop around."""
    elements = among_sizes(rename_parameters(elements, use.sizes))
    if not one.step:
        return elements
    steps = (name for name in parameters_of(elements) if name.startswith(STEP))
    return rename_parameters(elements, dict.fromkeys(steps, one.step.name))


def _copies(statements: Sequence[Statement]) -> str:
    """What statements move if they compute nothing: "x -> x_padded"; else empty."""
    moved = []
    for s in statements:
        if s.reduction or not isinstance(s.value, Load):
            return ""
        moved.append(f"{s.value.array} -> {s.array}")
    return ", ".join(moved)
