"""Which other files a serialised ONNX model names, found without the package onnx.

A tensor may lie in a second file: its `external_data` has an entry of key "location". A warm start
must know these files, because what is in them decides what the model computes, but must not import
onnx. So the message is walked here as protobuf's wire format says, down to those entries:

    ModelProto ─graph─▶ GraphProto ─initializer, node.attribute─▶ TensorProto ─▶ location: "w.bin"
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from polyc.errors import InvalidModel
from polyc.names import show

LOCATION = b"location"
"""The key of the entry that names a file."""

# message -> {number of a field: its message}: all that lead to tensors (onnx.proto).
_FIELDS = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""What may follow a field's number: an integer, 8 bytes, a length and so many bytes, 4 bytes."""

FIXED = {FIXED64: 8, FIXED32: 4}
MOST_DIGITS = 10
"""Of an integer of 64 bits, 7 a byte."""


@dataclass(frozen=True)
class DataFolder:
    """The folder of a model's external data, and the locations in it that the model's key covers.

    None: nothing is kept by a key, so that any file inside the folder will do.
    """

    path: Path
    hashed: frozenset[str] | None = None

    def locate(self, location: str, owner: str) -> Path:
        """The file that `location` names; InvalidModel unless it is inside, and was hashed."""
        if self.hashed is not None and location not in self.hashed:
            raise InvalidModel(
                f"{owner} names the file {show(repr(location))} where no reader of the format "
                "looks, so that a change of it would not be seen; export the model again"
            )
        return locate(location, self.path, owner)


def find_locations(data: bytes) -> list[str]:
    """Whatever tensors of a serialised ModelProto give as the location of their data, sorted.

    Of bytes that are no such message, what can be read of them.
    """
    found = set()
    waiting = [("model", 0, len(data))]
    while waiting:  # not by recursion: graphs inside graphs may be deep
        message, start, end = waiting.pop()
        if data.find(LOCATION, start, end) < 0:
            continue  # which spares walking through nearly all of most models
        fields = _read_fields(data, start, end)
        if message == "entry":
            entry = {number: data[first:last] for number, first, last in fields}
            if entry.get(1) == LOCATION:
                found.add(entry.get(2, b"").decode("utf-8", "surrogateescape"))
        else:
            inner = _FIELDS[message]
            waiting += [(inner[n], first, last) for n, first, last in fields if n in inner]
    return sorted(found)


def locate(location: str, folder: Path, owner: str) -> Path:
    """The file that `location` names, once it is known to lie inside `folder`; else InvalidModel.

    It is not opened, and may be anything; `owner` names the tensor in errors.
    """
    refused = InvalidModel(
        f"{owner} has its data in {show(repr(location))}, which is not a file inside the model's "
        "folder; put the file there and name it by a relative path without '..'"
    )
    # Both kinds of path are asked, so that a model is refused alike on every system.
    kinds = (PurePosixPath(location), PureWindowsPath(location))
    if not location or any(kind.anchor or ".." in kind.parts for kind in kinds):
        raise refused
    try:
        path = (folder / location).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()) or not os.path.isfile(path):
            raise refused
    except (OSError, ValueError, RuntimeError) as error:
        raise refused from error
    return path


def _read_fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, first byte, last + 1) of each field with a length; ends at what is malformed."""
    while start < end:
        tag, start = _read_varint(data, start, end)
        kind = tag & 7
        if kind == VARINT:
            _, start = _read_varint(data, start, end)
        elif kind in FIXED:
            start += FIXED[kind]
        elif kind == LENGTH:
            size, start = _read_varint(data, start, end)
            if size > end - start:
                return
            yield tag >> 3, start, start + size
            start += size
        else:
            return  # groups, which no version of the format has had


def _read_varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """(the number that begins there, where the next thing begins)"""
    value = 0
    for position in range(start, min(start + MOST_DIGITS, end)):
        value |= (data[position] & 0x7F) << 7 * (position - start)
        if data[position] < 0x80:
            return value, position + 1
    return 0, end
