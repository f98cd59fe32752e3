"""The command `polyc`. Exit codes: 0 done, 1 an error told in one line, 2 wrong usage."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import polyc
from polyc.commands import prune as thinner
from polyc.commands import quantise as smaller
from polyc.commands.feeds import read_feeds, write_results
from polyc.commands.schedules import read_schedules
from polyc.commands.sizes import parse_sizes, parse_states
from polyc.errors import BuildError, IllegalSchedule, PolycError
from polyc.names import show_text
from polyc.options import MAX_THREADS, Options, options_from_environment
from polyc.run.feeds import random_feeds
from polyc.types.call_sizes import read_sizes

if TYPE_CHECKING:
    from polyc.run.model import CompiledModel

app = typer.Typer(
    help="Compile ONNX models to proven, fused C and CUDA.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Model = Annotated[str, typer.Argument(help="An ONNX file, or a folder that `polyc compile` wrote.")]
OnnxFile = Annotated[str, typer.Argument(help="An ONNX file.")]
TargetName = Annotated[
    str, typer.Option("--target", help="auto, cpu, avx512, avx2, baseline, cuda or cuda:sm_90.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, max=MAX_THREADS, help="Default: all cores.")
]
Sizes = Annotated[
    list[str] | None,
    typer.Option("--size", help="NAME=NUMBER or NAME=FIRST:LAST[:HINT]; may be repeated."),
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", help="INPUT=OUTPUT, kept from call to call; may be repeated."),
]
Schedules = Annotated[
    Path | None,
    typer.Option("--schedule", help="A file of schedules, as `polyc schedule` prints them."),
]
Seed = Annotated[int, typer.Option("--seed", help="Of random inputs.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help="NAME=FILE.npy; may be repeated. Other inputs are random."),
]


@app.command()
def compile(
    model: OnnxFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    states: States = None,
    schedules: Schedules = None,
) -> None:
    """Compile MODEL and save it; `polyc.load` reads the folder without a compiler."""
    compiled = _compile(model, target, threads, sizes, states, schedules)
    compiled.save(output)
    _say(f"{compiled.name}: {len(compiled.explain().kernels)} kernels written to {output}")
    _say(f"digest: {compiled.digest}")


@app.command()
def export(
    model: Model,
    folder: Annotated[Path, typer.Argument(help="Folder to write.")],
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    states: States = None,
    schedules: Schedules = None,
) -> None:
    """Write MODEL as text that `make` builds without Python: sources, header, weights, example."""
    compiled = _open(model, target, threads, sizes, states, schedules)
    compiled.export(folder)
    _say(f"{compiled.name}: written to {folder}; build it with: make -C {folder}")


@app.command()
def run(
    model: Model,
    inputs: Inputs = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for NAME.npy files.")
    ] = None,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    schedules: Schedules = None,
) -> None:
    """Run MODEL once and show its outputs."""
    compiled = _open(model, target, threads, sizes, schedules=schedules)
    results = compiled.run(read_feeds(compiled.inputs, inputs or [], seed, compiled.sizes))
    for name, value in results.items():
        _say(f"{name}: {value.dtype}{list(value.shape)} {_summary(value)}")
    if output is not None:
        for file in write_results(output, results):
            _say(f"written: {file}")


@app.command()
def bench(
    model: Model,
    inputs: Inputs = None,
    kernels: Annotated[bool, typer.Option("--kernels", help="Also time each kernel.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="How long to measure.")] = 1.0,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    schedules: Schedules = None,
) -> None:
    """Time MODEL."""
    from polyc.commands.bench import measure

    compiled = _open(model, target, threads, sizes, schedules=schedules)
    feeds = read_feeds(compiled.inputs, inputs or [], seed, compiled.sizes)
    timing = measure(lambda: compiled.run(feeds), seconds)
    _say(f"{compiled.name}, {compiled.place}: {timing}")
    if kernels:
        _say(str(compiled.explain(feeds)))


@app.command()
def tune(
    model: OnnxFile,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="How long to search.")] = 60.0,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
) -> None:
    """Search for faster kernels for MODEL, by measuring; later compilations use what is found."""
    from polyc.commands.tune import make_table, search, summarise

    known = parse_sizes(sizes)
    result = search(model, target, threads, seconds, read_sizes(**known))
    if result.better:
        _console().print(make_table(result))
    after = polyc.compile(model, target=target, threads=threads, tune=0, **known)
    for line in summarise(result, after):
        _say(line)


@app.command()
def explain(
    model: Model,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page instead.")] = None,
    times: Annotated[bool, typer.Option("--times", help="Run it, and show times.")] = False,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    schedules: Schedules = None,
) -> None:
    """Show what was fused, how it is scheduled, and what was proven."""
    compiled = _open(model, target, threads, sizes, schedules=schedules)
    report = compiled.explain(
        random_feeds(compiled.inputs, seed, compiled.sizes) if times else None
    )
    if html is None:
        _say(str(report))
    else:
        report.to_html(html)
        _say(f"written: {html}")


@app.command()
def schedule(
    model: Model,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    schedules: Schedules = None,
) -> None:
    """Show how each kernel of MODEL runs, as text that --schedule reads, to be edited."""
    compiled = _open(model, target, threads, sizes, schedules=schedules)
    for name, text in compiled.schedules.items():
        _say(f"{name}: {text}")


@app.command()
def verify(
    model: OnnxFile,
    target: TargetName = "auto",
    threads: Threads = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    exact: Annotated[
        bool, typer.Option(help="run the printed text in a prime field, and compare bit by bit")
    ] = False,
) -> None:
    """Compare every tensor of MODEL with ONNX's reference, and name the first node that differs.

    Twice: each node on its own, with every tensor an output; then the model as it is, fused. With
    --exact, no tolerance is needed: the printed C, or CUDA on the emulator, and the model's
    statements compute with numbers modulo a prime.
    """
    known = parse_sizes(sizes)
    _say(str(polyc.verify(model, exact=exact, target=target, threads=threads, seed=seed, **known)))


@app.command()
def quantise(
    model: OnnxFile,
    output: smaller.Output,
    data: smaller.Data = None,
    bits: smaller.Bits = 8,
    calibration: smaller.Calibration = None,
    activations: smaller.Activations = None,
    keep: smaller.Keep = None,
    budget: smaller.Budget = None,
    threads: Threads = None,
) -> None:
    """Write MODEL with bytes for floats, as standard ONNX, and show what that cost by layer."""
    how = {"calibration": calibration, "activations": activations, "budget": budget}
    for line in smaller.quantise_file(model, data, output, bits, keep or (), threads, how):
        _say(line)


@app.command()
def prune(
    model: OnnxFile,
    output: smaller.Output,
    share: thinner.Share,
    structured: thinner.Structured = False,
    data: smaller.Data = None,
    keep: thinner.Keep = None,
    threads: Threads = None,
) -> None:
    """Write MODEL without its smallest weights or channels, and show what became of each layer."""
    for line in thinner.prune_file(model, share, data, output, structured, keep or (), threads):
        _say(line)


@app.command()
def demo(threads: Threads = None, seed: Seed = 0) -> None:
    """Compile ResNet-50 with random weights, check it, and time it beside NumPy."""
    from polyc.commands.demo import show_demo

    for line in show_demo(threads, seed):
        _say(line)


@app.command()
def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure the machine's rates (on a quiet one).")
    ] = False,
) -> None:
    """Check compiler, CPU, threads, cache and CUDA."""
    from polyc.commands import doctor as practice

    options = _options()
    if measure:
        _say(f"measured, and kept in {practice.measure(options)}")
    checks = practice.examine(options)
    table = Table(show_header=False, box=None)
    for check in checks:
        mark = "ok" if check.well else ("MISSING" if check.needed else "-")
        table.add_row(Text(mark), Text(check.what), Text(check.found))
        if not check.well:
            table.add_row("", "", Text(f"-> {check.remedy}"))
    _console().print(table)
    broken = [c.what for c in checks if c.needed and not c.well]
    if broken:
        raise BuildError(f"polyc cannot compile here: see {', '.join(broken)} above")


cache = typer.Typer(help="Show what the cache holds, list it, or clear it.")
app.add_typer(cache, name="cache")


@cache.callback(invoke_without_command=True)
def show_cache(context: typer.Context) -> None:
    """Show what the cache holds, list it, or clear it."""
    if context.invoked_subcommand is None:
        from polyc.commands import cache as store

        for line in store.summarise(store.find_cache(_options())):
            _say(line)


@cache.command("list")
def list_cache() -> None:
    """Show every entry of the cache: when it was last used, its size, its kind and key."""
    from polyc.commands import cache as store

    for line in store.list_entries(store.find_cache(_options())):
        _say(line)


@cache.command("clear")
def clear_cache() -> None:
    """Remove what was compiled; models are compiled anew when they are next needed."""
    from polyc.commands import cache as store

    _say(store.clear(store.find_cache(_options())))


def main() -> None:
    """Run the command line; every PolycError becomes one line and exit code 1."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        _options()
        app()
    except PolycError as error:
        sys.stderr.write(f"polyc: error: {error}\n")
        sys.exit(1)


def _terminate(number: int, _: object) -> None:
    """Leave as after an error, so that what is half made goes, and compilers with it."""
    from polyc.toolchain.execute import end_all

    end_all()
    sys.exit(128 + number)


def _options() -> Options:
    return options_from_environment()


def _open(
    model: str,
    target: str,
    threads: int | None,
    sizes: list[str] | None,
    states: list[str] | None = None,
    schedules: Path | None = None,
) -> CompiledModel:
    """A saved folder is loaded as it is; anything else is compiled."""
    if not os.path.isdir(model):
        return _compile(model, target, threads, sizes, states, schedules)
    if schedules is not None:
        raise IllegalSchedule(f"{model} is compiled already: give schedules for an ONNX file")
    loaded = polyc.load(model)
    loaded.threads = threads or loaded.threads
    return loaded


def _compile(
    model: str,
    target: str,
    threads: int | None,
    sizes: list[str] | None,
    states: list[str] | None,
    schedules: Path | None,
) -> CompiledModel:
    known = parse_sizes(sizes)
    state, schedule = parse_states(states), read_schedules(schedules)
    return polyc.compile(
        model, target=target, threads=threads, state=state, schedule=schedule, **known
    )


def _console() -> Console:
    return Console(markup=False, highlight=False, soft_wrap=True)


def _say(text: str) -> None:
    _console().print(show_text(text, most=1 << 20))


def _summary(value: np.ndarray) -> str:
    if value.size == 0:
        return "empty"
    if value.size <= 8:
        return str(value.tolist())
    return f"min {value.min():.6g}, mean {value.mean():.6g}, max {value.max():.6g}"
