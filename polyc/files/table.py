"""What is in a folder that polyc wrote: `CHECKSUMS`, the size and SHA-256 of each file.

    {"holds": "model", "files": {"model.so": [81920, "9f86d0…"], "source/k0.c": [1203, "60303a…"]}}

The table shows damage. It shows intent only to those who know its digest from elsewhere, since
whoever can change a file can change the table as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import BinaryIO, Protocol

from polyc.errors import InvalidModel
from polyc.files.folder import Folder
from polyc.files.regular import (
    LIMIT,
    Identity,
    fill,
    identify,
    is_settled,
    parse_json,
    read_whole,
    reason,
)

TABLE_FILE = "CHECKSUMS"
PART = 8 << 20
"""Bytes of a file that are hashed while the next ones are read."""


class Damaged(InvalidModel):
    """A file is missing, or is not as it was written."""


@dataclass(frozen=True)
class Entry:
    """A file: its bytes, and their sha256 in hexadecimal digits."""

    size: int
    sha256: str


class Recall(Protocol):
    """What is known of files that were hashed before (`build/examined.py`)."""

    def find(self, path: Path, identity: Identity) -> str | None:
        """The sha256 of a file, if it is the one that was hashed."""

    def keep(self, path: Path, identity: Identity, sha256: str) -> None:
        """Remember it; the file has had this identity, and was settled, from before it was read."""


@dataclass(frozen=True)
class Table:
    """The files of a folder by their names below it; `holds` says what kind of folder it is."""

    holds: str
    files: Mapping[str, Entry]

    @property
    def digest(self) -> str:
        """sha256 over all names, sizes and contents."""
        rows = [[name, one.size, one.sha256] for name, one in sorted(self.files.items())]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def spell(self) -> str:
        """The text of TABLE_FILE."""
        files = {name: [one.size, one.sha256] for name, one in sorted(self.files.items())}
        return json.dumps({"holds": self.holds, "files": files})

    def read(self, folder: Folder, name: str) -> bytes:
        """The contents of a file; Damaged if they are not what was written."""
        size = self._entry(folder, name).size
        if size > LIMIT:
            raise Damaged(f"{folder.path / name} has {size} bytes, more than are read as one piece")
        data = bytearray(size)
        self.read_into(folder, name, memoryview(data))
        return bytes(data)

    def read_into(
        self, folder: Folder, name: str, memory: memoryview, recall: Recall | None = None
    ) -> None:
        """The same, into a memory of that many bytes; what `recall` knows is not hashed again."""
        entry, path = self._entry(folder, name), folder.path / name
        try:
            with folder.open(name) as stream:
                before = identify(stream)
                if not before.size == entry.size == memory.nbytes:
                    raise Damaged(f"{path} has {before.size} bytes, not {entry.size}")
                settled = is_settled(before)
                known = recall is not None and recall.find(path, before) == entry.sha256
                if known:
                    fill(memory, stream)
                elif _fill_and_hash(memory, stream) != entry.sha256:
                    raise Damaged(f"{path} is not as it was written")
                if identify(stream) != before:
                    raise Damaged(f"{path} is being written to")
        except OSError as error:
            raise Damaged(f"{path} cannot be read: {reason(error)}") from error
        if recall and settled and not known:
            recall.keep(path, before, entry.sha256)

    def compare(self, folder: Folder) -> None:
        """Damaged unless every file is there as it was written."""
        for name, entry in self.files.items():
            try:
                with folder.open(name) as stream:
                    # Size first: a cut file is found without reading it.
                    found = identify(stream).size == entry.size and (
                        hashlib.file_digest(stream, "sha256").hexdigest()
                    )
            except OSError as error:
                raise Damaged(f"{folder.path / name} cannot be read: {reason(error)}") from error
            if found != entry.sha256:
                raise Damaged(f"{folder.path / name} is not as it was written")

    def _entry(self, folder: Folder, name: str) -> Entry:
        if name not in self.files:
            raise Damaged(f"{folder.path / TABLE_FILE} lists no {name}")
        return self.files[name]


def _fill_and_hash(memory: memoryview, stream: FileIO) -> str:
    """Read a file into a memory, and hash one part of it while the next one is read."""
    total = hashlib.sha256()
    if memory.nbytes <= PART:
        fill(memory, stream)
        total.update(memory)
        return total.hexdigest()
    with ThreadPoolExecutor(1) as hashing:
        for start in range(0, memory.nbytes, PART):
            part = memory[start : start + PART]
            fill(part, stream)
            try:
                hashing.submit(total.update, part)
            except RuntimeError:  # the system has no thread to give, from the first part on
                total.update(part)
    return total.hexdigest()


def write_and_hash(
    memory: memoryview, stream: BinaryIO, wait: Callable[[int], None] = lambda end: None
) -> Entry:
    """Write a memory to a file, and hash one part of it while the last one is written.

    wait: returns when the memory is filled up to so many bytes.
    """
    total = hashlib.sha256()
    with ThreadPoolExecutor(1) as hashing:
        for start in range(0, memory.nbytes, PART):
            part = memory[start : start + PART]
            wait(start + part.nbytes)
            try:
                hashing.submit(total.update, part)
            except RuntimeError:  # the system has no thread to give, from the first part on
                total.update(part)
            stream.write(part)
    return Entry(memory.nbytes, total.hexdigest())


def write_table(
    folder: Path, holds: str, hashed: Mapping[str, Entry] = MappingProxyType({})
) -> Table:
    """Record every file below a folder, and let none but this user write them.

    hashed: what is known of files that were hashed when they were written.
    """
    files = {}
    inside = sorted(folder.rglob("*"))
    for inner in (path for path in inside if path.is_dir()):
        inner.chmod(inner.stat().st_mode & 0o755)
    for file in (path for path in inside if path.is_file()):
        with file.open("rb") as stream:
            os.fchmod(stream.fileno(), os.fstat(stream.fileno()).st_mode & 0o755)
            name, size = file.relative_to(folder).as_posix(), os.fstat(stream.fileno()).st_size
            known = hashed.get(name)
            if known and known.size == size:
                files[name] = known
            else:
                files[name] = Entry(size, hashlib.file_digest(stream, "sha256").hexdigest())
    files.pop(TABLE_FILE, None)
    table = Table(holds, files)
    (folder / TABLE_FILE).write_text(table.spell(), encoding="utf-8")
    os.chmod(folder / TABLE_FILE, 0o644)
    return table


def read_table(folder: Folder) -> Table:
    """The table of a folder; Damaged if there is none, or none that polyc wrote."""
    try:
        with folder.open(TABLE_FILE) as stream:
            return _parse(parse_json(read_whole(stream)))
    except FileNotFoundError as error:
        raise Damaged(f"it has no {TABLE_FILE}") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Damaged(f"its {TABLE_FILE} cannot be read: {error}") from error


def _parse(data: dict[str, object]) -> Table:
    files = {}
    if not isinstance(data, dict) or not isinstance(data["files"], dict):
        raise ValueError("it is no table")
    for name, row in data["files"].items():
        size, sha256 = row
        if not (type(size) is int and type(sha256) is str and _is_inside(name)):
            raise ValueError(f"{name!r} is no file with its size and sha256")
        files[name] = Entry(size, sha256)
    return Table(str(data["holds"]), files)


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
    )
