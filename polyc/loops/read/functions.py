"""The functions that a kernel may call: what they are in Python, and what they become.

`math.sqrt` gives a Python float, so it computes in double precision whatever it is given;
`numpy.sqrt` keeps the type of its argument. A kernel computes what Python would.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from polyc.loops.read.types import SUPPORTED

Rule = Literal["double", "floating", "same", "least", "whole", "convert"]


@dataclass(frozen=True)
class Known:
    """A function by what it becomes.

    runtime: the function of `runtime/`. rule: how its type follows: "double" computes in float64
    and gives a Python float; "floating" in the type of its arguments, integers as float64; "same"
    in their common type; "least" likewise, for any number of arguments; "whole" as "double", and
    then becomes a Python int; "convert" gives `dtype`.
    """

    name: str
    runtime: str
    rule: Rule
    arity: int = 1
    dtype: np.dtype | type | None = None


_SAME_IN_BOTH = "sqrt exp expm1 exp2 log log2 log1p sin cos tan sinh cosh tanh trunc"
_RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_HYPERBOLIC = {"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}


def _table() -> dict[Any, Known]:
    found: dict[Any, Known] = {}

    def add(function: Any, runtime: str, rule: Rule, arity: int = 1, dtype: Any = None) -> None:
        module = getattr(function, "__module__", "") or "numpy"
        short = "np" if module.startswith("numpy") else module
        name = function.__name__
        shown = name if short == "builtins" else f"{short}.{name}"
        found[function] = Known(shown, runtime, rule, arity, dtype)

    for name in _SAME_IN_BOTH.split():
        if name != "trunc":
            add(getattr(math, name), name, "double")
        add(getattr(np, name), name, "floating")
    for theirs, name in {**_RENAMED, **_HYPERBOLIC}.items():
        add(getattr(math, name), name, "double")
        add(getattr(np, theirs), name, "floating")
    for name, arity in {"erf": 1, "pow": 2, "fmod": 2, "copysign": 2}.items():
        add(getattr(math, name), name, "double", arity)
    add(math.fabs, "abs", "double")
    for name in ("floor", "ceil", "trunc"):
        add(getattr(math, name), name, "whole")
    add(np.floor, "floor", "floating")
    add(np.ceil, "ceil", "floating")
    add(np.fabs, "abs", "floating")
    add(np.copysign, "copysign", "floating", 2)
    add(np.abs, "abs", "same")
    add(np.sign, "sign", "same")
    add(np.minimum, "min", "same", 2)
    add(np.maximum, "max", "same", 2)
    add(builtins.abs, "abs", "same")
    add(builtins.min, "min", "least", 0)
    add(builtins.max, "max", "least", 0)
    for kind in (int, float, bool):
        add(kind, "convert", "convert", 1, kind)
    for dtype in SUPPORTED:
        add(dtype.type, "convert", "convert", 1, dtype)
    return found


FUNCTIONS: Mapping[Any, Known] = _table()
"""Function of Python -> what it becomes."""

BY_NAME: Mapping[str, Known] = {known.name: known for known in FUNCTIONS.values()}
"""The same by the name that `Apply` has."""

OPERATORS: Mapping[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "&": "bitand",
    "|": "bitor",
    "^": "bitxor",
    "<<": "shl",
    ">>": "shr",
}
"""Operators that are one function of the runtime."""

COMPARED: Mapping[str, str] = {
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}

NEGATED: Mapping[str, str] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
