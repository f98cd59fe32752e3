"""Results as a picture: the roofline, and how polyc stands to the best peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engines import ENGINES
from bench.results import OURS, Results, Row

_WIDTH, _ROW, _LEAST = 14.0, 0.22, 6.0
"""Inches: of the picture, of a bar, and the least height."""

_COLORS = {"best peer": "tab:gray", "polyc": "tab:blue"}


def plot_results(results: Results, file: Path) -> None:
    """A line of two panels for each number of threads. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    counts = sorted({r.threads for r in results.rows})
    rows = {n: [r for r in results.rows if r.threads == n and OURS in r.median] for n in counts}
    heights = [max(_LEAST, _ROW * len(rows[n])) for n in counts]
    figure, axes = plt.subplots(
        len(counts),
        2,
        figsize=(_WIDTH, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for (left, right), threads in zip(axes, counts, strict=True):
        plural = "s" if threads > 1 else ""
        left.set_title(f"roofline, {threads} thread{plural}")
        _draw_roofline(left, rows[threads], results.machine["rates"], threads)
        right.set_title(f"best peer's time / polyc's, {threads} thread{plural}")
        _draw_ratios(right, [r for r in rows[threads] if r.ratio is not None])
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _draw_roofline(axes: Any, rows: Sequence[Row], rates: Any, threads: int) -> None:
    """Operations a second over operations a byte; what has no operations is not drawn."""
    shown = [r for r in rows if r.flops]
    peak = rates["flops"] * threads
    low, high = 0.5, 2.0 * max((_intensity(r) for r in shown), default=1000.0)
    for name, slope in _slopes(rates, threads):
        corner = peak / slope
        axes.plot([low, corner, high], [low * slope, peak, peak], color="black", linewidth=0.7)
        axes.annotate(name, (low, low * slope), fontsize=7, va="bottom")
    for label, color in _COLORS.items():
        points = []
        for row in shown:
            engine = OURS if label == OURS else row.best_peer
            if engine is not None:
                points.append((_intensity(row), row.flops / row.median[engine]))
        if points:
            axes.scatter(*zip(*points, strict=True), s=14, color=color, label=label, zorder=3)
    for row in shown:
        place = (_intensity(row), row.flops / row.median[OURS])
        axes.annotate(row.problem, place, fontsize=5, xytext=(3, 2), textcoords="offset points")
    axes.set(xscale="log", yscale="log", xlabel="flop a byte", ylabel="flop a second")
    axes.legend(loc="lower right")


def _draw_ratios(axes: Any, rows: Sequence[Row]) -> None:
    """Bars from 1, polyc's side to the right; beside each, who the best peer is."""
    places = range(len(rows))
    ratios = [r.ratio or 1.0 for r in rows]
    colors = ["tab:green" if v >= 1 else "tab:red" for v in ratios]
    axes.barh(places, [v - 1 for v in ratios], left=1, color=colors)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    for place, row, ratio in zip(places, rows, ratios, strict=True):
        label = f"{ratio:.2f} {ENGINES[row.best_peer or OURS].label}"
        axes.annotate(label, (max(ratio, 1), place), fontsize=7, va="center", xytext=(3, 0),
                      textcoords="offset points")  # fmt: skip
    axes.set_yticks(places, [r.problem for r in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(min([0.5, *ratios]) / 1.2, max([2.0, *ratios]) * 2)  # room for the labels
    axes.margins(y=0.01)


def _slopes(rates: Any, threads: int) -> list[tuple[str, float]]:
    """(name, bytes a second), of caches and of memory."""
    memory = max(rates["read"], min(rates["read_all"], rates["read"] * threads))
    return [*((c.upper(), rates[c] * threads) for c in ("l1", "l2", "l3")), ("memory", memory)]


def _intensity(row: Row) -> float:
    return row.flops / max(row.reads + row.writes, 1)
