"""What a compilation may take of memory and time: one budget, which every stage asks.

    budget = Budget.start(options)
    budget.require(bytes, "tensor 'x'")                 # TooLarge, before anything is built
    for node in budget.over(graph.nodes, "lower"):      # TooLong, when the time is over
        …

Sizes are products of numbers that a stranger may have written, so that they are compared as
Python's integers, which cannot overflow, and before any memory is asked for.
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from polyc.errors import TooLarge, TooLong
from polyc.options import Options

CGROUPS = Path("/sys/fs/cgroup")
MAX_TABLE = 2**26
"""Elements of the largest table that the definition of an operator consists of: the cosines of a
Fourier transform, the places of overlapping blocks. No option raises it."""


T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """What a compilation may take. Without arguments there is no limit.

    memory: the bytes that one tensor, all weights, or a call's arrays may take; seconds: how long
    it may last, and end: when they are over, by `time.monotonic`; nodes: the most nodes of a graph
    whose functions and control flow are written out.
    """

    memory: float = math.inf
    seconds: float = math.inf
    end: float = math.inf
    nodes: float = math.inf

    @staticmethod
    def of(limit: int = 0) -> Budget:
        """One of memory alone: a limit in bytes; the memory there is, if it is 0."""
        return Budget(limit or memory_there_is())

    @staticmethod
    def start(options: Options) -> Budget:
        """The budget of a compilation that starts now."""
        seconds, memory = options.max_seconds, options.memory_limit or memory_there_is()
        return Budget(memory, seconds, time.monotonic() + seconds, options.max_nodes)

    def again(self) -> Budget:
        """The same limits for what starts now."""
        return replace(self, end=time.monotonic() + self.seconds)

    def require_call(self, model: str, arena: int, weights: int, results: int = 0) -> None:
        """Raise TooLarge unless a call's memory may be taken, on a CPU or on a GPU: in bytes."""
        what = f"model {model!r}: what a call works in, and its weights,"
        self.require(arena + weights + results, what)

    def require(self, size: int, what: str) -> None:
        """Raise TooLarge unless `size` bytes may be taken; `what` names what takes them."""
        if size > self.memory:
            raise TooLarge(
                f"{what} takes {show_bytes(size)}, and the limit is {show_bytes(int(self.memory))};"
                " use smaller sizes, or raise it by Options(memory_limit=…) or POLYC_MEMORY, in "
                "bytes"
            )

    def check(self, stage: str) -> None:
        """Raise TooLong if the time is over."""
        if time.monotonic() > self.end:
            raise self.is_over(stage)

    def wait(self, patience: float) -> float:
        """Seconds to wait for a compiler: as long as there is patience, and time."""
        return min(patience, max(self.end - time.monotonic(), 0.0))

    def is_over(self, stage: str) -> TooLong:
        """The error for a stage that there is no time for."""
        return TooLong(
            f"compiling takes more than {self.seconds:g} seconds, and was not through with the "
            f"stage {stage!r}; split the model, or give more: Options(max_seconds=…) or "
            "POLYC_MAX_SECONDS"
        )

    def over(self, items: Iterable[T], stage: str) -> Iterator[T]:
        """The items, as long as there is time."""
        for item in items:
            self.check(stage)
            yield item

    def check_nodes(self, count: int, what: str) -> None:
        """Raise TooLong if a graph has too many nodes."""
        if count > self.nodes:
            raise TooLong(
                f"{what} has more than {self.nodes} nodes; split the model, or allow more and wait "
                "(10 ms a node, as a rule): Options(max_nodes=…) or POLYC_MAX_NODES"
            )


UNLIMITED = Budget()
"""As much, and as long, as it takes."""


def require_table(count: int, what: str) -> None:
    """Raise TooLarge for a table of more elements than MAX_TABLE."""
    if count > MAX_TABLE:
        raise TooLarge(
            f"{what} is defined by a table of {count} elements, and the limit is {MAX_TABLE}; use "
            "smaller sizes"
        )


def show_bytes(size: int) -> str:
    """3 * 2**30 -> "3.0 GiB"; what has no shorter form as it is."""
    for exponent, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if 1 << exponent <= size < 1 << (exponent + 10):
            return f"{size / (1 << exponent):.1f} {unit}"
    return f"{size} bytes" if size < 1 << 50 else f"over {1 << 10} TiB"


@cache
def memory_there_is() -> int:
    """Bytes that this process may have: of the machine, its control group, and its own limit."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    known = [machine, *_group_limits()]
    return min(known if own == resource.RLIM_INFINITY else [*known, own])


def _group_limits() -> Iterator[int]:
    """Those of the control groups that the process is in; of none where they cannot be read."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    groups = [line.split(":", 2)[2].strip("/") for line in lines if line.startswith("0::")]
    folders = [f for g in groups for f in ((CGROUPS / g), *(CGROUPS / g).parents)]
    files = [f / "memory.max" for f in folders if f.is_relative_to(CGROUPS)]
    for file in (*files, CGROUPS / "memory" / "memory.limit_in_bytes"):
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)
