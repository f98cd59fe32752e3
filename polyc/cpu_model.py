"""A model on the CPU: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.bundle import Manifest
from polyc.build.load import load_library
from polyc.build.pages import allocate_pages
from polyc.model import CompiledModel
from polyc.target.machine import available_cores

Arrays = np.ndarray | Sequence[np.ndarray]


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

    def __call__(
        self, *arrays: Any, out: Arrays | None = None, **named: Any
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        bound = self._binder.bind_inputs(arrays, named)
        if out is None:
            results = self._binder.allocate_outputs()
        else:
            given = (out,) if isinstance(out, np.ndarray) else tuple(out)
            results = self._binder.check_outputs(given)
        self._execute(self._run, bound + results)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        bound = self._binder.bind_inputs((), feeds)
        results = self._binder.allocate_outputs()
        self._execute(self._run, bound + results)
        return dict(zip(self._results, results, strict=True))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up.

        All threads wait for one another around each launch, so that its time is its own. Launches
        that run side by side in a call do not here, and the sum is more than the time of a call.
        """
        arrays = self._binder.bind_inputs((), feeds) + self._binder.allocate_outputs()
        size = len(self._manifest.launches)
        seconds = self._ffi.new("double[]", max(size, 1))
        profile = self._library.polyc_profile
        runs = []
        for _ in range(repeats + 1):
            self._execute(lambda *call: profile(*call, seconds), arrays)
            runs.append(list(seconds)[:size])
        return tuple(statistics.median(times) for times in zip(*runs[1:], strict=True))

    def _execute(self, function: Any, arrays: Sequence[np.ndarray]) -> None:
        """Call polyc_run, or a function of its form, on a model's inputs and outputs."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self._view(allocate_pages(max(self._manifest.arena_bytes, 1)))
        try:
            io = list(map(self._view, arrays))
            status = function(io, self._weights, arena, self.threads)
        finally:
            self._arenas.append(arena)
        if status < 0:
            raise self._binder.overlap(-status - 1)
        if status:
            raise self._bad_index(status - 1)
