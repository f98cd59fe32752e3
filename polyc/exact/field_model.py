"""A model whose floats are elements of a field, in memory that notices stray writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.build.bundle import Bundle
from polyc.codegen.program import Program
from polyc.cpu_model import CpuModel, Variant
from polyc.exact.field import Field, bits_of, encode
from polyc.exact.guarded import Guarded, guard
from polyc.memory.plan import Plan


class FieldModel(CpuModel):
    """A compiled model that is called with arrays of elements.

    `faults`: what calls so far did to memory that is not theirs, in words.
    """

    def __init__(
        self, bundle: Bundle, program: Program, plan: Plan, field: Field, declarations: str
    ) -> None:
        """`declarations` are those of functions in its library that are not every model's."""
        super().__init__(bundle, declarations)
        self.faults: list[str] = []
        self._rng = np.random.default_rng(0)
        stored = np.zeros(bundle.manifest.weights_bytes, np.uint8)
        for name, offset in plan.constants.items():
            value = program.arrays[name].value
            assert value is not None
            elements = bits_of(encode(value, field)).view(np.uint8)
            stored[offset : offset + elements.nbytes] = elements
        self._guarded_weights = guard(stored, self._rng)
        self._weights = self._view(self._guarded_weights.array)
        self._own_weights = stored

    @property
    def ffi(self) -> Any:
        return self._ffi

    @property
    def functions(self) -> Any:
        """Those of the library."""
        return self._library

    def execute(self, variant: Variant, arrays: Sequence[np.ndarray], function: Any = None) -> None:
        """A call on copies of the arrays, each between two strips that nobody may touch."""
        copies: dict[int, Guarded] = {}  # a state in place is one array, given twice
        for array in arrays:
            copies.setdefault(array.ctypes.data, guard(array, self._rng))
        inside = [copies[array.ctypes.data] for array in arrays]
        super().execute(variant, [one.array for one in inside], function)
        names = [f"input {s.name!r}" for s in self.inputs]
        names += [f"output {s.name!r}" for s in self.outputs]
        written = {array.ctypes.data for array in arrays[len(self.inputs) :]}
        for name, array, one in zip(names, arrays, inside, strict=True):
            self._expect(one.is_intact, f"memory next to {name} is written")
            if array.ctypes.data not in written:
                same = np.array_equal(bits_of(array), bits_of(one.array))
                self._expect(same, f"{name} is written")
            array[...] = one.array
        self._expect(self._arena.is_intact, "memory next to the arena is written")
        kept = np.array_equal(self._guarded_weights.array, self._own_weights)
        self._expect(kept and self._guarded_weights.is_intact, "the weights are written")

    def _take_arena(self, size: int) -> Any:
        """An arena in which nothing is left of an earlier call that would pass for a result."""
        self._arenas.clear()
        self._arena = guard(self._rng.integers(0, 256, size, np.uint8), self._rng)
        return self._view(self._arena.array)

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds and otherwise not in self.faults:
            self.faults.append(otherwise)
