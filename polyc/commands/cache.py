"""What the cache on disk holds, and how to empty it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from polyc.errors import BuildError
from polyc.options import Options
from polyc.toolchain.cache import Cache, CacheEntry, open_cache


def find_cache(options: Options) -> Cache:
    """The cache that the options name; BuildError if it is off, or cannot be written."""
    cache = open_cache(options)
    if cache.folder != options.cache_dir:
        raise BuildError(
            f"there is no cache in {options.cache_dir} that can be written; set POLYC_CACHE_DIR"
        )
    return cache


def summarise(cache: Cache) -> Iterator[str]:
    """A line for each kind of entries, and one for all."""
    entries = list(cache.entries())
    for kind in sorted({one.kind for one in entries}):
        yield f"{kind}: {_count([one for one in entries if one.kind == kind])}"
    yield f"{cache.folder}: {_count(entries)}; at most {_spell(cache.limit)} are kept"


def list_entries(cache: Cache) -> Iterator[str]:
    """A line for each entry, those used last at the end."""
    for one in sorted(cache.entries(), key=lambda one: one.used):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used))
        yield f"{used}  {_spell(one.size):>9}  {one.kind}/{one.folder.name}"


def clear(cache: Cache) -> str:
    """Remove all entries; a line that says what is gone. What was tuned and measured stays."""
    before = list(cache.entries())
    cache.clear()
    return f"removed: {_count(before)}"


def _count(entries: Sequence[CacheEntry]) -> str:
    plural = "entry" if len(entries) == 1 else "entries"
    return f"{len(entries)} {plural}, {_spell(sum(one.size for one in entries))}"


def _spell(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
