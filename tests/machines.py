"""Targets that tests run code for: not every machine that runs the tests is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.target.instructions.lanes import BF16, DOT4_U8S8
from polyc.target.instructions.matrices import TILE_U8S8
from polyc.target.machine import AMX, NAMED, Target, detect_target, missing_features
from polyc.target.vectors import Vectors


def need(target: Target) -> Target:
    """The target, if this CPU runs what is compiled for it; else the test is skipped."""
    missing = missing_features(target.features)
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    return target


def need_named(name: str) -> Target:
    """The same of a named one."""
    return need(Target.named(name))


def given(target: Target, *features: str) -> Target:
    """A target with more features, though its C compiler is not told so: what is decided for them
    runs wherever the target does, where several instructions stand in for one."""
    unit = target.vectors
    more = Vectors.of(unit.bytes, unit.registers, {*unit.features, *features})
    return replace(target, vectors=more)


BYTES = given(NAMED["avx2"], "avx_vnni")
"""A CPU that sums up products of bytes by one instruction, and that nearly every other can run."""


def find_bytes() -> Target:
    """This CPU, if it has such an instruction, or else the one that does as if."""
    here = without_tiles(detect_target())
    return here if here.vectors.has(DOT4_U8S8) else BYTES


def without_tiles(target: Target) -> Target:
    """A target that multiplies in vectors alone."""
    return replace(target, vectors=replace(target.vectors, matrices=()))


TILES = given(NAMED["avx2"], "avx_vnni", BF16, "avx512vl", *AMX)
"""A CPU with registers for matrices, which are loops where its code runs."""


def find_tiles() -> Target:
    """This CPU, if it has them, or else the one that does as if."""
    here = detect_target()
    return here if here.vectors.has(TILE_U8S8) else TILES
