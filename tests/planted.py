"""Faults planted in the compiler, a function each; and compiling, up to where all is proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import getattr_static
from pathlib import Path
from typing import Any

import pytest

from polyc import Graph
from polyc.build import make_model as making
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.toolchain.cache import Cache
from tests.programs import options

Wrong = Callable[..., Any]
"""Given the right function, what stands in its place."""


class Proven(Exception):
    """The C compiler would be asked for the library now: every proof has succeeded."""


class NoCompiler:
    """Stands for a `LibraryBuild`, and compiles nothing."""

    def __init__(self, *told: Any) -> None:
        pass

    def __enter__(self) -> NoCompiler:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add(self, *file: Any) -> None:
        pass

    def link(self) -> Path:
        raise Proven


@dataclass(frozen=True)
class Fault:
    """A function, "module:name", that goes wrong; the model that shows it; what the proof says."""

    place: str
    wrong: Wrong
    model: Callable[[], Graph]
    said: str

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        module, _, path = self.place.partition(":")
        holder: Any = import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            holder = getattr(holder, part)
        patch.setattr(holder, name, self.wrong(getattr(holder, name)))

    def __str__(self) -> str:
        return self.wrong.__name__.replace("_", " ")


class Faults(list[Fault]):
    """Faults, in the order in which they are noted."""

    def note(self, place: str, model: Callable[[], Graph], said: str) -> Callable[[Wrong], Wrong]:
        """Decorates what goes wrong in a place."""

        def enter(wrong: Wrong) -> Wrong:
            self.append(Fault(place, wrong, model, said))
            return wrong

        return enter


class _Watched:
    """Stands for a `MonkeyPatch`, and remembers what stood where something is planted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.before: list[tuple[Any, str, Any]] = []

    def setattr(self, holder: Any, name: str, value: Any) -> None:
        self.before.append((holder, name, getattr_static(holder, name)))
        self._patch.setattr(holder, name, value)


def check_planted(plant: Callable[[Any], None], patch: pytest.MonkeyPatch) -> None:
    """Assert that a fault finds all that it takes the place of, and does take it."""
    watched = _Watched(patch)
    plant(watched)
    assert watched.before, "nothing is planted"
    for holder, name, right in watched.before:
        wrong = getattr_static(holder, name)
        assert wrong is not right, f"{name} stays what it is"
        assert callable(wrong) == callable(right), f"{name} becomes something of another kind"


def after(right: Wrong, change: Callable[[Any], Any]) -> Wrong:
    """The right function, but for a change of what it gives."""
    return lambda *a, **k: change(right(*a, **k))


def prove(graph: Graph, folder: Path, target: str = "avx512", **choices: Any) -> None:
    """Compile a model up to its last proof: raises Proven, or what the proof refuses.

    choices: fields of the options, such as `states`.
    """
    found = CudaTarget.named(target) if target.startswith("sm_") else Target.named(target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "LibraryBuild", NoCompiler)
        chosen = replace(options(folder), **choices)
        making.make_model(graph, found, chosen, Cache(folder / "c"), folder, {})
