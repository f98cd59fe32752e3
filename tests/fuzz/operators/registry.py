"""The operators that random graphs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.builder import Builder

Append = Callable[[Builder], object]


@dataclass(frozen=True)
class Operator:
    """append: adds one valid node of this operator to a graph, or raises Rejected.

    weight: how often it is tried, relative to others. symbolic: whether a graph with open sizes may
    have it.
    """

    name: str
    append: Append
    weight: float = 1.0
    symbolic: bool = True


OPERATORS: dict[str, Operator] = {}


def operator(
    *names: str, weight: float = 1.0, symbolic: bool = True
) -> Callable[[Callable[[Builder, str], object]], Callable[[Builder, str], object]]:
    """Register a function of a builder and of the operator's name."""

    def register(function: Callable[[Builder, str], object]) -> Callable[[Builder, str], object]:
        for name in names:
            append = lambda b, name=name: function(b, name)  # noqa: E731
            OPERATORS[name] = Operator(name, append, weight, symbolic)
        return function

    return register
