"""What a caller must know of a model's inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.names import show


@dataclass(frozen=True)
class TensorSpec:
    """A model's input or output as the caller sees it; a symbolic dimension is a string.

    values: the sizes that the elements of an input are, where shapes follow from these: names, and
    numbers where a model is for these alone.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int | str, ...]
    values: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        shape = ", ".join(show(str(d)) for d in self.shape)
        values = f" = ({', '.join(show(str(v)) for v in self.values)})" if self.values else ""
        return f"{show(self.name)}: {self.dtype}[{shape}]{values}"
