"""What a driver does, as plain data: launches with addresses, barriers, loops, branches, copies.

    conv(io[0], weights + 0, arena + 0)
    wait
    for step_rnn in 0 .. 16:
      wait
      cell(arena + 0, arena + 6400; step_rnn)
    wait
    decide 0 by arena + 64
    when 0: large(arena + 0, io[1])
    wait
    when not 0: small(arena + 0, io[1])
    wait
    copy io[2] from io[0], 24 bytes

The text of a driver is this, printed node by node. So the proof of it, in
`analysis/launches/driver.py`, is one of what runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from polyc.errors import ShapeError
from polyc.loopnest.prototype import Prototype
from polyc.program.plan import Plan, byte_size
from polyc.program.program import Launch, Program
from polyc.types.branches import Branches
from polyc.types.ranges import STEP, Step
from polyc.types.sizes import Extent

Base = Literal["io", "weights", "arena", "region"]


@dataclass(frozen=True)
class Address:
    """A place in memory: array `number` of the caller's; or so many bytes into the weights or the
    arena; or the beginning of region `number` of the arena, which depends on sizes."""

    base: Base
    number: int


@dataclass(frozen=True)
class Call:
    """Launch `position` of the program: a kernel, the addresses of its arrays, and its sizes."""

    position: int
    kernel: str
    arguments: tuple[Address, ...]
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wait:
    """All threads wait until all before is done."""


@dataclass(frozen=True)
class CopyOut:
    """So many bytes to array `position` of the caller's."""

    position: int
    source: Address
    bytes: Extent


@dataclass(frozen=True)
class Repeat:
    """Nodes that are executed for each step in turn."""

    step: Step
    body: tuple[DriverNode, ...]


@dataclass(frozen=True)
class Decide:
    """One thread reads a boolean and tells all, who wait: decision `number` of the driver."""

    number: int
    source: Address


@dataclass(frozen=True)
class When:
    """Nodes that are executed if decision `number` is `holds`."""

    number: int
    holds: bool
    body: tuple[DriverNode, ...]


DriverNode = Call | Wait | CopyOut | Repeat | Decide | When


def walk(node: DriverNode) -> Iterator[DriverNode]:
    """A node and all inside of it."""
    yield node
    if isinstance(node, Repeat | When):
        for inner in node.body:
            yield from walk(inner)


def count_decisions(nest: Sequence[DriverNode]) -> int:
    """How many decisions a driver makes."""
    return sum(isinstance(node, Decide) for outer in nest for node in walk(outer))


def make_driver(program: Program, plan: Plan, barriers: Collection[int]) -> tuple[DriverNode, ...]:
    """What the driver of a program does, by a plan of its memory.

    `barriers` are the positions of the launches that a barrier stands in front of, in each step of
    a loop; where branches begin, or others than before, all wait in front of them. Raises
    ShapeError for an output that is not stored as the caller takes it.
    """
    places = find_places(program, plan)
    maker = _Maker({k.name: k for k in program.kernels}, places, barriers)
    nodes = maker.make(list(enumerate(program.launches)), ())
    copies = list(_copies(program, places))
    return (*nodes, *([Wait()] if copies else []), *copies)


@dataclass
class _Maker:
    """Makes the nodes of launches; `decided`: the numbers of the decisions so far."""

    kernels: Mapping[str, Prototype]
    places: Mapping[str, Address]
    barriers: Collection[int]
    decided: dict[tuple[Branches, str], int] = field(default_factory=dict)

    def make(self, launches: Sequence[tuple[int, Launch]], around: Branches) -> list[DriverNode]:
        """The nodes of launches with their positions, all in the branches `around`, or in more."""
        depth = len(around)
        nodes: list[DriverNode] = []
        for inside, group in groupby(launches, key=lambda pair: pair[1].branches[: depth + 1]):
            if len(inside) == depth:
                nodes += self._make_steps(group)
                continue
            condition = inside[-1].condition
            nodes += [] if nodes and isinstance(nodes[-1], Wait) else [Wait()]
            number = self.decided.get((around, condition), len(self.decided))
            if number == len(self.decided):
                self.decided[around, condition] = number
                nodes.append(Decide(number, self.places[condition]))
            first, *rest = self.make(list(group), inside)
            body = rest if isinstance(first, Wait) else [first, *rest]
            nodes.append(When(number, inside[-1].holds, tuple(body)))
        return nodes

    def _make_steps(self, launches: Iterable[tuple[int, Launch]]) -> Iterator[DriverNode]:
        """Launches in order, those in a loop over steps in one."""
        for step, group in groupby(launches, key=lambda pair: pair[1].step):
            called: list[DriverNode] = []
            for position, launch in group:
                called += [Wait()] if position in self.barriers else []
                sizes = self.kernels[launch.kernel].sizes
                called.append(_call(position, launch, sizes, self.places))
            yield from [Repeat(step, tuple(called))] if step else called


def find_places(program: Program, plan: Plan) -> dict[str, Address]:
    """Where every array of a program is."""
    places = {
        s.array: Address("region", s.region) if s.region else Address("arena", s.offset)
        for s in plan.slots
    }
    places |= {n: Address("weights", offset) for n, offset in plan.constants.items()}
    bound = [name for _, name in (*program.inputs, *program.outputs)]
    for position, name in enumerate(bound):
        # An output that is also an input, a constant or an earlier output keeps its first place.
        places.setdefault(name, Address("io", position))
    others = (name for name in program.arrays if program.home(name) != name)
    return places | {name: places[program.home(name)] for name in others}


def _call(
    position: int, launch: Launch, sizes: Collection[str], places: Mapping[str, Address]
) -> Call:
    step = launch.step
    told = tuple(step.name if step and name.startswith(STEP) else name for name in sizes)
    return Call(position, launch.kernel, tuple(places[a] for a in launch.arguments), told)


def _copies(program: Program, places: Mapping[str, Address]) -> Iterator[CopyOut]:
    """The outputs whose array lives elsewhere.

    So it is where the graph returns an input, a constant, or one array twice.
    """
    for position, (spec, name) in enumerate(program.outputs, len(program.inputs)):
        array = program.arrays[name]
        if not array.storage.is_row_major or len(array.storage.shape) != len(spec.shape):
            raise ShapeError(
                f"output {spec.name!r} of shape {list(spec.shape)} is stored as "
                f"{list(array.storage.shape)}; outputs must be stored row-major"
            )
        if places[name] != Address("io", position) and position not in program.in_place:
            yield CopyOut(position, places[name], byte_size(array))
