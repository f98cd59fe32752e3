"""Models that a call completes: compiled for the sizes and for the values that it brings.

    y = Reshape(x, target)      x: float32[2, 12], target: int64[2], both fed

There is no loop nest before `target` is known, so a call makes it a constant and compiles what is
left. So it is with sizes that are known only at run time, where loops over them could not be
generated (`NotFixed` says why). Each set of sizes and values gives a model of its own, which is
kept, here and in the cache on disk; it is as fast as one that was exported with them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

from polyc.errors import NeedsValues, NotFixed, ShapeError, UnsupportedOp
from polyc.graph.ir import Graph
from polyc.graph.onnx_export import export_onnx
from polyc.graph.onnx_nodes import read_inputs
from polyc.model import CompiledModel
from polyc.report.report import Report
from polyc.sizes import SizeRange, measure_sizes
from polyc.spec import TensorSpec

MAX_VALUES = 4096
"""Elements of the largest input that is made a constant: what steers shapes is a short list."""

MAX_KEPT = 64
"""Compiled models that are kept in memory; the least recently used one goes first."""

Compile = Callable[[ModelProto], CompiledModel]


def complete_in_call(
    model: Any, unknown: UnsupportedOp, ranges: Sequence[SizeRange], compile: Compile
) -> SpecialisingModel | None:
    """The model, to be compiled when it is called, if that brings what was unknown; else None."""
    if not isinstance(unknown, NeedsValues | NotFixed):
        return None
    loaded = _load(model)
    inputs = _read_specs(loaded)
    has_sizes = any(isinstance(dim, str) for spec in inputs for dim in spec.shape)
    # With the sizes known, fewer values may be asked for.
    steering = () if has_sizes or isinstance(unknown, NotFixed) else unknown.inputs
    if not (has_sizes or steering):
        return None
    return SpecialisingModel(loaded, inputs, steering, ranges, compile, str(unknown))


class SpecialisingModel(CompiledModel):
    """A model that is compiled for the sizes, and the values of some inputs, that a call brings.

    `inputs` are all inputs, in order; `outputs` is empty, since their shapes are known in a call
    only. What belongs to one compiled model (`source`, `save`, `export`) is refused. `reason` says
    what could not be compiled without.
    """

    def __init__(
        self,
        model: ModelProto,
        inputs: tuple[TensorSpec, ...],
        steering: tuple[str, ...],
        ranges: Sequence[SizeRange],
        compile: Compile,
        reason: str,
    ) -> None:
        self._model = model
        self._steering = steering
        self._ranges = ranges
        self._compile = compile
        self._kept: OrderedDict[Any, CompiledModel] = OrderedDict()
        self._last: CompiledModel | None = None
        self.reason = reason
        self.name = model.graph.name or "graph"
        self.inputs = inputs
        self.outputs = ()
        self._names = [spec.name for spec in self.inputs]

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """As any model's; `out` must have the shapes that the values lead to."""
        feeds = self._arrange(arrays, named)
        model = self._specialise(feeds)
        rest = {spec.name: feeds[spec.name] for spec in model.inputs}
        return model(out=out, **rest) if out is not None else model(**rest)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        model = self._specialise(self._arrange((), feeds))
        return model.run({spec.name: feeds[spec.name] for spec in model.inputs})

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        model = self._specialise(self._arrange((), feeds))
        return model.profile({spec.name: feeds[spec.name] for spec in model.inputs}, repeats)

    def explain(self, feeds: Mapping[str, Any] | None = None) -> Report:
        """Of the model for the values in `feeds`, or for those of the last call."""
        if feeds is None:
            if self._last is None:
                self._refuse("explain() without feeds before the first call")
            return self._last.explain()
        model = self._specialise(self._arrange((), feeds))
        return model.explain({spec.name: feeds[spec.name] for spec in model.inputs})

    @property
    def place(self) -> str:
        return self._last.place if self._last else "compiled when it is called"

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
        ins = ", ".join(map(str, self.inputs))
        return f"SpecialisingModel({self.name!r}: {ins}; by {self._decisive})"

    @property
    def _decisive(self) -> str:
        """What a call brings, in words."""
        sizes = dict.fromkeys(d for s in self.inputs for d in s.shape if isinstance(d, str))
        values = f"the values of {', '.join(self._steering)}" if self._steering else ""
        return " and ".join(
            filter(None, [f"the sizes {', '.join(sizes)}" if sizes else "", values])
        )

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedOp(
            f"model {self.name!r}: {what} is not defined, because {self._decisive} decide what is "
            "compiled; make values initializers and give sizes in dims"
        )

    def _arrange(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name: all of them, once."""
        given = dict(zip(self._names, arrays, strict=False))
        unknown = set(named) - set(self._names)
        missing = [n for n in self._names if n not in given and n not in named]
        if len(arrays) > len(self._names) or unknown or missing or given.keys() & named:
            raise ShapeError(
                f"model {self.name!r} takes the inputs {', '.join(self._names)}; give each once"
            )
        return {**given, **named}

    def _specialise(self, feeds: Mapping[str, Any]) -> CompiledModel:
        """The model for these feeds; more inputs may turn out to steer while compiling."""
        shapes = [tuple(np.shape(feeds[name])) for name in self._names]
        sizes = measure_sizes(self.name, self.inputs, shapes, self._ranges)
        while True:
            values = {name: self._value(name, feeds[name]) for name in self._steering}
            read = [(n, v.dtype.str, v.shape, v.tobytes()) for n, v in values.items()]
            key = (tuple(sizes.items()), *read)
            if key not in self._kept:
                try:
                    self._kept[key] = self._compile(self._with(values, sizes))
                except NeedsValues as more:
                    found = {*self._steering, *more.inputs}
                    if found == set(self._steering):
                        raise
                    self._steering = tuple(n for n in self._names if n in found)
                    continue
                if len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            self._last = self._kept[key]
            return self._last

    def _with(self, values: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> ModelProto:
        """The model with some of its inputs as initializers, and the others of known sizes."""
        known = ModelProto()
        known.CopyFrom(self._model)
        shapes = {spec.name: spec.shape for spec in self.inputs}
        kept = [i for i in known.graph.input if i.name not in values]
        for info in kept:
            dims = info.type.tensor_type.shape.dim
            for dim, extent in zip(dims, shapes.get(info.name, ()), strict=False):
                if isinstance(extent, str):
                    dim.dim_value = sizes[extent]
        del known.graph.input[:]
        known.graph.input.extend(kept)
        known.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in values.items())
        return known

    def _value(self, name: str, value: Any) -> np.ndarray:
        spec = next(s for s in self.inputs if s.name == name)
        array = np.asarray(value)
        if array.dtype != spec.dtype:
            array = array.astype(spec.dtype, casting="same_kind")
        if array.size > MAX_VALUES:
            raise UnsupportedOp(
                f"model {self.name!r}: what is compiled depends on the {array.size} values of "
                f"{name!r}; at most {MAX_VALUES} are made constants: make it an initializer"
            )
        return array


def _load(model: Any) -> ModelProto:
    """The model in one message, with data from other files inside."""
    if isinstance(model, ModelProto):
        return model
    if isinstance(model, Graph):
        return export_onnx(model)
    return onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)


def _read_specs(model: ModelProto) -> tuple[TensorSpec, ...]:
    constants = {t.name for t in model.graph.initializer}
    inputs = read_inputs(model.graph, constants)
    return tuple(TensorSpec(t.name, t.dtype, t.shape) for t in inputs)
