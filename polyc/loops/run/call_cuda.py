"""Calling a kernel on a GPU: arrays are copied to the device, and what is written back again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyc.loops.read.sizes import Signature
from polyc.loops.run.call import MOST_CHOSEN, Bound, bind, data_leaves
from polyc.loops.run.stored import Stored
from polyc.run.cuda.array import DeviceArray
from polyc.run.cuda.library import CudaLibrary, open_cuda_library
from polyc.run.cuda.stream import DEFAULT


@dataclass(frozen=True)
class _Room:
    """The memory of one call at a time on a device: its arrays, and what the kernel works in."""

    arrays: tuple[DeviceArray, ...]
    workspace: DeviceArray


@dataclass
class LoadedForCuda:
    """A kernel for arguments of known sizes, loaded, and memory for calls that no call uses.

    list.append and list.pop are atomic, so the pools, one a device, need no lock.
    """

    stored: Stored
    library: CudaLibrary
    rooms: dict[int, list[_Room]] = field(default_factory=dict)

    @staticmethod
    def open(stored: Stored) -> LoadedForCuda:
        manifest = stored.bundle.manifest
        launches = [kernel for kernel, _ in manifest.launches]
        content, emulated = stored.bundle.library, manifest.platform == "emulated"
        return LoadedForCuda(stored, open_cuda_library(content, manifest.name, emulated, launches))

    def run(self, bound: Bound) -> None:
        """Run the kernel on arrays of the host, and wait."""
        library = self.library
        pool = self.rooms.setdefault(library.current_device(), [])
        try:
            room = pool.pop()
        except IndexError:
            room = self._make_room(bound)
        try:
            self._run(room, bound)
        finally:
            pool.append(room)

    def _make_room(self, bound: Bound) -> _Room:
        library, manifest = self.library, self.stored.bundle.manifest
        arrays = (DeviceArray(library, a.shape, a.dtype) for a in bound.held.values())
        size = manifest.workspace_bytes
        workspace = DeviceArray(library, (size,), np.dtype(np.uint8))
        library.clear(workspace.address, size, DEFAULT)
        return _Room(tuple(arrays), workspace)

    def _run(self, room: _Room, bound: Bound) -> None:
        library, ffi, manifest = self.library, self.library.ffi, self.stored.bundle.manifest
        places = dict(zip(bound.held, room.arrays, strict=True))
        for name, array in bound.held.items():
            library.upload(places[name].address, array, DEFAULT)
        addresses = [a.address for a in room.arrays]
        addresses += [addresses[state.input] for state in manifest.states]
        buffers = ffi.new("uintptr_t[]", [*addresses, 0])
        status = library.functions.polyc_run(
            ffi.cast("void *const *", buffers),
            library.pointer(room.workspace.address),
            library.pointer(DEFAULT),
        )
        assert status >= 0, "no array of a room lies in another"
        library.check(status)
        for name in bound.held:
            if name in bound.written:
                library.download(bound.held[name], places[name].address, DEFAULT)
        library.synchronise(DEFAULT)
        if manifest.fallible:
            self._check_index(room)

    def _check_index(self, room: _Room) -> None:
        """RuntimeFailure if a subscript that is data has left its array."""
        manifest = self.stored.bundle.manifest
        at = room.workspace.address + manifest.arena_bytes
        failed = np.zeros(1, np.int32)
        self.library.download(failed, at, DEFAULT)
        self.library.synchronise(DEFAULT)
        if failed[0]:
            self.library.clear(at, failed.nbytes, DEFAULT)
            raise data_leaves(manifest.name)


@dataclass
class CudaCaller:
    """A kernel ready to be called on a GPU with arguments of some types.

    written: the arrays that are. load: what is compiled for some sizes, or None if nothing is to be
    done then; before_sizes: does what can be done before they are known; chosen: what was loaded.
    """

    signature: Signature
    written: frozenset[str]
    load: Callable[[tuple[int, ...]], LoadedForCuda | None]
    before_sizes: Callable[[], None]
    chosen: dict[tuple[int, ...], LoadedForCuda | None] = field(default_factory=dict)
    last: LoadedForCuda | None = None

    def begin(self) -> None:
        """Ahead of the first call: what is wrong with the text, unless sizes are known."""
        if self.signature.sizes:
            self.before_sizes()

    @property
    def stored(self) -> Stored | None:
        """What was made for the sizes of the last call."""
        return self.last.stored if self.last else None

    def __call__(self, values: Mapping[str, Any], threads: int = 0) -> None:
        """Run the kernel; ShapeError for arguments that do not fit, which are then unchanged.

        threads is of no account here: a launch says how many it takes.
        """
        bound = bind(self.signature, self.written, values)
        loaded = self.prepare(bound.sizes)
        if loaded is not None:
            loaded.run(bound)
            bound.write_back()

    def prepare(self, sizes: tuple[int, ...]) -> LoadedForCuda | None:
        """What is compiled for some sizes; ShapeError if Python would leave an array with them."""
        if sizes not in self.chosen:
            if len(self.chosen) >= MOST_CHOSEN:
                self.chosen.clear()
            self.chosen[sizes] = self.load(sizes)
        self.last = self.chosen[sizes] or self.last
        return self.chosen[sizes]
