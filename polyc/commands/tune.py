"""`polyc tune`: what a search found, kernel by kernel, and what it is worth for the whole model."""

from __future__ import annotations

from dataclasses import replace

from rich import box
from rich.table import Table
from rich.text import Text

from polyc.analysis.proof import counted
from polyc.api import compile
from polyc.commands.bench import measure_in_turn
from polyc.options import options_from_environment
from polyc.run.feeds import random_feeds
from polyc.run.model import CompiledModel
from polyc.target.resolve import resolve_target
from polyc.tuning.tune import Tuning, tune
from polyc.types.ranges import SizeRange


def search(
    model: str,
    target: str,
    threads: int | None,
    seconds: float,
    sizes: tuple[SizeRange, ...] = (),
) -> Tuning:
    """Search for so many seconds; what is found is kept in the cache folder."""
    options = replace(options_from_environment(), tune=seconds, sizes=sizes)
    if threads is not None:
        options = replace(options, threads=threads)
    return tune(model, resolve_target(target, options), options, compile)


def make_table(result: Tuning) -> Table:
    """One row a kernel that became faster, those that save most first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in ("kernel", "us", "less time", "schedule by the cost model", "tuned"):
        right = head in ("us", "less time")
        table.add_column(head, justify="right" if right else "left", overflow="fold")
    for f in result.better:
        row = (f.task.name, f"{f.task.seconds * 1e6:,.1f}", f"{f.tuned.gain:.1%}")
        table.add_row(*map(Text, (*row, f.before, f.after)))
    return table


def summarise(result: Tuning, after: CompiledModel) -> list[str]:
    """How far the search came, and the model's times before and after, measured in turn."""
    before = result.before
    lines = [
        f"{before.name}: {counted(len(result.better), 'kernel')} of {result.kernels} became "
        f"faster; {result.finished} searched to the end"
    ]
    if result.better:
        feeds = random_feeds(before.inputs, 0)
        calls = {"before": lambda: before.run(feeds), "after": lambda: after.run(feeds)}
        lines += [f"{name}: {timing}" for name, timing in measure_in_turn(calls).items()]
    return lines
