"""The report as text: a table of kernels, and the facts around it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable

from polyc.analysis.proof import counted
from polyc.names import show, show_text
from polyc.report.report import EXAMPLES, DeviceFunction, KernelRow, Report, count

WIDTH = 150
"""Columns, where there is no terminal that says."""

LONGEST_CELL = 4_000
"""Characters of a cell, or of a fact: with more of them the names that it lists are too long."""

RIGHT = frozenset({"#", "flop", "bytes", "floor us", "us", "predicted us", "Gflop/s", "GB/s"})


def print_report(report: Report, most: int | None = None) -> str:
    """The report; `most` keeps only that many kernels, those that take or compute most."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heads, rows = make_table(report, most)
    width = max(100, shutil.get_terminal_size((WIDTH, 0)).columns)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        right = head in RIGHT
        table.add_column(
            head,
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
            min_width=len(head),
        )
    for row in rows:
        table.add_row(*(Text(show_text(cell, LONGEST_CELL)) for cell in row))
    text = io.StringIO()
    console = Console(file=text, width=width, color_system=None, highlight=False)
    console.print(Text(show(report.model)), soft_wrap=True)
    console.print(table)
    hidden = len(report.kernels) - len(rows)
    if hidden:
        console.print(f"… and {counted(hidden, 'launch', 'launches')} that take less")
    console.print()
    for _, k in _heaviest(report.kernels, most):
        console.print(Text(show_text(k.told_schedule, LONGEST_CELL)), soft_wrap=True)
    console.print()
    for what, value in report.facts(EXAMPLES):
        console.print(Text(show_text(f"{what}: {value}", LONGEST_CELL)), soft_wrap=True)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def make_table(report: Report, most: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table of kernels; times only where some were measured."""
    timed = any(k.seconds is not None for k in report.kernels)
    on_gpu = any(k.functions for k in report.kernels)
    heads = ["#", "kernel", "nodes", "flop", "bytes", "proven"]
    heads += ["floor us", "grid", "registers", "shared"] if on_gpu else []
    foreseen = timed and any(k.predicted is not None for k in report.kernels)
    heads += ["us"] if timed else []
    heads += ["predicted us"] if foreseen else []
    heads += ["Gflop/s", "GB/s"] if timed else []
    rows = []
    for position, k in _heaviest(report.kernels, most):
        row = [str(position), k.name, k.computes]
        row += [count(k.flops), count(k.bytes), "yes" if k.proof else "no"]
        if on_gpu:
            row += [_micro(k.floor), *_launched(k.functions)]
        if timed:
            row += [_micro(k.seconds)]
            row += [_micro(k.predicted)] if foreseen else []
            row += [_number(v) for v in (k.gflops, k.gbytes)]
        rows.append(row)
    return heads, rows


def _launched(functions: Iterable[DeviceFunction]) -> list[str]:
    """Grids, registers of a thread, and bytes of shared memory, each function's after the other."""
    grids, registers, shared = [], [], []
    for f in functions:
        grids.append(f.grid)
        known = "-" if f.registers is None else str(f.registers)
        registers.append(f"{known} (spills {f.spilled} B)" if f.spilled else known)
        shared.append(f"{f.shared} B" if f.shared else "-")
    return ["; ".join(grids), "; ".join(registers), "; ".join(shared)]


def _heaviest(kernels: Iterable[KernelRow], most: int | None) -> list[tuple[int, KernelRow]]:
    """The kernels with their positions, in order; all of them, or the `most` heaviest."""
    numbered = list(enumerate(kernels))
    if most is None:
        return numbered
    weight = sorted(numbered, key=lambda k: (-(k[1].seconds or 0), -(k[1].flops or 0)))
    return sorted(weight[:most], key=lambda k: k[0])


def _micro(seconds: float | None) -> str:
    """Microseconds."""
    return _number(None if seconds is None else seconds * 1e6)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
