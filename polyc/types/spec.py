"""What a caller must know of a model's inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.names import show


@dataclass(frozen=True)
class TensorSpec:
    """A model's input or output as the caller sees it; a symbolic dimension is a string."""

    name: str
    dtype: np.dtype
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{show(self.name)}: {self.dtype}[{', '.join(show(str(d)) for d in self.shape)}]"
