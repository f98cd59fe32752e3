"""python -m bench.cuda: polyc on this machine's GPU beside cuBLAS, torch and the roofline."""

from __future__ import annotations

import datetime
import fnmatch
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.engines import GPU_ENGINES, Engine
from bench.gpu.limits import Limits, measure_limits
from bench.gpu.problems import gpu_problems
from bench.measure import Team, measure_problem
from bench.problems import Problem
from bench.results import Results, Row, find_versions
from bench.roofline import Work
from bench.table import show_kernels, show_line, show_notes, show_rows
from polyc.errors import PolycError
from polyc.options import Options, options_from_environment
from polyc.target.cuda import CudaTarget, ask_driver
from polyc.toolchain.nvcc import find_nvcc

FOLDER = Path(__file__).parent / "results"

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run(
    problems: Annotated[
        list[str] | None, typer.Argument(help="Names or groups (gemm-float32, 'light'). All.")
    ] = None,
    engines: Annotated[
        str, typer.Option(help=f"Of {', '.join(GPU_ENGINES)}, with commas. What is there.")
    ] = "",
    seconds: Annotated[float, typer.Option(min=0, help="Of each engine on each problem.")] = 1.0,
    kernels: Annotated[bool, typer.Option("--kernels", help="Also polyc's kernels.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for the figures.")] = FOLDER,
) -> None:
    """Measure, print a table, and write it and its figures to OUTPUT, by device and date."""
    options = options_from_environment()
    try:
        chosen = choose(list(gpu_problems()), problems or [])
        playing = choose_engines(engines)
        target = find_gpu(options)
        limits = measure_limits(target, options)
    except (PolycError, ValueError) as error:
        _say(f"bench.cuda: {error}", err=True)
        raise typer.Exit(1) from error
    _say(f"{target}; copies {limits.copy / 1e9:,.0f} GB/s", err=True)
    team = Team(playing, 1)
    rows: list[Row] = []
    try:
        for row in measure(chosen, team, seconds, limits):
            rows.append(row)
            _say(show_line(row), err=True)
    except KeyboardInterrupt:
        _say("stopped; what was measured follows", err=True)
    finally:
        team.close()
    packages = sorted({e.package for e in playing})
    results = Results(describe(target, limits, options), find_versions(packages), rows)
    text = show(results, kernels)
    _say(text)
    for file in write(results, text, output):
        _say(f"written: {file}", err=True)


def measure(
    problems: Sequence[Problem], team: Team, seconds: float, limits: Limits
) -> Iterator[Row]:
    """A row a problem."""
    for problem in problems:
        yield from measure_problem(problem, [team], seconds, _floor(problem, limits))


def _floor(problem: Problem, limits: Limits) -> Callable[[Work, int], float]:
    return lambda work, threads: limits.floor_seconds(work, problem.precision)


def choose(problems: Sequence[Problem], patterns: Sequence[str]) -> list[Problem]:
    """Those whose name or group matches a pattern, or all; ValueError if one matches nothing."""
    for pattern in patterns:
        if not any(_matches(p, pattern) for p in problems):
            groups = ", ".join(dict.fromkeys(p.group for p in problems))
            raise ValueError(f"no problem is called {pattern!r}; the groups are {groups}")
    return [p for p in problems if not patterns or any(_matches(p, x) for x in patterns)]


def choose_engines(names: str) -> list[Engine]:
    """Those asked for, or all that are installed; ValueError for one that is not."""
    if not names:
        return [e for e in GPU_ENGINES.values() if not e.missing()]
    for name in names.split(","):
        if name not in GPU_ENGINES:
            raise ValueError(f"no engine is called {name!r}; there are {', '.join(GPU_ENGINES)}")
        if GPU_ENGINES[name].missing():
            raise ValueError(f"{name} cannot be measured: {GPU_ENGINES[name].missing()}")
    return [GPU_ENGINES[name] for name in names.split(",")]


def find_gpu(options: Options) -> CudaTarget:
    """The GPU that is measured; ValueError where there is none, BuildError without nvcc."""
    if options.emulated:
        raise ValueError("POLYC_CUDA=emulate is no GPU to measure; unset it")
    driver = ask_driver()
    if driver.missing:
        raise ValueError(driver.missing)
    find_nvcc(options.nvcc)
    return driver.devices[0]


def describe(target: CudaTarget, limits: Limits, options: Options) -> dict[str, Any]:
    """The device and its limits, as they are written."""
    return {
        "target": str(target),
        "device": asdict(target),
        "limits": asdict(limits),
        "driver": ask_driver().version,
        "nvcc": ".".join(map(str, find_nvcc(options.nvcc).version)),
    }


def show(results: Results, kernels: bool) -> str:
    """Markdown: the device, a table a group, and what is to be noted."""
    limits = results.machine["limits"]
    peaks = ", ".join(f"{name} {rate / 1e12:.0f}" for name, rate in limits["flops"].items())
    parts = [
        f"# {results.machine['target']}",
        f"Copies {limits['copy'] / 1e9:,.0f} GB/s (measured); Tflop/s: {peaks} (described). nvcc "
        f"{results.machine['nvcc']}, driver for CUDA {results.machine['driver'] / 1000:.1f}; "
        + ", ".join(f"{k} {v}" for k, v in results.versions.items()),
    ]
    for group, rows in groupby(results.rows, key=lambda r: r.group):
        chosen = list(rows)
        parts.append(f"## {group}\n\n{show_rows(chosen)}")
        if kernels:
            parts += [show_kernels(row) for row in chosen if len(row.kernels) > 1]
    parts += list(show_notes(results.rows))
    return "\n\n".join(parts) + "\n"


def write(results: Results, text: str, folder: Path) -> list[Path]:
    """The figures and the table, in files named by device and date."""
    folder.mkdir(parents=True, exist_ok=True)
    device = re.sub(r"[^a-z0-9]+", "-", results.machine["device"]["name"].lower()).strip("-")
    name = f"{device}-{datetime.date.today():%Y-%m-%d}"
    results.write(folder / f"{name}.json")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return [folder / f"{name}.json", folder / f"{name}.md"]


def _matches(problem: Problem, pattern: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for name in (problem.name, problem.group))


def _say(text: str, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text + "\n")
    stream.flush()


if __name__ == "__main__":
    app()
