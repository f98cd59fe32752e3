"""Results as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from bench.engines import ENGINES, GPU_ENGINES, label_of
from bench.results import OURS, Results, Row, geometric_mean

ALARM = 1e-4
"""A difference between polyc and a peer that float32 does not explain."""


def show_results(results: Results, kernels: bool = False) -> str:
    """One table a group and number of threads, the geometric means, then what is to be noted."""
    parts = []
    for (threads, group), rows in groupby(
        sorted(results.rows, key=lambda r: r.threads), key=lambda r: (r.threads, r.group)
    ):
        chosen = list(rows)
        plural = "s" if threads > 1 else ""
        parts.append(f"### {group}, {threads} thread{plural}\n\n{show_rows(chosen)}")
        if kernels:
            parts += [show_kernels(row) for row in chosen if len(row.kernels) > 1]
    parts += list(show_notes(results.rows))
    return "\n\n".join(parts) + "\n"


def show_rows(rows: Sequence[Row]) -> str:
    """Medians by engine, best peer / polyc, operations a second, and polyc's share of the limit."""
    order = dict.fromkeys([*ENGINES, *GPU_ENGINES])
    engines = [e for e in order if any(e in row.median for row in rows)]
    head = ["problem", *map(label_of, engines), "peer / polyc", "Gflop/s", "of limit"]
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for row in rows:
        cells = [row.problem, *(_time(row.median.get(e)) for e in engines)]
        cells.append("-" if row.ratio is None else f"{row.ratio:.2f}")
        ours = row.median.get(OURS)
        cells.append(f"{row.flops / ours / 1e9:.0f}" if row.flops and ours else "-")
        cells.append(_share(row.share()))
        lines.append(f"| {' | '.join(cells)} |")
    ratios = [r.ratio for r in rows if r.ratio is not None]
    if ratios:
        mean, worst = geometric_mean(ratios), min(ratios)
        lines.append(f"\nbest peer / polyc: geometric mean {mean:.3f}, least {worst:.2f}")
    return "\n".join(lines)


def show_kernels(row: Row) -> str:
    """polyc's kernels, the longest first, with the share of the time and what each reaches."""
    total = sum(k["seconds"] for k in row.kernels) or 1.0
    lines = [
        f"{row.problem}, {row.threads} threads, kernels of polyc:",
        "",
        "| kernel | nodes | schedule | time | predicted | share | Gflop/s | GB/s |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for k in sorted(row.kernels, key=lambda k: -k["seconds"]):
        seconds = k["seconds"] or float("inf")
        cells = [
            k["kernel"],
            _shortened(", ".join(k["nodes"]), 40),
            _shortened(k["schedule"], 60),
            _time(k["seconds"]),
            _time(k.get("predicted")),
            f"{k['seconds'] / total:.1%}",
            f"{k['flops'] / seconds / 1e9:.0f}",
            f"{k['bytes'] / seconds / 1e9:.0f}",
        ]
        lines.append(f"| {' | '.join(c.replace('|', '/') for c in cells)} |")
    errors = sorted(
        abs(k["predicted"] / k["seconds"] - 1)
        for k in row.kernels
        if k.get("predicted") and k["seconds"]
    )
    if errors:
        half, most = median(errors), errors[int(0.9 * len(errors))]
        lines.append(f"\npredicted: half of them within {half:.0%}, nine of ten within {most:.0%}")
    return "\n".join(lines)


def show_line(row: Row) -> str:
    """A row in one line, for those who wait."""
    times = ", ".join(f"{e} {_time(s)}" for e, s in row.median.items())
    ratio = "" if row.ratio is None else f"; peer / polyc {row.ratio:.2f}"
    return f"{row.problem}, {row.threads}: {times}{ratio}"


def show_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Differences that should not be, and engines that could not."""
    lines = []
    silent: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for engine, error in row.error.items():
            if not error <= ALARM:
                lines.append(f"- {row.problem}, {row.threads}: polyc is {error:.0e} from {engine}")
        for engine, reason in row.failed.items():
            why = _shortened(reason.partition(";")[0], 100)
            silent.setdefault((row.problem, why), []).append(label_of(engine))
    for (problem, why), labels in silent.items():
        lines.append(f"- {problem}: no figure of {', '.join(dict.fromkeys(labels))} ({why})")
    if lines:
        yield "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    digits, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "us")
    return f"{digits:.3g} {unit}" if digits < 100 else f"{digits:.0f} {unit}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
