"""python -m bench: how fast polyc is, beside its peers and the machine's limit."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.compare import compare_results
from bench.engines import AVX2_ENGINES, ENGINES, Engine
from bench.measure import Team, measure_problem
from bench.plot import plot_results
from bench.problems import all_problems, choose_problems
from bench.results import Results, Row, describe_machine, find_versions
from bench.roofline import floor_seconds
from bench.table import show_line, show_results
from polyc.commands.doctor import measure as measure_machine
from polyc.options import options_from_environment
from polyc.target.machine import Target, detect_target

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

Json = Annotated[Path, typer.Argument(help="What `run --json` wrote.")]


@app.command()
def run(
    problems: Annotated[
        list[str] | None,
        typer.Argument(help="Names or groups (gemm, 'conv*'), or ONNX files. Default: all."),
    ] = None,
    threads: Annotated[list[int] | None, typer.Option(help="May be repeated. Default: 1.")] = None,
    engines: Annotated[
        str, typer.Option(help=f"Of {', '.join(ENGINES)}, with commas. Default: what is there.")
    ] = "",
    avx2: Annotated[bool, typer.Option("--avx2", help="Engines that can be held to AVX2.")] = False,
    seconds: Annotated[float, typer.Option(min=0, help="Of each engine on each problem.")] = 1.0,
    kernels: Annotated[bool, typer.Option("--kernels", help="Also polyc's kernels.")] = False,
    json: Annotated[Path | None, typer.Option(help="Also write every figure here.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw a picture (.png, .svg).")] = None,
) -> None:
    """Measure, and print a table."""
    try:
        chosen = choose_problems(problems or [])
        playing = _choose_engines(engines, AVX2_ENGINES if avx2 else ENGINES)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    target = _measured_target()
    teams = [Team(playing, n) for n in threads or [1]]
    rows: list[Row] = []
    try:
        for problem in chosen:
            for row in measure_problem(problem, teams, seconds, partial(floor_seconds, target)):
                rows.append(row)
                _say(show_line(row), err=True)
    except KeyboardInterrupt:
        _say("stopped; what was measured follows", err=True)
    finally:
        for team in teams:
            team.close()
    versions = find_versions(sorted({e.package for e in playing}))
    results = Results(describe_machine(target), versions, rows)
    if json:
        results.write(json)
    if plot:
        plot_results(results, plot)
    _say(show_results(results, kernels))


@app.command()
def compare(
    before: Json,
    after: Json,
    tolerance: Annotated[float, typer.Option(min=0, help="0.05 lets 5% pass.")] = 0.05,
    relative: Annotated[
        bool, typer.Option("--relative", help="Compare polyc / best peer, not seconds.")
    ] = False,
) -> None:
    """Exit with 1 if a row of BEFORE got slower in AFTER, or is gone."""
    first, second = _read(before), _read(after)
    if not relative and first.machine["target"] != second.machine["target"]:
        raise typer.BadParameter("the machines differ; only --relative compares them")
    changes = list(compare_results(first, second, relative))
    for change in changes:
        mark = "SLOWER " if change.slower(tolerance) else "       "
        _say(f"{mark}{change}")
    slower = sum(c.slower(tolerance) for c in changes)
    _say(f"{slower} of {len(changes)} rows got slower by more than {tolerance:.1%}")
    if slower:
        raise typer.Exit(1)


@app.command()
def plot(results: Json, picture: Annotated[Path, typer.Argument(help=".png or .svg")]) -> None:
    """Draw the roofline, and the ratios to the best peer."""
    plot_results(_read(results), picture)


@app.command()
def show(
    results: Json,
    kernels: Annotated[bool, typer.Option("--kernels", help="Also polyc's kernels.")] = False,
) -> None:
    """Print the table again."""
    _say(show_results(_read(results), kernels))


@app.command("list")
def list_problems() -> None:
    """The problems by group, and the engines."""
    for problem in all_problems().values():
        _say(f"{problem.group:12} {problem.name}")
    for engine in ENGINES.values():
        _say(f"{'engine':12} {engine.name:14} {engine.missing() or 'ready'}")


def _choose_engines(names: str, known: Mapping[str, Engine]) -> list[Engine]:
    """Those asked for, which must be there, or all that are."""
    if not names:
        return [e for e in known.values() if not e.missing()]
    chosen = []
    for name in names.split(","):
        if name not in known:
            raise ValueError(f"no engine is called {name!r}; there are {', '.join(known)}")
        if known[name].missing():
            raise ValueError(f"{name} cannot be measured: {known[name].missing()}")
        chosen.append(known[name])
    return chosen


def _measured_target() -> Target:
    """This machine, whose rates are measured now if they never were."""
    options = options_from_environment()
    if not detect_target(options.cc).rates.measured:
        _say(f"the machine's rates, measured: {measure_machine(options)}", err=True)
    target = detect_target(options.cc)
    _say(f"{target}; {target.rates}", err=True)
    return target


def _read(file: Path) -> Results:
    try:
        return Results.read(file)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _say(text: str, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text + "\n")
    stream.flush()


if __name__ == "__main__":
    app()
