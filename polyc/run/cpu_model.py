"""A model on the CPU: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from polyc.arguments import check_feeds
from polyc.budget import Budget
from polyc.build.bundle import Bundle
from polyc.build.load import (
    DECLARATIONS,
    DECLARED_METHOD,
    STOPPED,
    check_features,
    open_library,
)
from polyc.errors import ShapeError, TooLarge, UnsupportedOp
from polyc.names import show
from polyc.run.calls import Binder, Shape, count_bytes
from polyc.run.found import FoundResults
from polyc.run.model import CompiledModel
from polyc.run.quick import DECLINED, Quick, make_quick
from polyc.run.session import Session
from polyc.target.machine import available_cores
from polyc.toolchain.arenas import Arenas, view
from polyc.types.call_sizes import measure_sizes
from polyc.types.estimate import hinted
from polyc.types.ranges import ADDRESS_LIMIT, assume
from polyc.types.sizes import Size, evaluate

Arrays = np.ndarray | Sequence[np.ndarray]

MAX_VARIANTS = 256
"""Sets of sizes for which calls are prepared at a time; that takes microseconds, and no memory."""


OFTEN = 8
"""Calls with the same sizes, one after another, from which on they are made quick."""

HEADROOM = 4
"""How much larger than at the sizes that kernels are chosen for an arena is from the start."""

READY = 128 << 20
"""Bytes of an arena from the start at most; calls that work in more of them are long ones."""


@dataclass(frozen=True)
class Variant:
    """A model for sizes that are known: its arguments, and what C is told.

    binder: of the inputs and outputs that are no states; values: the sizes by name; sizes: an array
    of int64 in C, in the manifest's order; arena_bytes: what a call works in; found: the outputs,
    where a call finds how large some are.
    """

    binder: Binder
    values: Mapping[str, int]
    sizes: Any
    arena_bytes: int
    found: FoundResults | None = None

    def take_results(self, out: Arrays | None) -> list[np.ndarray]:
        """The arrays to write into: the caller's, or new ones; behind them what a call finds."""
        if self.found:
            return self.found.take(out)
        if out is None:
            return self.binder.allocate_outputs()
        return self.binder.check_outputs(out)

    def finish(self, results: list[np.ndarray], out: Arrays | None) -> list[np.ndarray]:
        """What a caller gets of the arrays that were written into."""
        return self.found.finish(results, out) if self.found else results


_Seen: TypeAlias = tuple[tuple[Shape, ...], tuple[Shape, ...], tuple[tuple[str, int], ...]]
"""What sizes follow from: shapes of arguments, elements of those that say sizes, known sizes."""


class CpuModel(CompiledModel):
    """Calls of C; each takes an arena of its own from a pool.

    A call of a model with states, outside of a session, is one of a session of its own: the states
    are inputs and outputs like others, and are copied.

    `otherwise` is called with sizes, or with values that say sizes, that it was not compiled for.

    A long call hears signals between its launches. What a handler raises, such as
    KeyboardInterrupt, ends it; its results are then undefined, and so are the states of a session.
    """

    otherwise: CompiledModel | None = None
    split_by: tuple[str, ...] = ()
    """Sizes that decide whether this model or `otherwise` runs, where both are needed."""

    def __init__(self, bundle: Bundle, declarations: str = "") -> None:
        """`declarations` are those of further functions in its library."""
        super().__init__(bundle)
        manifest = bundle.manifest
        check_features(self.name, manifest.features)
        declared = DECLARATIONS + DECLARED_METHOD + declarations
        self._opened = open_library(bundle.library, self.name, declared)
        self.threads = manifest.threads or available_cores()
        self.states = manifest.states
        given = {s.input for s in self.states}
        returned = {s.output for s in self.states}
        self._free_inputs = [s for k, s in enumerate(self.inputs) if k not in given]
        self.free_outputs = [s for k, s in enumerate(self.outputs) if k not in returned]
        self._free_shapes = [s for k, s in enumerate(manifest.shapes) if k not in returned]
        self._free_binder = Binder(self.name, self._free_inputs, ()) if given else self._binder
        self._ffi = self._opened.ffi
        self._library = self._opened.functions
        self._run = self._library.polyc_run
        self._view = view
        self._weights = self._view(bundle.weights)
        self._variants: OrderedDict[_Seen, Variant] = OrderedDict()
        self._fixed = None if manifest.sizes else self._make_variant({})
        # What calls do without Python, for the sizes of a variant; the last call's, how many alike.
        self._quick = self._make_quick(self._fixed) if self._fixed else None
        self._quick_for = self._last = self._fixed
        self._repeated = 0
        self._arenas = Arenas()
        if self._quick is None:
            with contextlib.suppress(TooLarge):  # a call says it, if it needs as much
                self._arenas.prepare(self._count_ready_bytes())

    def __call__(
        self, *arrays: Any, out: Arrays | None = None, **named: Any
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        if self._quick and type(out) is np.ndarray and not named:
            status = self._quick(self.threads, *arrays, out)
            if status == 0:
                return out
            if status != DECLINED:
                raise self._failure(cast(Variant, self._quick_for), status, ())
        results = self._call(arrays, named, out)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return dict(zip(self._results, self._call((), check_feeds(feeds), None), strict=True))

    def _call(
        self, arrays: Sequence[Any], named: Mapping[str, Any], out: Arrays | None
    ) -> list[np.ndarray]:
        if self.states:
            return self._call_once(self._binder.arrange(arrays, named), out)
        try:
            variant = self._fixed or self.find_variant(arrays, named)
            if self._fixed and self.otherwise:
                self._binder.bind_inputs(self._binder.arrange(arrays, named), {})
        except ShapeError:
            if self.otherwise is None:
                raise
            if not arrays and out is None:  # whatever a call of `run` has for names
                return list(self.otherwise.run(named).values())
            results = self.otherwise(*arrays, out=out, **named)
            return list(results) if isinstance(results, tuple) else [results]
        arrays = variant.binder.arrange(arrays, named)
        results = variant.take_results(out)
        quick = self._quick if variant is self._quick_for else self._count_call(variant)
        status = quick(self.threads, *arrays, *results) if quick else DECLINED
        if status == DECLINED:
            self.execute(variant, variant.binder.bind_inputs(arrays, {}) + results)
        elif status:
            raise self._failure(variant, status, results)
        return variant.finish(results, out) if variant.found else results

    def save(self, path: str | os.PathLike[str]) -> None:
        self._require_whole("save")
        super().save(path)

    def export(self, folder: str | os.PathLike[str]) -> None:
        self._require_whole("export")
        super().export(folder)

    def start(self, begin: Mapping[str, Any] | Session | None = None) -> Session:
        return Session(self, begin)

    def _require_whole(self, what: str) -> None:
        if self.split_by:
            names = ", ".join(map(repr, self.split_by))
            open_sizes = {size.name: (size.lower, size.upper) for size in self.sizes}
            dims = {name: open_sizes.get(name, 1) for name in self.split_by}
            raise UnsupportedOp(
                f"model {self.name!r}: {what} is not defined, because calls are answered by one of "
                f"two models, as {names} says, and a folder holds one; compile it for one of them: "
                f"dims={dims}, or what yours are"
            )

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up.

        All threads wait for one another around each launch, so that its time is its own. Launches
        that run side by side in a call do not here, and the sum is more than the time of a call.
        """
        begin, free = self._split(self._binder.arrange((), check_feeds(feeds)))
        return self.start(begin).profile(free, repeats)

    def profile_launches(
        self, variant: Variant, io: Sequence[np.ndarray], repeats: int
    ) -> tuple[float, ...]:
        """`profile` on a model's arrays, those of states included."""
        size = len(self._manifest.launches)
        seconds = self._ffi.new("double[]", max(size, 1))
        profile = self._library.polyc_profile
        runs = []
        for _ in range(repeats + 1):
            self.execute(variant, io, lambda *call: profile(*call, seconds))
            runs.append(list(seconds)[:size])
        return tuple(statistics.median(times) for times in zip(*runs[1:], strict=True))

    def find_variant(
        self,
        arrays: Sequence[Any],
        named: Mapping[str, Any],
        known: Mapping[str, int] | None = None,
    ) -> Variant:
        """What is prepared for the sizes of a call; `known` are those that states have."""
        if self._fixed:
            return self._fixed
        arrays = self._free_binder.arrange(arrays, named)
        shapes, values = self._free_binder.shapes(arrays), self._free_binder.values(arrays)
        key = (shapes, values, tuple(known.items()) if known else ())
        variant = self._variants.get(key)
        if variant is None:
            sizes = self._measure(shapes, values, known)
            variant = self._variants[key] = self._make_variant(sizes)
            if len(self._variants) > MAX_VARIANTS:
                self._variants.popitem(last=False)
        return variant

    def _measure(
        self, shapes: tuple[Shape, ...], values: tuple[Shape, ...], known: Mapping[str, int] | None
    ) -> dict[str, int]:
        """The sizes of a call by name; ShapeError for those that it cannot have."""
        ranges = self._manifest.sizes
        sizes = measure_sizes(self.name, self._free_inputs, shapes, ranges, known, values)
        unknown = [size.name for size in ranges if size.name not in sizes]
        if unknown:
            raise ShapeError(
                f"model {self.name!r}: only states have the sizes {', '.join(unknown)}; say what "
                "the states begin with"
            )
        return sizes

    def _make_variant(self, sizes: Mapping[str, int]) -> Variant:
        inputs = [
            replace(spec, shape=tuple(sizes[d] if isinstance(d, str) else d for d in spec.shape))
            for spec in self._free_inputs
        ]
        found = None
        if self._manifest.found:
            found = FoundResults(
                self.name, self._manifest.found, sizes, self.free_outputs, self._free_shapes
            )
            outputs = found.specs
        else:
            outputs = [
                replace(spec, shape=tuple(evaluate(d, sizes) for d in shape))
                for spec, shape in zip(self.free_outputs, self._free_shapes, strict=True)
            ]
        told = self._ffi.new("int64_t[]", [sizes[s.name] for s in self._manifest.sizes] or [0])
        arena_bytes = self._library.polyc_arena_bytes(told)
        results = [count_bytes(spec) for spec in outputs]
        if arena_bytes < 0 or max(results, default=0) >= ADDRESS_LIMIT:
            known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise ShapeError(
                f"model {self.name!r} needs more memory than a process can address where {known}; "
                "use smaller sizes"
            )
        budget = Budget.of(self._manifest.memory_limit)
        budget.require_call(self.name, arena_bytes, self.weights_bytes, sum(results))
        return Variant(Binder(self.name, inputs, outputs), sizes, told, arena_bytes, found)

    def _make_quick(self, variant: Variant) -> Quick | None:
        """Calls with some sizes, without the way through Python, where nothing is asked there."""
        if self.states or variant.found or self.needed:
            return None
        known = self._library, self._ffi, self._weights, variant.sizes, variant.arena_bytes
        with contextlib.suppress(TooLarge):
            return make_quick(*known, [(s.dtype, s.shape) for s in variant.binder.specs])
        return None

    def _count_call(self, variant: Variant) -> Quick | None:
        """The quick call for sizes that many calls have had, one after another; or None."""
        self._repeated = self._repeated + 1 if variant is self._last else 0
        self._last = variant
        if self._repeated < OFTEN:
            return None
        quick = self._make_quick(variant)
        self._quick_for, self._quick = variant, quick
        return quick

    def _split(self, arrays: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(what states begin with, the other inputs), by name; `arrays` are all, in order."""
        feeds = {spec.name: array for spec, array in zip(self.inputs, arrays, strict=True)}
        names = [self.inputs[state.input].name for state in self.states]
        return {name: feeds.pop(name) for name in names}, feeds

    def _call_once(self, arrays: Sequence[Any], out: Arrays | None) -> list[np.ndarray]:
        """All outputs of one call, with its states as inputs and outputs."""
        begin, free = self._split(arrays)
        session = self.start(begin)
        results = session.run(free)
        kept = session.state
        results |= {
            self.outputs[s.output].name: kept[self.inputs[s.input].name] for s in self.states
        }
        ordered = [results[spec.name] for spec in self.outputs]
        if out is None:
            return ordered
        specs = [replace(s, shape=r.shape) for s, r in zip(self.outputs, ordered, strict=True)]
        given = Binder(self.name, (), specs).check_outputs(out)
        for into, result in zip(given, ordered, strict=True):
            into[...] = result
        return given

    def _count_ready_bytes(self) -> int:
        """What first calls work in: at the sizes that kernels are chosen for, and at larger ones.

        So neither the first call of all nor the first at other sizes waits for memory.
        """
        if self._fixed:
            needed = self._fixed.arena_bytes
            return needed if needed <= READY else 0
        with assume(self._manifest.sizes):
            sizes = [hinted(Size.of(size.name)) for size in self._manifest.sizes]
        needed = self._library.polyc_arena_bytes(self._ffi.new("int64_t[]", sizes))
        return min(HEADROOM * needed, READY) if 0 < needed <= READY else 0

    def _take_arena(self, size: int) -> Any:
        return self._arenas.take(size)

    def execute(self, variant: Variant, arrays: Sequence[np.ndarray], function: Any = None) -> None:
        """Call polyc_run, or a function of its form, on a model's inputs and outputs."""
        arena = self._take_arena(variant.arena_bytes)
        try:
            io = [*map(self._view, arrays)]
            status = (function or self._run)(io, self._weights, arena, variant.sizes, self.threads)
        finally:
            self._arenas.put_back(arena)
        if status:
            raise self._failure(variant, status, arrays)

    def _failure(
        self, variant: Variant, status: int, arrays: Sequence[np.ndarray]
    ) -> BaseException:
        """What a call met; for one that was ended, what the handler of a signal raised."""
        if status == STOPPED:
            return self._opened.raised.pop()
        if status < 0:
            return variant.binder.overlap(-status - 1)
        beyond = status - 1 - len(self._manifest.launches)
        if 0 <= beyond < len(self._manifest.found) and variant.found:
            return variant.found.failure(beyond, arrays)
        if beyond >= 0:
            return self._not_admitted(variant, beyond - len(self._manifest.found))
        return self._bad_index(status - 1)

    def _not_admitted(self, variant: Variant, decision: int) -> ShapeError:
        """The error for a branch that a call takes, though its sizes are not for it."""
        broken = [
            (branch, need)
            for branch, needs in self._manifest.demands[decision]
            for need in needs
            if evaluate(need, variant.values) < 0
        ]
        told = " or ".join(f"{show(branch)}, where {need} must not be" for branch, need in broken)
        names = sorted({name for _, need in broken for name in need.names})
        where = ", ".join(f"{name} = {variant.values[name]}" for name in names)
        return ShapeError(
            f"model {self.name!r}: a call takes the branch of {told} negative, with {where}; "
            "give it other sizes"
        )
