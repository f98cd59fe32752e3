"""Damaged files: of a saved model, and of the cache."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polyc
from polyc import Graph, Options, ops
from polyc.build.bundle import HOLDS, MANIFEST_FILE
from polyc.files.table import write_table
from tests.fuzz.broken.hostile import Dice
from tests.fuzz.broken.octets import change_octets

X = np.ones((2, 3), np.float32)


def _graph() -> Graph:
    return Graph.of(y=ops.input("x", (2, 3)) @ np.ones((3, 4), np.float32))


def load_damaged(dice: Dice, folder: Path) -> None:
    """Load a saved model with a file that is damaged, missing, or something else."""
    saved, copy = folder / "saved", folder / "copy"
    if not saved.exists():
        _compile(folder / "cache").save(saved)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(saved, copy)
    is_lie = dice.one_in(2)
    for _ in range(1 + dice.below(2)):
        if is_lie:
            _lie(copy, dice)
        else:
            damage(dice.choose(_files(copy)), dice)
    model = polyc.load(copy)
    assert model.source
    repr(model)
    str(model.explain())
    if not is_lie:  # code that was told lies does what it likes
        np.testing.assert_array_equal(model(X), 3)


def _lie(saved: Path, dice: Dice) -> None:
    """A manifest that says something else, as if it had been written so."""
    file = saved / MANIFEST_FILE
    data = _change_json(json.loads(file.read_text(encoding="utf-8")), dice)
    file.write_text(json.dumps(data), encoding="utf-8")
    write_table(saved, HOLDS)


def compile_by_a_damaged_cache(dice: Dice, folder: Path) -> None:
    """Compile a model whose cache was damaged since: the result is right, whatever it takes."""
    kept, cache = folder / "kept", folder / "cache"
    if not kept.exists():
        _compile(cache)
        shutil.copytree(cache, kept)
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(kept, cache)
    for _ in range(1 + dice.below(3)):
        damage(dice.choose(_files(cache)), dice)
    np.testing.assert_array_equal(_compile(cache)(X), 3)


def _compile(cache: Path) -> Any:
    chosen = Options(cache_dir=cache, threads=1, progress=False)
    return polyc.compile(_graph(), target="baseline", options=chosen)


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def damage(file: Path, dice: Dice) -> None:
    """Other bytes, none, another kind of file, or for JSON other values."""
    if not file.exists():
        return
    data = file.read_bytes()
    if file.suffix == ".json" and dice.one_in(2):
        with contextlib.suppress(ValueError):  # it is damaged already
            file.write_text(json.dumps(_change_json(json.loads(data), dice)), encoding="utf-8")
        return
    if dice.one_in(2):
        file.write_bytes(change_octets(data, b"{}", dice))
        return
    file.unlink()
    made: tuple[Callable[[], Any], ...] = (
        lambda: None,
        file.mkdir,
        file.touch,
        lambda: file.symlink_to(file),
        lambda: file.symlink_to("/nonexistent"),
        lambda: file.write_text("[" * 20000),
        lambda: os.mkfifo(file),
    )
    dice.choose(made)()


def _change_json(value: Any, dice: Dice) -> Any:
    """The value with one of its parts replaced or gone."""
    if isinstance(value, dict | list) and value and not dice.one_in(4):
        key = dice.choose(list(value) if isinstance(value, dict) else range(len(value)))
        if dice.one_in(8):
            del value[key]
        else:
            value[key] = _change_json(value[key], dice)
        return value
    return dice.choose(
        (None, True, dice.integer(), 0.5, dice.name(), [], {}, [value], {"a": value})
    )
