"""Kernels that are known to be right, and how to spoil them by one line."""

from __future__ import annotations

import re

from tests.cuda.emulated import KERNELS


def kernel(name: str) -> str:
    """The text of kernels/<name>.cu."""
    return (KERNELS / f"{name}.cu").read_text(encoding="utf-8")


def without(text: str, pattern: str) -> str:
    """The text without the one line that has the pattern; lines keep their numbers."""
    return replaced(text, rf"(?m)^.*{pattern}.*$", "")


def replaced(text: str, pattern: str, by: str) -> str:
    """The text with the pattern, which occurs once, replaced."""
    changed, count = re.subn(pattern, by, text)
    assert count == 1, f"{pattern} occurs {count} times"
    return changed


def line_of(text: str, pattern: str) -> int:
    """The number of the first line that has the pattern."""
    return 1 + next(k for k, line in enumerate(text.splitlines()) if re.search(pattern, line))
