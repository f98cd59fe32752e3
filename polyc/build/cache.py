"""Folders on disk, found by a hash of what they were made from.

An entry is a folder that holds its files and `CHECKSUMS`. It appears under its final name by one
atomic rename, so a reader sees all of it or nothing; a lock keeps two processes from doing the same
work; a checksum that does not match makes the entry a miss, and it is built again.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import json
import mmap
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from polyc.errors import BuildError
from polyc.options import Options

CHECKSUMS = "CHECKSUMS"
LIMIT_BYTES = 8 << 30
"""Bytes that a cache may hold before its least recently used entries go."""

TIDY_SECONDS = 600
STALE_SECONDS = 86_400
"""No compilation takes a day: a draft older than that has lost its process."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Cache:
    """Entries `folder`/<kind>/<key>; `temporary` folders go when the process ends."""

    folder: Path
    temporary: bool = False
    limit: int = LIMIT_BYTES

    def entry(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key

    def find(self, kind: str, key: str) -> Path | None:
        """The entry's folder if it is there and intact; marks it as used."""
        entry = self.entry(kind, key)
        if not is_intact(entry):
            return None
        with contextlib.suppress(OSError):
            os.utime(entry / CHECKSUMS)
        return entry

    def fetch(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        """The entry's folder, filled by `make(folder)` if it is missing or damaged.

        Of several processes that ask at once one makes the entry and the others wait for it.
        Raises BuildError when the folder cannot be written.
        """
        found = self.find(kind, key)
        if found:
            return found
        try:
            with self._lock(kind, key):
                return self.find(kind, key) or self._make(kind, key, make)
        except OSError as error:
            if not self._is_mine(error):
                raise
            raise BuildError(
                f"cache {self.folder} cannot be written: {error}; free some space, or set "
                "POLYC_CACHE_DIR to another folder"
            ) from error

    def _is_mine(self, error: OSError) -> bool:
        """Whether an error is the cache's, not one of what `make` reads."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return True
        return str(error.filename or "").startswith(str(self.folder))

    def tidy(self) -> None:
        """Prune, but not again within TIDY_SECONDS: looking at every entry takes a while."""
        mark = self.folder / "tidied"
        try:
            if time.time() - mark.stat().st_mtime < TIDY_SECONDS:
                return
        except OSError:
            pass
        with contextlib.suppress(OSError):
            mark.touch()
            self.prune()

    def prune(self) -> None:
        """Drop what killed processes left, and the least recently used until the rest fits."""
        for folder in self.folder.glob("*/??/*"):
            with contextlib.suppress(OSError):
                unfinished = not (folder / CHECKSUMS).is_file()
                if unfinished and time.time() - folder.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
        entries = []
        for mark in self.folder.glob(f"*/??/*/{CHECKSUMS}"):
            with contextlib.suppress(OSError):
                size = sum(f.stat().st_size for f in mark.parent.rglob("*") if f.is_file())
                entries.append((mark.stat().st_mtime, size, mark.parent))
        total = sum(size for _, size, _ in entries)
        for _, size, entry in sorted(entries):
            if total <= self.limit:
                break
            _remove(entry)
            total -= size

    def discard(self) -> None:
        """Remove a temporary cache from disk."""
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        entry = self.entry(kind, key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{key[:8]}-", dir=entry.parent))
        try:
            make(draft)
            write_checksums(draft)
            _remove(entry)
            draft.rename(entry)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return entry

    def _lock(self, kind: str, key: str) -> contextlib.AbstractContextManager[object]:
        """One of 256 locks of a kind; a maker may fetch entries of another kind only."""
        from filelock import FileLock

        locks = self.folder / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{kind}-{key[:2]}.lock")


def open_cache(options: Options) -> Cache:
    """The cache that the options name, or a temporary one if it is off or cannot be written."""
    if not options.cache:
        return Cache(_temporary_folder(), temporary=True)
    try:
        options.cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.cache_dir):
            return Cache(options.cache_dir)
    except OSError:
        return Cache(_shared_temporary_folder())


def digest(parts: Iterable[str | bytes | mmap.mmap]) -> str:
    """sha256 of the parts, each preceded by its length: ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def write_checksums(folder: Path) -> None:
    """Record the size and CRC-32 of every file below the folder."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and f.name != CHECKSUMS)
    table = {f.relative_to(folder).as_posix(): _checksum(f) for f in files}
    (folder / CHECKSUMS).write_text(json.dumps(table), encoding="utf-8")


def is_intact(folder: Path) -> bool:
    """Whether every file that `CHECKSUMS` lists is there as it was written."""
    try:
        table = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        # Sizes first: a cut file is found without reading the others.
        return all((folder / f).stat().st_size == c[0] for f, c in table.items()) and all(
            _checksum(folder / f) == c for f, c in table.items()
        )
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return False


def _checksum(file: Path) -> list[int]:
    size = value = 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            value = zlib.crc32(chunk, value)
            size += len(chunk)
    return [size, value]


def _remove(entry: Path) -> None:
    """Take an entry away at once: readers find all of it or nothing."""
    if not entry.exists():
        return
    grave = Path(tempfile.mkdtemp(prefix="old-", dir=entry.parent))
    with contextlib.suppress(OSError):
        entry.rename(grave / entry.name)
    shutil.rmtree(grave, ignore_errors=True)


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="polyc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _shared_temporary_folder() -> Path:
    """One folder for the whole process: later compilations find what earlier ones built."""
    return _temporary_folder()
