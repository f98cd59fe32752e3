"""The arguments of the public functions, checked at one place.

A wrong Python type is a TypeError that names the argument and what it should be; a value that is
none of those that are possible is a PolycError.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NoReturn

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.options import Options
from polyc.sizes import ADDRESS_LIMIT, SizeRange
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target

RANGE = "a number, a pair (first, last), or a sum of other sizes as text"


def check_target(target: Any) -> None:
    if not isinstance(target, str | Target | CudaTarget):
        refuse("target", target, "a name such as 'cpu', a Target or a CudaTarget")


def check_sizes(dims: Any, hint: Any) -> None:
    """What sizes may be, and what is typical, by name."""
    _check_names("dims", dims, RANGE)
    for name, value in (dims or {}).items():
        _check_range(f"dims[{name!r}]", value)
    _check_names("hint", hint, "a number")
    for name, value in (hint or {}).items():
        _check_size(f"hint[{name!r}]", value)


def check_states(state: Any) -> None:
    """Outputs by the names of inputs."""
    _check_names("state", state, "the name of an output")
    for name, value in (state or {}).items():
        if not isinstance(value, str):
            refuse(f"state[{name!r}]", value, "the name of an output")


def check_schedules(schedule: Any) -> None:
    """Texts by the names of kernels."""
    _check_names("schedule", schedule, "the text of a schedule")
    for name, value in (schedule or {}).items():
        if not isinstance(value, str):
            refuse(f"schedule[{name!r}]", value, "the text of a schedule")


def check_options(options: Any, **changes: Any) -> Options:
    """Options with changes that are not None, all of the types that their fields have.

    Of some numbers `Options` itself says what they may be.
    """
    if not isinstance(options, Options):
        refuse("options", options, "a polyc.Options")
    options = replace(options, **{n: value for n, value in changes.items() if value is not None})
    counts = {
        "opt_level": _as_number("opt_level", options.opt_level, 0, 3),
        "threads": int(options.threads),
        "max_operations": _as_number("max_operations", options.max_operations, 0, None),
    }
    for field in fields(Options):
        value = getattr(options, field.name)
        if field.type == "bool" and not isinstance(value, bool):
            refuse(f"options.{field.name}", value, "True or False")
        if field.type == "str" and not isinstance(value, str):
            refuse(f"options.{field.name}", value, "the name of a program")
    if options.progress is not None and not isinstance(options.progress, bool):
        refuse("options.progress", options.progress, "True, False or None")
    for name, folder in (("cache_dir", options.cache_dir), ("dump_dir", options.dump_dir)):
        if not isinstance(folder, os.PathLike) and (name, folder) != ("dump_dir", None):
            refuse(f"options.{name}", folder, "a pathlib.Path")
    _items("options.dump", options.dump)
    if not all(isinstance(size, SizeRange) for size in _items("options.sizes", options.sizes)):
        refuse("options.sizes", options.sizes, "what `dims` and `hint` say")
    _items("options.states", options.states)
    _items("options.schedules", options.schedules)
    return replace(options, tune=float(options.tune), **counts)


def check_feeds(feeds: Any) -> Mapping[str, Any]:
    """What `run` and `profile` are given."""
    if type(feeds) is not dict and not isinstance(feeds, Mapping):
        refuse("feeds", feeds, "arrays by the names of the inputs: {'x': array}")
    return feeds


def list_outputs(out: Any) -> list[Any]:
    """`out` as a list of arrays; what each array must be, its binder says."""
    if isinstance(out, np.ndarray):
        return [out]
    if isinstance(out, list | tuple):
        return list(out)
    refuse("out", out, "an array, or a list of one array for each output")


def refuse(name: str, value: Any, expected: str) -> NoReturn:
    """The TypeError for an argument of a wrong type."""
    raise TypeError(f"`{name}` is of type {type(value).__name__}, but must be {expected}")


def _items(name: str, value: Any) -> Iterable[Any]:
    if not isinstance(value, tuple):
        refuse(name, value, "a tuple")
    return value


def _as_number(name: str, value: Any, least: int, most: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        refuse(name, value, "an integer")
    value = int(value)
    if value < least or (most is not None and value > most):
        raise UnsupportedOp(
            f"{name} is {value}; give a number from {least} {f'to {most}' if most else 'on'}"
        )
    return value


def _check_names(name: str, value: Any, what: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        refuse(name, value, f"by name: {{name: {what}}}")
    for key in value or ():
        if not isinstance(key, str):
            refuse(f"{name}: the name {key!r}", key, "text")


def _check_range(name: str, value: Any) -> None:
    if isinstance(value, str):
        return
    ends = value if isinstance(value, tuple | list) else (value,)
    if len(ends) != 2 and isinstance(value, tuple | list):
        raise UnsupportedOp(f"{name} is {value!r}; give {RANGE}")
    for k, end in enumerate(ends):
        if end is not None or k != 1:
            _check_size(name, end)


def _check_size(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        refuse(name, value, RANGE if name.startswith("dims") else "a number")
    if abs(int(value)) >= ADDRESS_LIMIT:
        raise UnsupportedOp(f"{name} is {value}: more than a process can address; give less")
