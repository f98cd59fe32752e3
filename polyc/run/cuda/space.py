"""What one call at a time works in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.build.manifest import Manifest
from polyc.run.cuda.array import DeviceArray
from polyc.run.cuda.calls import Argument
from polyc.run.cuda.library import CudaLibrary


class Space:
    """The workspace of a model in a stream, the addresses that polyc_run takes, and memory of the
    device for arguments that are copied there.

    Calls in one stream follow one another, so one space serves many of them.
    """

    def __init__(
        self, library: CudaLibrary, manifest: Manifest, weights: DeviceArray, stream: int
    ) -> None:
        """On the current device, where the constants are; they are kept as long."""
        size = manifest.workspace_bytes
        count = len(manifest.inputs) + len(manifest.outputs)
        self._library = library
        self._manifest = manifest
        self._stream = stream
        self._weights = weights
        self._workspace = DeviceArray(library, (size,), np.dtype(np.uint8), stream)
        self._copies: dict[int, DeviceArray] = {}
        self._addresses = library.ffi.new("uintptr_t[]", count + 1)
        self._addresses[count] = weights.address
        self._call = (
            library.ffi.cast("void *const *", self._addresses),
            library.pointer(self._workspace.address),
        )
        library.clear(self._workspace.address, size, stream)

    def bind(self, inputs: Sequence[Argument], outputs: Sequence[Argument]) -> None:
        """Note where the arguments are; copy inputs to where kernels can read them."""
        for slot, a in enumerate((*inputs, *outputs)):
            address = a.address
            if address is None:
                address = self._place(slot, a.bytes)
                if slot < len(inputs):
                    self._copy_in(a, address)
            self._addresses[slot] = address

    def run(self) -> int:
        """polyc_run: a status."""
        status: int = self._library.functions.polyc_run(*self._call, self._handle)
        return status

    def profile(self, seconds: Any) -> int:
        """polyc_profile: a status; seconds: of each launch, as a C array of double."""
        status: int = self._library.functions.polyc_profile(*self._call, self._handle, seconds)
        return status

    def capture(self, graph: Any) -> int:
        """polyc_capture: a status; graph: where a `void *` goes."""
        status: int = self._library.functions.polyc_capture(*self._call, graph)
        return status

    def fetch(self, outputs: Sequence[Argument], first: int) -> None:
        """Copy outputs to the host if they lie there, and wait; `first` is the first one's slot."""
        for slot, a in enumerate(outputs, first):
            if a.on_host is not None:
                self._library.download(a.on_host, self._place(slot, a.bytes), self._stream)
        self._library.synchronise(self._stream)

    def find_failed(self) -> int | None:
        """The first launch that has met an index out of range since this was last asked."""
        if not self._manifest.fallible:
            return None
        start = self._workspace.address + self._manifest.arena_bytes
        failed = np.zeros(len(self._manifest.launches), np.int32)
        self._library.download(failed, start, self._stream)
        self._library.synchronise(self._stream)
        if not failed.any():
            return None
        self._library.clear(start, failed.nbytes, self._stream)
        return int(failed.nonzero()[0][0])

    @property
    def _handle(self) -> Any:
        return self._library.pointer(self._stream)

    def _place(self, slot: int, size: int) -> int:
        """The address of the device's memory for an argument, made when it is first needed."""
        if slot not in self._copies:
            made = DeviceArray(self._library, (size,), np.dtype(np.uint8), self._stream)
            self._copies[slot] = made
        return self._copies[slot].address

    def _copy_in(self, a: Argument, address: int) -> None:
        if a.on_host is not None:
            self._library.upload(address, a.on_host, self._stream)
        elif a.on_device is not None:
            self._library.copy(address, a.on_device.address, a.bytes, self._stream)
