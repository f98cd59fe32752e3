"""Targets that tests run code for: not every machine that runs the tests is one."""

from __future__ import annotations

import pytest

from polyc.target.machine import Target, missing_features


def need(target: Target) -> Target:
    """The target, if this CPU runs what is compiled for it; else the test is skipped."""
    missing = missing_features(target.features)
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    return target


def need_named(name: str) -> Target:
    """The same of a named one."""
    return need(Target.named(name))
