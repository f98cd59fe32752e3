"""Proof of a driver: it makes the launches of the program, on their arrays, where these lie.

What is judged is the driver as data (`program/driver_nest.py`), of which its text is a print.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyc.analysis.launches.found import verify_find, verify_found
from polyc.analysis.witness import illegal
from polyc.errors import IllegalSchedule
from polyc.loopnest.prototype import Prototype
from polyc.program.driver_nest import (
    Address,
    Call,
    CopyOut,
    Decide,
    DriverNode,
    Find,
    Repeat,
    Wait,
    When,
)
from polyc.program.plan import Plan, byte_size
from polyc.program.program import Launch, Program
from polyc.types.branches import Branch, Branches, needs_behind
from polyc.types.found import found_in
from polyc.types.ranges import STEP, Step


def verify_driver(
    nest: Sequence[DriverNode], program: Program, plan: Plan, *, threads: bool = True
) -> frozenset[int]:
    """Prove what a driver does right, or raise IllegalSchedule.

    Every launch is made once, in order, in its loop over steps and its branches, with the addresses
    of its arrays and the sizes that its kernel takes; each decision reads its condition; a size
    that is found is read, and checked, before what depends on it; every
    output ends up where the caller wants it. With `threads` what is copied there is behind a
    barrier; else all is done in order.

    Gives the positions of the launches that threads wait in front of: in each step, in a loop.
    """
    kernels = {k.name: k for k in program.kernels}
    walk = _Walk(program, kernels, _list_places(program, plan), threads)
    walk.visit(nest, None, ())
    if walk.made < len(program.launches):
        raise _wrong(f"launch {walk.made} is not made")
    verify_found(program, walk.found)
    for position, (_, array) in enumerate(program.outputs, len(program.inputs)):
        home = program.in_place.get(position, position)
        if walk.places[array] != Address("io", home) and position not in walk.copied:
            raise _wrong(f"output {position} is not copied from where {array} is")
    return frozenset(walk.barriers)


def _wrong(rule: str) -> IllegalSchedule:
    return illegal("driver", rule)


def _list_places(program: Program, plan: Plan) -> dict[str, Address]:
    """Where arrays are: the caller's in his, in the first place of those that have several."""
    places = {name: Address("weights", offset) for name, offset in plan.constants.items()}
    for slot in plan.slots:
        where = Address("region", slot.region) if slot.region else Address("arena", slot.offset)
        if places.setdefault(slot.array, where) != where:
            raise _wrong(f"{slot.array} is in two places")
    callers = [name for _, name in (*program.inputs, *program.outputs)]
    for position, name in reversed(list(enumerate(callers))):
        if name not in plan.constants:
            places[name] = Address("io", position)
    others = (name for name in program.arrays if program.home(name) != name)
    return places | {name: places[program.home(name)] for name in others}


@dataclass
class _Walk:
    """How far a driver has come.

    waited: whether a barrier stands behind all that was so far; parted: whether one is due, because
    a branch has ended; decided: the branches around each decision, and its condition; demanding:
    the reasons of those that may end the call; found: the sizes that are found.
    """

    program: Program
    kernels: Mapping[str, Prototype]
    places: Mapping[str, Address]
    threads: bool
    made: int = 0
    waited: bool = False
    parted: bool = False
    decided: dict[int, tuple[Branches, str]] = field(default_factory=dict)
    demanding: set[int] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    barriers: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)

    def visit(self, nodes: Sequence[DriverNode], step: Step | None, around: Branches) -> None:
        for node in nodes:
            match node:
                case Wait():
                    self.waited, self.parted = True, False
                case Decide():
                    self._decide(node, step, around)
                case Find():
                    self._find(node, step, around)
                case When():
                    self._when(node, step, around)
                case Call():
                    self._call(node, step, around)
                    self.waited = False
                case Repeat(inner, body):
                    if step:
                        raise _wrong(f"loop {inner.name} is inside of another")
                    self.waited = False  # in front of the loop: not in each step
                    self._repeat(inner, body, around)
                    self.waited = False
                case CopyOut():
                    self._copy(node, step)

    def _decide(self, node: Decide, step: Step | None, around: Branches) -> None:
        """A decision of the next launch, by what is there; all threads wait before and after."""
        where = f"decision {node.number}"
        told = len(self.decided) + len(self.found)
        if step or node.number != told:
            raise _wrong(f"{where} is made in a loop, or where decision {told} is due")
        if self.threads and not self.waited:
            raise _wrong(f"{where} is made before all threads have come to it")
        inside = self._due().branches
        if inside[: len(around)] != around or len(inside) == len(around):
            raise _wrong(f"{where} decides nothing about launch {self.made}")
        array = inside[len(around)].condition
        stored = self.program.arrays[array]
        if node.source != self.places[array] or stored.dtype != np.bool_:
            raise _wrong(f"{where} is not read from {array}")
        if not stored.storage.is_row_major or math.prod(stored.storage.shape) != 1:
            raise _wrong(f"{where} is read from {array}, which is not one boolean")
        wanted = needs_behind(self.program.demands, around, array)
        if node.needs != wanted:
            raise _wrong(f"{where} does not see to what the branches behind it need")
        if any(wanted):
            if node.position in self.demanding or node.position >= len(self.program.demands):
                raise _wrong(f"{where} fails for another's reason")
            self.demanding.add(node.position)
        self.decided[node.number] = around, array

    def _find(self, node: Find, step: Step | None, around: Branches) -> None:
        """A size that the call finds: in every call, once, when all threads have come to it."""
        if step or around:
            raise _wrong(f"size {node.size} is read in a loop, or in a branch")
        if self.threads and not self.waited:
            raise _wrong(f"size {node.size} is read before all threads have come to it")
        told = len(self.decided) + len(self.found)
        verify_find(node, self.program, self.places, self.made, self.found, told)
        self.found.add(node.size)

    def _when(self, node: When, step: Step | None, around: Branches) -> None:
        """A branch, with a barrier in front of it whichever is taken."""
        where = f"a branch of decision {node.number}"
        if step or node.number not in self.decided:
            raise _wrong(f"{where} is in a loop, or stands before the decision")
        outer, condition = self.decided[node.number]
        if outer != around:
            raise _wrong(f"{where} stands where that is not made")
        if self.threads and not self.waited:
            raise _wrong(f"{where} begins before all threads have come to it")
        self.visit(node.body, None, (*around, Branch(condition, node.holds)))
        self.waited, self.parted = False, True

    def _due(self) -> Launch:
        launches = self.program.launches
        if self.made == len(launches):
            raise _wrong("it goes on behind its last launch")
        return launches[self.made]

    def _repeat(self, step: Step, body: Sequence[DriverNode], around: Branches) -> None:
        """All launches of a loop over steps: done in two loops, steps would not follow steps."""
        first = self.made
        self.visit(body, step, around)
        beside = (*self.program.launches[:first][-1:], *self.program.launches[self.made :][:1])
        if any(launch.step == step for launch in beside):
            raise _wrong(f"loop {step.name} does not hold all launches that are repeated in it")

    def _call(self, call: Call, step: Step | None, around: Branches) -> None:
        """The next launch, as the program has it."""
        launches, where = self.program.launches, f"launch {call.position}"
        if call.position != self.made or self.made == len(launches):
            raise _wrong(f"{where} is made where launch {self.made} is due")
        launch = launches[self.made]
        if launch.step != step:
            raise _wrong(f"{where} is not in the loop over steps that it belongs to")
        if launch.branches != around:
            raise _wrong(f"{where} is not in the branches that it belongs to")
        if self.threads and self.parted:
            raise _wrong(f"{where} follows a branch that threads may still be in")
        kernel = self.kernels[launch.kernel]
        if call.kernel != kernel.name or call.sizes != _sizes(kernel, launch):
            raise _wrong(f"{where} calls {call.kernel} with {list(call.sizes)}")
        missing = self.program.awaited(launch, kernel) - self.found
        if missing:
            raise _wrong(f"{where} is made before {min(missing)} is found")
        wanted = tuple(self.places.get(array) for array in launch.arguments)
        if call.arguments != wanted:
            pairs = zip(launch.arguments, wanted, call.arguments, strict=False)
            wrong = next((a for a, place, given in pairs if place != given), "an array")
            raise _wrong(f"{where} is not given the place of {wrong}")
        if self.waited and self.threads:
            self.barriers.add(self.made)
        self.made += 1

    def _copy(self, copy: CopyOut, step: Step | None) -> None:
        """An output that is there, brought to the caller in full."""
        position, where = copy.position - len(self.program.inputs), f"output {copy.position}"
        if step or self.made < len(self.program.launches) or (self.threads and not self.waited):
            raise _wrong(f"{where} is copied before it is there")
        if not 0 <= position < len(self.program.outputs):
            raise _wrong(f"{where} is none of the caller's")
        _, array = self.program.outputs[position]
        size = byte_size(self.program.arrays[array])
        if not found_in([size]) <= self.found:
            raise _wrong(f"{where} is copied before its size is found")
        if copy.source != self.places[array] or copy.bytes != size:
            raise _wrong(f"{where} is not copied from {array}, or not all of it")
        self.copied.add(copy.position)


def _sizes(kernel: Prototype, launch: Launch) -> tuple[str, ...]:
    """What a launch tells its kernel: the sizes, and the number of the step that it is in."""
    step, names = launch.step, launch.sizes
    return tuple(
        step.name if step and name.startswith(STEP) else names.get(name, name)
        for name in kernel.sizes
    )
