"""The container GGUF: where a file has which tensor, without a byte of it.

    "GGUF" version | tensors, pairs | key type value, … | name, dimensions, type, offset, … | data

Little-endian, versions 2 and 3, as ggml/docs/gguf.md describes it. Files come from strangers: no
length in them is believed before it is compared with what is left of the file.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from polyc.errors import InvalidModel
from polyc.names import show

VERSIONS = (2, 3)

ALIGNMENT, ALIGNMENT_KEY = 32, b"general.alignment"
"""Bytes that data begins at a multiple of, and the key that says another number."""

MOST_DIMENSIONS = 4
DEEPEST = 4
"""Arrays inside of arrays, at most; writers make none."""

_UINT32, _STRING, _ARRAY = 4, 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Type of a value -> its bytes."""


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: its type as ggml numbers them, its shape as NumPy has it.

    start: where its data begins in the file.
    """

    name: str
    kind: int
    shape: tuple[int, ...]
    start: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def read_entries(file: io.BufferedReader, size: int) -> Mapping[str, Entry]:
    """The tensors of a file of `size` bytes, in its order; InvalidModel if it is malformed."""
    r = _Reader(file, size)
    r.require(r.take(4) == b"GGUF", "it does not begin with the letters GGUF")
    version = r.number("I")
    r.require(version in VERSIONS, f"its version is {version}, little-endian, and not 2 or 3")
    tensors, pairs = r.number("Q"), r.number("Q")
    alignment = ALIGNMENT
    for _ in range(pairs):
        key, kind = r.text(), r.number("I")
        if key == ALIGNMENT_KEY and kind == _UINT32:
            alignment = r.number("I")
            r.require(alignment.bit_count() == 1, f"{alignment} is no alignment")
        else:
            r.skip_value(kind)
    entries: dict[str, Entry] = {}
    for _ in range(tensors):
        entry = _read_entry(r)
        r.require(entry.name not in entries, f"two tensors are named {show(repr(entry.name))}")
        r.require(entry.start % alignment == 0, f"the data of {show(repr(entry.name))} is askew")
        entries[entry.name] = entry
    first = -(-r.place // alignment) * alignment
    return {e.name: Entry(e.name, e.kind, e.shape, first + e.start) for e in entries.values()}


def _read_entry(r: _Reader) -> Entry:
    """A tensor whose data begins so many bytes behind that of the first."""
    name = r.text().decode("utf-8", "replace")
    rank = r.number("I")
    r.require(rank <= MOST_DIMENSIONS, f"{show(repr(name))} has {rank} dimensions")
    shape = tuple(reversed([r.number("Q") for _ in range(rank)]))
    r.require(0 not in shape, f"{show(repr(name))} has no elements")
    return Entry(name, r.number("I"), shape, r.number("Q"))


@dataclass
class _Reader:
    """A file that is read from its beginning on, never further than it goes."""

    file: io.BufferedReader
    size: int
    place: int = 0

    def require(self, holds: bool, broken: str) -> None:
        if not holds:
            raise malformed(broken)

    def take(self, count: int) -> bytes:
        self._move(count)
        data = self.file.read(count)
        self.require(len(data) == count, "it became shorter while it was read")
        return data

    def number(self, form: str) -> int:
        """An unsigned integer of 4 ("I") or 8 ("Q") bytes."""
        (value,) = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))
        return int(value)

    def text(self) -> bytes:
        return self.take(self.number("Q"))

    def skip(self, count: int) -> None:
        self._move(count)
        self.file.seek(self.place)

    def skip_value(self, kind: int, depth: int = 0) -> None:
        if kind in _SIZES:
            self.skip(_SIZES[kind])
        elif kind == _STRING:
            self.skip(self.number("Q"))
        else:
            self.require(kind == _ARRAY, f"there is no value of type {kind}")
            self.require(depth < DEEPEST, "arrays are nested too deeply")
            inner, count = self.number("I"), self.number("Q")
            if inner in _SIZES:
                self.skip(count * _SIZES[inner])
                return
            for _ in range(count):  # each takes 8 bytes at least, so that the file ends it
                self.skip_value(inner, depth + 1)

    def _move(self, count: int) -> None:
        self.require(count <= self.size - self.place, "it ends within its header")
        self.place += count


def malformed(broken: str) -> InvalidModel:
    return InvalidModel(f"the file is no proper GGUF: {broken}; get it, or convert it, again")
