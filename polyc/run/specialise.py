"""Models that a call completes: compiled for the sizes, values and structures that it brings.

    y = Reshape(x, target)      x: float32[2, 12], target: int64[2], both fed

There is no loop nest before `target` is known, so a call makes it a constant and compiles what is
left. So it is with sizes that are known only at run time, where loops over them could not be
generated (`NotFixed` says why), with the number of elements of a sequence, and with the size of
what an operator such as NonZero finds, where that is no size that a driver can find
(`types/found.py`): there a model is compiled in stages (`run/plan.py`). Each
set of values gives models of its own, which are kept, here and in the cache on disk; they are as
fast as if exported with them. Calls that differ in sizes only share one from the second on, where
loops can be generated for any (`polyc/run/similar_calls.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from polyc.arguments import arrange, check_feeds, list_outputs
from polyc.budget import Budget
from polyc.errors import NeedsValues, NotFixed, ShapeError, UnsupportedOp
from polyc.graph.ir import Graph, Tensor
from polyc.graph.onnx_import import UntypedModel, read_model
from polyc.graph.results import find_results
from polyc.graph.stage import Late
from polyc.names import show
from polyc.report.report import Fallback, Report
from polyc.run.calls import as_array
from polyc.run.model import CompiledModel
from polyc.run.plan import Compile, Plan
from polyc.run.staged_call import Call
from polyc.types.call_sizes import measure_sizes
from polyc.types.element_types import spelled
from polyc.types.ranges import SizeRange
from polyc.types.sizes import spell_shape
from polyc.types.spec import TensorSpec

EXAMPLE_SIZE = 320
"""The size that a message says may be given, of what is no batch."""


def complete_in_call(
    model: Any,
    unknown: UnsupportedOp,
    ranges: Sequence[SizeRange],
    compile: Compile,
    budget: Budget,
    decides: bool,
) -> SpecialisingModel | None:
    """The model, to be compiled when it is called, if that brings what was unknown; else None.

    It is read within the budget; each call has as much for what it decides. `decides`: whether
    `compile` takes both branches of an If, of which a call executes one.
    """
    if not isinstance(unknown, NeedsValues | NotFixed):
        return None
    read = _read_graph(model) if isinstance(model, Graph) else read_model(model, budget)
    tensors = [t for t in read.inputs if isinstance(t, Tensor)]
    has_sizes = not all(t.is_static for t in tensors)
    if isinstance(unknown, NotFixed) and not has_sizes:
        return None
    return SpecialisingModel(read, ranges, compile, unknown, budget, decides)


def _read_graph(graph: Graph) -> UntypedModel:
    constants = {t.name: t for t in graph.tensors.values() if t.is_constant}
    inputs = tuple(graph.tensors[name] for name in graph.inputs)
    return UntypedModel(graph.name, graph.nodes, constants, inputs, graph.outputs)


class SpecialisingModel(CompiledModel):
    """A model that is compiled for what a call brings: sizes, values, structures.

    `inputs` and `outputs` are the tensors among the inputs and outputs, in order; a size of an
    output that only a call decides has a name of its own, and a shape of ("...",) says that not
    even the number of dimensions is known. Sequences are lists of arrays, an optional that holds
    nothing is None, text is in arrays of objects. What belongs to one compiled model (`source`,
    `save`, `export`) is refused. `reason` says what could not be compiled without.
    """

    def __init__(
        self,
        model: UntypedModel,
        ranges: Sequence[SizeRange],
        compile: Compile,
        unknown: NeedsValues | NotFixed,
        budget: Budget,
        decides: bool,
    ) -> None:
        self.name, self.reason = model.name, str(unknown)
        self._unknown = unknown
        self._ranges = self.sizes = tuple(ranges)
        tensors = [t for t in model.inputs if isinstance(t, Tensor)]
        self.inputs = tuple(TensorSpec(t.name, t.dtype, spell_shape(t.shape)) for t in tensors)
        self.outputs = find_results(model, budget)
        self._takes = {
            given.name: str(given) if isinstance(given, Tensor) else show(given.name)
            for given in model.inputs
        }
        opened = [i for i in model.inputs if not isinstance(i, Tensor)]
        self._optional = {i.name for i in opened if i.is_optional}
        if isinstance(unknown, NeedsValues):
            self.needed = (*unknown.inputs, *(i.name for i in opened))
        self._results = list(model.outputs)
        self._constants = {
            n: model.constants[n].value for n in model.outputs if n in model.constants
        }
        waiting = [Late(node) for node in model.nodes]
        self._plan = Plan(
            model.name, waiting, model.constants, model.outputs, compile, budget, decides
        )
        self._last: tuple[list[CompiledModel], list[Late]] | None = None
        self._fitting: list[tuple[int, ...]] | None = None  # shapes of the last call that fitted

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """As any model's; `out` must have the shapes that the values lead to."""
        call = self._run(self._arrange(arrays, named))
        results = [call.get(name) for name in self._results]
        if out is not None:
            given = list_outputs(out, self.name, len(results))
            results = [_write(r, o) for r, o in zip(results, given, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        call = self._run(self._arrange((), check_feeds(feeds)))
        return {name: call.get(name) for name in self._results}

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        call = self._run(self._arrange((), check_feeds(feeds)))
        parts = [model.profile(own, repeats) for model, own in call.models]
        return tuple(seconds for part in parts for seconds in part)

    def explain(self, feeds: Mapping[str, Any] | None = None) -> Report:
        """Of the models for the values in `feeds`, or for those of the last call."""
        seconds = None if feeds is None else self.profile(feeds)
        if self._last is None:
            self._refuse("explain() without feeds before the first call")
        models, evaluated = self._last
        whole = join_reports(self.name, [model.explain() for model in models], evaluated)
        return whole if seconds is None else whole.with_seconds(seconds)

    @property
    def place(self) -> str:
        models = self._last[0] if self._last else []
        return models[0].place if models else "compiled when it is called"

    @property
    def weights_bytes(self) -> int:
        self._refuse("weights_bytes")

    @property
    def source(self) -> str:
        self._refuse("source")

    def save(self, path: Any) -> None:
        self._refuse("save")

    def export(self, folder: Any) -> None:
        self._refuse("export")

    def __repr__(self) -> str:
        takes = ", ".join(self._takes.values())
        return f"SpecialisingModel({show(repr(self.name))}: {takes}; {self.reason})"

    def _refuse(self, what: str) -> NoReturn:
        unknown = self._unknown
        why = unknown.statement if isinstance(unknown, NotFixed) else str(unknown)
        raise UnsupportedOp(
            f"model {self.name!r}: {what} is not defined, because only a call decides what is "
            f"compiled ({why}); {self._way_out()}"
        )

    def _way_out(self) -> str:
        """What to give so that all is decided when compiling."""
        if isinstance(self._unknown, NotFixed):
            fixed = {size.name for size in self._ranges if size.lower == size.upper}
            # What comes first, and nowhere else, is a batch.
            later = {d for s in self.inputs for d in s.shape[1:] or s.shape}
            named = dict.fromkeys(d for s in self.inputs for d in s.shape if isinstance(d, str))
            sizes = ", ".join(
                f"{n!r}: {EXAMPLE_SIZE if n in later else 1}" for n in named if n not in fixed
            )
            return f"compile it for sizes that are known: dims={{{sizes}}}, or what yours are"
        if isinstance(self._unknown, NeedsValues) and self._unknown.inputs:
            names = ", ".join(map(repr, self._unknown.inputs))
            return f"make what it is to be given as {names} an initializer of the model"
        return "compile it where it is called; its stages are kept in the cache"

    def _run(self, feeds: Mapping[str, Any]) -> Call:
        """The stages, one after the other; what is kept of a call holds none of its arrays."""
        call = Call(dict(self._constants))
        for name, value in feeds.items():
            call.put(name, value)
        plan: Plan | None = self._plan
        while plan is not None:
            plan = plan.run(call)
        self._last = [model for model, _ in call.models], call.evaluated
        return call

    def _arrange(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name: all of them, once, of the types that the inputs have."""
        feeds = arrange(self.name, self._takes, arrays, named, self._optional)
        shapes: list[tuple[int, ...]] = []
        for spec in self.inputs:
            array = feeds[spec.name] = self._convert(spec, feeds[spec.name])
            shapes.append(tuple(array.shape))
        if shapes != self._fitting:
            measure_sizes(self.name, self.inputs, shapes, self._ranges)
            self._fitting = shapes
        return feeds

    def _convert(self, spec: TensorSpec, value: Any) -> Any:
        """An array as it is; a list or a number as an array of the input's type."""
        if type(value) is np.ndarray and value.dtype == spec.dtype:
            return value
        where = f"model {self.name!r}, input {spec.name!r}"
        if not hasattr(value, "shape"):
            return as_array(where, spec, value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype != spec.dtype:
            raise ShapeError(
                f"{where} has type {value.dtype}, expected {spec.dtype}; convert it with "
                f".astype({spelled(spec.dtype)})"
            )
        return value


def join_reports(name: str, reports: Sequence[Report], evaluated: Sequence[Late]) -> Report:
    """What there is to say about stages together, and about nodes that were not compiled."""
    fallbacks = tuple(Fallback(e.node.name, e.node.op, e.reason) for e in evaluated)
    if not reports:
        return Report(name, "the reference evaluator", (), fallbacks)
    seconds: dict[str, float] = {}
    for report in reports:
        for stage, spent in report.stage_seconds.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    return replace(
        reports[0],
        model=name,
        kernels=tuple(k for r in reports for k in r.kernels),
        fallbacks=fallbacks,
        rewrites=tuple(x for r in reports for x in r.rewrites),
        arena_bytes=max(r.arena_bytes for r in reports),
        arena_lower_bound=max(r.arena_lower_bound for r in reports),
        weights_bytes=sum(r.weights_bytes for r in reports),
        stage_seconds=seconds,
        not_fused=tuple(x for r in reports for x in r.not_fused),
        proven=tuple(x for r in reports for x in r.proven),
        float_sums=tuple(x for r in reports for x in r.float_sums),
    )


def _write(result: Any, out: Any) -> Any:
    """A result in the caller's array."""
    if not (isinstance(out, np.ndarray) and out.flags.writeable):
        raise ShapeError("`out` must be a NumPy array that can be written; use np.empty")
    if not isinstance(result, np.ndarray):
        raise ShapeError("`out` is given for an output that is no array; call without it")
    if out.shape != result.shape or out.dtype != result.dtype:
        raise ShapeError(
            f"`out` is {out.dtype}{list(out.shape)}, but the result is "
            f"{result.dtype}{list(result.shape)}; give an array of that type"
        )
    out[...] = result
    return out
