"""What must be known to run a bundle, or to compile its sources again; as JSON on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyc.files.typed_json import decode
from polyc.graph.states import State
from polyc.options import MAX_THREADS
from polyc.report.report import Report
from polyc.types.branches import Branch, list_demanding, needs_behind, show_branches
from polyc.types.call_sizes import parse_size
from polyc.types.derived import Derived
from polyc.types.element_types import COMPILED
from polyc.types.parameters import find_derived, show_sizes
from polyc.types.ranges import ADDRESS_LIMIT, SizeRange
from polyc.types.sizes import Extent, Size
from polyc.types.spec import TensorSpec

if TYPE_CHECKING:
    from polyc.program.plan import Plan
    from polyc.program.program import Program

Demand = tuple[str, tuple[Size, ...]]
"""Branches, as text, and what must not be negative in calls that take them."""

FORMAT = 13
PLATFORMS = ("cpu", "cuda", "emulated")


@dataclass(frozen=True)
class Manifest:
    """What must be known to run a bundle, or to compile its sources again.

    `platform`: "cpu", "cuda" or "emulated"; `arena_bytes`: of what a call works in; `features`:
    what the CPU must have; `flags`: those of the compiler that say for what machine it is;
    `launches`: the kernel and the graph nodes of each launch; `fallible`: the positions of those
    that may meet an index out of range; `consulted`: the tuned schedules that were asked for, as
    they were found (`mapping.tuned.spell_choices`): with others this is another model.
    `sizes`: those that are known only at run time, as a call is told them; `found`: those that it
    finds, each of which it writes to an int64 of the caller behind the outputs; `shapes`: those of
    the outputs; `states`: what is kept across calls; `memory_limit`: that of the options, in bytes,
    which a call asks that says the sizes, or 0 for the memory that there is. `requirements`: what
    sizes must not do, as the library checks it, in order (`printing/driver.py`), each with the
    place that says so; None if it checks nothing. `demands`: of each decision that may end a call
    what the branches behind it need of sizes, as the driver checks it, in order.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int
    weights_bytes: int
    threads: int
    features: tuple[str, ...]
    flags: tuple[str, ...]
    launches: tuple[tuple[str, tuple[str, ...]], ...]
    report: Report
    consulted: Mapping[str, str] = field(default_factory=dict)
    platform: str = "cpu"
    fallible: tuple[int, ...] = ()
    sizes: tuple[SizeRange, ...] = ()
    shapes: tuple[tuple[Extent, ...], ...] = ()
    states: tuple[State, ...] = ()
    memory_limit: int = 0
    requirements: tuple[tuple[str, str], ...] | None = None
    found: tuple[SizeRange, ...] = ()
    demands: tuple[tuple[Demand, ...], ...] = ()

    @property
    def workspace_bytes(self) -> int:
        """What a call on a GPU works in: the arena, and an int for each launch."""
        return self.arena_bytes + 4 * len(self.launches)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "inputs": [_spec_to_json(s) for s in self.inputs],
            "outputs": [_spec_to_json(s) for s in self.outputs],
            "arena_bytes": self.arena_bytes,
            "weights_bytes": self.weights_bytes,
            "threads": self.threads,
            "features": list(self.features),
            "flags": list(self.flags),
            "launches": [[kernel, list(origin)] for kernel, origin in self.launches],
            "report": self.report.to_json(),
            "consulted": dict(self.consulted),
            "platform": self.platform,
            "fallible": list(self.fallible),
            "sizes": [_size_to_json(s) for s in self.sizes],
            "found": [_size_to_json(s) for s in self.found],
            "derived": _derived_to_json(
                [
                    *(d for shape in self.shapes for d in shape),
                    *_said((*self.sizes, *self.found)),
                    *(n for decision in self.demands for _, needs in decision for n in needs),
                ]
            ),
            "demands": [
                [[branch, [*map(_extent_to_json, needs)]] for branch, needs in decision]
                for decision in self.demands
            ],
            "shapes": [[_extent_to_json(d) for d in shape] for shape in self.shapes],
            "states": [[s.input, s.output, s.axis, s.capacity, s.in_place] for s in self.states],
            "memory_limit": self.memory_limit,
            "requirements": None if self.requirements is None else [*map(list, self.requirements)],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_json`; ValueError or KeyError for what it cannot have written."""
        derived = _derived_from_json(decode(tuple[_DERIVED, ...], data["derived"], "derived"))
        made = Manifest(
            decode(str, data["name"], "name"),
            _specs_from_json(data["inputs"]),
            _specs_from_json(data["outputs"]),
            decode(int, data["arena_bytes"], "arena_bytes"),
            decode(int, data["weights_bytes"], "weights_bytes"),
            decode(int, data["threads"], "threads"),
            decode(tuple[str, ...], data["features"], "features"),
            decode(tuple[str, ...], data["flags"], "flags"),
            decode(tuple[tuple[str, tuple[str, ...]], ...], data["launches"], "launches"),
            decode(Report, data["report"], "report"),
            decode(Mapping[str, str], data["consulted"], "consulted"),  # type: ignore[type-abstract]
            decode(str, data["platform"], "platform"),
            decode(tuple[int, ...], data["fallible"], "fallible"),
            tuple(
                _size_from_json(size, derived)
                for size in decode(tuple[_SIZE, ...], data["sizes"], "sizes")
            ),
            tuple(
                tuple(_extent_from_json(extent, derived) for extent in shape)
                for shape in decode(tuple[tuple[_EXTENT, ...], ...], data["shapes"], "shapes")
            ),
            tuple(State(*s) for s in decode(tuple[_STATE, ...], data["states"], "states")),
            decode(int, data["memory_limit"], "memory_limit"),
            None
            if data["requirements"] is None
            else decode(tuple[tuple[str, str], ...], data["requirements"], "requirements"),
            tuple(
                _size_from_json(size, derived)
                for size in decode(tuple[_SIZE, ...], data["found"], "found")
            ),
            tuple(
                tuple((branch, _sizes_from_json(needs, derived)) for branch, needs in decision)
                for decision in decode(tuple[tuple[_DEMAND, ...], ...], data["demands"], "demands")
            ),
        )
        _check(made)
        return made


def make_manifest(
    program: Program,
    plan: Plan,
    report: Report,
    consulted: Mapping[str, str],
    **machine: Any,
) -> Manifest:
    """The manifest of a planned program; `machine` are its fields that say where it runs."""
    names = show_sizes(program.sizes)

    def shown(extent: Extent) -> Extent:
        return extent.at(names) if isinstance(extent, Size) else extent

    # What depends on sizes that it finds the driver checks; the rest whoever calls it.
    late = {size.shown for size in program.sizes if size.most is not None}
    outputs = program.outputs[: len(program.outputs) - len(program.found)]
    shapes = [tuple(map(shown, program.arrays[n].storage.shape)) for _, n in outputs]
    sizes = {
        s.name: SizeRange(
            s.shown,
            s.lower,
            s.upper,
            s.hint,
            None if s.next is None else shown(s.next),
            needs=tuple(
                need
                for need in map(shown, s.needs)
                if isinstance(need, Size) and (s.most is not None or need.names.isdisjoint(late))
            ),
            most=None if s.most is None else shown(s.most),
        )
        for s in program.sizes
        if s.same is None
    }
    return Manifest(
        name=program.name,
        inputs=tuple(spec for spec, _ in program.inputs),
        outputs=tuple(spec for spec, _ in outputs),
        sizes=tuple(sizes[s.name] for s in program.told),
        found=tuple(sizes[name] for name in program.found),
        demands=tuple(_list_demands(program, shown)),
        shapes=tuple(shapes),
        states=program.states,
        arena_bytes=plan.arena_bytes,
        weights_bytes=plan.weights_bytes,
        launches=tuple((launch.kernel, launch.origin) for launch in program.launches),
        report=report,
        consulted=consulted,
        **machine,
    )


def _list_demands(
    program: Program, shown: Callable[[Extent], Extent]
) -> Iterator[tuple[Demand, ...]]:
    """What the driver checks of sizes when it decides, in the order in which it counts these."""
    for around, condition in list_demanding(program.demands):
        sides = [(*around, Branch(condition, holds)) for holds in (True, False)]
        needs = needs_behind(program.demands, around, condition)
        yield tuple(
            (show_branches(side), tuple(n for n in map(shown, said) if isinstance(n, Size)))
            for side, said in zip(sides, needs, strict=True)
        )


_TYPES = {dtype.name: dtype for dtype in COMPILED}
_EXTENT = int | tuple[tuple[tuple[str, ...], int], ...]
_DERIVED = tuple[str, _EXTENT, _EXTENT]
_SIZE = tuple[str, int, int | None, int | None, _EXTENT | None, tuple[_EXTENT, ...], _EXTENT | None]
_DEMAND = tuple[str, tuple[_EXTENT, ...]]
_SPEC = tuple[str, str, tuple[int | str, ...], tuple[int | str, ...]]
_STATE = tuple[int, int, int | None, int, bool]


def _said(sizes: Iterable[SizeRange]) -> Iterator[Extent]:
    """What is said of sizes in terms of others."""
    for size in sizes:
        yield from (e for e in (size.next, *size.needs, size.most) if e is not None)


def _size_to_json(size: SizeRange) -> list[Any]:
    after = None if size.next is None else _extent_to_json(size.next)
    needs = [_extent_to_json(need) for need in size.needs]
    most = None if size.most is None else _extent_to_json(size.most)
    return [size.name, size.lower, size.upper, size.hint, after, needs, most]


def _size_from_json(data: tuple[Any, ...], derived: Mapping[str, Derived]) -> SizeRange:
    name, lower, upper, hint, after, needs, end = data
    most = None if end is None else _extent_from_json(end, derived)
    grown = None if after is None else _extent_from_json(after, derived)
    kept = _sizes_from_json(needs, derived)
    return SizeRange(name, lower, upper, hint, grown, needs=kept, most=most)


def _sizes_from_json(data: Sequence[Any], derived: Mapping[str, Derived]) -> tuple[Size, ...]:
    read = (_extent_from_json(extent, derived) for extent in data)
    return tuple(extent for extent in read if isinstance(extent, Size))


def _extent_to_json(extent: Extent) -> Any:
    return [[list(names), n] for names, n in extent.terms] if isinstance(extent, Size) else extent


def _extent_from_json(data: Any, derived: Mapping[str, Derived]) -> Extent:
    if isinstance(data, int):
        return data
    return Size(tuple((tuple(derived.get(n, n) for n in names), c) for names, c in data))


def _derived_to_json(extents: Iterable[Extent]) -> list[Any]:
    """What is derived in extents, each behind what it follows from."""
    names = (name for meaning in find_derived(extents)[0].values() for name in meaning.factors)
    derived = dict.fromkeys(name for name in names if isinstance(name, Derived))
    return [[name.operation, *map(_extent_to_json, name.operands)] for name in derived]


def _derived_from_json(data: Sequence[tuple[str, Any, Any]]) -> dict[str, Derived]:
    found: dict[str, Derived] = {}
    for operation, *operands in data:
        first, second = (_extent_from_json(operand, found) for operand in operands)
        by_number = isinstance(second, int) and second > 0
        if operation == "min":
            made = Derived("min", first, second)
        elif operation == "floor" and by_number:
            made = Derived("floor", first, second)
        elif operation == "sum":
            made = Derived("sum", first, second)
        else:
            raise ValueError(f"{operation} of sizes")
        found[made] = made
    return found


def _spec_to_json(spec: TensorSpec) -> list[Any]:
    return [spec.name, spec.dtype.name, list(spec.shape), list(spec.values)]


def _specs_from_json(data: Any) -> tuple[TensorSpec, ...]:
    rows = decode(tuple[_SPEC, ...], data, "tensors")
    return tuple(
        TensorSpec(name, _TYPES[kind], shape, values) for name, kind, shape, values in rows
    )


def _names_in(spec: TensorSpec) -> frozenset[str]:
    """The sizes that a shape depends on."""
    sizes = (parse_size(d) for d in spec.shape if isinstance(d, str))
    return frozenset(name for size in sizes if isinstance(size, Size) for name in size.names)


def _check(made: Manifest) -> None:
    """ValueError where the parts of a manifest contradict each other."""
    told = {size.name for size in made.sizes}
    known = told.union(size.name for size in made.found)
    extents = {n for s in (*made.inputs, *made.outputs) for n in _names_in(s)}
    states, last = made.states, (len(made.inputs), len(made.outputs), len(made.launches))
    rules = {
        "platform is none of " + ", ".join(PLATFORMS): made.platform in PLATFORMS,
        "threads are out of range": 0 <= made.threads <= MAX_THREADS,
        "arena_bytes is out of range": 0 <= made.arena_bytes < ADDRESS_LIMIT,
        "memory_limit is negative": made.memory_limit >= 0,
        "weights_bytes is out of range": 0 <= made.weights_bytes < ADDRESS_LIMIT,
        "an extent is negative": all(
            d >= 0 for s in (*made.inputs, *made.outputs) for d in s.shape if isinstance(d, int)
        )
        and all(d >= 0 for shape in made.shapes for d in shape if isinstance(d, int)),
        "an extent is a name, but no size is listed": bool(known)
        or all(isinstance(d, int) for s in (*made.inputs, *made.outputs) for d in s.shape),
        "shapes are not those of the outputs": len(made.shapes) == last[1],
        "a size is not listed": all(
            d.names <= known for shape in made.shapes for d in shape if isinstance(d, Size)
        )
        and all(s.next.names <= told for s in made.sizes if isinstance(s.next, Size))
        and all(s.most.names <= known for s in made.found if isinstance(s.most, Size))
        and all(v in told or isinstance(v, int) for s in made.inputs for v in s.values)
        and all(n.names <= told for one in made.demands for _, needs in one for n in needs),
        "a size is found, but nothing says its most": all(s.most is not None for s in made.found)
        and all(s.most is None for s in made.sizes),
        "a size has an empty range": all(
            (s.lower >= 0 or s.name not in extents) and (s.upper is None or s.lower <= s.upper)
            for s in made.sizes
        ),
        "a state is none of the tensors": all(
            0 <= s.input < last[0] and 0 <= s.output < last[1] for s in states
        )
        and all(
            s.axis is None
            or (0 <= s.axis < len(made.inputs[s.input].shape) and 0 <= s.capacity < ADDRESS_LIMIT)
            for s in states
        ),
        "a launch that may fail is none": all(0 <= k < last[2] for k in made.fallible),
        "the report is of other launches": len(made.report.kernels) == last[2],
        "nodes and operators of a launch differ in number": all(
            len(row.operators) in (0, len(row.nodes)) for row in made.report.kernels
        ),
        "outputs have other ranks than their shapes": all(
            len(spec.shape) == len(shape)
            for spec, shape in zip(made.outputs, made.shapes, strict=False)
        ),
    }
    broken = [told for told, holds in rules.items() if not holds]
    if broken:
        raise ValueError(broken[0])
