"""The arguments of the public functions, checked at one place.

A wrong Python type is a TypeError that names the argument and what it should be; a value that is
none of those that are possible is a PolycError.
"""

from __future__ import annotations

import numbers
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyc.errors import ShapeError, UnsupportedOp, refuse
from polyc.options import Options
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.types.ranges import ADDRESS_LIMIT

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
    """Options with changes that are not None; `Options` itself says what may be in it."""
    if not isinstance(options, Options):
        refuse("options", options, "a polyc.Options")
    return replace(options, **{n: value for n, value in changes.items() if value is not None})


def check_seed(seed: Any) -> int:
    """A number that random arrays are drawn from."""
    return _as_number("seed", seed, 0, None)


def check_feeds(feeds: Any) -> Mapping[str, Any]:
    """What `run` and `profile` are given."""
    if type(feeds) is not dict and not isinstance(feeds, Mapping):
        refuse("feeds", feeds, "arrays by the names of the inputs: {'x': array}")
    return feeds


def arrange(
    model: str,
    takes: Mapping[str, str],
    arrays: Sequence[Any],
    named: Mapping[str, Any],
    optional: Container[str] = (),
) -> dict[str, Any]:
    """The arguments of a call by name, in order: each given once, by its place or by its name.

    takes: the inputs, and how each is shown; those that are optional are None if not given.
    """
    if not arrays and named.keys() == takes.keys():
        return {name: named[name] for name in takes}
    if len(arrays) > len(takes):
        raise ShapeError(
            f"model {model!r} takes {len(takes)} inputs, {len(arrays)} were given; it takes "
            f"{_spell(takes)}"
        )
    given = dict(zip(takes, arrays, strict=False))
    for name in named:
        if name not in takes:
            raise ShapeError(f"model {model!r} has no input {name!r}; it takes {_spell(takes)}")
        if name in given:
            raise ShapeError(f"model {model!r}: input {name!r} is given twice; give it once")
    given |= named
    if len(given) < len(takes):
        missing = [how for n, how in takes.items() if n not in given and n not in optional]
        if missing:
            left = ", ".join(missing)
            raise ShapeError(f"model {model!r} is not given its inputs {left}; add them")
    return {name: given.get(name) for name in takes}


def _spell(takes: Mapping[str, str]) -> str:
    return ", ".join(takes.values()) or "none"


def list_outputs(out: Any, model: str, count: int) -> list[Any]:
    """`out` as a list of arrays, one for each of a model's outputs.

    What each array must be, its binder says. ShapeError for another number of them.
    """
    arrays = list(out) if isinstance(out, list | tuple) else [out]
    if not isinstance(out, list | tuple) and not is_array(out):
        refuse("out", out, "an array, or a list of one array for each output")
    if len(arrays) != count:
        raise ShapeError(
            f"model {model!r} has {count} outputs, `out` holds {len(arrays)}; give one array for "
            "each output"
        )
    return arrays


def is_array(value: Any) -> bool:
    """Whether it is an array of NumPy, or of a library that shares its memory."""
    return isinstance(value, np.ndarray) or any(hasattr(value, way) for way in _SHARING)


_SHARING = ("__dlpack__", "__cuda_array_interface__")


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
