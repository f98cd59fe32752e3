"""The one door for files from outside: regular ones only, and only as much as was there.

    path ─open─▶ descriptor ─fstat─▶ is it a regular file, and how large?  ─read─▶ its bytes

A pipe has no end and may have no beginning, a device may do things when it is read, and a link may
lead anywhere. So what a path is gets decided on the open descriptor, which cannot become anything
else, and before the first byte is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from polyc.errors import BuildError, InvalidModel

LIMIT = 2**31 - 1
"""Bytes that are read into memory as one piece, at most: the limit of ONNX's own format."""

TICK = 20_000_000
"""Nanoseconds within which two changes of a file may bear the same time."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(
    path: str | os.PathLike[str], *, follow: bool = True, folder: int | None = None
) -> FileIO:
    """Open a regular file to be read; OSError for what cannot be opened, or is something else.

    follow: whether it may be a link; folder: the descriptor of the folder that `path` starts from.
    """
    # Not to wait for the other end of a pipe, nor to make a terminal the process's own.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        _check_kind(os.stat(path, dir_fd=folder, follow_symlinks=follow))  # opening may do things
        descriptor = os.open(path, flags | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
    except ValueError as error:
        raise OSError(f"{error} in its name") from error
    try:
        _check_kind(os.fstat(descriptor))
        return FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def read_whole(stream: FileIO, limit: int = LIMIT) -> bytes:
    """The bytes of a file that is open; OSError if it is larger than `limit`, or is changing."""
    before = identify(stream)
    if before.size > limit:
        raise OSError(f"it has {before.size} bytes, and at most {limit} are read")
    data = stream.read(before.size)
    if len(data) != before.size or identify(stream) != before:
        raise OSError("it is being written to")
    return data


def fill(memory: memoryview, stream: FileIO) -> None:
    """Read into all of a memory; OSError if the file ends before."""
    rest = memory
    while rest and (count := stream.readinto(rest)):
        rest = rest[count:]  # the system reads 2 GiB at a time
    if rest:
        raise OSError("it ended while it was read")


@dataclass(frozen=True)
class Identity:
    """What file it is, and in which state: it differs if the file was replaced or written to.

    written, changed: nanoseconds since 1970; `changed` cannot be set at will.
    """

    device: int
    number: int
    size: int
    written: int
    changed: int


def identify(stream: FileIO) -> Identity:
    """The identity of a file that is open."""
    found = os.fstat(stream.fileno())
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_settled(identity: Identity) -> bool:
    """Whether no change can still come that bears the same time as the last one."""
    return time.time_ns() - identity.changed >= TICK


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], what: str, *, follow: bool = True) -> Iterator[FileIO]:
    """Open a regular file; InvalidModel if that, or what is done with it, fails."""
    try:
        with open_regular(path, follow=follow) as stream:
            yield stream
    except OSError as error:
        raise InvalidModel(
            f"{what} {os.fspath(path)} cannot be read: {reason(error)}; check the path, and give a "
            "regular file"
        ) from error


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """BuildError, which names the place and a way out, if what is inside cannot write there."""
    try:
        if "\0" in os.fspath(path):
            raise OSError("its name has a null character")
        yield
    except OSError as error:
        raise BuildError(
            f"{what} cannot be written to {os.fspath(path)}: {reason(error)}; give another place, "
            "or free some space"
        ) from error


def parse_json(text: str | bytes) -> Any:
    """JSON -> values; ValueError for what is none, or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(file: Path, form: int) -> Any:
    """What `write_json` has written; OSError, ValueError, TypeError or LookupError otherwise."""
    with open_regular(file) as stream:
        data = parse_json(read_whole(stream))
    if data["format"] != form:
        raise ValueError(f"format {data['format']!r} where {form} is expected")
    return data


def write_json(file: Path, form: int, data: Mapping[str, Any]) -> None:
    """Write a JSON file of a format, in one step: a reader finds the old one or the new one."""
    make_folders(file.parent, 0o700)
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({"format": form, **data}, indent=1) + "\n", encoding="utf-8")
    draft.replace(file)


def reason(error: OSError) -> str:
    """What an error says, without the path."""
    return error.strerror or str(error)


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing; OSError if something is in the way."""
    missing = []
    while not os.path.isdir(path) and path != path.parent:
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):  # not by recursion: there may be thousands
        try:
            folder.mkdir(mode)
        except FileExistsError:
            if not os.path.isdir(folder):  # another process may have made it by now
                raise


def _check_kind(found: os.stat_result) -> None:
    for is_kind, name in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(f"it is {name}, not a regular file")
