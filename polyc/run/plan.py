"""Models in stages: what can be compiled is, and what it finds decides what comes next.

A `Plan` are nodes that wait for values; with those of a call it gives a `Step`: a compiled model
of all that can be typed now, and the plan of what is left. Steps are kept by the shapes of what
they read, and by the values that were made constants. When calls turn out to differ in extents
only, or in short lists of numbers from 1 on that shapes follow from, the next step is compiled for
sizes known at run time, and serves them all; where that is not possible (`NotFixed`), each has a
step of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polyc.budget import Budget
from polyc.errors import NeedsValues, ShapeError, UnsupportedOp
from polyc.graph.bodies import reads
from polyc.graph.expand.control.unroll import is_left_of_loop
from polyc.graph.inference.sources import find_sources
from polyc.graph.ir import Body, Graph, Node, Tensor
from polyc.graph.onnx.nodes import TEXT
from polyc.graph.run_time import RANDOM_KEY, run_node
from polyc.graph.stage import Late, Stage, flatten, infer_stage, split_direct
from polyc.graph.values import MOST_VALUES
from polyc.run.model import CompiledModel
from polyc.run.similar_calls import Pattern, Shapes, SimilarCalls, match
from polyc.run.staged_call import Call
from polyc.run.step_by_step import run_loop
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Extent, Size, evaluate

MAX_VALUES = 4096
"""Elements of the largest tensor that is made a constant: what steers shapes is a short list."""

MAX_STEERING = 64
"""Elements, in all, of lists of integers that are made constants for what is computed from them.

What depends on more, or on other data, is computed by a stage, and only its result decides.
"""

MAX_KINDS = 64
"""Kinds of calls that a plan keeps steps for; the least recently used one goes first."""

Kind = tuple[object, ...]
"""What calls have in common that steps are shared by."""

Compile = Callable[[Graph, tuple[SizeRange, ...]], CompiledModel]
"""(a graph, the sizes in it that are known only at run time) -> the model."""


@dataclass(frozen=True)
class Step:
    """A compiled stage (None if it has no node), and what follows."""

    model: CompiledModel | None
    stage: Stage
    rest: Plan

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """What the model is given."""
        return tuple(spec.name for spec in self.model.inputs) if self.model else ()

    @cached_property
    def needs(self) -> tuple[Size, ...]:
        """What must not be negative in a call."""
        sizes = self.model.sizes if self.model else ()
        return tuple(need for size in sizes for need in size.needs)


_Found = tuple[Step, Mapping[str, int]]
"""A step, and the values of the sizes that it leaves open."""


class Plan:
    """Nodes that wait for values.

    waiting: in order; constants: those that they read; outputs: those of the whole model; decides:
    whether both branches of an If can be compiled, of which a call executes one. `_earlier` are
    plans of the same nodes behind steps for one call each: what they have seen is known here.
    """

    def __init__(
        self,
        name: str,
        waiting: Sequence[Late],
        constants: Mapping[str, Tensor],
        outputs: Sequence[str],
        compile: Compile,
        budget: Budget,
        decides: bool,
    ) -> None:
        self._name, self._outputs, self._compile = name, outputs, compile
        self._budget, self._decides = budget, decides
        self._constants = constants
        self._direct, rest = split_direct(waiting)
        self._nodes = [late.node for late in rest]
        written = {o for n in self._nodes for o in n.outputs}
        asked = dict.fromkeys(name for n in self._nodes for name in reads(n) if name)
        self._reads = [n for n in asked if n not in written and n not in constants]
        self._steering: set[str] = set()
        self._earlier: tuple[Plan, ...] = ()
        self._kept: OrderedDict[Kind, SimilarCalls[Step]] = OrderedDict()
        self._latest: tuple[Kind, Shapes, _Found] | None = None
        self._bodies: dict[str, Plan] = {}

    def run(self, call: Call) -> Plan | None:
        """Run what is ready, then the stage behind it; the plan of what is left, if any is."""
        for late in self._direct:
            if is_left_of_loop(late.node):
                self._run_loop(late.node, call)
                continue
            results = run_node(late.node, [call.get(name) for name in late.node.inputs])
            for name, value in zip(late.node.outputs, results, strict=False):
                call.put(name, value)
            if late.reason:
                call.evaluated.append(late)
        if not self._nodes:
            return None
        step, sizes = self._find_step(call)
        # What a call has is right: a step that is kept knows the structures of an earlier call.
        if step.stage.structures:
            call.structures = {**step.stage.structures, **call.structures}
        call.values.update(step.stage.evaluate(sizes))
        if step.model is not None:
            feeds = {name: _feed(call, name) for name in step.reads}
            call.models.append((step.model, feeds))
            call.values.update(step.model.run(feeds))
        return step.rest

    def _run_loop(self, node: Node, call: Call) -> None:
        """Run a loop that data end, whose body is planned once."""
        if node.name not in self._bodies:
            body: Body = node.attributes["body"]
            waiting = [Late(inner) for inner in body.nodes]
            self._bodies[node.name] = Plan(
                self._name,
                waiting,
                self._constants,
                body.outputs,
                self._compile,
                self._budget,
                self._decides,
            )
        known = {n: t.value for n, t in self._constants.items() if t.value is not None}
        run_loop(node, call, self._bodies[node.name], lambda: Call(dict(known)))

    def _find_step(self, call: Call) -> _Found:
        """The step for what there is.

        More values may turn out to steer while it is compiled.
        """
        there = [n for n in self._reads if n in call.structures or n in call.values]
        while True:
            kind, shapes = _describe(call, there, self._steering)
            latest = self._latest  # of one call, whatever other threads find meanwhile
            if latest and latest[:2] == (kind, shapes):
                return latest[2]
            before = [p._kept[kind] for p in self._earlier if kind in p._kept]
            if kind not in self._kept:
                self._kept[kind] = SimilarCalls(seen=[call for s in before for call in s.seen])
            similar = self._kept[kind]
            self._kept.move_to_end(kind)
            if len(self._kept) > MAX_KINDS:
                self._kept.popitem(last=False)
            found = similar.find(shapes)
            if found is not None and _is_right(*found):
                self._latest = kind, shapes, found
                return found
            pattern = None if found else similar.generalise(shapes)
            try:
                step = self._make_step(call, there, shapes, pattern)
            except (UnsupportedOp, ShapeError):
                if pattern is None:
                    raise
                similar.refused.add(pattern)
                continue
            if step is not None:
                if pattern is not None:
                    step.rest._follow(
                        [old.rest for s in (similar, *before) for old in s.by_shapes.values()]
                    )
                similar.keep(step, shapes, pattern)

    def _make_step(
        self, call: Call, there: Sequence[str], shapes: Shapes, pattern: Pattern | None
    ) -> Step | None:
        """A new step, for these shapes or for all of a pattern.

        None if it turns out that more values have to be constants.
        """
        names = list(flatten(there, call.structures))
        sizes = _name_sizes(shapes, pattern)
        try:
            with assume(sizes):
                types = {
                    n: self._type(n, call.values[n], tuple(map(_extent, shape)))
                    for n, shape in zip(names, pattern or shapes, strict=True)
                }
                types[RANDOM_KEY] = Tensor(RANDOM_KEY, np.dtype(np.uint32), (2,))
                known = {**types, **self._constants}
                stage = infer_stage(
                    self._name,
                    self._nodes,
                    known,
                    call.structures,
                    self._outputs,
                    self._budget.again(),
                    self._decides,
                )
                if self._steer(self._choose_steering(stage, types)):
                    return None
                _require_no_more(stage, [n for n in names if types[n].entries is not None])
            model = self._compile(stage.graph, sizes) if stage.graph.nodes else None
        except NeedsValues as more:  # the lowering needs a value that the types did not
            if not self._steer(set(more.inputs)):
                raise
            return None
        if model is None and len(stage.waiting) == len(self._nodes) and not _moves(stage):
            raise UnsupportedOp(
                f"model {self._name!r}: the values of {', '.join(stage.wanted)} decide what is "
                "compiled, and nothing computes them; export it with fixed sizes"
            )
        rest = Plan(
            self._name,
            stage.waiting,
            stage.constants,
            self._outputs,
            self._compile,
            self._budget,
            self._decides,
        )
        rest._steering |= set(stage.wanted)
        return Step(model, stage, rest)

    def _follow(self, earlier: Sequence[Plan]) -> None:
        """Know what plans of the same nodes have seen, and what steers them."""
        self._earlier = tuple(earlier)
        self._steering.update(*(plan._steering for plan in earlier))

    def _steer(self, names: set[str]) -> bool:
        """Make values constants from now on; whether that is news."""
        fresh = names - self._steering
        self._steering |= fresh
        return bool(fresh)

    def _choose_steering(self, stage: Stage, types: Mapping[str, Tensor]) -> set[str]:
        """What should be constants, so that what is wanted is known without a stage."""
        chosen: set[str] = set()
        for name in stage.wanted:
            if name in types:
                chosen.add(name)
                continue
            sources = find_sources(name, stage.graph.nodes, list(types))
            lists = all(_is_list(types[s]) for s in sources)
            size = sum(types[s].size for s in sources) if lists else 0
            if lists and RANDOM_KEY not in sources and 0 < size <= MAX_STEERING:
                chosen.update(sources)
        return chosen

    def _type(self, name: str, value: Any, shape: tuple[Extent, ...]) -> Tensor:
        """The type of an array, with its value if that decides something.

        shape: of one that steers as sizes, these; some of them may differ from call to call.
        """
        dtype = np.dtype(getattr(value, "dtype", TEXT))
        if name not in self._steering:
            return Tensor(name, dtype, shape)
        array = np.asarray(value)
        if _are_sizes(array) and any(isinstance(one, Size) for one in shape):
            entries = np.array(shape, object).reshape(array.shape)
            return Tensor(name, dtype, array.shape, entries=entries)
        if array.size > MAX_VALUES:
            raise UnsupportedOp(
                f"model {self._name!r}: what is compiled depends on the {array.size} values of "
                f"{name!r}; at most {MAX_VALUES} are made constants: make it an initializer"
            )
        return Tensor(name, dtype, array.shape, array)


def _is_list(tensor: Tensor) -> bool:
    """Whether it is a number, or a list of known length, of integers or booleans."""
    return tensor.rank <= 1 and tensor.is_static and tensor.dtype.kind in "iub"


def _is_right(step: Step, values: Mapping[str, int]) -> bool:
    """Whether what a step needs of the sizes that it leaves open holds for these."""
    return all(evaluate(need, values) >= 0 for need in step.needs if need.names <= values.keys())


def _are_sizes(value: np.ndarray) -> bool:
    """Whether it may be a list of sizes."""
    short = value.ndim <= 1 and 0 < value.size <= MOST_VALUES
    return (
        short and value.dtype.kind in "iu" and value.dtype.itemsize >= 4 and bool(value.min() > 0)
    )


def _require_no_more(stage: Stage, sizes: Sequence[str]) -> None:
    """UnsupportedOp where a stage waits for the values of what was taken for sizes."""
    for wanted in stage.wanted:
        if wanted in sizes or find_sources(wanted, stage.graph.nodes, sizes):
            raise UnsupportedOp(f"the value of {wanted!r} decides more than sizes")


def _moves(stage: Stage) -> bool:
    """Whether something can run without a compiled stage."""
    return bool(split_direct(stage.waiting)[0])


def _feed(call: Call, name: str) -> Any:
    if name == RANDOM_KEY and name not in call.values:
        call.values[name] = np.random.SeedSequence().generate_state(2)
    return call.values[name]


def _name_sizes(shapes: Shapes, pattern: Pattern | None) -> tuple[SizeRange, ...]:
    """The sizes of a pattern; what is compiled for them is chosen for the call at hand."""
    values = match(pattern, shapes) if pattern else None
    return tuple(SizeRange(name, hint=value) for name, value in (values or {}).items())


def _describe(call: Call, names: Sequence[str], steering: set[str]) -> tuple[Kind, Shapes]:
    """What calls must have in common to be of one kind, and the shapes in which they may differ.

    Those are the structures, the types, and the values that steer, whose shapes are theirs; but
    where these may be sizes, they stand in place of the shape.
    """
    kind: list[object] = []
    shapes: list[tuple[int, ...]] = []
    waiting = [*reversed(names)]
    while waiting:
        name = waiting.pop()
        if name in call.structures:
            elements = call.structures[name]
            kind.append((name, elements))
            waiting += reversed(elements or ())
            continue
        value = call.values[name]
        is_array = type(value) is np.ndarray
        shape = value.shape if is_array else np.shape(value)
        dtype = value.dtype if is_array else getattr(value, "dtype", None)
        if name not in steering:
            kind.append((name, dtype, len(shape)))
        elif _are_sizes(array := np.asarray(value)):
            kind.append((name, dtype, "sizes", shape))
            shape = tuple(map(int, array.flat))
        else:
            kind.append((name, dtype, array.tobytes(), shape))
        shapes.append(shape)
    return tuple(kind), tuple(shapes)


def _extent(known: int | str) -> Extent:
    return Size.of(known) if isinstance(known, str) else known
