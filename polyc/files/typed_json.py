"""JSON as values of declared types: what a file claims is checked before anything relies on it.

decode(tuple[str, ...], ["a", "b"])   -> ("a", "b")
decode(Report, {"model": "m", …})     -> Report(model="m", …)
decode(int, "7")                      -> ValueError
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def decode(kind: type[T], data: Any, where: str = "it") -> T:
    """The value of a type that JSON spells; ValueError where it spells none.

    kind: str, int, float, bool, None, a union, tuple[T, ...], tuple[A, B], Mapping[str, T] or a
    dataclass of these. `where` names the value in errors.
    """
    value: T = _decode(kind, data, where)
    return value


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, data, where)
    if dataclasses.is_dataclass(kind):
        return _decode_record(kind, data, where)
    if origin is tuple and isinstance(data, list):
        if arguments[-1] is Ellipsis:
            return tuple(_decode(arguments[0], x, f"{where}[{k}]") for k, x in enumerate(data))
        if len(arguments) == len(data):
            pairs = zip(arguments, data, strict=True)
            return tuple(_decode(a, x, f"{where}[{k}]") for k, (a, x) in enumerate(pairs))
    if origin in (dict, Mapping) and isinstance(data, dict):
        return {key: _decode(arguments[1], x, f"{where}[{key!r:.40}]") for key, x in data.items()}
    # True is no number, though Python says so; a float without a fraction is written as an int.
    if kind in (str, int, bool, types.NoneType) and type(data) is kind:
        return data
    if kind is float and type(data) in (int, float) and math.isfinite(data):
        return float(data)
    raise ValueError(f"{where} is {str(data)[:60]!r}")


def _decode_union(kinds: tuple[Any, ...], data: Any, where: str) -> Any:
    for kind in kinds:
        try:
            return _decode(kind, data, where)
        except ValueError:
            continue
    raise ValueError(f"{where} is {str(data)[:60]!r}")


def _decode_record(kind: Any, data: Any, where: str) -> Any:
    hints = _hints(kind)
    if not isinstance(data, dict) or data.keys() != hints.keys():
        raise ValueError(f"{where} does not have the fields {', '.join(hints)}")
    return kind(**{name: _decode(hint, data[name], name) for name, hint in hints.items()})


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    """The declared types of a dataclass's fields."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
