"""One door to look inside a compilation: named steps with their times, and dumps of each stage.

`with trace.step("lower"): …` times a part, `for c in trace.track("schedule", clusters): …` a loop
(with a progress bar), and `trace.dump("scop", scop)` writes an artefact if the user asked for it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from polyc.budget import Budget
from polyc.files.regular import make_folders, writing
from polyc.options import STAGES, Options

T = TypeVar("T")

_SUFFIX = {"c": "c"}


@dataclass
class Trace:
    """Records a compilation, and ends it when its time is over; it steers nothing.

    dumps: stages to write; folder: where to, stderr if None; progress: whether `track` shows a bar;
    budget: the time that there is, which each step asks, and each stage between its items.
    seconds: step -> time spent in it but not in steps inside it, all visits together; so the sum is
    the time that the compilation took.
    """

    dumps: frozenset[str] = frozenset()
    folder: Path | None = None
    progress: bool = False
    budget: Budget = field(default_factory=Budget)
    seconds: dict[str, float] = field(default_factory=dict)
    _inner: float = 0.0  # seconds of finished steps inside the one that runs

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what runs inside under this name; raises TooLong when there is no time for it."""
        self.budget.check(name)
        start, outer, self._inner = time.perf_counter(), self._inner, 0.0
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._inner
            self._inner = outer + spent

    def track(self, name: str, items: Iterable[T], total: int) -> Iterator[T]:
        """The items, one by one, as a timed step, with a progress bar on a terminal."""
        with self.step(name), contextlib.ExitStack() as stack:
            if self.progress:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                yield from bar.track(items, total=total, description=name)
            else:
                yield from items

    def wants(self, stage: str) -> bool:
        """Whether a stage is dumped: ask before making a text that is costly."""
        return stage in self.dumps

    def dump(self, stage: str, artefact: object, name: str = "") -> None:
        """Write str(artefact) if the stage is asked for.

        ("loopnest", kernel, "conv_1") -> <folder>/3-loopnest-conv_1.txt, or stderr under a heading
        """
        if not self.wants(stage):
            return
        title = f"{STAGES.index(stage)}-{stage}" + (f"-{name}" if name else "")
        if self.folder is None:
            sys.stderr.write(f"==== {title} ====\n{artefact}\n")
            return
        file = re.sub(r"[^A-Za-z0-9_.-]", "_", title)[:120] + "." + _SUFFIX.get(stage, "txt")
        with writing(self.folder, f"the dump of {stage}"):
            make_folders(self.folder)
            (self.folder / file).write_text(f"{artefact}\n", encoding="utf-8")


def make_trace(options: Options) -> Trace:
    """The trace that the options ask for."""
    progress = sys.stderr.isatty() if options.progress is None else options.progress
    budget = Budget.start(options)
    return Trace(frozenset(options.dump), options.dump_dir, progress, budget)
