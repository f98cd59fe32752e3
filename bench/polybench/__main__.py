"""python -m bench.polybench: polyc beside C compilers on the kernels of PolyBench, or others."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bench.polybench.kernels import ALL, EVERYDAY, PROBLEMS
from bench.polybench.problem import SIZES
from bench.polybench.race import Race, choose_engines, race
from bench.polybench.table import show_row, show_rows
from bench.worker import environment
from polyc.target.machine import detect_target

app = typer.Typer(add_completion=False)


@app.command()
def run(
    threads: Annotated[int, typer.Option(min=1)] = 1,
    size: Annotated[str, typer.Option(help=f"One of {', '.join(SIZES)}.")] = "large",
    kernel: Annotated[list[str] | None, typer.Option(help="May be repeated. Default: all.")] = None,
    everyday: Annotated[
        bool,
        typer.Option("--everyday", help="Loops as people write them, in place of PolyBench's."),
    ] = False,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="May be repeated: beside polyc and gcc -O3. Default: all."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Samples of each engine.")] = 7,
    seconds: Annotated[float, typer.Option(min=0, help="Of each engine on each kernel.")] = 4.0,
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Of the process, for a machine that others use too.")
    ] = False,
) -> None:
    """Time polyc beside compilers of the same loops in C, and print a table."""
    chosen = kernel or list(EVERYDAY if everyday else PROBLEMS)
    if unknown := [name for name in chosen if name not in ALL]:
        raise typer.BadParameter(f"no kernel is called {unknown[0]}; there are {', '.join(ALL)}")
    if size not in SIZES:
        raise typer.BadParameter(f"no size is called {size}; there are {', '.join(SIZES)}")
    if cpu_time and threads > 1:
        raise typer.BadParameter("--cpu-time adds up threads, so it compares one thread alone")
    rules = Race(size, threads, rounds, seconds, cpu_time, engines=tuple(engine or ()))
    try:
        engines = list(choose_engines(rules))
    except LookupError as error:
        raise typer.BadParameter(error.args[0]) from error
    what = "CPU seconds" if cpu_time else "seconds"
    typer.echo(f"{detect_target()}; size {size}, threads {threads}, medians in {what}\n")
    sys.stdout.flush()
    rows = []
    variables = {n: str(threads) for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    for name in chosen:
        with environment(variables):
            rows.append(race(name, rules))
        typer.echo(show_row(rows[-1], engines), err=True)
    typer.echo(show_rows(rows, engines))
    raise typer.Exit(any(row.ratio is None for row in rows))


if __name__ == "__main__":
    app()
