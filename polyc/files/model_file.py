"""A model's file as it was when its key was computed: what is compiled is what was hashed.

Between hashing a model and reading it another process may take long, and the file may be replaced:
then the key of the new model would lead to a library of the old one, or the other way round. So
what is read later is compared with what was hashed.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from polyc.errors import InvalidModel
from polyc.files.external import LOCATION, find_locations, locate
from polyc.files.reader import Reader
from polyc.files.regular import LIMIT, TICK, Identity, identify, opened, read_whole

_PART = 1 << 20


class ModelChanged(InvalidModel):
    """A model's file, or its external data, is no longer what its key was computed from."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"model file {path} changed while it was read; compile it when nothing writes to it"
        )


@dataclass(frozen=True)
class External:
    """A file of external data: its sha256, and what file that was."""

    sha256: str
    identity: Identity


@dataclass(frozen=True)
class ModelFile:
    """A model on disk: the sha256 of its file, and its external data by location."""

    path: Path
    sha256: str
    others: Mapping[str, External]

    @staticmethod
    def examine(path: Path) -> ModelFile:
        """Hash a model; InvalidModel if it is no regular file, or cannot be read.

        So it is where a tensor names a file that is not regular, or outside of the model's folder:
        what is in it could be no part of the key.
        """
        with opened(path, "model file") as stream:
            check_size(identify(stream).size)
            sha256, names_files = _scan(stream)
        source = ModelFile(path, sha256, {})
        if not names_files:  # as nearly all: it need not be in memory
            return source
        found = find_locations(source.read())
        return replace(source, others={name: _examine_other(name, path.parent) for name in found})

    @property
    def parts(self) -> list[str]:
        """What there is to hash, as text."""
        found = ((name, one.sha256) for name, one in sorted(self.others.items()))
        return [self.sha256, *(text for pair in found for text in pair)]

    def read(self) -> bytes:
        """The model, serialised; ModelChanged if it is another one now."""
        data = read_model_file(self.path)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ModelChanged(self.path)
        return data

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reader]:
        """Its bytes in turn; ModelChanged if it is another one now, whatever was made of it."""
        with opened(self.path, "model file") as stream:
            size = identify(stream).size
            check_size(size)
            with Reader(stream, size) as reader:
                wrong: Exception | None = None
                try:
                    yield reader
                except (EOFError, ValueError) as error:  # if it is no model, it may have been one
                    wrong = error
                try:
                    found = reader.finish()
                except EOFError:
                    found = ""
                if found != self.sha256:
                    raise ModelChanged(self.path)
                if wrong:
                    raise wrong

    def check_others(self) -> None:
        """ModelChanged if external data is not what was hashed: to be asked after it is read."""
        for name, known in self.others.items():
            with _open_other(name, self.path.parent) as stream:
                if identify(stream) != known.identity:
                    raise ModelChanged(self.path)


def read_model_file(path: Path) -> bytes:
    """The bytes of a model; InvalidModel if it is no regular file, or larger than the format."""
    with opened(path, "model file") as stream:
        check_size(identify(stream).size)
        return read_whole(stream)


@contextlib.contextmanager
def reading_model(path: Path) -> Iterator[Reader]:
    """The bytes of a model in turn; InvalidModel as by `read_model_file`."""
    with opened(path, "model file") as stream:
        before = identify(stream)
        check_size(before.size)
        with Reader(stream, before.size, hashed=False) as reader:
            yield reader
        if identify(stream) != before:
            raise OSError("it is being written to")


def check_size(size: int) -> None:
    """InvalidModel for more bytes than the format can have."""
    if size > LIMIT:
        raise InvalidModel(
            f"the model has {size} bytes, but the format ends at {LIMIT}; store its weights as "
            "external data"
        )


def _scan(stream: FileIO) -> tuple[str, bool]:
    """(sha256 of a file, whether some tensor in it may name another file)"""
    total, found, last = hashlib.sha256(), False, b""
    left = identify(stream).size
    while left and (part := stream.read(min(left, _PART))):
        total.update(part)
        found = found or LOCATION in part or LOCATION in last + part[: len(LOCATION)]
        last, left = part[-len(LOCATION) :], left - len(part)
    return total.hexdigest(), found


def _open_other(location: str, folder: Path) -> AbstractContextManager[FileIO]:
    """A file of external data; InvalidModel where it is not what such a file may be."""
    return opened(locate(location, folder, "the model"), "external data", follow=False)


def identify_other(location: str, folder: Path) -> Identity:
    """Which file of external data it is now; InvalidModel where it is not what it may be."""
    with _open_other(location, folder) as stream:
        return identify(stream)


def _examine_other(location: str, folder: Path) -> External:
    with _open_other(location, folder) as stream:
        identity = identify(stream)
        # A change so soon after another one could not be told from it by its time.
        while 0 <= time.time_ns() - identity.changed < TICK:
            time.sleep(TICK / 1e9)
        identity = identify(stream)
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if identify(stream) != identity:
            raise ModelChanged(folder / location)
    return External(found, identity)
