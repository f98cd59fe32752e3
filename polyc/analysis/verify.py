"""The proof: what is printed computes what the scop says, and touches nothing else.

`verify_kernel` judges one kernel's loops, before they are unrolled and vectorised, by set algebra
on relations that are rebuilt from the loops alone; nothing is taken from the plan that made them.
`verify_program` judges the order of launches, `verify_arena` the memory that they share, and
`verify_barriers` which of them may run at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import islpy as isl

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.background import check_copies
from polyc.analysis.block_barriers import check_block_barriers
from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.legality import check_completeness, check_order
from polyc.analysis.locality import check_locals
from polyc.analysis.proof import Proof
from polyc.analysis.steps import by_loop, in_any_step, in_earlier_steps
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import Execution, compute_executions
from polyc.analysis.witness import illegal, show_first, show_first_pair
from polyc.codegen.loopnest import For, Kernel, walk_nodes
from polyc.codegen.program import Program
from polyc.memory.plan import Slot
from polyc.memory.storage import Storage
from polyc.scop.scop import Scop
from polyc.sizes import Step

Elements = dict[str, isl.Set]
"""Array -> elements, under the array's name."""


def verify_kernel(
    kernel: Kernel,
    scop: Scop,
    storages: Mapping[str, Storage],
    dependences: Dependences,
    parameters: Mapping[str, str],
) -> Proof:
    """Prove a kernel's loops right, or raise IllegalSchedule with a witness.

    `scop` is the cluster that the kernel executes and `dependences` are its own; `parameters` maps
    its arrays to the kernel's parameters, whose shapes are those of their `storages`. An array that
    is not in it lives in locals. Proven, in this order:

        completeness   every instance of every statement is executed exactly once
        order          no dependence runs backwards, or is carried by a loop that may not carry it
        accesses       every place is  storage . access . instance,  and in bounds
        initialised    every read of a private array comes after a write
        locals         private arrays keep their values
        copies         what is copied in the background has arrived where it is read
        barriers       threads of a block do not meet without one between, and all reach each
    """
    around = Surroundings(kernel, scop, storages, parameters)
    _check_parameters(around)
    executions: dict[str, list[Execution]] = {s.name: [] for s in scop.statements}
    for execution in compute_executions(kernel, scop):
        executions[execution.statement.name].append(execution)
    statements = check_completeness(kernel.name, scop, executions)
    ordered = check_order(kernel.name, executions, dependences)
    accesses = [
        access
        for runs in executions.values()
        for run in runs
        for access in compute_accesses(around, run)
    ]
    for source, array, reads in maps(dependences.uninitialised):
        if array in parameters:
            continue  # it may come from an earlier launch: `verify_program` looks
        rule = f"{source} reads {array} before it is written"
        raise illegal(f"kernel {kernel.name}", rule, show_first_pair(reads))
    check_copies(around, executions, dependences)
    barriers = 0
    if any(isinstance(n, For) and n.kind == "block" for n in walk_nodes(kernel.body)):
        barriers = check_block_barriers(kernel.body, Phases(around, accesses))
    kinds = [node.kind for node in walk_nodes(kernel.body) if isinstance(node, For)]
    return Proof(
        kernel=kernel.name,
        statements=statements,
        dependences=ordered,
        accesses=len(accesses),
        parallel_loops=sum(kind in ("parallel", "block", "thread") for kind in kinds),
        vector_loops=kinds.count("vector"),
        locals=check_locals(around, executions, accesses, dependences),
        barriers=barriers,
    )


def _check_parameters(around: Surroundings) -> None:
    """Parameters have the shape of what is stored in them, and hold one array each."""
    for array in around.parameters:
        param = around.param(array)
        assert param is not None
        stored = around.storages[array].shape
        if param.shape != stored:
            shapes = f"{list(param.shape)}, but {array} is stored as {list(stored)}"
            raise around.illegal(f"parameter {param.name} has shape {shapes}")
    if len(set(around.parameters.values())) < len(around.parameters):
        raise around.illegal("two arrays share a parameter")


@dataclass(frozen=True)
class LaunchAccess:
    """What one launch reads of earlier launches' results, and what it writes; by program array.

    `scratch` are arrays that no other launch touches, but that take memory which others may have.
    In a loop over steps the sets are those of step `step.name`, one of their parameters.
    """

    name: str
    reads: Mapping[str, isl.Set]  # A
    writes: Mapping[str, isl.Set]  # A
    scratch: frozenset[str] = frozenset()
    step: Step | None = None

    @property
    def arrays(self) -> frozenset[str]:
        """Everything that lies in memory."""
        return self.scratch | self.reads.keys() | self.writes.keys()


def verify_program(launches: Sequence[LaunchAccess], initialised: Collection[str]) -> int:
    """Every read of a launch is covered by earlier launches' writes; gives the number of reads.

    `initialised` are the arrays that exist beforehand: inputs, constants and states. Of a state,
    what is written in a call is read after that, or by the launch itself, whose own proof says in
    which order: `bind_states` leaves no other read of an element that is going to be overwritten.
    The program's outputs are covered as well if a last launch, the caller's, reads them in full.

    In a loop over steps, what an earlier step wrote counts only if no step writes it again: then it
    is the last value. All else must have been written earlier in the same step, and is lost behind
    the loop.
    """
    there = _Written(launches, initialised)
    checked = 0
    for step, group in by_loop(launches):
        if step is None:
            for launch in group:
                checked += there.check(launch, there.written)
                _add(there.written, _named(launch.writes))
            continue
        every = _unite(group)
        earlier = {a: in_earlier_steps(e, step) for a, e in every.items()}
        kept = {a for a in every if _is_kept(every[a], earlier[a], there.written.get(a))}
        now: Elements = {}
        for launch in group:
            known = {a: e for a, e in there.written.items() if a not in every or a in kept}
            _add(known, {a: e for a, e in earlier.items() if a in kept})
            _add(known, now)
            checked += there.check(launch, known)
            _add(now, _named(launch.writes))
        for array in every.keys() - kept:
            there.written.pop(array, None)
        _add(there.written, {a: in_any_step(every[a], step) for a in kept})
    return checked


class _Written:
    """What has been written so far; and of the arrays that exist beforehand, what ever is."""

    def __init__(self, launches: Sequence[LaunchAccess], initialised: Collection[str]) -> None:
        self.written: Elements = {}
        self._initialised = initialised
        self._changing: Elements = {}
        for step, group in by_loop(launches):
            for array, elements in _unite(group).items():
                if array in initialised:
                    every = in_any_step(elements, step) if step else elements
                    _add(self._changing, {array: every})

    def check(self, launch: LaunchAccess, known: Elements) -> int:
        """All reads of a launch are of elements that are known to be written; their number."""
        checked = 0
        writes = _named(launch.writes)
        for array, wanted in _named(launch.reads).items():
            if array in self._initialised and array not in self._changing:
                continue
            if array in self._changing:
                wanted = wanted.intersect(self._changing[array])
                if array in writes and launch.step is None:
                    wanted = wanted.subtract(writes[array])
            there = known.get(array, isl.Set.empty(wanted.space))
            if not wanted.is_subset(there):  # which isl answers where a difference takes minutes
                missing = show_first(wanted.subtract(there))
                raise illegal(f"launch {launch.name}", f"it reads {array} unwritten", missing)
            checked += 1
        return checked


def _is_kept(elements: isl.Set, earlier: isl.Set, before: isl.Set | None) -> bool:
    """Whether what a step writes was never written before: so that it stays what it is."""
    return bool(elements.is_disjoint(earlier) and (before is None or elements.is_disjoint(before)))


def _unite(launches: Iterable[LaunchAccess]) -> Elements:
    """All that they write."""
    total: Elements = {}
    for launch in launches:
        _add(total, _named(launch.writes))
    return total


def _named(sets: Mapping[str, isl.Set]) -> Elements:
    return {array: elements.set_tuple_name(array) for array, elements in sets.items()}


def _add(total: Elements, new: Elements) -> None:
    for array, elements in new.items():
        total[array] = total[array].union(elements).coalesce() if array in total else elements


def verify_arguments(program: Program, layouts: Mapping[str, Sequence[Storage]]) -> int:
    """Every argument of a launch is stored as the loops of its kernel take it to be.

    `layouts` gives, for a kernel, the storage of each parameter that its proof spoke of. A kernel
    that several launches share has been proven once, with the first one's arrays. Gives the number
    of arguments.
    """
    checked = 0
    for launch in program.launches:
        for array, layout in zip(launch.arguments, layouts[launch.kernel], strict=True):
            stored = program.arrays[array].storage
            if stored.shape != layout.shape or not _same_map(stored.map, layout.map):
                rule = (
                    f"{array} is stored by {stored.map} in {list(stored.shape)}, "
                    f"but was proven as {layout.map} in {list(layout.shape)}"
                )
                raise illegal(f"launch {launch.kernel}", rule)
            checked += 1
    return checked


def _same_map(one: isl.MultiAff, other: isl.MultiAff) -> bool:
    """Whether two storage maps are equal but for the names of what they map."""
    parts = isl.dim_type.in_, isl.dim_type.out
    plain = [m.reset_tuple_id(parts[0]).reset_tuple_id(parts[1]) for m in (one, other)]
    return bool(plain[0].plain_is_equal(plain[1]))


def verify_arena(slots: Sequence[Slot], size: int, launches: Sequence[LaunchAccess] = ()) -> int:
    """Every slot lies in the arena of `size` bytes, and no two overlap while both are live.

    Gives the number of slots. A slot is live from launch `first` to launch `last`, both included,
    and must be so in all `launches` that touch it; in a loop over steps, in the whole of it.
    """
    where = {slot.array: slot for slot in slots}
    start = 0
    for step, group in by_loop(launches):
        for k, launch in enumerate(group, start):
            begin, end = (start, start + len(group) - 1) if step else (k, k)
            for slot in (where[a] for a in launch.arrays if a in where):
                if slot.first > begin or slot.last < end:
                    raise illegal("arena", f"{_extent(slot)} is not live in launch {k}")
        start += len(group)
    live: list[Slot] = []
    for slot in sorted(slots, key=lambda s: s.first):
        if not slot.region and (slot.offset < 0 or slot.offset + slot.bytes > size):
            rule = f"{_extent(slot)} lies outside of its {size} bytes"
            raise illegal("arena", rule)
        live = [other for other in live if other.last >= slot.first]
        for other in live:
            if _common_bytes(slot, other):
                rule = f"{_extent(other)} and {_extent(slot)} overlap in launch {slot.first}"
                raise illegal("arena", rule)
        live.append(slot)
    return len(slots)


def verify_barriers(
    launches: Sequence[LaunchAccess], slots: Sequence[Slot], barriers: Collection[int]
) -> int:
    """Launches with no barrier between them may run at the same time, in any order.

    `barriers` are the positions of the launches that have one in front. Bernstein's conditions for
    every pair without a barrier between: neither writes an element that the other touches, and no
    array of one lies where another array of the other does. In a loop over steps the launches
    behind its last barrier meet those in front of its first in the next step, or any later one if
    there is no barrier. Gives the number of pairs.
    """
    where = {slot.array: slot for slot in slots}
    pairs = first = 0
    for k, launch in enumerate(launches):
        first = k if k in barriers else first
        for other in launches[first:k]:
            _check_apart(launch, other, where)
            pairs += 1
    start = 0
    for step, group in by_loop(launches):
        end = start + len(group)
        inside = [b for b in barriers if start <= b < end]
        for other in group[max(inside, default=start) - start :] if step else ():
            for launch in group[: min(inside, default=end) - start]:
                _check_apart(launch, _in_earlier_steps(other), where)
                pairs += 1
        start = end
    return pairs


def _check_apart(launch: LaunchAccess, other: LaunchAccess, where: Mapping[str, Slot]) -> None:
    """Bernstein's conditions for two launches."""
    together = f"launches {other.name} and {launch.name}"
    rule = "no barrier stands between them, but"
    for some, others in (
        (launch.writes, other.writes),
        (launch.writes, other.reads),
        (launch.reads, other.writes),
    ):
        for array in some.keys() & others.keys():
            common = some[array].set_tuple_name(array)
            common = common.intersect(others[array].set_tuple_name(array))
            if not common.is_empty():
                raise illegal(together, f"{rule} one writes what both touch", show_first(common))
    for a, b in product(launch.arrays, other.arrays):
        if a != b and a in where and b in where and _common_bytes(where[a], where[b]):
            shared = f"{_extent(where[a])} and {_extent(where[b])} overlap"
            raise illegal(together, f"{rule} {shared}")


def _in_earlier_steps(launch: LaunchAccess) -> LaunchAccess:
    """The launch as any earlier step made it."""
    step = launch.step
    assert step is not None
    sets = [
        {a: in_earlier_steps(elements, step) for a, elements in accesses.items()}
        for accesses in (launch.reads, launch.writes)
    ]
    return replace(launch, reads=sets[0], writes=sets[1])


def _common_bytes(one: Slot, other: Slot) -> range:
    if one.region != other.region:
        return range(0)
    end = min(one.offset + one.bytes, other.offset + other.bytes)
    return range(max(one.offset, other.offset), end)


def _extent(slot: Slot) -> str:
    return f"{slot.array} at [{slot.offset}, {slot.offset + slot.bytes})"
