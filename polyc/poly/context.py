"""isl's context: options are set for the length of a `with`, and no longer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from polyc.budget import Budget


@contextmanager
def isl_options(**options: int) -> Iterator[isl.Context]:
    """Set isl options by name (`detect_min_max=1`) and restore their former values after."""
    context = isl.DEFAULT_CONTEXT
    before = {name: _call(context, f"get_{_full(name)}") for name in options}
    try:
        for name, value in options.items():
            _call(context, f"set_{_full(name)}", value)
        yield context
    finally:
        for name, value in before.items():
            _call(context, f"set_{_full(name)}", value)


@contextmanager
def operation_budget(operations: int) -> Iterator[None]:
    """Let isl spend at most this many operations inside the `with`; then it raises `isl.Error`.

    A budget around it counts anew from its end on.
    """
    context = isl.DEFAULT_CONTEXT
    around = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
    finally:
        context.set_max_operations(around)
        context.reset_operations()


OPERATIONS_A_SECOND = 1_000_000
"""About what isl does in a second: on two runs over small sets it was 1.4 million."""


@contextmanager
def isl_within(budget: Budget) -> Iterator[None]:
    """Raise TooLong where isl alone takes longer than the budget, be it in a single operation."""
    if math.isinf(budget.seconds):
        yield
        return
    with operation_budget(math.ceil(budget.seconds * OPERATIONS_A_SECOND)):
        try:
            yield
        except isl.Error as error:
            if not is_exhausted():
                raise
            raise budget.is_over("isl") from error


def is_exhausted() -> bool:
    """Whether isl's operations are used up: then it refuses the least of them."""
    try:
        isl.Set("{ [i] : 0 <= i < 2 }").is_empty()
    except isl.Error:
        return True
    return False


def _full(option: str) -> str:
    """isl prefixes AST options: detect_min_max -> ast_build_detect_min_max."""
    return option if option.startswith(("schedule_", "ast_", "tile_")) else f"ast_build_{option}"


def _call(context: isl.Context, method: str, *arguments: int) -> int:
    return getattr(context, method)(*arguments)
