"""What `explain()` shows: kernels, what was fused into them, how they run, what was proven."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any


@dataclass(frozen=True)
class KernelRow:
    """One launch: the kernel, the graph nodes that it computes, its loops, its costs, its proof.

    flops: scalar operations; bytes: bytes of arrays touched; seconds: measured, where it was.
    """

    name: str
    nodes: tuple[str, ...]
    schedule: str
    flops: int | None
    bytes: int | None
    proof: str
    seconds: float | None = None

    @property
    def gflops(self) -> float | None:
        """1e9 operations a second."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None

    @property
    def gbytes(self) -> float | None:
        """1e9 bytes a second."""
        return self.bytes / self.seconds / 1e9 if self.bytes and self.seconds else None


@dataclass(frozen=True)
class Fallback:
    """A node that was not compiled, and why."""

    node: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything polyc says about a compiled model; sizes in bytes, times in seconds."""

    model: str
    target: str
    kernels: tuple[KernelRow, ...]
    fallbacks: tuple[Fallback, ...] = ()
    rewrites: tuple[str, ...] = ()
    schedule_fallbacks: tuple[str, ...] = ()
    arena_bytes: int = 0
    arena_lower_bound: int = 0
    weights_bytes: int = 0
    stage_seconds: Mapping[str, float] = field(default_factory=dict)

    def with_seconds(self, seconds: Sequence[float]) -> Report:
        """This report with the measured time of each launch."""
        rows = zip(self.kernels, seconds, strict=True)
        return replace(self, kernels=tuple(replace(k, seconds=float(s)) for k, s in rows))

    def to_json(self) -> dict[str, Any]:
        """Plain lists and dictionaries; `from_json` is the inverse."""
        return {**asdict(self), "stage_seconds": dict(self.stage_seconds)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        values = dict(data)
        values["kernels"] = tuple(
            KernelRow(**{**k, "nodes": tuple(k["nodes"])}) for k in data["kernels"]
        )
        values["fallbacks"] = tuple(Fallback(**f) for f in data["fallbacks"])
        values["rewrites"] = tuple(data["rewrites"])
        values["schedule_fallbacks"] = tuple(data["schedule_fallbacks"])
        return Report(**values)

    def facts(self) -> list[tuple[str, str]]:
        """The lines that stand around the table of kernels: (what, value)."""
        flops = sum(k.flops or 0 for k in self.kernels)
        nodes = sum(len(k.nodes) for k in self.kernels)
        lines = [
            ("target", self.target),
            ("kernels", f"{len(self.kernels)} launches for {nodes} nodes, {count(flops)}flop"),
            (
                "memory",
                f"{count(self.arena_bytes)}B for temporaries (at least "
                f"{count(self.arena_lower_bound)}B), {count(self.weights_bytes)}B of weights",
            ),
        ]
        if self.stage_seconds:
            stages = ", ".join(f"{k} {v:.2f} s" for k, v in self.stage_seconds.items())
            lines.append(("compiled in", f"{sum(self.stage_seconds.values()):.2f} s: {stages}"))
        lines += [("rewritten", r) for r in self.rewrites]
        lines += [("textual order", s) for s in self.schedule_fallbacks]
        lines += [("not compiled", f"{f.node}: {f.reason}") for f in self.fallbacks]
        return lines

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells of the table of kernels; times only where some were measured."""
        timed = any(k.seconds is not None for k in self.kernels)
        heads = ["#", "kernel", "nodes", "schedule", "flop", "bytes", "proof"]
        heads += ["us", "Gflop/s", "GB/s"] if timed else []
        rows = []
        for position, k in enumerate(self.kernels):
            row = [str(position), k.name, ", ".join(k.nodes), k.schedule]
            row += [count(k.flops), count(k.bytes), k.proof]
            if timed:
                micro = None if k.seconds is None else k.seconds * 1e6
                row += [_number(v) for v in (micro, k.gflops, k.gbytes)]
            rows.append(row)
        return heads, rows

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        heads, rows = self.table()
        table = Table(title=Text(self.model))
        for head in heads:
            right = head in ("#", "flop", "bytes", "us", "Gflop/s", "GB/s")
            table.add_column(head, justify="right" if right else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        text = io.StringIO()
        console = Console(file=text, width=120, color_system=None, legacy_windows=False)
        console.print(table)
        for what, value in self.facts():
            console.print(Text(f"{what}: {value}"), soft_wrap=True)
        return text.getvalue().rstrip("\n")

    def to_html(self, path: str | Path) -> None:
        """Write the report as one self-contained page; every text is escaped."""
        heads, rows = self.table()
        page = _PAGE.substitute(
            model=html.escape(self.model),
            facts="".join(
                f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>\n" for k, v in self.facts()
            ),
            heads="".join(f"<th>{html.escape(h)}</th>" for h in heads),
            rows="".join(
                "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>\n"
                for row in rows
            ),
        )
        Path(path).write_text(page, encoding="utf-8")


def count(value: int | None) -> str:
    """A count with a decimal prefix: 1234567 -> "1.23 M", None -> "-"."""
    if value is None:
        return "-"
    scaled = float(value)
    for prefix in ("", "k", "M", "G"):
        if scaled < 1000:
            return f"{scaled:.3g} {prefix}"
        scaled /= 1000
    return f"{scaled:.4g} T"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>polyc: $model</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: #fff; }
td { overflow-wrap: anywhere; }
dt { float: left; clear: left; width: 9em; color: #666; }
dd { margin-left: 9.5em; }
</style>
</head>
<body>
<h1>$model</h1>
<dl>
$facts</dl>
<table>
<thead><tr>$heads</tr></thead>
<tbody>
$rows</tbody>
</table>
</body>
</html>
""")
