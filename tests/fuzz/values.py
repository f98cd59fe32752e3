"""What a tensor of a random graph holds, and how far rounding may move it.

A float is carried as `shadows`: one evaluation in float64, and a few more in which each operator
that rounds is disturbed by as much as its element type does (stochastic arithmetic, as CESTAC has
it: J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993). How far the
shadows are apart is how well the value is conditioned, whatever operators led to it. What is
discrete, an integer or a truth value, must be the same in all: then it does not hang on rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

SHADOWS = 3
"""Disturbed evaluations, besides the undisturbed one."""

_STEPS = {
    np.float64: 2.0**-50,
    np.float32: 2.0**-22,
    np.float16: 2.0**-10,
    ml_dtypes.bfloat16: 2.0**-7,
    ml_dtypes.float8_e4m3fn: 2.0**-3,
    ml_dtypes.float8_e4m3fnuz: 2.0**-3,
    ml_dtypes.float8_e5m2: 2.0**-2,
    ml_dtypes.float8_e5m2fnuz: 2.0**-2,
}
_STEP = {np.dtype(kind): step for kind, step in _STEPS.items()}
"""What one operator may be off by, relative to its result: up to two units in the last place."""

FLOATS = tuple(np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
FLOAT8 = tuple(_STEP)[4:]
SIGNED = tuple(np.dtype(f"int{bits}") for bits in (64, 32, 16, 8))
UNSIGNED = tuple(np.dtype(f"uint{bits}") for bits in (64, 32, 16, 8))
INTEGERS = (*SIGNED, *UNSIGNED)
BOOL = np.dtype(bool)
INT4 = (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4))


class Rejected(Exception):
    """A node that a graph shall not have: not valid, or its result hangs on rounding."""


def is_float(dtype: np.dtype) -> bool:
    """Whether rounding is allowed in arithmetic of this type."""
    return dtype in _STEP


def step_of(dtype: np.dtype) -> float:
    """How far an operator's result may be off, relative to its magnitude."""
    return _STEP[dtype]


@dataclass(frozen=True, eq=False)
class Run:
    """A tensor for one choice of the sizes.

    shadows: the evaluations, float64 for floats, the first of them undisturbed. exact: nothing has
    been rounded on the way here, so that every evaluation must agree bit for bit.
    """

    shadows: tuple[np.ndarray, ...]
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shadows[0].shape

    def array(self, dtype: np.dtype, k: int = 0) -> np.ndarray:
        """One of the evaluations, in the tensor's own type."""
        with np.errstate(all="ignore"):
            return self.shadows[k].astype(dtype)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor: its name, its element type, and what it holds in each run."""

    name: str
    dtype: np.dtype
    runs: tuple[Run, ...]
    is_constant: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes in the first run."""
        return self.runs[0].shape

    @property
    def array(self) -> np.ndarray:
        """What it holds in the first run."""
        return self.runs[0].array(self.dtype)

    @property
    def exact(self) -> bool:
        return all(run.exact for run in self.runs)


def hold(array: np.ndarray) -> Run:
    """A tensor that is given: nothing about it is rounded."""
    wide = array.astype(np.float64) if is_float(array.dtype) else array
    return Run((wide,) * (1 + SHADOWS), exact=True)


def tolerance(run: Run, dtype: np.dtype) -> np.ndarray | float:
    """How far each element of a result may be from the undisturbed evaluation."""
    if run.exact or not is_float(dtype):
        return 0.0
    exact = run.shadows[0]
    with np.errstate(all="ignore"):
        apart = np.max([np.abs(s - exact) for s in run.shadows[1:]], axis=0)
        apart = np.nan_to_num(apart, nan=0.0, posinf=0.0)
        usual = np.sqrt(np.mean(apart**2)) if apart.size else 0.0
        least = float(ml_dtypes.finfo(dtype).smallest_normal)
        return 8 * apart + usual + 2 * step_of(dtype) * np.abs(np.nan_to_num(exact)) + least
