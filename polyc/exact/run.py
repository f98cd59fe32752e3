"""The exact run itself: the same elements through the printed text and through the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from polyc.budget import Budget
from polyc.errors import RuntimeFailure, UnsupportedOp
from polyc.exact.build import Built, build_exact
from polyc.exact.field import Choice, bits_of, choose
from polyc.exact.sizes import draw_input, sample_sizes, shape_of
from polyc.names import show
from polyc.options import Options
from polyc.run.feeds import random_feeds
from polyc.run.model import CompiledModel
from polyc.run.specialise import complete_in_call
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.types.parameters import complete, with_needs
from polyc.types.ranges import SizeRange
from polyc.types.sizes import evaluate
from polyc.types.spec import TensorSpec

CALLS = 3
"""How many calls of a session follow one another."""

SAMPLES = 3
"""Of a model with open sizes: how many choices of their values are run."""

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Mismatch:
    """An output that differs: how many of its elements, the first of them, and in which run."""

    output: str
    origin: tuple[str, ...]
    differing: int
    elements: int
    first: tuple[int, ...]
    place: str
    sizes: Mapping[str, int]

    def __str__(self) -> str:
        sizes = "".join(f", {show(name)} = {value}" for name, value in self.sizes.items())
        return (
            f"output {show(repr(self.output))} of node {show(', '.join(self.origin)) or '?'}: "
            f"{self.differing} of {self.elements} elements differ, the first at {list(self.first)} "
            f"({self.place}{sizes})"
        )


@dataclass(frozen=True)
class ExactReport:
    """What an exact run compared.

    runs: how often, each with other numbers and functions; places: where, in words; calls: of the
    model, all in all; elements: of outputs, bit by bit; prime: the field's; faults: what was done
    to memory of others.
    """

    model: str
    prime: int
    runs: int
    places: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    calls: int
    elements: int
    mismatches: tuple[Mismatch, ...]
    faults: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every element was the same, and no memory was written but for results."""
        return not (self.mismatches or self.faults)

    def __str__(self) -> str:
        places = " and ".join(self.places)
        told = f"{self.calls} calls in {self.runs} runs modulo {self.prime}, on {places}"
        if self.sizes and self.sizes[0]:
            told += f", for {len(self.sizes)} choices of sizes"
        if self.agrees:
            return f"{told}: all {self.elements} elements of outputs as the statements say, exactly"
        return f"{told}: " + "; ".join([*map(str, self.mismatches), *self.faults])


Compile = Callable[[Any, tuple[SizeRange, ...]], CompiledModel]
"""A stage of a model, and the ranges of its sizes -> the stage as it is called."""


def run_exactly(
    model: Any,
    target: Target | CudaTarget,
    options: Options,
    *,
    threads: Sequence[int] = (1, 2),
    seed: int = 0,
    feeds: Mapping[str, np.ndarray] | None = None,
) -> ExactReport:
    """Compile a model for the exact run, run it, and say what differs.

    feeds: values of integer inputs, by name, where those that are drawn mean nothing to the model;
    floats are random elements in any case. threads: on a CPU. Raises as `build_exact`.
    """
    built = build_exact(model, target, options)
    return compare(built, threads=threads, seed=seed, feeds=feeds)


def run_stages(
    model: Any,
    unknown: UnsupportedOp,
    options: Options,
    feeds: Mapping[str, np.ndarray],
    check: Callable[[Any, Options], ExactReport],
    compile: Compile,
    decides: bool,
) -> ExactReport | None:
    """The exact run of each stage of a model that a call completes; None if it is no such model.

    The model is called with `feeds`; each stage that this call leads to is run exactly by `check`
    when it is compiled.
    """
    reports: list[ExactReport] = []

    def later(graph: Any, sizes: tuple[SizeRange, ...]) -> CompiledModel:
        reports.append(check(graph, replace(options, sizes=sizes)))
        return compile(graph, sizes)

    budget = Budget.start(options)
    completed = complete_in_call(model, unknown, options.sizes, later, budget, decides)
    if completed is None:
        return None
    given = random_feeds([s for s in completed.inputs if s.name not in feeds], 0, options.sizes)
    completed.run({**given, **feeds})
    return add_up(completed.name, reports)


def add_up(model: str, reports: Sequence[ExactReport]) -> ExactReport:
    """What several exact runs say together, of the stages of one model."""
    return ExactReport(
        model,
        max((r.prime for r in reports), default=0),
        max((r.runs for r in reports), default=0),
        reports[0].places if reports else (),
        tuple(sizes for r in reports for sizes in r.sizes),
        sum(r.calls for r in reports),
        sum(r.elements for r in reports),
        tuple(m for r in reports for m in r.mismatches),
        tuple(fault for r in reports for fault in r.faults),
    )


def compare(
    built: Built,
    *,
    threads: Sequence[int] = (1, 2),
    seed: int = 0,
    feeds: Mapping[str, np.ndarray] | None = None,
) -> ExactReport:
    """Run what was built; a report with the first mismatch of each output, or with none."""
    field = built.field
    rng = np.random.default_rng(seed)
    program = built.compiled.program
    demanded = [need for needs in program.demands.values() for need in needs]
    ranges = tuple(with_needs(program.sizes, demanded))
    chosen = tuple(sample_sizes(ranges, SAMPLES, rng))
    calls = elements = 0
    places: dict[str, None] = {}
    found: dict[str, Mismatch] = {}
    for run, sizes in product(range(field.runs), chosen):
        choice = choose(field, run)
        built.choose(choice.zero, choice.salt)
        for ours, expected, place, known in _calls(built, choice, sizes, threads, rng, feeds or {}):
            calls += 1
            places[place] = None
            elements += sum(array.size for array in expected)
            for mismatch in _differences(built, ours, expected, place, known):
                found.setdefault(mismatch.output, mismatch)
    return ExactReport(
        built.model.name,
        field.prime,
        field.runs,
        tuple(places),
        chosen,
        calls,
        elements,
        tuple(found.values()),
        tuple(built.model.memory.faults),
    )


def _calls(
    built: Built,
    choice: Choice,
    sizes: Mapping[str, int],
    threads: Sequence[int],
    rng: np.random.Generator,
    feeds: Mapping[str, np.ndarray],
) -> Iterator[tuple[Arrays, Arrays, str, Mapping[str, int]]]:
    """(outputs, what they should be, where it ran, sizes) of each call.

    A model with states is called as one of its sessions does, so often that states go on; each of
    its calls is then one of the reference with the states as they were.
    """
    program, scop = built.compiled.program, built.reference.scop
    states = {state.input: state.output for state in program.states}
    largest = max((n for a in scop.arrays.values() for n in shape_of(a, sizes)), default=1)
    inputs = [
        _given(built, k, sizes, feeds)
        if spec.name in feeds and spec.dtype.kind in "iub" and not spec.values
        else _told(built, spec, sizes)
        if spec.values
        else draw_input(scop.arrays[name], sizes, largest, choice.field, rng)
        for k, ((spec, _), name) in enumerate(zip(program.inputs, scop.inputs, strict=True))
    ]
    if not states:
        ended = _reference(built, inputs, sizes)
        if ended is None:
            return
        expected, sizes = ended
        for place in built.model.places(threads):
            yield _ours(built, inputs, expected), expected, place, sizes
        return
    for place in built.model.places(threads):
        for ours, expected, known in _session(built, inputs, dict(sizes)):
            yield ours, expected, place, known


def _told(built: Built, spec: TensorSpec, sizes: Mapping[str, int]) -> np.ndarray:
    """An input whose elements are sizes."""
    known = {size.shown: sizes[size.name] for size in built.compiled.program.sizes}
    shape = [int(d) for d in spec.shape]
    told = [value if isinstance(value, int) else known[value] for value in spec.values]
    return np.array(told, spec.dtype).reshape(shape)


def _given(
    built: Built, position: int, sizes: Mapping[str, int], feeds: Mapping[str, np.ndarray]
) -> np.ndarray:
    """An input's own values, repeated or cut to the shape that it has here."""
    spec, name = built.compiled.program.inputs[position][0], built.reference.scop.inputs[position]
    value = np.ascontiguousarray(feeds[spec.name], spec.dtype)
    shape = shape_of(built.reference.scop.arrays[name], sizes)
    return value if value.shape == shape else np.resize(value, shape)


def _session(
    built: Built, inputs: Arrays, sizes: dict[str, int]
) -> Iterator[tuple[Arrays, Arrays, Mapping[str, int]]]:
    """Calls of one session: what is no state is the same in each, states go on."""
    program, model = built.compiled.program, built.model
    states = {state.input: state.output for state in program.states}
    names = [spec.name for spec, _ in program.inputs]
    session = model.start({names[k]: inputs[k] for k in states})
    free = {names[k]: inputs[k] for k in range(len(inputs)) if k not in states}
    returned = set(states.values())
    grown = {s.name: s for s in program.sizes if s.next is not None}
    for _ in range(CALLS):
        after = {name: evaluate(s.next, sizes) for name, s in grown.items() if s.next is not None}
        if any(s.upper is not None and after[name] > s.upper for name, s in grown.items()):
            return
        ended = _reference(built, inputs, sizes)
        if ended is None:
            return
        expected, sizes = ended
        places = [k for k in range(len(expected)) if k not in returned]
        out = _poisoned(built, places, expected)
        session(**free, out=out)
        results = dict(zip(places, out, strict=True))
        results |= {o: session.state[names[i]] for i, o in states.items()}
        yield [results[k] for k in range(len(expected))], expected, dict(sizes)
        inputs = [expected[states[k]] if k in states else a for k, a in enumerate(inputs)]
        sizes |= after
        sizes = complete(program.sizes, sizes)


def _ours(built: Built, inputs: Arrays, expected: Arrays) -> Arrays:
    """The outputs of the printed text."""
    out = _poisoned(built, range(len(expected)), expected)
    built.model(*inputs, out=out)
    return out


def _poisoned(built: Built, which: Iterable[int], expected: Arrays) -> Arrays:
    """Arrays for results: what nobody writes there is wrong."""
    return [bits.view(built.model.outputs[k].dtype).reshape(expected[k].shape)
            for k in which
            for bits in [bits_of(expected[k]) ^ 1]]  # fmt: skip


def _reference(
    built: Built, inputs: Arrays, sizes: Mapping[str, int]
) -> tuple[Arrays, dict[str, int]] | None:
    """The outputs of the statements as lowered, and the sizes that they have found.

    They are run until they find what they were run with: each size is that of no later one. None
    where they never do: with what they find a call is refused, and no statement has instances.
    """
    scop, ranges = built.reference.scop, built.compiled.program.sizes
    known = complete(ranges, dict(sizes))
    tried: list[dict[str, int]] = []
    while known not in tried:
        tried.append(known)
        memory = _run_reference(built, inputs, known)
        found = {size: int(memory[array].item()) for size, array in scop.found.items()}
        after = complete(ranges, known | found)
        if after == known:
            visible = scop.outputs[: len(scop.outputs) - len(found)]
            return [memory[name] for name in visible], known
        known = after
    return None


def _run_reference(built: Built, inputs: Arrays, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """All arrays, as the statements leave them."""
    reference, scop = built.reference, built.reference.scop
    known = {**reference.constants, **dict(zip(scop.inputs, inputs, strict=True))}
    memory = {
        name: known[name] if name in known else np.zeros(shape_of(array, sizes), array.dtype)
        for name, array in scop.arrays.items()
    }
    memory |= {n: memory[a.memory] for n, a in scop.arrays.items() if a.memory}
    empty = reference.ffi.NULL
    pointers = [
        reference.ffi.from_buffer(np.ascontiguousarray(a).reshape(-1)) if a.size else empty
        for a in memory.values()
    ]
    values = [sizes[size.name] for size in built.compiled.program.sizes] or [0]
    told, status = reference.ffi.new("int64_t[]", values), reference.ffi.new("int *")
    for function in reference.functions:
        function(pointers, told, status)
    if status[0]:
        raise RuntimeFailure(
            f"model {built.model.name!r}: an index along an empty dimension; there is nothing to "
            "compare with"
        )
    return memory


def _differences(
    built: Built, ours: Arrays, expected: Arrays, place: str, sizes: Mapping[str, int]
) -> Iterator[Mismatch]:
    """The outputs that are not the same in every bit."""
    scop = built.reference.scop
    origin = {s.array: s.origin for s in scop.statements}
    names = [spec.name for spec, _ in built.compiled.program.outputs]
    for name, array, one, other in zip(names, scop.outputs, ours, expected, strict=False):
        if one.shape != other.shape:
            yield Mismatch(name, origin.get(array, ()), one.size, other.size, (), place, sizes)
            continue
        wrong = np.flatnonzero(bits_of(one) != bits_of(other))
        if len(wrong):
            index = np.unravel_index(wrong[0], other.shape) if other.ndim else ()
            first = tuple(map(int, index))
            where = origin.get(array, ())
            yield Mismatch(name, where, len(wrong), other.size, first, place, sizes)
