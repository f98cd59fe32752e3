"""The C runtime that generated code includes: where its headers are, and what they say."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent

TEAM_FILE = "polyc_team.c"
"""What every library for a CPU is linked with."""

METHOD_FILE = "polyc_call.c"
"""How Python calls a model's library."""


def find_runtime() -> Path:
    """The runtime's folder: inside an installed package, or beside it in a checkout."""
    installed = _PACKAGE / "_runtime"
    return installed if installed.is_dir() else _PACKAGE.parent / "runtime"


@functools.cache
def read_runtime() -> Mapping[str, str]:
    """Header name -> text, sorted by name, of what C includes."""
    return _read(find_runtime(), ".h")


@functools.cache
def read_team() -> str:
    """TEAM_FILE, whose object all libraries share."""
    return (find_runtime() / TEAM_FILE).read_text(encoding="utf-8")


@functools.cache
def read_method() -> str:
    """METHOD_FILE, which is compiled by itself."""
    return (find_runtime() / METHOD_FILE).read_text(encoding="utf-8")


@functools.cache
def read_cuda_runtime() -> Mapping[str, str]:
    """Header name -> text, sorted by name, of what CUDA and its emulator include."""
    return _read(find_runtime(), ".h", ".cuh", ".hpp")


@functools.cache
def read_exact_runtime() -> Mapping[str, str]:
    """Header name -> text, sorted by name, of what the exact run includes before the others."""
    headers = _read(find_runtime() / "exact", ".h", ".cuh")
    return {f"exact/{name}": text for name, text in headers.items()}


def _read(folder: Path, *suffixes: str) -> dict[str, str]:
    headers = sorted(h for h in folder.iterdir() if h.suffix in suffixes)
    return {h.name: h.read_text(encoding="utf-8") for h in headers}
