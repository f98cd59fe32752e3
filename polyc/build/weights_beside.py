"""The constants of a model, put in place and written by threads while its kernels are compiled.

    clustered model  ->  a place for each constant                     begin
                            |   ->  kernels, proof, driver, library    meanwhile
                            v
                         weights.bin, hashed                           finish

To lay constants out, to hash and to write them takes as long as all else for a network with many,
and only the proof that each lies where its storage says needs them to be in place. Threads put one
after the other in place, another one writes what is, and what is not proven is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from polyc.backends.bind import Constant, Placed
from polyc.build.bundle import WEIGHTS_FILE, Weights, allocate_weights
from polyc.files.table import write_and_hash
from polyc.memory.storage import fill
from polyc.program.plan import ALIGNMENT, Layout, lay_out
from polyc.toolchain.turns import result_of

PLACING = 2
"""Threads that put constants in place: one alone waits for memory, of which each page is new."""

T = TypeVar("T")


class WeightsBeside:
    """Writes the constants of one program into a folder, which must last until this ends.

    layout: where they are, each at a multiple of `alignment` bytes, from `begin` on.
    """

    def __init__(self, folder: Path, alignment: int = ALIGNMENT) -> None:
        self.layout = Layout({}, 0)
        self._folder = folder
        self._alignment = alignment
        self._placing, self._writing = ThreadPoolExecutor(PLACING), ThreadPoolExecutor(1)
        self._result: Future[Weights] | None = None

    def begin(self, constants: Sequence[Constant]) -> Placed:
        """Give each constant its place, which is filled from now on.

        Raises BuildError if there is too little memory for them.
        """
        self.layout = lay_out(((one.name, one.bytes) for one in constants), self._alignment)
        if not self.layout.bytes:
            return Placed({})
        memory = allocate_weights(self.layout.bytes, "the model")
        values, filled = {}, []
        for one in constants:
            first = self.layout.offsets[one.name]
            place = memory[first : first + one.bytes].view(one.content.dtype)
            place = place.reshape(one.storage.shape)
            filled.append(_submit(self._placing, partial(fill, place, one.content, one.storage)))
            values[one.name] = place.view()
            values[one.name].flags.writeable = False
        ends = [self.layout.offsets[one.name] + one.bytes for one in constants]

        def wait(end: int = self.layout.bytes) -> None:
            for future, last in zip(filled, ends, strict=True):
                result_of(future)
                if last >= end:
                    break

        def write() -> Weights:
            with (self._folder / WEIGHTS_FILE).open("wb") as stream:
                entry = write_and_hash(memory.data, stream, wait)
            wait()
            memory.flags.writeable = False
            return Weights(memory, entry)

        self._result = _submit(self._writing, write)
        return Placed(values, wait)

    def finish(self) -> Weights | None:
        """What was written, None if there are no constants; raises what writing it raised."""
        return result_of(self._result) if self._result else None

    def __enter__(self) -> WeightsBeside:
        return self

    def __exit__(self, *_: object) -> None:
        self._placing.shutdown(cancel_futures=True)
        self._writing.shutdown()


def _submit(threads: ThreadPoolExecutor, do: Callable[[], T]) -> Future[T]:
    """Have a thread do something; it is done here, if the system has no thread to give."""
    try:
        return threads.submit(do)
    except RuntimeError:
        done: Future[T] = Future()
        try:
            done.set_result(do())
        except Exception as error:  # raised where it is waited for
            done.set_exception(error)
        return done
