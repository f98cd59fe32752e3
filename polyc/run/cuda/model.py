"""A model on a GPU: arrays of NumPy or of the device in, the same kind out."""

from __future__ import annotations

import statistics
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyc.arguments import check_feeds
from polyc.build.bundle import Bundle
from polyc.errors import ShapeError
from polyc.run.cuda.array import DeviceArray
from polyc.run.cuda.calls import Argument, allocate, bind_inputs, bind_outputs, find_device
from polyc.run.cuda.library import CudaLibrary, open_cuda_library
from polyc.run.cuda.space import Space
from polyc.run.cuda.stream import DEFAULT, stream_handle
from polyc.run.model import CompiledModel


@dataclass(frozen=True)
class _Device:
    """A model on one device: its constants, and spaces that no call uses, by stream.

    list.append and list.pop are atomic, so the pools need no lock.
    """

    weights: DeviceArray
    pools: dict[int, list[Space]]


class CudaModel(CompiledModel):
    """Calls put their kernels into a stream.

    Where an input lies on the device (DLPack, then `__cuda_array_interface__`), so do the outputs,
    and a call returns before they are computed; NumPy's arrays are copied there and back, and the
    call waits. The constants are uploaded once, at the first call on a device.
    """

    def __init__(self, bundle: Bundle, declarations: str = "") -> None:
        """`declarations` are those of functions in its library that are not every model's."""
        super().__init__(bundle)
        manifest = bundle.manifest
        nodes = [", ".join(origin) or kernel for kernel, origin in manifest.launches]
        emulated = manifest.platform == "emulated"
        self._library = open_cuda_library(bundle.library, self.name, emulated, nodes, declarations)
        self._devices: dict[int, _Device] = {}

    def __call__(self, *arrays: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Run the model on inputs in order, or by name, in a CUDA stream.

        stream: an int, or a stream of torch, CuPy or cuda.core; by default the default stream.
        Returns the output, or a tuple in the graph's order if there are several: NumPy's arrays if
        all inputs are on the host, else `DeviceArray`s, whose computing may not have ended. `out`,
        an array or a sequence of arrays of either kind, is written into and returned. Another
        library's array that this stream reads, and that library knows nothing of, must live until
        it has been read. Raises ShapeError for an array that does not fit, RuntimeFailure without a
        GPU, and for an index out of range: at once if the call waits, or else by `check`.
        """
        values = self._binder.arrange(arrays, named)
        results = self._call(values, out, stream_handle(stream))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any], stream: Any = None) -> dict[str, Any]:
        """Run the model by name: {input: array} -> {output: array}, as a call does."""
        values = self._binder.arrange((), check_feeds(feeds))
        results = self._call(values, None, stream_handle(stream))
        return dict(zip(self._results, results, strict=True))

    def to_device(self, array: Any, stream: Any = None) -> DeviceArray:
        """A copy of a host's array in the memory of the current device."""
        host = np.asarray(array, order="C")
        made = DeviceArray(self._library, host.shape, host.dtype, stream_handle(stream))
        self._library.upload(made.address, host, made.stream)
        return made

    def check(self, stream: Any = None) -> None:
        """Wait for a stream; RuntimeFailure if a call in it has met an index out of range."""
        handle = stream_handle(stream)
        self._library.synchronise(handle)
        device = self._devices.get(self._library.current_device())
        for space in device.pools.get(handle, []) if device else []:
            self._check_indices(space)

    def capture(self, *arrays: Any, out: Any = None, **named: Any) -> Captured:
        """A call as a CUDA graph, to be replayed on the same arrays; all are device arrays.

        The model is run once first, so that everything is loaded. `replay` computes anew from what
        the inputs hold by then. Without `out` the outputs are new arrays, `Captured.outputs`.
        """
        values = self._binder.arrange(arrays, named)
        inputs, outputs = self._bind(values, out, DEFAULT)
        if any(a.address is None for a in (*inputs, *outputs)):
            raise ShapeError(
                f"model {self.name!r}: a graph reads and writes device arrays, aligned to 16 "
                "bytes; copy the others there (`to_device`)"
            )
        with self._library.on_device(find_device((*inputs, *outputs), self._library)):
            space = Space(self._library, self._manifest, self._device(DEFAULT).weights, DEFAULT)
            space.bind(inputs, outputs)
            graph = self._library.ffi.new("void **")
            self._check_status(space.run())
            self._library.synchronise(DEFAULT)
            self._check_indices(space)
            self._check_status(space.capture(graph))
        read, written = (tuple(a.given for a in part) for part in (inputs, outputs))
        return Captured(self._library, graph[0], read, written, (space, self))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up.

        They are told by events in the stream, and do not count what the host does in between.
        """
        values = self._binder.arrange((), check_feeds(feeds))
        size = len(self._manifest.launches)
        seconds = self._library.ffi.new("double[]", max(size, 1))
        runs = []
        for _ in range(repeats + 1):
            self._call(values, None, DEFAULT, seconds)
            runs.append(list(seconds)[:size])
        return tuple(statistics.median(times) for times in zip(*runs[1:], strict=True))

    def _call(self, values: Sequence[Any], out: Any, stream: int, seconds: Any = None) -> list[Any]:
        inputs, outputs = self._bind(values, out, stream)
        device = find_device((*inputs, *outputs), self._library)
        if device == self._library.current_device():
            self._launch(inputs, outputs, stream, seconds)
        else:
            with self._library.on_device(device):
                self._launch(inputs, outputs, stream, seconds)
        return [a.given for a in outputs]

    def _launch(
        self, inputs: Sequence[Argument], outputs: Sequence[Argument], stream: int, seconds: Any
    ) -> None:
        """Put the model into a stream of the current device, and wait if outputs go to the host."""
        device = self._device(stream)
        pool = device.pools.setdefault(stream, [])
        try:
            space = pool.pop()
        except IndexError:
            space = Space(self._library, self._manifest, device.weights, stream)
        try:
            space.bind(inputs, outputs)
            self._check_status(space.run() if seconds is None else space.profile(seconds))
            if any(a.on_host is not None for a in outputs):
                space.fetch(outputs, len(inputs))
                self._check_indices(space)
        finally:
            pool.append(space)

    def _bind(
        self, values: Sequence[Any], out: Any, stream: int
    ) -> tuple[list[Argument], list[Argument]]:
        library = self._library
        inputs = bind_inputs(self._binder, self.inputs, values, library, stream)
        if out is not None:
            return inputs, bind_outputs(self._binder, self.outputs, out, library, stream)
        on_host = all(a.on_device is None for a in inputs)
        with library.on_device(find_device(inputs, library)):
            return inputs, allocate(self.outputs, library, stream, on_host)

    def _device(self, stream: int) -> _Device:
        """The model on the current device, with its constants there."""
        number = self._library.current_device()
        if number not in self._devices:
            constants = self._bundle.weights
            weights = DeviceArray(self._library, constants.shape, constants.dtype, stream)
            self._library.upload(weights.address, constants, stream)
            self._library.synchronise(stream)
            self._devices.setdefault(number, _Device(weights, {}))
        return self._devices[number]

    def _check_status(self, status: int) -> None:
        if status < 0:
            raise self._binder.overlap(-status - 1)
        self._library.check(status)

    def _check_indices(self, space: Space) -> None:
        failed = space.find_failed()
        if failed is not None:
            raise self._bad_index(failed)


class Captured:
    """A call as a CUDA graph.

    outputs: the arrays that a replay writes.
    """

    def __init__(
        self,
        library: CudaLibrary,
        graph: Any,
        inputs: tuple[Any, ...],
        outputs: tuple[Any, ...],
        kept: object,
    ) -> None:
        """`kept` is what else the graph reads and writes; it lives as long."""
        self.outputs = outputs
        self._inputs = inputs
        self._library = library
        self._graph = graph
        self._kept = kept
        weakref.finalize(self, library.functions.polyc_forget, graph).atexit = False

    def replay(self, stream: Any = None) -> tuple[Any, ...]:
        """Put the call into a stream again; returns the outputs, which will be complete there."""
        handle = stream_handle(stream)
        for array in self._inputs:
            if isinstance(array, DeviceArray):
                array.read_in(handle)
        for array in self.outputs:
            if isinstance(array, DeviceArray):
                array.write_in(handle)
        self._library.check(
            self._library.functions.polyc_replay(self._graph, self._library.pointer(handle))
        )
        return self.outputs
