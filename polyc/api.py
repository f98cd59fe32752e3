"""The public interface: `compile`, `load`, `CompiledModel`.

Imports stay light: a model that is already in the cache is loaded without onnx and without islpy.
"""

from __future__ import annotations

import os
import statistics
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyc.build.bundle import (
    copy_bundle,
    make_manifest,
    read_bundle,
    read_source,
    write_bundle,
    write_weights,
)
from polyc.build.cache import Cache, digest, open_cache
from polyc.build.fingerprint import fingerprint
from polyc.build.load import Loaded, load_bundle
from polyc.build.pages import allocate_pages
from polyc.build.toolchain import LibraryBuild
from polyc.calls import Binder
from polyc.errors import RuntimeFailure
from polyc.mapping.parameters import Tuned
from polyc.options import Options, options_from_environment
from polyc.report.report import KernelRow, Report
from polyc.spec import TensorSpec
from polyc.target.machine import Target, available_cores, resolve_target
from polyc.trace import Trace, make_trace
from polyc.tuning.store import read_tuned, spell_choices, tuned_file

if TYPE_CHECKING:
    from polyc.pipeline import Compiled

Arrays = np.ndarray | Sequence[np.ndarray]


def compile(
    model: Any,
    *,
    target: str | Target = "auto",
    opt_level: int | None = None,
    threads: int | None = None,
    tune: float | None = None,
    options: Options | None = None,
) -> CompiledModel:
    """Compile a model, or find it in the cache.

    model: a path, an onnx.ModelProto, its bytes, or a polyc.Graph; target: "auto", "cpu", "avx512",
    "avx2", "baseline" or a `Target`; opt_level: 0 to 3, by default that of the options (3);
    threads: how many a call uses, by default all that this process may use; tune: seconds to search
    for faster kernels first, by measuring; options: by default what the environment says.

    Raises InvalidModel, UnsupportedOp, ShapeError, IllegalSchedule, BuildError.
    """
    options = options_from_environment() if options is None else options
    if opt_level is not None:
        options = replace(options, opt_level=opt_level)
    if threads is not None:
        options = replace(options, threads=threads)
    if tune is not None:
        options = replace(options, tune=tune)
    machine = resolve_target(target, options.cc)
    model = os.fspath(model) if isinstance(model, os.PathLike) else model
    tuned = _read_or_tune(model, machine, options)
    if options.dump:
        # Only a compilation that runs can be dumped.
        options = replace(options, cache=False)
    key = fingerprint(model, machine, options)
    cache = open_cache(options)

    def make(folder: Path) -> None:
        _build(model, machine, options, cache, folder, tuned)

    folder = cache.fetch("models", key, make)
    consulted = read_bundle(folder, checked=True).consulted
    answers = spell_choices(consulted, tuned)
    if answers != consulted:  # something was tuned since
        key = digest([key, *(x for answer in answers.items() for x in answer)])
        folder = cache.fetch("models", key, make)
    compiled = CompiledModel(load_bundle(folder, checked=True))
    if cache.temporary:
        weakref.finalize(compiled, cache.discard)
    return compiled


def load(path: str | os.PathLike[str]) -> CompiledModel:
    """A model that `CompiledModel.save` wrote; no compiler is needed.

    The folder holds native code: load only what you trust. Raises InvalidModel for a damaged
    folder, BuildError on a CPU that lacks an instruction set that the model was compiled for.
    """
    return CompiledModel(load_bundle(Path(path)))


class CompiledModel:
    """A model ready to run: NumPy arrays in, NumPy arrays out.

    Calls from several Python threads run side by side: each takes its own arena from a pool, and
    the GIL is released while C code runs.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        manifest = loaded.manifest
        self.name: str = manifest.name
        self.inputs: tuple[TensorSpec, ...] = manifest.inputs
        self.outputs: tuple[TensorSpec, ...] = manifest.outputs
        self._results = [s.name for s in self.outputs]
        self.threads: int = manifest.threads or available_cores()
        self._run = loaded.library.polyc_run
        self._view = loaded.ffi.from_buffer
        self._weights = self._view(loaded.weights)
        self._binder = Binder(self.name, self.inputs, self.outputs)
        # list.append and list.pop are atomic, so the pool needs no lock.
        self._arenas: list[Any] = []

    def __call__(
        self, *arrays: Any, out: Arrays | None = None, **named: Any
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the model on inputs in order, or by name.

        Returns the output, or a tuple in the graph's order if there are several. `out`, an array or
        a sequence of arrays, is written into and returned. Lists and scalars are converted; arrays
        must have the input's type. Raises ShapeError for an array that does not fit, RuntimeFailure
        for an index out of range.
        """
        bound = self._binder.bind_inputs(arrays, named)
        if out is None:
            results = self._binder.allocate_outputs()
        else:
            given = (out,) if isinstance(out, np.ndarray) else tuple(out)
            results = self._binder.check_outputs(given)
        self._execute(self._run, bound + results)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Run the model by name: {input: array} -> {output: array}."""
        bound = self._binder.bind_inputs((), feeds)
        results = self._binder.allocate_outputs()
        self._execute(self._run, bound + results)
        return dict(zip(self._results, results, strict=True))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up.

        All threads wait for one another around each launch, so that its time is its own. Launches
        that run side by side in a call do not here, and the sum is more than the time of a call.
        """
        arrays = self._binder.bind_inputs((), feeds) + self._binder.allocate_outputs()
        size = len(self._loaded.manifest.launches)
        seconds = self._loaded.ffi.new("double[]", max(size, 1))
        profile = self._loaded.library.polyc_profile
        runs = []
        for _ in range(repeats + 1):
            self._execute(lambda *call: profile(*call, seconds), arrays)
            runs.append(list(seconds)[:size])
        return tuple(statistics.median(times) for times in zip(*runs[1:], strict=True))

    def explain(self, feeds: Mapping[str, Any] | None = None) -> Report:
        """What was fused, how it is scheduled, what it costs; with times if `feeds` are given."""
        report = self._loaded.manifest.report
        return report if feeds is None else report.with_seconds(self.profile(feeds))

    @property
    def weights_bytes(self) -> int:
        """Bytes of constants that the model reads."""
        return self._loaded.manifest.weights_bytes

    @property
    def source(self) -> str:
        """The generated C."""
        return read_source(self._loaded.folder)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder that `polyc.load` reads, here or on a like machine."""
        copy_bundle(self._loaded.folder, Path(path))

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as C that `make` builds with nothing but a C compiler.

        folder: src/*.c, runtime/*.h, NAME.h (the interface), weights.bin, example.c, Makefile.
        Raises InvalidModel if the folder exists and is not an earlier export.
        """
        from polyc.build.export import export_bundle

        export_bundle(self._loaded.folder, self._loaded.manifest, Path(folder))

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, s)) for s in (self.inputs, self.outputs))
        return f"CompiledModel({self.name!r}: {ins} -> {outs})"

    def _execute(self, function: Any, arrays: Sequence[np.ndarray]) -> None:
        """Call polyc_run, or a function of its form, on a model's inputs and outputs."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self._view(allocate_pages(max(self._loaded.manifest.arena_bytes, 1)))
        try:
            io = list(map(self._view, arrays))
            status = function(io, self._weights, arena, self.threads)
        finally:
            self._arenas.append(arena)
        if status < 0:
            raise self._binder.overlap(-status - 1)
        if status:
            kernel, origin = self._loaded.manifest.launches[status - 1]
            raise RuntimeFailure(
                f"model {self.name!r}: an index is out of range in {', '.join(origin) or kernel}; "
                "check the index inputs against the sizes that they index"
            )


def _read_or_tune(model: Any, target: Target, options: Options) -> Mapping[str, Tuned]:
    """Tuned parameters by cluster, as the options want them."""
    known: Mapping[str, Tuned] = {}
    if options.tune > 0:
        from polyc.tuning.tune import tune

        known = tune(model, target, options).known
    elif options.cache:
        known = read_tuned(tuned_file(target, options))
    return known if options.use_tuned else {}


def _build(
    model: Any,
    target: Target,
    options: Options,
    cache: Cache,
    folder: Path,
    tuned: Mapping[str, Tuned],
) -> None:
    """Model -> bundle in `folder`: everything that a warm start spares.

    The C compiler works at the kernels that are printed while the next ones are generated.
    """
    from polyc.analysis.proof import counted
    from polyc.analysis.verify import verify_arena, verify_barriers
    from polyc.codegen.driver import DRIVER_FILE, is_worth_sharing, print_driver
    from polyc.memory.plan import plan_memory
    from polyc.pipeline import run_pipeline
    from polyc.schedule.barriers import place_barriers

    trace = make_trace(options)
    with LibraryBuild(target, options, cache) as build:
        compiled = run_pipeline(model, target, options, trace, tuned, build.add)
        with trace.step("plan"):
            plan = plan_memory(compiled.program)
            barriers = place_barriers(compiled.touched, plan.slots)
            driver = print_driver(
                compiled.program,
                plan,
                barriers,
                shared=is_worth_sharing(compiled.program),
                pinned=options.pinned,
            )
        trace.dump("c", driver, "driver")
        build.add(DRIVER_FILE, driver)
        proven = list(compiled.proven)
        with trace.step("verify"):
            if options.verify:
                placed = counted(verify_arena(plan.slots, plan.arena_bytes), "array")
                proven.append(f"arena: {placed} inside, none over another while both are live")
                apart = verify_barriers(compiled.touched, plan.slots, barriers)
                proven.append(
                    f"barriers: {len(barriers)}, and {counted(apart, 'pair')} of launches with "
                    "none between them independent"
                )
        with trace.step("weights"):
            write_weights(folder, compiled.program, plan)
        with trace.step("build"):
            library = build.link()
    report = replace(
        _report(compiled, target, trace),
        arena_bytes=plan.arena_bytes,
        arena_lower_bound=plan.lower_bound,
        weights_bytes=plan.weights_bytes,
        proven=tuple(proven),
    )
    consulted = spell_choices(compiled.keys, tuned) if options.use_tuned else {}
    manifest = make_manifest(compiled.program, plan, options.threads, target, report, consulted)
    write_bundle(folder, manifest, library, {**compiled.sources, DRIVER_FILE: driver})


def _report(compiled: Compiled, target: Target, trace: Trace) -> Report:
    """One row a launch: the schedule and proof of its kernel, the nodes and costs of the launch."""
    told = {row.name: row for row in compiled.rows}
    rows = tuple(
        KernelRow(
            launch.kernel,
            launch.origin,
            told[launch.kernel].schedule,
            launch.flops,
            launch.bytes,
            told[launch.kernel].proof,
            operators=tuple(compiled.operators.get(node, "") for node in launch.origin),
            gain=gain,
            copies=launch.copies,
        )
        for launch, gain in zip(compiled.program.launches, compiled.gains, strict=True)
    )
    return Report(
        compiled.program.name,
        str(target),
        rows,
        tuple(compiled.fallbacks),
        tuple(compiled.rewrites),
        tuple(compiled.schedule_fallbacks),
        stage_seconds=dict(trace.seconds),
        not_fused=tuple(compiled.not_fused),
    )
