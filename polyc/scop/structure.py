"""What a statement computes, as nested tuples without the names of arrays, statements, iterators.

    S[i, j]: y[i, j] = add(x[i], y[i, j])
        ->  arrays ("y", "x"), and a key in which they are 0 and 1

Everything that decides about generated code is in the key as a value: functions, types, constants
bit by bit, and isl's sets and functions as `poly/canonical.py` writes them. What is assumed of the
sizes in any case is left out of domains: it is the same for all statements of a model.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from polyc.poly.canonical import Canonical, canonical_function, canonical_set
from polyc.poly.parameters import without_known
from polyc.scop.expr import Call, Cast, Const, Expr, Index, Load, Within, children, loads, walk
from polyc.types.element_types import scalar_type


@dataclass(frozen=True)
class Structure:
    """Equal keys: equal computations on the arrays named, which the key calls by position.

    places: domain, write and reduction; nodes: those of the expression, parents first.
    """

    places: tuple[Canonical, ...]
    nodes: tuple[Canonical, ...]
    arrays: tuple[str, ...]

    @property
    def key(self) -> Canonical:
        return *self.places, *self.nodes


def compute_structure(
    domain: isl.Set,
    array: str,
    write: isl.PwMultiAff,
    value: Expr,
    reduction: str | None,
    parameters: Mapping[str, str],
) -> Structure:
    """The structure of a statement; `parameters` are other names of its sets' parameters."""
    arrays = tuple(dict.fromkeys((array, *(load.array for load in loads(value)))))
    places = {name: position for position, name in enumerate(arrays)}
    return Structure(
        (
            canonical_set(without_known(domain), parameters),
            canonical_function(write, parameters),
            reduction or "",
        ),
        # Parents first, each with the number of its children: this says what the tree is.
        tuple(_describe(e, places, parameters) for e in walk(value)),
        arrays,
    )


def _describe(expr: Expr, places: Mapping[str, int], parameters: Mapping[str, str]) -> Canonical:
    """A node of an expression, without its children."""
    dtype, below = scalar_type(expr.dtype), len(children(expr))
    match expr:
        case Const(value=value):
            return "const", dtype, *_bits(value)
        case Index(value=function):
            return "index", dtype, canonical_function(function, parameters)
        case Within(domain=domain):
            return "within", dtype, canonical_set(domain, parameters)
        case Load(array=array, index=index, dynamic=dynamic):
            computed = tuple(dimension for dimension, _ in dynamic)
            return "load", dtype, places[array], canonical_function(index, parameters), computed
        case Call(function=name):
            return "call", dtype, name, below
        case Cast(for_storage=for_storage):
            return "cast", dtype, int(for_storage)


def _bits(value: int | float | bool) -> tuple[str, Canonical]:
    """A literal: NaN equals itself, 0.0 differs from -0.0, 1 from 1.0 and from True."""
    if isinstance(value, float):
        return "float", struct.pack("<d", value).hex()
    return type(value).__name__, int(value)
