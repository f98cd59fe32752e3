"""Results whose sizes a call finds: memory for the most before it, arrays of what there is behind.

y: float32[found, 4], 0 <= found <= 100      1600 bytes, of which a call that finds 3 fills 48
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import empty, ndarray

from polyc.arguments import list_outputs
from polyc.errors import RuntimeFailure, ShapeError
from polyc.run.calls import Binder, check_array
from polyc.types.found import at_most
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Extent, Size, evaluate
from polyc.types.spec import TensorSpec


class FoundResults:
    """The outputs of a model where all sizes are known but those that a call finds.

    specs: as a call begins: those whose sizes it finds are bytes, as many as there may be;
    positions: of those.
    """

    def __init__(
        self,
        model: str,
        found: Sequence[SizeRange],
        known: Mapping[str, int],
        outputs: Sequence[TensorSpec],
        shapes: Sequence[Sequence[Extent]],
    ) -> None:
        self._model, self._found = model, found
        self._names = [size.name for size in found]
        specs, self._open = [], []
        with assume(_at_ends(found, known)):
            for k, (spec, extents) in enumerate(zip(outputs, shapes, strict=True)):
                shape = [d.at(known) if isinstance(d, Size) else d for d in extents]
                plain = [d for d in shape if isinstance(d, int)]
                if len(plain) == len(shape):
                    specs.append(replace(spec, shape=tuple(plain)))
                    continue
                most = evaluate(at_most(math.prod(shape) * spec.dtype.itemsize), {})
                specs.append(replace(spec, dtype=np.dtype(np.uint8), shape=(most,)))
                self._open.append((k, spec, self._reader(shape)))
        self.specs = specs
        self.positions = [k for k, _, _ in self._open]
        self._plain = [k for k in range(len(specs)) if k not in self.positions]
        self._binder = Binder(model, (), specs)
        self._plain_binder = Binder(model, (), [specs[k] for k in self._plain])

    def _reader(self, shape: Sequence[Extent]) -> Callable[[Sequence[int]], tuple[int, ...]]:
        """A function from what is found to a shape: most dimensions are just that."""
        places = {Size.of(name): k for k, name in enumerate(self._names)}
        if all(isinstance(d, int) or d in places for d in shape):
            plain = [(True, places[d]) if isinstance(d, Size) else (False, d) for d in shape]
            return lambda found: tuple([found[n] if is_found else n for is_found, n in plain])

        def read(found: Sequence[int]) -> tuple[int, ...]:
            values = dict(zip(self._names, found, strict=True))
            return tuple(evaluate(d, values) for d in shape)

        return read

    def take(self, out: Any) -> list[ndarray]:
        """The arrays that a call writes into: the caller's where it knows how large they are.

        Behind them one integer for each size that the call finds.
        """
        results = self._binder.allocate_outputs()
        if out is not None:
            given = list_outputs(out, self._model, len(results))
            plain = self._plain_binder.check_outputs([given[k] for k in self._plain])
            for k, array in zip(self._plain, plain, strict=True):
                results[k] = array
        return results + [empty(1, np.int64) for _ in self._names]

    def finish(self, arrays: list[ndarray], out: Any) -> list[ndarray]:
        """The results of a call, by what it has found; in `out` if that is given."""
        results = arrays[: -len(self._names)]
        values = [array.item() for array in arrays[-len(self._names) :]]
        for k, spec, read in self._open:
            result = ndarray(read(values), spec.dtype, results[k])
            # A small result shall not keep memory that is much larger.
            results[k] = result if 2 * result.nbytes >= results[k].nbytes else result.copy()
        return results if out is None else self._copy(results, out)

    def _copy(self, results: list[ndarray], out: Any) -> list[ndarray]:
        given = list_outputs(out, self._model, len(results))
        for k, spec, _ in self._open:
            where = f"model {self._model!r}, `out` for output {spec.name!r}"
            check_array(where, replace(spec, shape=results[k].shape), given[k])
            if not given[k].flags.writeable:
                raise ShapeError(f"{where} must be writable; use np.empty")
            given[k][...] = results[k]
        return given

    def failure(self, position: int, arrays: Sequence[ndarray]) -> RuntimeFailure:
        """The error for a size that was found and does not fit."""
        size = self._found[position]
        value = arrays[len(arrays) - len(self._found) + position].item()
        others = (need for need in size.needs if need + Size.of(size.name) != size.most)
        needs = "".join(f", and where {need} is not negative" for need in others)
        return RuntimeFailure(
            f"model {self._model!r}: a call finds {size.name} = {value}, but it was compiled for 0 "
            f"to {size.most}{needs}; check the inputs, or export it for such sizes"
        )


def _at_ends(found: Sequence[SizeRange], known: Mapping[str, int]) -> list[SizeRange]:
    """Sizes that a call finds with the most as a number, where others are known."""
    values, ends = dict(known), []
    for size in found:
        assert size.most is not None
        values[size.name] = most = evaluate(size.most, values)
        ends.append(replace(size, upper=most, needs=(), most=most))
    return ends
