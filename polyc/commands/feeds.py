"""Inputs and results of a model as files of the commands; inputs without a file are random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from polyc.errors import InvalidModel
from polyc.files.regular import make_folders, open_regular, writing
from polyc.run.feeds import random_feeds
from polyc.types.ranges import SizeRange
from polyc.types.spec import TensorSpec


def read_feeds(
    specs: Sequence[TensorSpec],
    files: Sequence[str],
    seed: int,
    sizes: Sequence[SizeRange] = (),
) -> dict[str, np.ndarray]:
    """["x=photo.npy"] -> {"x": …}; inputs without a file are random."""
    given = dict(_read(text) for text in files)
    unknown = sorted(set(given) - {s.name for s in specs})
    if unknown:
        raise InvalidModel(
            f"--input names {', '.join(unknown)}; the model's inputs are "
            + ", ".join(map(str, specs))
        )
    return {**random_feeds([s for s in specs if s.name not in given], seed, sizes), **given}


def write_results(folder: Path, results: Mapping[str, np.ndarray]) -> list[Path]:
    """Write each output as <folder>/<name>.npy, with what cannot be in a file's name replaced.

    Raises BuildError where it cannot.
    """
    files = []
    for position, (name, value) in enumerate(results.items()):
        plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".")
        file = folder / f"{plain[:60] or position}.npy"
        if file in files:
            file = file.with_stem(f"{file.stem}-{position}")
        with writing(file, f"output {name!r}"):
            make_folders(folder)
            np.save(file, value)
        files.append(file)
    return files


def _read(text: str) -> tuple[str, np.ndarray]:
    # The file's name comes last and has no "="; a tensor's may have one.
    name, equals, file = text.rpartition("=")
    if not equals or not name or not file:
        raise InvalidModel(f"--input {text!r} is not of the form NAME=FILE.npy")
    try:
        with open_regular(file) as stream:
            return name, np.load(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise InvalidModel(
            f"--input {name}: {file} cannot be read as a NumPy array ({error}); give a .npy file"
        ) from error
