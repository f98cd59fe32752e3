"""How to call each operator validly: tables, and a function for each kind of signature."""

from __future__ import annotations

from tests.fuzz.operators import (
    attention,
    contraction,
    control,
    indexing,
    movement,
    normalization,
    pointwise,
    quantized,
    recurrent,
    reduction,
    sampling,
    signal,
)
from tests.fuzz.operators.registry import OPERATORS, Operator

__all__ = ["OPERATORS", "Operator"]

_MODULES = (
    attention, contraction, control, indexing, movement, normalization, pointwise, quantized,
    reduction, recurrent, sampling, signal,
)  # fmt: skip
