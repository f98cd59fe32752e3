"""How a generated function is called: its name and its parameters, without the loops."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Param:
    """An array that a kernel is given: its shape as stored, row-major.

    inside: it is room for values of the kernel's own, some of which may not get there.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    writes: bool
    inside: bool = False


@dataclass(frozen=True)
class Prototype:
    """How a generated function is called. `sizes` are those known only at run time."""

    name: str
    params: tuple[Param, ...]
    sizes: tuple[str, ...] = field(default=(), kw_only=True)
