"""A file read once, from front to back, and hashed by a thread meanwhile."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self

PART = 1 << 18
"""Bytes that are read at a time, where little is asked for."""


class Stream(Protocol):
    """What is read: an open file, or bytes in memory."""

    def read(self, size: int, /) -> bytes | None: ...

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class Reader:
    """Bytes of a stream in turn.

    left: how many are still to be read, of the `size` that the stream is said to have. hashed: what
    is in memory already has been hashed, or need not be.
    """

    def __init__(self, stream: Stream, size: int, *, hashed: bool = True) -> None:
        self.left = size
        self._stream = stream
        self._ahead, self._at = b"", 0
        self._hashed, self._total = hashed, hashlib.sha256()
        self._hashing = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hashing.shutdown()

    def byte(self) -> int:
        """The next byte; EOFError if there is none."""
        self._check(1)
        if self._at == len(self._ahead):
            self._read_ahead()
        value = self._ahead[self._at]
        self._at += 1
        self.left -= 1
        return value

    def take(self, size: int) -> bytes:
        """The next bytes; EOFError if there are not as many."""
        if size > len(self._ahead) - self._at:
            found = bytearray(self._check(size))
            self.fill(memoryview(found))
            return bytes(found)
        self._at += size
        self.left -= size
        return self._ahead[self._at - size : self._at]

    def fill(self, memory: memoryview) -> None:
        """Read into all of a memory of bytes; EOFError if there are not as many."""
        size = self._check(len(memory))
        known = min(size, len(self._ahead) - self._at)
        memory[:known] = self._ahead[self._at : self._at + known]
        self._at += known
        rest = memory[known:]
        while rest:
            if len(rest) < PART:
                self._read_ahead()
                part = min(len(rest), len(self._ahead))
                rest[:part] = self._ahead[:part]
                self._at = part
            else:
                part = self._stream.readinto(rest) or 0  # the system reads 2 GiB at a time
                if not part:
                    raise EOFError("it ended while it was read")
                self._hash(rest[:part])
            rest = rest[part:]
        self.left -= size

    def finish(self) -> str:
        """The sha256 of all, in hexadecimal digits; what was not asked for is read now."""
        self.left -= min(self.left, len(self._ahead) - self._at)
        while self.left:
            self.left -= min(self.left, self._read_ahead())
        self._hashing.shutdown()
        return self._total.hexdigest()

    def _check(self, size: int) -> int:
        if size > self.left:
            raise EOFError(f"{size} bytes are announced, and {self.left} are left")
        return size

    def _read_ahead(self) -> int:
        """Read the next part, once the last one is used up."""
        self._ahead, self._at = self._stream.read(PART) or b"", 0
        if not self._ahead:
            raise EOFError("it ended while it was read")
        self._hash(self._ahead)
        return len(self._ahead)

    def _hash(self, part: bytes | memoryview) -> None:
        if not self._hashed:
            return
        try:
            self._hashing.submit(self._total.update, part)
        except RuntimeError:  # the system has no thread to give, from the first part on
            self._total.update(part)
