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
    find size_found_x by io[3]: 0 to 12
    keep(arena + 0, io[1]; size_found_x)
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
from polyc.types.branches import Branches, list_demanding, needs_behind
from polyc.types.found import found_in
from polyc.types.ranges import SizeRange, Step
from polyc.types.sizes import Extent, Size

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
    """One thread reads a boolean and tells all, who wait: decision `number` of the driver.

    needs: what must not be negative where it holds, and where it does not; else the call ends, for
    reason `position` of those that are none of a launch's and none of a size's that is found.
    """

    number: int
    source: Address
    needs: tuple[tuple[Size, ...], tuple[Size, ...]] = ((), ())
    position: int = 0


@dataclass(frozen=True)
class When:
    """Nodes that are executed if decision `number` is `holds`."""

    number: int
    holds: bool
    body: tuple[DriverNode, ...]


@dataclass(frozen=True)
class Find:
    """One thread reads a size, checks it, and tells all, who wait.

    number: among decisions and sizes that are found; position: among the latter. A call ends where
    the size is not 0 to `most`, or where one of `needs` is negative.
    """

    number: int
    position: int
    size: str
    source: Address
    most: Extent
    needs: tuple[Size, ...]


DriverNode = Call | Wait | CopyOut | Repeat | Decide | When | Find


def walk(node: DriverNode) -> Iterator[DriverNode]:
    """A node and all inside of it."""
    yield node
    if isinstance(node, Repeat | When):
        for inner in node.body:
            yield from walk(inner)


def count_told(nest: Sequence[DriverNode]) -> int:
    """How many decisions and sizes the threads of a driver tell one another."""
    return sum(isinstance(node, Decide | Find) for outer in nest for node in walk(outer))


def make_driver(program: Program, plan: Plan, barriers: Collection[int]) -> tuple[DriverNode, ...]:
    """What the driver of a program does, by a plan of its memory.

    `barriers` are the positions of the launches that a barrier stands in front of, in each step of
    a loop; where branches begin, or others than before, all wait in front of them. Sizes are found
    in front of the first launch that needs them, or of the loop or the branch that it is in. Raises
    ShapeError for an output that is not stored as the caller takes it.
    """
    places = find_places(program, plan)
    maker = _Maker(program, {k.name: k for k in program.kernels}, places, barriers)
    nodes = maker.make(list(enumerate(program.launches)), ())
    nodes += maker.find(program.found, nodes)  # what no launch needs the caller is told
    copies = list(_copies(program, places))
    return (*nodes, *([Wait()] if copies else []), *copies)


@dataclass
class _Maker:
    """Makes the nodes of launches.

    decided: the numbers of the decisions so far; found: the sizes that are found so far.
    """

    program: Program
    kernels: Mapping[str, Prototype]
    places: Mapping[str, Address]
    barriers: Collection[int]
    decided: dict[tuple[Branches, str], int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)

    def make(self, launches: Sequence[tuple[int, Launch]], around: Branches) -> list[DriverNode]:
        """The nodes of launches with their positions, all in the branches `around`, or in more."""
        depth = len(around)
        nodes: list[DriverNode] = []
        for inside, each in groupby(launches, key=lambda pair: pair[1].branches[: depth + 1]):
            group = list(each)
            if len(inside) == depth:
                self._add_steps(nodes, group)
                continue
            nodes += self._await(group, nodes)
            condition = inside[-1].condition
            nodes += _wait_behind(nodes)
            told = len(self.decided) + len(self.found)
            number = self.decided.get((around, condition), told)
            if number == told:
                self.decided[around, condition] = number
                nodes.append(self._decide(number, around, condition))
            first, *rest = self.make(group, inside)
            body = rest if isinstance(first, Wait) else [first, *rest]
            nodes.append(When(number, inside[-1].holds, tuple(body)))
        return nodes

    def _decide(self, number: int, around: Branches, condition: str) -> Decide:
        """A decision, and what the branches that it leads to need."""
        demands = self.program.demands
        needs = needs_behind(demands, around, condition)
        position = list_demanding(demands).index((around, condition)) if any(needs) else 0
        return Decide(number, self.places[condition], needs, position)

    def _add_steps(self, nodes: list[DriverNode], launches: list[tuple[int, Launch]]) -> None:
        """Add launches in order, those in a loop over steps in one."""
        for step, each in groupby(launches, key=lambda pair: pair[1].step):
            group = list(each)
            called: list[DriverNode] = []
            if step:
                nodes += self._await(group, nodes)
            for position, launch in group:
                if not step:
                    nodes += self._await([(position, launch)], nodes)
                before = called if step else nodes
                if position in self.barriers and not (before and isinstance(before[-1], Find)):
                    before.append(Wait())
                places = tuple(self.places[a] for a in launch.arguments)
                told = launch.told(self.kernels[launch.kernel])
                before.append(Call(position, launch.kernel, places, told))
            nodes += [Repeat(step, tuple(called))] if step else []

    def _await(
        self, launches: Iterable[tuple[int, Launch]], before: Sequence[DriverNode]
    ) -> list[DriverNode]:
        """What finds the sizes that launches need, behind some nodes."""
        kernels = ((launch, self.kernels[launch.kernel]) for _, launch in launches)
        awaited = frozenset[str]().union(*(self.program.awaited(*pair) for pair in kernels))
        return self.find(awaited, before)

    def find(self, sizes: Collection[str], before: Sequence[DriverNode]) -> list[DriverNode]:
        """What finds sizes, unless they are found already, behind some nodes."""
        nodes: list[DriverNode] = []
        for position, (size, array) in enumerate(self.program.found.items()):
            if size not in self._with_ends(sizes) or size in self.found:
                continue
            nodes += _wait_behind(nodes or before)
            number = len(self.decided) + len(self.found)
            self.found.append(size)
            most, needs = _list_needs(self.program.sizes, size, self.found)
            nodes.append(Find(number, position, size, self.places[array], most, needs))
        return nodes

    def _with_ends(self, sizes: Collection[str]) -> frozenset[str]:
        """Sizes, and those that say how large they may be."""
        ends = [s.most for s in self.program.sizes if s.name in sizes and s.most is not None]
        more = found_in(ends) - set(sizes)
        return self._with_ends(more.union(sizes)) if more else frozenset(sizes)


def _list_needs(
    sizes: Sequence[SizeRange], size: str, found: Sequence[str]
) -> tuple[Extent, tuple[Size, ...]]:
    """The most that a size may be, and what else must not be negative once it is found.

    `found` are those that are, this one among them.
    """
    (most,) = (one.most for one in sizes if one.name == size)
    assert most is not None
    needs = dict.fromkeys(need for one in sizes for need in one.needs)
    mine = (n for n in needs if size in found_in([n]) and n != most - Size.of(size))
    return most, tuple(need for need in mine if found_in([need]) <= set(found))


def _wait_behind(nodes: Sequence[DriverNode]) -> list[DriverNode]:
    """A barrier, unless all have waited already."""
    return [] if nodes and isinstance(nodes[-1], Wait | Find) else [Wait()]


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
