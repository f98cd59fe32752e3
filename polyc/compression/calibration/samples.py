"""Samples that a model is measured with, read one after the other and never all held."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from polyc.errors import InvalidData, refuse
from polyc.files.regular import open_regular

Feeds = dict[str, Any]
"""One sample: an array for each input of the model, by name."""

PROBE_SAMPLES = 32
PROBE_BYTES = 64 << 20
"""What is held of the samples, at most: those that layers are compared on. At least one is."""

KINDS = "a folder of .npz or .npy files, or an iterable of arrays, of tuples, or of dicts by input"


class Samples:
    """Samples in order: the first few are held, the others pass by once.

    data: a folder of .npz files with an array for each input, or of .npy files for a model of one
    input; or anything that can be walked through once: arrays, tuples of arrays in the inputs'
    order, or dicts. Raises InvalidData where there is none, or where one does not fit `inputs`.
    """

    def __init__(self, data: Any, inputs: Sequence[str]) -> None:
        self._inputs = tuple(inputs)
        self._rest = enumerate(_walk(data))
        self.probe: list[Feeds] = []
        self.count = 0
        size = 0
        for feeds in self._read():
            self.probe.append(feeds)
            size += sum(np.asarray(v).nbytes for v in feeds.values())
            if len(self.probe) >= PROBE_SAMPLES or size >= PROBE_BYTES:
                break
        if not self.probe:
            raise InvalidData(f"there are no samples to measure the model with; give {KINDS}")

    def walk(self) -> Iterator[Feeds]:
        """All samples, the held ones first; to be walked through once."""
        for feeds in chain(self.probe, self._read()):
            self.count += 1
            yield feeds

    def _read(self) -> Iterator[Feeds]:
        for number, sample in self._rest:
            yield _check(f"sample {number}", sample, self._inputs)


def _walk(data: Any) -> Iterable[Any]:
    if isinstance(data, str | os.PathLike):
        return _files(Path(data))
    if isinstance(data, np.ndarray | Mapping) or not isinstance(data, Iterable):
        refuse("data", data, f"{KINDS}; a single sample is given as [sample]")
    return data


def _files(folder: Path) -> Iterator[Any]:
    """The samples of a folder, in the order of their files' names, each read when it is wanted."""
    try:
        files = sorted(f for f in folder.iterdir() if f.suffix in (".npy", ".npz"))
    except OSError as error:
        raise InvalidData(f"folder {folder} cannot be read ({error.strerror})") from error
    for file in files:
        try:
            with open_regular(file) as stream:
                found = np.load(stream, allow_pickle=False)
                yield found if isinstance(found, np.ndarray) else dict(found)
        except (OSError, ValueError, EOFError, SyntaxError) as error:
            raise InvalidData(f"{file} cannot be read as arrays of NumPy ({error})") from error


def _check(name: str, sample: Any, inputs: Sequence[str]) -> Feeds:
    """A sample by the names of inputs; its numbers are finite."""
    if isinstance(sample, Mapping):
        feeds = dict(sample)
    else:
        values = sample if isinstance(sample, tuple | list) else (sample,)
        if len(values) != len(inputs):
            raise InvalidData(f"{name} has {len(values)} arrays, the model {len(inputs)} inputs")
        feeds = dict(zip(inputs, values, strict=True))
    if set(feeds) != set(inputs):
        given, wanted = (", ".join(map(repr, sorted(map(str, s)))) for s in (feeds, inputs))
        raise InvalidData(f"{name} has arrays for {given}; the model's inputs are {wanted}")
    for key, value in feeds.items():
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidData(f"{name} has NaN or infinity in {key!r}; leave it out, or mend it")
    return feeds
