"""A call with the arguments of the one before it: what was checked then is not checked again.

A loop in Python around a kernel, as over steps of time, gives it the same arrays each time. Checks
take longer than a small kernel runs, so that they are made when an argument is another one.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyc.loops.run.call import Call, Loaded, launch, point_to


@dataclass(frozen=True)
class SameArray:
    """An array as it was; the shape and the type of an array can be changed in place."""

    array: weakref.ref[np.ndarray]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    writeable: bool

    @staticmethod
    def of(array: np.ndarray) -> SameArray:
        return SameArray(
            weakref.ref(array), array.shape, array.strides, array.dtype, array.flags.writeable
        )

    def admits(self, value: Any) -> bool:
        array = self.array()
        return (
            array is not None
            and array is value
            and array.shape == self.shape
            and array.strides == self.strides
            and array.dtype is self.dtype
            and array.flags.writeable is self.writeable
        )


@dataclass(frozen=True)
class SameNumber:
    """A number as it was."""

    number: Any

    def admits(self, value: Any) -> bool:
        # 0.0 equals -0.0, which is another number.
        same = type(value) is type(self.number) and value == self.number
        return same and (bool(value) or not isinstance(value, float))


@dataclass(frozen=True)
class Repeat:
    """A call to be made again.

    arguments: in the order in which they are given, the last of them by name. arrays: which of them
    is each array of the call, or the memory of a number. written: which arrays are written.
    """

    loaded: Loaded
    arguments: tuple[SameArray | SameNumber, ...]
    named: tuple[str, ...]
    arrays: tuple[int | np.ndarray, ...]
    written: tuple[int, ...]
    told: Any
    arena_bytes: int
    threads: int

    @staticmethod
    def of(
        call: Call, arguments: Sequence[Any], named: Mapping[str, Any], names: Sequence[str]
    ) -> Repeat:
        """The call that was made with these arguments; `names` are those of the kernel."""
        values = [*arguments, *named.values()]
        order = [*names[: len(arguments)], *named]
        held = call.bound.held
        arrays = tuple(
            order.index(name) if isinstance(values[order.index(name)], np.ndarray) else array
            for name, array in held.items()
        )
        return Repeat(
            call.loaded,
            tuple(SameArray.of(v) if isinstance(v, np.ndarray) else SameNumber(v) for v in values),
            tuple(named),
            arrays,
            tuple(k for k, name in enumerate(held) if name in call.bound.written),
            call.told,
            call.arena_bytes,
            call.loaded.share(call.told),
        )

    def admits(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether these are the same arguments."""
        if len(arguments) + len(named) != len(self.arguments) or tuple(named) != self.named:
            return False
        values = (*arguments, *named.values()) if named else arguments
        return all(map(_admits, self.arguments, values))

    def run(self, arguments: Sequence[Any], named: Mapping[str, Any], threads: int) -> None:
        """Make the call with the same arguments."""
        values = (*arguments, *named.values()) if named else arguments
        pointers = [
            point_to(self.loaded, values[a] if isinstance(a, int) else a) for a in self.arrays
        ]
        pointers += [pointers[k] for k in self.written]
        launch(self.loaded, pointers, self.told, self.arena_bytes, threads or self.threads)


def _admits(same: SameArray | SameNumber, value: Any) -> bool:
    return same.admits(value)
