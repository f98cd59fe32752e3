"""What `explain()` says, as data: kernels, what was fused, how they run, what was proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from polyc.analysis.proof import counted
from polyc.files.regular import writing
from polyc.files.typed_json import decode
from polyc.names import show

EXAMPLES = 3
"""Rewrites of one kind, and fusions refused for one reason, that the text names."""


@dataclass(frozen=True)
class DeviceFunction:
    """A function that runs on a GPU: how it is launched, and what it takes there.

    grid: "8x4 blocks of 16x16" threads; registers: of a thread, None if it is not known; shared:
    bytes of shared memory of a block; spilled: bytes of a thread that did not fit its registers.
    """

    name: str
    grid: str
    registers: int | None = None
    shared: int = 0
    spilled: int = 0


@dataclass(frozen=True)
class KernelRow:
    """One launch: the kernel, the graph nodes that it computes, its loops, its costs, its proof.

    flops: scalar operations; bytes: bytes of arrays touched; proof: what was proven, empty if it
    was not asked for; seconds: measured, where it was; operators: one a node, empty for what is no
    node of the graph but a part of one ("conv1.pad": the frame around the input of conv1); gain:
    the share of the time that a tuned schedule saved when it was measured, 0 if there is none;
    copies: "x -> x_padded" if the launch only moves data, into a frame or another layout, else "";
    functions: those of a GPU that it runs, empty on a CPU; floor: seconds that flops and bytes take
    at least at the GPU's rates, None on a CPU; called: what it is called where schedules are given;
    steps: how often a loop over steps launches it, empty outside of one. branches: the conditions
    with which it is launched, empty if it is in every call. predicted: seconds that it takes by the
    machine's rates, None where that depends on a call's sizes.
    """

    name: str
    nodes: tuple[str, ...]
    schedule: str
    flops: int | None
    bytes: int | None
    proof: str
    seconds: float | None = None
    operators: tuple[str, ...] = ()
    gain: float = 0.0
    copies: str = ""
    functions: tuple[DeviceFunction, ...] = ()
    floor: float | None = None
    called: str = ""
    steps: str = ""
    branches: str = ""
    predicted: float | None = None

    @property
    def told_schedule(self) -> str:
        """A line of a file of schedules, as it can be given back, with remarks as comments."""
        remarks = [f"tuned, {self.gain:.0%} less time"] if self.gain else []
        remarks += [f"if {self.branches}"] if self.branches else []
        remarks += [f"in each of {self.steps} steps"] if self.steps else []
        told = f"  # {'; '.join(remarks)}" if remarks else ""
        return f"{self.called}: {self.schedule}{told}"

    @property
    def gflops(self) -> float | None:
        """1e9 operations a second."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None

    @property
    def gbytes(self) -> float | None:
        """1e9 bytes a second."""
        return self.bytes / self.seconds / 1e9 if self.bytes and self.seconds else None

    @property
    def error(self) -> float | None:
        """How far the prediction is from what was measured, as a share of that."""
        if self.predicted is None or not self.seconds:
            return None
        return abs(self.predicted / self.seconds - 1)

    @property
    def computes(self) -> str:
        """The nodes with their operators: "Conv n4, Relu n6"."""
        return ", ".join(f"{op} {show(node)}".lstrip() for op, node in self._labelled)

    @property
    def whole_nodes(self) -> tuple[str, ...]:
        """The nodes without what is only a part of one."""
        return tuple(node for op, node in self._labelled if op or not self.operators)

    @property
    def _labelled(self) -> Iterator[tuple[str, str]]:
        return zip(self.operators or [""] * len(self.nodes), self.nodes, strict=True)


@dataclass(frozen=True)
class Fallback:
    """A node that was not compiled, its operator, and why."""

    node: str
    operator: str
    reason: str


@dataclass(frozen=True)
class NotFused:
    """A node that could have joined its producer's kernel, and why it did not.

    bytes: what it costs: the size of what goes from one to the other through memory.
    """

    producer: str
    consumer: str
    reason: str
    bytes: int


@dataclass(frozen=True)
class Report:
    """Everything polyc says about a compiled model; sizes in bytes, times in seconds.

    rewrites: "name of the rewrite: what it did"; float_sums: nodes that multiply restored bytes as
    floats, each with the reason; proven: facts about all kernels, their launches
    and the arena, one a line.
    """

    model: str
    target: str
    kernels: tuple[KernelRow, ...]
    fallbacks: tuple[Fallback, ...] = ()
    rewrites: tuple[str, ...] = ()
    arena_bytes: int = 0
    arena_lower_bound: int = 0
    weights_bytes: int = 0
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    not_fused: tuple[NotFused, ...] = ()
    proven: tuple[str, ...] = ()
    float_sums: tuple[tuple[str, str], ...] = ()

    def with_seconds(self, seconds: Sequence[float]) -> Report:
        """This report with the measured time of each launch."""
        rows = zip(self.kernels, seconds, strict=True)
        return replace(self, kernels=tuple(replace(k, seconds=float(s)) for k, s in rows))

    def to_json(self) -> dict[str, Any]:
        """Plain lists and dictionaries; `from_json` is the inverse."""
        return {**asdict(self), "stage_seconds": dict(self.stage_seconds)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        """The report that `to_json` wrote; ValueError for anything else."""
        return decode(Report, data, "report")

    @property
    def _room(self) -> str:
        """The bytes of temporaries; where sizes are open, a call decides."""
        is_open = self.arena_lower_bound > self.arena_bytes
        return "as much as a call needs" if is_open else f"{count(self.arena_bytes)}B"

    def facts(self, examples: int | None = None) -> list[tuple[str, str]]:
        """What stands around the table of kernels: (what, value); `examples` cuts long lists."""
        nodes = {n for k in self.kernels for n in k.whole_nodes}
        flops = sum(k.flops or 0 for k in self.kernels)
        distinct = len({k.name for k in self.kernels})
        lines = [
            ("target", self.target),
            (
                "kernels",
                f"{counted(len(self.kernels), 'launch', 'launches')} of "
                f"{counted(distinct, 'kernel')} for {counted(len(nodes), 'node')}: "
                f"{count(flops)}flop",
            ),
            (
                "memory",
                f"{self._room} for temporaries (the largest live set is "
                f"{count(self.arena_lower_bound)}B), {count(self.weights_bytes)}B of weights",
            ),
        ]
        floors = [k.floor for k in self.kernels if k.floor is not None]
        if floors:
            lines.append(("roofline", f"{sum(floors) * 1e6:,.1f} us at least, launch by launch"))
        errors = [k.error for k in self.kernels if k.error is not None]
        if errors:
            lines.append(("predicted", f"half of the launches within {median(errors):.0%}"))
        copies = [k for k in self.kernels if k.copies]
        if copies:
            moved = ((f"{k.copies} ({count(k.bytes)}B)") for k in copies[:examples])
            more = ["…"] if examples is not None and len(copies) > examples else []
            size = count(sum(k.bytes or 0 for k in copies))
            moved_by = f"{size}B by {counted(len(copies), 'launch', 'launches')}: "
            lines.append(("copies", moved_by + "; ".join([*moved, *more])))
        tuned = sum(k.gain > 0 for k in self.kernels)
        if tuned:
            lines.append(("tuned", f"{counted(tuned, 'launch', 'launches')} by measurement"))
        if self.stage_seconds:
            stages = ", ".join(f"{k} {v:.2f}" for k, v in self.stage_seconds.items())
            total = sum(self.stage_seconds.values())
            lines.append(("compiled in", f"{total:.2f} s: {stages}"))
        lines += [("proven", p) for p in self.proven]
        rewrites = (r.partition(": ") for r in self.rewrites)
        lines += _grouped("rewritten", ((name, text) for name, _, text in rewrites), examples)
        refused = (
            (n.reason, f"{n.consumer} after {n.producer} ({count(n.bytes)}B)")
            for n in sorted(self.not_fused, key=lambda n: -n.bytes)
        )
        lines += _grouped("not fused", refused, examples)
        lines += [("not compiled", f"{f.operator} {f.node}: {f.reason}") for f in self.fallbacks]
        return lines

    def __str__(self) -> str:
        from polyc.report.text import print_report

        return print_report(self)

    def to_html(self, path: str | Path) -> None:
        """Write the report as one self-contained page; every text is escaped.

        Raises BuildError if the file cannot be written.
        """
        from polyc.report.page import print_page

        with writing(path, "the report"):
            Path(path).write_text(print_page(self), encoding="utf-8")


def _grouped(
    what: str, items: Iterable[tuple[str, str]], examples: int | None
) -> Iterator[tuple[str, str]]:
    """One line for each key: how often, the key, and the first texts under it."""
    groups: dict[str, list[str]] = {}
    for key, text in items:
        groups.setdefault(key, []).append(text)
    for key, texts in groups.items():
        more = ["…"] if examples is not None and len(texts) > examples else []
        yield what, f"{len(texts)} x {key}: {'; '.join([*texts[:examples], *more])}"


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
