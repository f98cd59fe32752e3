"""Text of C: literals, and parentheses that say nothing."""

from __future__ import annotations

import numpy as np

from polyc.types.element_types import scalar_type


def literal(value: int | float | bool, dtype: np.dtype) -> str:
    """A C literal of the type, exact."""
    if dtype == np.bool_:
        return "1" if value else "0"
    if dtype.kind == "f":
        suffix = "f" if dtype.itemsize == 4 else ""
        if np.isnan(value):
            return f'__builtin_nan{suffix}("")'
        if np.isinf(value):
            return ("-" if value < 0 else "") + f"__builtin_inf{suffix}()"
        text = str(dtype.type(value)) if dtype.itemsize == 4 else repr(float(value))
        return (text if "." in text or "e" in text else text + ".0") + suffix
    kind = scalar_type(dtype)
    if dtype.kind == "u":
        return f"(({kind}){int(value)}u)" if dtype.itemsize < 8 else f"(({kind}){int(value)}ull)"
    if int(value) == np.iinfo(dtype).min:
        return f"(({kind})({int(value) + 1}ll - 1))"
    return f"(({kind}){int(value)})" if dtype.itemsize < 8 else f"(({kind}){int(value)}ll)"


def bare(text: str) -> str:
    """The text without one pair of parentheses that encloses all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]
