"""isl's context: options are set for the length of a `with`, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl


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
    """Let isl spend at most this many operations inside the `with`; then it raises `isl.Error`."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _full(option: str) -> str:
    """isl prefixes AST options: detect_min_max -> ast_build_detect_min_max."""
    return option if option.startswith(("schedule_", "ast_", "tile_")) else f"ast_build_{option}"


def _call(context: isl.Context, method: str, *arguments: int) -> int:
    return getattr(context, method)(*arguments)
