"""Kernels on disk: a bundle as a model's, and what `explain()` says; found by what made them.

    <cache>/kernels/…/model.so  manifest.json  source/*  explain.txt  schedule.txt  CHECKSUMS

A process that finds one there needs neither isl nor a compiler. What decides is in the key: the
loops as they were read, the types of arguments, the target, the options, a schedule that is given,
and polyc itself. An entry that is not as it was written is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyc.build.bundle import Bundle, read_bundle
from polyc.build.fingerprint import fingerprint_text
from polyc.files.folder import Folder
from polyc.files.table import read_table
from polyc.loops.read.sizes import Signature
from polyc.loops.read.syntax import Function
from polyc.options import Options
from polyc.schedule.schedule import Schedule
from polyc.schedule.tree_text import TreeText
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.toolchain.cache import Cache, open_cache

EXPLAINED = "explain.txt"
SCHEDULE = "schedule.txt"
KIND = "kernels"


@dataclass(frozen=True)
class Stored:
    """A kernel that was built: its bundle, what is said of it, and its schedule tree as text."""

    bundle: Bundle
    explained: str
    schedule: str

    @property
    def source(self) -> str:
        """The text of the kernel, without its driver."""
        return next(text for name, text in self.bundle.sources.items() if name not in DRIVERS)


DRIVERS = ("driver.c", "driver.cu")


@dataclass(frozen=True)
class Order:
    """What is to be compiled: loops, for which types, machine and options, by whose schedule."""

    function: Function
    signature: Signature
    target: Target | CudaTarget
    options: Options
    given: Schedule | TreeText | None = None

    def key(self, *parts: str) -> str:
        """What the cache knows it by; parts: what else decides."""
        function = self.function
        arrays = repr(sorted(function.arrays))  # sets are in another order in each process
        text = repr(replace(function, arrays=frozenset()))
        said = (text, arrays, repr(self.signature), repr(self.given), *parts)
        return fingerprint_text(said, self.target, self.options)


def fetch(order: Order, parts: Sequence[str], make: Callable[[Path, Cache], None]) -> Stored:
    """The kernel from the cache, made if it is not there: `make` fills a folder (`write`)."""
    options = order.options
    # Only a compilation that runs can be dumped.
    cache = open_cache(replace(options, cache=options.cache and not options.dump))
    try:
        return cache.fetch_and_read(
            KIND, order.key(*parts), lambda folder: make(folder, cache), _read
        )
    finally:
        cache.discard()


def write_texts(folder: Path, explained: str, schedule: str) -> None:
    """What people read of a kernel, beside its bundle."""
    for name, text in ((EXPLAINED, explained), (SCHEDULE, schedule)):
        (folder / name).write_text(text, encoding="utf-8")


def _read(folder: Folder) -> Stored:
    bundle = read_bundle(folder)
    table = read_table(folder)
    texts = (table.read(folder, name).decode("utf-8", "replace") for name in (EXPLAINED, SCHEDULE))
    return Stored(bundle, *texts)
