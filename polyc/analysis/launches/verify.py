"""Proof of a program: its launches, one after another, compute what the scop says.

Of each kernel it is proven what its loops execute (`verify.py`). Here every launch is held against
that: its own statements must be those of the kernel, with its own arrays for the kernel's. Then all
launches together must execute the scop, and find what they read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.conflicts import first_reads, touches_by_array
from polyc.analysis.launches.access import (
    LaunchAccess,
    behind_found,
    in_memory,
    verify_program,
)
from polyc.analysis.launches.branches import (
    in_branches,
    in_calls,
    verify_conditions,
    where_admitted,
)
from polyc.analysis.launches.offsets import verify_offsets
from polyc.analysis.launches.partition import Part, verify_partition
from polyc.analysis.launches.storages import same_storage, verify_storages
from polyc.analysis.proof import counted
from polyc.analysis.same import find_renaming
from polyc.analysis.witness import illegal
from polyc.loopnest.prototype import Prototype
from polyc.memory.storage import Storage, rename_storage
from polyc.poly.boxes import box
from polyc.poly.coalesce import unite
from polyc.poly.parameters import among_sizes, follows_from_told, in_own_sizes
from polyc.program.program import Launch, Program
from polyc.scop.scop import Array, Scop
from polyc.types.branches import needs_in
from polyc.types.other_names import rename_extent, rename_size
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import SizeRange, Step, assume, assumed_ranges


@dataclass(frozen=True)
class Judged:
    """A kernel whose loops have been proven, and what they were proven to execute.

    stated: what the launch says that the kernel was made for; kept: the same, with rows where the
    kernel keeps them; storages: of its parameters, which have the names of the arrays of `kept`;
    assumed: all that was, of sizes, when it was proven.
    """

    kernel: Prototype
    stated: Scop
    kept: Scop
    storages: Mapping[str, Storage]
    assumed: tuple[SizeRange, ...]


@dataclass(frozen=True)
class Launched:
    """What was proven of launches: what each of them touches in memory, and facts for a report."""

    touched: tuple[LaunchAccess, ...]
    facts: tuple[str, ...]


def verify_launches(
    program: Program,
    scop: Scop,
    arrays: Mapping[str, Array],
    parts: Sequence[Part],
    judged: Mapping[str, Judged],
    await_constants: Callable[[], None] = lambda: None,
) -> Launched:
    """Prove the launches of a program right together, or raise IllegalSchedule.

    `scop` is the model before it is cut into kernels; `arrays` are those of `parts`, the statements
    of each launch; `await_constants` returns when constants are in place, which others see to.
    Proven, in this order:

        statements   each is in one launch, in an order that keeps every dependence
        arguments    each launch is its kernel, on the arrays of its own statements, stored alike
        offsets      what constants add to coordinates is in the range that the kernel takes it for
        reads        what a launch reads has been written; outputs are written in full
        storages     elements lie apart; constants and the caller's arrays lie where they should
    """
    verify_partition(scop, parts, arrays)
    touched: list[LaunchAccess] = []
    inside: list[Set[str]] = []
    first: dict[str, tuple[list[str], LaunchAccess]] = {}  # kernel -> its first launch
    arguments = offsets = 0
    for launch, part in zip(program.launches, parts, strict=True):
        bound = _check_binding(program, launch, part, judged[launch.kernel], arrays)
        offsets += verify_offsets(launch.kernel, part.statements, arrays)
        _check_assumed(program, launch, judged[launch.kernel])
        alike = not launch.sizes and part.step is None  # nothing but arrays has other names
        if alike and launch.kernel in first:
            access = _with_arrays(*first[launch.kernel], bound)
        else:
            access = _access(launch.kernel, part, frozenset(bound), arrays)
        if alike:
            first.setdefault(launch.kernel, (bound, access))
        access = in_branches(in_memory(access, arrays), part.branches, arrays)
        sizes = program.awaited(launch, judged[launch.kernel].kernel)
        awaited = [program.found[size] for size in sizes]
        touched.append(behind_found(access, awaited, arrays))
        arguments += len(bound)
        params = judged[launch.kernel].kernel.params
        inside.append({a for a, param in zip(bound, params, strict=True) if param.inside})
    _check_kept_inside(parts, touched, inside, scop, arrays)
    verify_conditions(touched)
    existing = {n for n, a in arrays.items() if a.kind in ("input", "state", "constant")}
    calls = where_admitted(program.demands)
    reads = verify_program([in_calls(one, calls) for one in (*touched, _caller(scop))], existing)
    await_constants()
    stored = verify_storages(program, scop, arrays)
    statements = counted(len(scop.statements), "statement")
    facts = (
        f"{counted(len(parts), 'launch', 'launches')}: {statements} of the model, each once and in "
        f"order, {counted(reads, 'read')} of what has been written before, "
        f"{counted(arguments, 'argument')} and {counted(stored, 'array')} stored as they are taken"
    )
    if offsets:
        facts += f", {counted(offsets, 'table')} of positions in bounds"
    return Launched(tuple(touched), (facts,))


def _check_binding(
    program: Program, launch: Launch, part: Part, judged: Judged, arrays: Mapping[str, Array]
) -> list[str]:
    """The arrays of a launch, by parameter: those of its statements, where the kernel has its own.

    kernel  b = exp(a)        launch of  d = exp(c)     ->     gives c for a, and d for b
    """
    where, sizes = f"launch {launch.kernel}", launch.sizes
    renaming = find_renaming(judged.stated.statements, part.statements, sizes)
    if isinstance(renaming, str):
        raise illegal(where, f"its statements are not those of the kernel: {renaming}")
    params = judged.kernel.params
    if len(launch.arguments) != len(params):
        raise illegal(where, f"{len(launch.arguments)} arguments for {len(params)} parameters")
    if launch.step != part.step:
        raise illegal(where, "it is in another loop than its statements")
    if launch.branches != part.branches:
        raise illegal(where, "it is in another branch than its statements")
    bound = []
    for argument, param in zip(launch.arguments, params, strict=True):
        stored = program.arrays.get(argument)
        wanted = renaming.arrays.get(param.name)
        if stored is None or stored.source != wanted:
            rule = f"parameter {param.name} is given {argument}, but stands for {wanted}"
            raise illegal(where, rule)
        mine, other = arrays[stored.source], judged.kept.arrays[param.name]
        shape = tuple(rename_extent(extent, sizes) for extent in other.shape)
        if (mine.dtype, mine.shape) != (other.dtype, shape):
            rule = f"{mine.dtype}{list(mine.shape)}, not {other.dtype}{list(shape)}"
            raise illegal(where, f"{argument} is {rule}, as the kernel takes it")
        layout = rename_storage(judged.storages[param.name], sizes)
        if stored.dtype != param.dtype or not same_storage(stored.storage, layout):
            rule = (
                f"{argument} is stored by {stored.storage.map} in {list(stored.storage.shape)}, "
                f"but was proven as {layout.map} in {list(layout.shape)}"
            )
            raise illegal(where, rule)
        if param.writes and mine.kind in ("input", "constant"):
            raise illegal(where, f"it writes {argument}, which is a {mine.kind} of the model")
        bound.append(stored.source)
    return bound


def _check_assumed(program: Program, launch: Launch, judged: Judged) -> None:
    """A kernel is launched only where all holds that was assumed of sizes when it was proven.

    What was assumed of its sizes must hold of those that the launch has in their place.

    That is what holds in every call of the model, and what a driver has seen to before it comes to
    the branches of the launch.
    """
    where = f"launch {launch.kernel}"
    with assume(needed_ranges(needs_in(program.demands, launch.branches))):
        there = {size.name: size for size in assumed_ranges()}
        for one in judged.assumed:
            if isinstance(one, Step):
                continue  # its kernel is in the loop that it is launched in: `_check_binding`
            size = rename_size(one, launch.sizes)
            known = there.get(size.name)
            if known is None or not _is_within(known, size):
                raise illegal(
                    where, f"its kernel is for calls in which {size}, and it is in others"
                )
            for need in size.needs:
                if need not in known.needs and not follows_from_told(need):
                    rule = f"its kernel is for calls in which {need} is not negative"
                    raise illegal(where, f"{rule}, and it is in others")


def _is_within(known: SizeRange, size: SizeRange) -> bool:
    """Whether all that is assumed of a size is known of it; what is needed of it is another matter.

    A hint means nothing.
    """
    ends, wanted = known.ends(math.inf), size.ends(math.inf)
    said = (known.next, size.next), (known.same, size.same), (known.most, size.most)
    return (
        wanted[0] <= ends[0]
        and ends[1] <= wanted[1]
        and all(other is None or other == mine for mine, other in said)
    )


def _check_kept_inside(
    parts: Sequence[Part],
    touched: Sequence[LaunchAccess],
    inside: Sequence[Set[str]],
    scop: Scop,
    arrays: Mapping[str, Array],
) -> None:
    """What a launch writes and is not given lives inside of it: nobody else ever reads that.

    So does what it is given as room for its own, `inside`, where not all may arrive.
    """
    users: dict[str, set[int]] = {}
    for k, part in enumerate(parts):
        for s in part.statements:
            for array in (s.array, *(load.array for load in s.loads)):
                users.setdefault(array, set()).add(k)
    for k, (part, access, own) in enumerate(zip(parts, touched, inside, strict=True)):
        for array in {s.array for s in part.statements} - (access.arrays - own):
            outside = arrays[array].kind != "temporary" or array in scop.outputs
            if outside or users[array] != {k}:
                how = "for itself" if array in own else "without being given it"
                rule = f"it writes {array} {how}, and others read that"
                raise illegal(f"launch {part.launch}", rule)


def _access(
    name: str, part: Part, bound: frozenset[str], arrays: Mapping[str, Array]
) -> LaunchAccess:
    """What a launch touches of the arrays that it is given; all others live inside.

    It is computed in terms of each statement's own sizes, and then said of those of a call.
    """
    read: dict[str, list[isl.Set]] = {}
    written: dict[str, list[isl.Set]] = {}
    own = [replace(s, domain=in_own_sizes(s.domain)) for s in part.statements]
    for array, touches in touches_by_array(own, {a: arrays[a] for a in bound}).items():
        for touch in touches:
            found = written if touch.writes else read
            elements = touch.elements if touch.writes else first_reads(touch, touches)
            if not elements.is_empty():
                found.setdefault(array, []).append(elements.range())
    reads, writes = (
        {array: among_sizes(unite(parts)) for array, parts in found.items()}
        for found in (read, written)
    )
    scratch = bound - reads.keys() - writes.keys()
    return LaunchAccess(name, reads, writes, scratch, part.step)


def _with_arrays(bound: Sequence[str], access: LaunchAccess, others: Sequence[str]) -> LaunchAccess:
    """What another launch of the kernel touches, which is given other arrays in the same order.

    Both have been found to be the kernel's statements but for the names of arrays, one to one.
    """
    names = dict(zip(bound, others, strict=True))
    reads, writes = (
        {names[array]: elements.set_tuple_name(names[array]) for array, elements in sets.items()}
        for sets in (access.reads, access.writes)
    )
    scratch = frozenset(names[array] for array in access.scratch)
    return replace(access, reads=reads, writes=writes, scratch=scratch)


def _caller(scop: Scop) -> LaunchAccess:
    """The caller as a last launch, who reads every output in full."""
    whole = {name: box(name, scop.arrays[name].shape) for name in scop.outputs}
    reads = {name: among_sizes(elements) for name, elements in whole.items()}
    return LaunchAccess("caller", reads, {})
