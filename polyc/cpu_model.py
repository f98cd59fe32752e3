"""A model on the CPU: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import math
import statistics
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.bundle import Manifest
from polyc.build.load import load_library
from polyc.build.pages import allocate_pages
from polyc.calls import Binder
from polyc.errors import ShapeError
from polyc.model import CompiledModel
from polyc.sizes import ADDRESS_LIMIT, evaluate, measure_sizes
from polyc.target.machine import available_cores

Arrays = np.ndarray | Sequence[np.ndarray]

MAX_VARIANTS = 256
"""Sets of sizes for which calls are prepared at a time; that takes microseconds, and no memory."""


@dataclass(frozen=True)
class Variant:
    """A model for sizes that are known: its arguments, and what C is told.

    sizes: an array of int64 in C, in the manifest's order; arena_bytes: what a call works in.
    """

    binder: Binder
    sizes: Any
    arena_bytes: int


class CpuModel(CompiledModel):
    """Calls of C; each takes an arena of its own from a pool."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        super().__init__(folder, manifest)
        loaded = load_library(folder, manifest)
        self.threads = manifest.threads or available_cores()
        self._ffi = loaded.ffi
        self._library = loaded.library
        self._run = loaded.library.polyc_run
        self._view = loaded.ffi.from_buffer
        self._weights = self._view(loaded.weights)
        # list.append and list.pop are atomic, so the pool needs no lock.
        self._arenas: list[Any] = []
        self._variants: OrderedDict[tuple[int, ...], Variant] = OrderedDict()
        self._fixed = None if manifest.sizes else self._make_variant({})

    def __call__(
        self, *arrays: Any, out: Arrays | None = None, **named: Any
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        variant = self._fixed or self._find_variant(arrays, named)
        bound = variant.binder.bind_inputs(arrays, named)
        if out is None:
            results = variant.binder.allocate_outputs()
        else:
            given = (out,) if isinstance(out, np.ndarray) else tuple(out)
            results = variant.binder.check_outputs(given)
        self._execute(self._run, variant, bound + results)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        variant = self._fixed or self._find_variant((), feeds)
        bound = variant.binder.bind_inputs((), feeds)
        results = variant.binder.allocate_outputs()
        self._execute(self._run, variant, bound + results)
        return dict(zip(self._results, results, strict=True))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up.

        All threads wait for one another around each launch, so that its time is its own. Launches
        that run side by side in a call do not here, and the sum is more than the time of a call.
        """
        variant = self._fixed or self._find_variant((), feeds)
        arrays = variant.binder.bind_inputs((), feeds) + variant.binder.allocate_outputs()
        size = len(self._manifest.launches)
        seconds = self._ffi.new("double[]", max(size, 1))
        profile = self._library.polyc_profile
        runs = []
        for _ in range(repeats + 1):
            self._execute(lambda *call: profile(*call, seconds), variant, arrays)
            runs.append(list(seconds)[:size])
        return tuple(statistics.median(times) for times in zip(*runs[1:], strict=True))

    def _find_variant(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Variant:
        """What is prepared for the sizes of a call."""
        shapes = [tuple(np.shape(value)) for value in self._binder.arrange(arrays, named)]
        sizes = measure_sizes(self.name, self.inputs, shapes, self._manifest.sizes)
        key = tuple(sizes[size.name] for size in self._manifest.sizes)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._make_variant(sizes)
            if len(self._variants) > MAX_VARIANTS:
                self._variants.popitem(last=False)
        return variant

    def _make_variant(self, sizes: Mapping[str, int]) -> Variant:
        inputs = [
            replace(spec, shape=tuple(sizes[d] if isinstance(d, str) else d for d in spec.shape))
            for spec in self.inputs
        ]
        shapes = [tuple(evaluate(d, sizes) for d in shape) for shape in self._manifest.shapes]
        outputs = [replace(s, shape=shape) for s, shape in zip(self.outputs, shapes, strict=True)]
        told = self._ffi.new("int64_t[]", [sizes[s.name] for s in self._manifest.sizes] or [0])
        arena_bytes = self._library.polyc_arena_bytes(told)
        results = (math.prod(s) * o.dtype.itemsize for s, o in zip(shapes, outputs, strict=True))
        if arena_bytes < 0 or max(results, default=0) >= ADDRESS_LIMIT:
            known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise ShapeError(
                f"model {self.name!r} needs more memory than a process can address where {known}; "
                "use smaller sizes"
            )
        return Variant(Binder(self.name, inputs, outputs), told, arena_bytes)

    def _take_arena(self, size: int) -> Any:
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = None
        if arena is None or len(arena) < size:
            arena = self._view(allocate_pages(max(size, 1)))
        return arena

    def _execute(self, function: Any, variant: Variant, arrays: Sequence[np.ndarray]) -> None:
        """Call polyc_run, or a function of its form, on a model's inputs and outputs."""
        arena = self._take_arena(variant.arena_bytes)
        try:
            io = list(map(self._view, arrays))
            status = function(io, self._weights, arena, variant.sizes, self.threads)
        finally:
            self._arenas.append(arena)
        if status < 0:
            raise variant.binder.overlap(-status - 1)
        if status:
            raise self._bad_index(status - 1)
