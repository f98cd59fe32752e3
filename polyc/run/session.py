"""Sessions: calls that follow one another, with states that each leaves to the next.

    session = model.start()
    logits = session(prompt)        states begin as zeros; those that grow begin empty
    logits = session(token)         and go on from there

The memory of a state is allocated when its sizes are known, and stays: calls hand pointers over and
copy nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyc.arguments import check_feeds
from polyc.errors import ShapeError, refuse
from polyc.run.calls import Binder
from polyc.toolchain.pages import allocate_pages
from polyc.types.call_sizes import measure_sizes
from polyc.types.sizes import evaluate
from polyc.types.spec import TensorSpec

if TYPE_CHECKING:
    from polyc.run.cpu_model import CpuModel, Variant


class Memory:
    """The states of a session, by the names of their inputs.

    sizes: those that the states have now, as far as they are known. values: what states begin
    with, where it was given. buffers: one array a state, or two, of which the next call reads the
    first; they hold what the states are if they are `filled`.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.buffers: dict[str, list[np.ndarray]] = {}
        self.begin({}, {})

    def begin(self, values: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
        self.values, self.sizes, self.filled = values, dict(sizes), False


class Session:
    """A model with states of its own.

    Calls of one session follow one another, whatever threads they come from; those of several
    sessions run side by side.
    """

    def __init__(self, model: CpuModel, begin: Mapping[str, Any] | Session | None = None) -> None:
        self._model = model
        self._specs = {model.inputs[s.input].name: model.inputs[s.input] for s in model.states}
        # What grows, and what it is after a call.
        self._grown = {s.name: s.next for s in model.sizes if s.next is not None}
        self._memory: Memory = begin._memory if isinstance(begin, Session) else Memory()
        if isinstance(begin, Session):
            self._check_alike(begin)
        else:
            self.reset(begin)

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Run the model on the inputs that are no states, in order or by name.

        Returns the output that is no state, or a tuple if there are several or none; `out`, an
        array or a sequence of arrays, is written into and returned. Raises as a call of a model
        does, and ShapeError where a state has no room for what is new. After an index out of range
        states that grow are as before, and others undefined.
        """
        results = self._call(arrays, named, out)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The same by name: {input: array} -> {output: array}."""
        names = [spec.name for spec in self._model.free_outputs]
        return dict(zip(names, self._call((), check_feeds(feeds), None), strict=True))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch of a call, as `CompiledModel.profile`; states do not go on."""
        with self._memory.lock:
            variant, _, io = self._prepare((), check_feeds(feeds), None)
            return self._model.profile_launches(variant, io, repeats)

    @property
    def state(self) -> Mapping[str, np.ndarray]:
        """What the states are, by the names of their inputs; an array that is read is a copy.

        Raises ShapeError before the first call where only that says how large they are.
        """
        return _States(self._specs, self._read)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes that states have now, as far as they are known: {"past": 12}."""
        return dict(self._memory.sizes)

    def reset(self, values: Mapping[str, Any] | None = None) -> None:
        """Begin anew, as `CompiledModel.start` does; memory is kept.

        Raises ShapeError for what is no state, and for values that do not fit.
        """
        if values is not None and not isinstance(values, Mapping):
            refuse("begin", values, "values by the names of states, or a Session")
        given = dict(values or {})
        for name in given:
            if name not in self._specs:
                raise ShapeError(
                    f"model {self._model.name!r} has no state {name!r}; it has "
                    + (", ".join(self._specs) or "none")
                )
        specs = [self._specs[name] for name in given]
        shapes = Binder(self._model.name, specs, ()).shapes(list(given.values()))
        known = measure_sizes(self._model.name, specs, shapes)
        empty = {size for size in self._grown if size not in known}
        for name, spec in self._specs.items():
            if name not in given and any(known.get(str(d)) for d in spec.shape if d in self._grown):
                raise ShapeError(
                    f"state {name!r} grows with others that are given; give it as well"
                )
        fixed = [TensorSpec(s.name, s.dtype, d) for s, d in zip(specs, shapes, strict=True)]
        arrays = Binder(self._model.name, fixed, ()).bind_inputs((), given)
        copies = {name: a.copy() for name, a in zip(given, arrays, strict=True)}
        with self._memory.lock:
            self._memory.begin(copies, {**known, **dict.fromkeys(empty, 0)})

    def _check_alike(self, other: Session) -> None:
        """Whether the memory of another model's session is what this model's would be."""

        def layouts(model: CpuModel) -> dict[str, Any]:
            stored = {}
            for state in model.states:
                spec = model.inputs[state.input]
                stored[spec.name] = (spec.dtype, state.stored(spec.shape), state.in_place)
            return stored

        if layouts(self._model) != layouts(other._model):
            raise ShapeError(
                f"models {self._model.name!r} and {other._model.name!r} keep different states; "
                "compile both with the same `state` and the same ranges of their sizes"
            )

    def _call(self, arrays: Sequence[Any], named: Mapping[str, Any], out: Any) -> list[np.ndarray]:
        with self._memory.lock:
            variant, results, io = self._prepare(arrays, named, out)
            self._model.execute(variant, io)
            self._finish(variant)
        return variant.finish(results, out)

    def _prepare(
        self, arrays: Sequence[Any], named: Mapping[str, Any], out: Any
    ) -> tuple[Variant, list[np.ndarray], list[np.ndarray]]:
        """(the variant for a call, its results, all its arrays as C takes them)"""
        model = self._model
        variant = model.find_variant(arrays, named, self._memory.sizes)
        given = iter(variant.binder.bind_inputs(arrays, named))
        results = variant.take_results(out)
        self._fill(variant.values)
        buffers = self._memory.buffers
        io = [buffers[s.name][0] if s.name in buffers else next(given) for s in model.inputs]
        homes = {s.output: buffers[model.inputs[s.input].name][-1] for s in model.states}
        free = iter(results)
        io += [homes[k] if k in homes else next(free) for k in range(len(model.outputs))]
        io += free  # behind the outputs is what the call finds
        return variant, results, io

    def _finish(self, variant: Variant) -> None:
        """After a call: its outputs are the states."""
        memory, sizes = self._memory, variant.values
        for buffers in memory.buffers.values():
            buffers.reverse()
        names = {d for spec in self._specs.values() for d in spec.shape if isinstance(d, str)}
        memory.sizes = {n: evaluate(self._grown.get(n, sizes[n]), sizes) for n in sorted(names)}

    def _fill(self, sizes: Mapping[str, int]) -> None:
        """Let the buffers hold what the states begin with, if there has been no call yet."""
        memory = self._memory
        if memory.filled:
            return
        for state in self._model.states:
            spec = self._model.inputs[state.input]
            shape = tuple(d if isinstance(d, int) else sizes.get(d, -1) for d in spec.shape)
            if -1 in shape:
                raise ShapeError(f"state {spec}: how large it is only a first call can say")
            stored = state.stored(shape)
            buffers = memory.buffers.get(spec.name, [])
            if not buffers or buffers[0].shape != stored:
                count = 1 if state.in_place else 2
                buffers = [_allocate(stored, spec.dtype) for _ in range(count)]
                memory.buffers[spec.name] = buffers
            begun = memory.values.get(spec.name, np.zeros((), spec.dtype))
            buffers[0][tuple(map(slice, shape))] = begun
        memory.values, memory.filled = {}, True

    def _read(self, name: str) -> np.ndarray:
        """A copy of the part of a state's memory that is filled."""
        with self._memory.lock:
            self._fill(self._memory.sizes)
            sizes = self._memory.sizes
            shape = (d if isinstance(d, int) else sizes[d] for d in self._specs[name].shape)
            return self._memory.buffers[name][0][tuple(map(slice, shape))].copy()


class _States(Mapping[str, np.ndarray]):
    """The states of a session, each read when it is asked for."""

    def __init__(self, names: Collection[str], read: Callable[[str], np.ndarray]) -> None:
        self._names, self._read = names, read

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _allocate(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros, in huge pages where these are to be had."""
    return allocate_pages(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
