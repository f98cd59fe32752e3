"""Memory that notices stray writes: each array between two strips that nobody may touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyc.exact.field import Field, bits_of, encode
from polyc.program.plan import Plan
from polyc.program.program import Program
from polyc.types.spec import TensorSpec

STRIP = 1 << 12, 1 << 24
"""Bytes on either side: at least, and at most; in between as many as the array has."""


@dataclass(frozen=True)
class Guarded:
    """An array, the memory before and behind it, and what that held."""

    array: np.ndarray
    strips: tuple[np.ndarray, np.ndarray]
    held: tuple[np.ndarray, np.ndarray]

    @property
    def is_intact(self) -> bool:
        """Whether nothing was written next to the array."""
        return all(map(np.array_equal, self.strips, self.held))


def guard(values: np.ndarray, rng: np.random.Generator) -> Guarded:
    """A copy of an array between two strips of random bytes; it starts at a cache line."""
    size = values.nbytes
    strip = min(max(size // 64 * 64, STRIP[0]), STRIP[1])
    whole = np.empty(size + 2 * strip + 64, np.uint8)
    start = -whole.ctypes.data % 64
    before, inside, behind = np.split(whole[start:], [strip, strip + size])
    behind = behind[:strip]
    for part in (before, behind):
        part[:] = rng.integers(0, 256, strip, np.uint8)
    inside[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    array = inside.view(values.dtype).reshape(values.shape)
    return Guarded(array, (before, behind), (before.copy(), behind.copy()))


def encode_constants(program: Program, plan: Plan, field: Field) -> np.ndarray:
    """The constants of a program as elements, where the plan has them: bytes.

    In between are random bytes: who reads there shows, as zeros would not in a sum of products.
    """
    stored = np.random.default_rng(1).integers(0, 256, plan.weights_bytes, np.uint8)
    for name, offset in plan.constants.items():
        value = program.arrays[name].value
        assert value is not None
        elements = bits_of(encode(np.ascontiguousarray(value), field)).view(np.uint8)
        stored[offset : offset + elements.nbytes] = elements
    return stored


class GuardedMemory:
    """What the calls of a model work on.

    weights: the constants. faults: what calls so far did to memory that is not theirs, in words.
    """

    def __init__(
        self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], constants: np.ndarray
    ) -> None:
        self.faults: list[str] = []
        self._names = [f"input {s.name!r}" for s in inputs]
        self._inputs = len(inputs)
        self._names += [f"output {s.name!r}" for s in outputs]
        self._rng = np.random.default_rng(0)
        self._constants = constants
        self._weights = guard(constants, self._rng)
        self._arena = guard(np.empty(0, np.uint8), self._rng)

    @property
    def weights(self) -> np.ndarray:
        return self._weights.array

    def take_arena(self, size: int) -> np.ndarray:
        """So many bytes, in which nothing of an earlier call would pass for a result."""
        self._arena = guard(self._rng.integers(0, 256, size, np.uint8), self._rng)
        return self._arena.array

    def run(self, arrays: Sequence[np.ndarray], call: Callable[[list[np.ndarray]], None]) -> None:
        """A call on guarded copies of the inputs and outputs, which are copied back."""
        copies: dict[int, Guarded] = {}  # a state in place is one array, given twice
        for array in arrays:
            copies.setdefault(array.ctypes.data, guard(array, self._rng))
        inside = [copies[array.ctypes.data] for array in arrays]
        call([one.array for one in inside])
        written = {array.ctypes.data for array in arrays[self._inputs :]}
        for name, array, one in zip(self._names, arrays, inside, strict=True):
            self.expect(one.is_intact, f"memory next to {name} is written")
            if array.ctypes.data not in written:
                same = np.array_equal(bits_of(array), bits_of(one.array))
                self.expect(same, f"{name} is written")
            array[...] = one.array
        self.expect(self._arena.is_intact, "memory next to the arena is written")
        kept = np.array_equal(self.weights, self._constants)
        self.expect(kept and self._weights.is_intact, "the weights are written")

    def expect(self, holds: bool, otherwise: str) -> None:
        """Note a fault unless something holds."""
        if not holds and otherwise not in self.faults:
            self.faults.append(otherwise)
