"""Folders on disk, found by a hash of what they were made from.

    <cache>/<kind>/<two digits of the key>/<key>/…     an entry, with its table of checksums
    <cache>/<kind>/<two digits>/draft-…                an entry in the making
    <cache>/locks/<kind>-<two digits>.lock
    <cache>/sizes                                      eight bytes for each entry: how many it has

An entry appears under its final name by one atomic rename, so a reader sees all of it or nothing;
a lock keeps two processes from doing the same work; an entry that is not as its table says is a
miss, and is built again. What lies in a cache is run, so it must be this user's alone
(`files/folder.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import math
import os
import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from polyc.errors import BuildError
from polyc.files.folder import Folder
from polyc.files.regular import make_folders
from polyc.files.table import TABLE_FILE, Damaged, Entry, read_table, write_table
from polyc.files.waiting import locked
from polyc.options import PATIENCE, Options

T = TypeVar("T")
Make = Callable[[Path], Mapping[str, Entry] | None]
"""Fills a folder, and may tell of files what it has hashed already."""

SIZES = "sizes"
HOLDS = "cache entry"
DRAFT = "draft-"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@dataclass(frozen=True)
class Cache:
    """Entries `folder`/<kind>/<key>; `temporary` folders go when the process ends.

    limit: bytes that it may hold before its least recently used entries go.
    below: another cache's folder, which cannot be written, but whose entries are used. patience:
    seconds to wait for another process that makes an entry.
    """

    folder: Path
    temporary: bool = False
    limit: int = Options.cache_limit
    below: Path | None = None
    patience: float = PATIENCE

    def entry(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key

    def find(self, kind: str, key: str) -> Path | None:
        """The entry's folder if it is there and intact; marks it as used."""
        return self.read(kind, key, _compare)

    def read(self, kind: str, key: str, read: Callable[[Folder], T]) -> T | None:
        """What `read` takes from an entry, here or in the cache below; None if there is none.

        So it is for one that is Damaged.
        """
        for root in filter(None, (self.folder, self.below)):
            with contextlib.suppress(OSError, Damaged):
                return self._read_from(root, kind, key, read)
        return None

    def fetch(self, kind: str, key: str, make: Make) -> Path:
        """The entry's folder, filled by `make(folder)` if it is missing or damaged."""
        return self.fetch_and_read(kind, key, make, _compare)

    def fetch_and_read(self, kind: str, key: str, make: Make, read: Callable[[Folder], T]) -> T:
        """What `read` takes from an entry, filled by `make` if it is missing, or Damaged.

        Of several processes that ask at once one makes the entry and the others wait for it.
        Raises BuildError when the folder cannot be written, or is not this user's alone.
        """
        found = self.read(kind, key, read)
        if found is not None:
            return found
        try:
            with self._lock(kind, key):
                found = self.read(kind, key, read)
                if found is None:
                    self._make(kind, key, make)
                    return self._read_from(self.folder, kind, key, read)
        except OSError as error:
            if not self._is_mine(error):
                raise
            raise BuildError(
                f"cache {self.folder} cannot be written: {error}; free some space, or set "
                "POLYC_CACHE_DIR to another folder"
            ) from error
        except Damaged as error:
            raise BuildError(
                f"cache {self.folder} does not keep what was written there: {error}; compile "
                "again, or set POLYC_CACHE_DIR to another folder"
            ) from error
        return found

    def tidy(self) -> None:
        """Prune if entries may have come to more than the limit, and then leave an eighth free.

        Looking at every entry takes seconds, so their sizes are kept as they are made.
        """
        with contextlib.suppress(OSError, BuildError):
            if self._recorded() > self.limit:
                make_folders(self.folder / "locks", 0o700)
                with locked(self.folder / "locks" / f"{SIZES}.lock", patience=0):
                    self.prune(self.limit // 8)

    def prune(self, free: int = 0) -> None:
        """Drop what killed processes left, and the least recently used until the rest fits.

        free: bytes below the limit that shall be left for others, if any entry has to go.
        """
        for folder in self.folder.glob("*/??/"):
            self._sweep(folder)
        entries = list(self.entries())
        total = sum(one.size for one in entries)
        bound = self.limit if total <= self.limit else self.limit - free
        for one in sorted(entries, key=lambda one: one.used):
            if total <= bound:
                break
            _remove(one.folder)
            total -= one.size
        self._record(total, os.O_CREAT | os.O_TRUNC)

    def _recorded(self) -> float:
        """The bytes of all entries; those that somebody removed since pruning count as well."""
        try:
            return sum(array("q", (self.folder / SIZES).read_bytes()))
        except (OSError, ValueError):
            return math.inf  # nobody has counted yet

    def _record(self, size: int, flags: int) -> None:
        with contextlib.suppress(OSError):
            sizes = os.open(self.folder / SIZES, os.O_WRONLY | flags, 0o600)
            try:
                os.write(sizes, array("q", [size]).tobytes())  # at once, so whole
            finally:
                os.close(sizes)

    def entries(self) -> Iterator[CacheEntry]:
        """All that is finished."""
        for mark in sorted(self.folder.glob(f"*/??/*/{TABLE_FILE}")):
            with contextlib.suppress(OSError):
                kind, used = mark.parent.parent.parent.name, mark.parent.stat().st_mtime
                yield CacheEntry(kind, mark.parent, _size(mark.parent), used)

    def clear(self) -> None:
        """Remove all entries, and what killed processes left; others may use it meanwhile."""
        for one in self.entries():
            _remove(one.folder)
        self.prune()

    def discard(self) -> None:
        """Remove a temporary cache from disk."""
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _read_from(self, root: Path, kind: str, key: str, read: Callable[[Folder], T]) -> T:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(Folder(root, private=True))
            for name in (kind, key[:2], key):
                folder = stack.enter_context(folder.enter(name))
            found = read(folder)
            # The folder's, as others may be reading its files, and see whether these change.
            with contextlib.suppress(OSError):
                os.utime(folder.descriptor)
            return found

    def _is_mine(self, error: OSError) -> bool:
        """Whether an error is the cache's, not one of what `make` reads."""
        if error.errno in _FULL:
            return True
        return str(error.filename or "").startswith(str(self.folder))

    def _make(self, kind: str, key: str, make: Make) -> None:
        """Make an entry; the caller has its lock."""
        entry = self.entry(kind, key)
        make_folders(entry.parent, 0o700)
        _sweep_locked(entry.parent)
        with _draft(f"{DRAFT}{key[:8]}-", entry.parent) as draft:
            write_table(draft, HOLDS, make(draft) or {})
            size = _size(draft)
            _remove(entry)
            draft.rename(entry)
            self._record(size, os.O_APPEND)  # nothing, where nobody has counted yet

    def _sweep(self, folder: Path) -> None:
        """Remove what killed processes left in <kind>/<two digits>, unless one works there."""
        if any(folder.glob(f"{DRAFT}*")):
            lock = self._lock_file(folder.parent.name, folder.name)
            with contextlib.suppress(BuildError, OSError), locked(lock, patience=0):
                _sweep_locked(folder)

    def _lock(self, kind: str, key: str) -> contextlib.AbstractContextManager[None]:
        """One of 256 locks of a kind; a maker may fetch entries of another kind only."""
        make_folders(self.folder / "locks", 0o700)
        return locked(self._lock_file(kind, key[:2]), self.patience)

    def _lock_file(self, kind: str, digits: str) -> Path:
        return self.folder / "locks" / f"{kind}-{digits}.lock"


@dataclass(frozen=True)
class CacheEntry:
    """A finished entry: its kind, its bytes, and when it was last used, in seconds since 1970."""

    kind: str
    folder: Path
    size: int
    used: float


def open_cache(options: Options) -> Cache:
    """The cache that the options name, or a temporary one if it is off or cannot be written.

    Raises BuildError if others may write to it.
    """
    if not options.cache:
        return Cache(_temporary_folder(), temporary=True, patience=options.patience)
    folder = options.cache_dir
    try:
        if "\0" in str(folder):
            raise OSError("its name has a null character")
        make_folders(folder, 0o700)
        with Folder(folder, private=True), tempfile.TemporaryFile(dir=folder):
            return Cache(folder, limit=options.cache_limit, patience=options.patience)
    except OSError:
        below = folder if os.path.isdir(folder) else None
        return Cache(_shared_temporary_folder(), below=below, patience=options.patience)


def _compare(folder: Folder) -> Path:
    """The path of a folder that is intact; Damaged otherwise."""
    read_table(folder).compare(folder)
    return folder.path


def _size(folder: str | Path) -> int:
    """The bytes of all files in a folder and below."""
    with os.scandir(folder) as found:
        return sum(
            _size(one.path)
            if one.is_dir(follow_symlinks=False)
            else one.stat(follow_symlinks=False).st_size
            for one in found
        )


@contextlib.contextmanager
def _draft(prefix: str, parent: Path) -> Iterator[Path]:
    """A new folder, gone when it is left, and when the process ends inside it.

    A process that ends inside a function that isl calls leaves nothing: islpy prints its
    exception, and printing SystemExit exits without unwinding what called isl. One that was forked
    meanwhile leaves the folder to its maker.
    """
    draft, maker = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:
            shutil.rmtree(draft, ignore_errors=True)

    atexit.register(remove)
    try:
        yield draft
    finally:
        remove()
        atexit.unregister(remove)


def _remove(entry: Path) -> None:
    """Take an entry away at once: readers find all of it or nothing."""
    if not entry.exists():
        return
    with _draft(DRAFT, entry.parent) as grave, contextlib.suppress(OSError):
        entry.rename(grave / entry.name)


def _sweep_locked(folder: Path) -> None:
    """Remove all drafts: who has the lock knows that nobody is at work on one."""
    for draft in folder.glob(f"{DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="polyc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _shared_temporary_folder() -> Path:
    """One folder for the whole process: later compilations find what earlier ones built."""
    return _temporary_folder()
