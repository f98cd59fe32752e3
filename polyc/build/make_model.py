"""Model -> bundle: the whole way, for a CPU or for a GPU. A model in the cache needs none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyc.build.bundle import Weights, write_bundle
from polyc.build.fingerprint import fingerprint_kernels
from polyc.build.manifest import make_manifest
from polyc.build.seldom import collecting_seldom
from polyc.build.weights_beside import WeightsBeside
from polyc.mapping.tuned import Tuned, spell_choices
from polyc.options import Options
from polyc.report.report import DeviceFunction, KernelRow, Report
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target, available_cores
from polyc.toolchain.c_compiler import LibraryBuild, c_recipe
from polyc.toolchain.cache import Cache
from polyc.toolchain.nvcc import Resources, architecture_flags, cuda_recipe, read_resources
from polyc.toolchain.runtime_files import METHOD_FILE, read_method
from polyc.trace import Trace, make_trace
from polyc.types.branches import show_branches
from polyc.types.ranges import assume

if TYPE_CHECKING:
    from polyc.analysis.launches.access import LaunchAccess
    from polyc.backends.bind import Constant, Placed
    from polyc.backends.common import CompiledKernel
    from polyc.budget import Budget
    from polyc.codegen.cuda.grid import DeviceText
    from polyc.pipeline import Compiled
    from polyc.program.driver_nest import DriverNode
    from polyc.program.plan import Plan
    from polyc.program.program import Program


def make_model(
    model: Any,
    target: Target | CudaTarget,
    options: Options,
    cache: Cache,
    folder: Path,
    tuned: Mapping[str, Tuned],
) -> Weights | None:
    """Compile a model into a bundle in `folder`; `tuned` are schedules that were measured.

    Gives the weights, so that they need not be read again.
    """
    with collecting_seldom():
        if isinstance(target, CudaTarget):
            return _make_for_cuda(model, target, options, cache, folder)
        return _make_for_cpu(model, target, options, cache, folder, tuned)


def _make_for_cpu(
    model: Any,
    target: Target,
    options: Options,
    cache: Cache,
    folder: Path,
    tuned: Mapping[str, Tuned],
) -> Weights | None:
    """The C compiler works at the kernels that are printed while the next ones are generated."""
    from polyc.backends.kept import KeptKernels
    from polyc.pipeline import run_pipeline
    from polyc.predict.calls import predict

    trace = make_trace(options)
    kept = None  # nobody would find them in a cache that ends with this compilation
    if not cache.temporary:
        kept = KeptKernels(cache, fingerprint_kernels(target, options))
    recipe = c_recipe(target.flags, options, budget=trace.budget)
    with (
        LibraryBuild(recipe, target.cores, cache) as build,
        WeightsBeside(folder) as writing,
    ):
        driver = _Driver(build, writing, options, trace)
        compiled = run_pipeline(
            model,
            target,
            options,
            trace,
            tuned,
            lambda k: _add(build, k),
            kept=kept,
            begin=partial(_begin, writing, trace.budget),
            see=driver.make,
        )
        proven = [*compiled.proven, *driver.prove(compiled)]
        with trace.step("weights"):
            weights = writing.finish()
        with trace.step("build"):
            library = build.link()
    program, plan, predicted = compiled.program, driver.plan, None
    if not program.sizes:
        threads = options.threads or target.cores
        predicted = predict(program, plan.arena_bytes, plan.weights_bytes, target, threads)
    manifest = make_manifest(
        program,
        plan,
        _report(compiled, plan, proven, {}, str(target), trace, predicted=predicted),
        spell_choices(compiled.keys, tuned) if options.use_tuned else {},
        threads=options.threads,
        memory_limit=options.memory_limit,
        features=target.features,
        flags=target.flags,
    )
    write_bundle(folder, manifest, library, {**compiled.sources, driver.file: driver.text})
    return weights


class _Driver:
    """A CPU's driver: the C compiler works at it while the launches are proven.

    plan, nest, text: where arrays lie, what is done with them, and that in C; there from `make` on.
    """

    plan: Plan
    nest: tuple[DriverNode, ...]
    text: str

    def __init__(
        self, build: LibraryBuild, writing: WeightsBeside, options: Options, trace: Trace
    ) -> None:
        from polyc.printing.driver import DRIVER_FILE

        self.file = DRIVER_FILE
        self._build, self._writing = build, writing
        self._options, self._trace = options, trace

    def make(
        self, program: Program, touched: Sequence[LaunchAccess], symbols: Mapping[str, str]
    ) -> None:
        """Plan memory, print the driver, and begin to compile it: a `See` of the pipeline."""
        from polyc.printing.driver import is_worth_sharing, print_driver
        from polyc.program.driver_nest import make_driver
        from polyc.program.plan import plan_memory
        from polyc.threads.barriers import place_barriers

        pinned, budget = self._options.pinned, self._trace.budget
        with self._trace.step("plan"):
            self.plan = plan = plan_memory(program, placed=self._writing.layout)
            budget.require_call(program.name, plan.arena_bytes, plan.weights_bytes)
            self.nest = make_driver(program, plan, place_barriers(touched, plan.slots))
            shared = is_worth_sharing(program)
            self.text = print_driver(program, plan, self.nest, shared=shared, pinned=pinned)
        self._trace.dump("c", self.text, "driver")
        self._build.add(self.file, self.text, symbols)
        self._build.add(METHOD_FILE, read_method())

    def prove(self, compiled: Compiled) -> Sequence[str]:
        """What is proven of the driver, if that is asked for."""
        from polyc.analysis.launches.call import verify_call

        with self._trace.step("verify"), assume(compiled.program.sizes):
            if not self._options.verify:
                return ()
            return verify_call(compiled.program, self.plan, self.nest, compiled.judged)


def _begin(writing: WeightsBeside, budget: Budget, constants: Sequence[Constant]) -> Placed:
    """Put constants in place, unless they alone are more than a call may take."""
    budget.require(sum(one.bytes for one in constants), "what is constant in the model")
    return writing.begin(constants)


def _add(build: LibraryBuild, kernel: CompiledKernel) -> None:
    """Begin to compile a kernel, unless one that is equal up to names has been compiled."""
    template = kernel.template
    if template is None:
        build.add(kernel.file, kernel.source)
    else:
        symbols = {kernel.kernel.name: template.symbol}
        build.add(kernel.file, kernel.source, symbols, template.text)


def _make_for_cuda(
    model: Any, target: CudaTarget, options: Options, cache: Cache, folder: Path
) -> Weights | None:
    """The launches of a call are put into one stream, and so need no barriers.

    nvcc works at files of kernels while the next ones are generated; the emulator wants one file.
    """
    from polyc.analysis.launches.call import verify_call
    from polyc.codegen.cuda import driver
    from polyc.pipeline import run_pipeline
    from polyc.program.driver_nest import make_driver
    from polyc.program.plan import plan_memory

    trace = make_trace(options)
    sources: dict[str, str] = {}
    with (
        LibraryBuild(
            cuda_recipe(target.arch, options, trace.budget), available_cores(), cache
        ) as build,
        WeightsBeside(folder, driver.DEVICE_ALIGNMENT) as writing,
    ):

        def add(name: str, text: str) -> None:
            sources[name] = text
            build.add(name, text)

        units = driver.UnitWriter(add)

        def emit(kernel: CompiledKernel) -> None:
            if kernel.device and not options.emulated:
                units.take(kernel.kernel, kernel.device)

        begin = partial(_begin, writing, trace.budget)
        compiled = run_pipeline(model, target, options, trace, emit=emit, begin=begin)
        program, devices = compiled.program, compiled.devices
        units.finish()
        with trace.step("plan"):
            plan = plan_memory(program, driver.DEVICE_ALIGNMENT, writing.layout)
            trace.budget.require_call(program.name, plan.arena_bytes, plan.weights_bytes)
            nest = make_driver(program, plan, ())
            text = driver.print_driver(program, plan, nest)
            trace.dump("c", text, "driver")
            if options.emulated:
                add(driver.MODEL_FILE, f"{driver.print_unit(program.kernels, devices)}\n{text}")
            else:
                add(driver.DRIVER_FILE, text)
        with trace.step("verify"):
            proven = list(compiled.proven)
            if options.verify:
                proven += verify_call(
                    program,
                    plan,
                    nest,
                    compiled.judged,
                    alignment=driver.DEVICE_ALIGNMENT,
                    threads=False,
                )
        with trace.step("weights"):
            weights = writing.finish()
        with trace.step("build"):
            library = build.link()
            functions = _describe(devices, read_resources(build.objects()))
    told = f"{target}, emulated" if options.emulated else str(target)
    fallible = (k for k, one in enumerate(program.launches) if devices[one.kernel].can_fail)
    manifest = make_manifest(
        program,
        plan,
        _report(compiled, plan, proven, functions, told, trace, _floors(compiled, target)),
        {},
        threads=1,
        features=(),
        flags=architecture_flags(target.arch),
        platform="emulated" if options.emulated else "cuda",
        fallible=tuple(fallible),
    )
    write_bundle(folder, manifest, library, sources)
    return weights


def _describe(
    devices: Mapping[str, DeviceText], resources: Mapping[str, Resources]
) -> dict[str, tuple[DeviceFunction, ...]]:
    """Kernel -> its functions, with what ptxas said of them if it was asked."""
    told = {}
    for kernel, text in devices.items():
        functions = []
        for grid in text.grids:
            takes = resources.get(grid.function)
            functions.append(
                DeviceFunction(
                    grid.function,
                    str(grid),
                    takes.registers if takes else None,
                    grid.shared_bytes + (takes.shared if takes else 0),
                    takes.spilled if takes else 0,
                )
            )
        told[kernel] = tuple(functions)
    return told


def _floors(compiled: Compiled, target: CudaTarget) -> dict[int, float]:
    """The least seconds of each launch."""
    return {
        k: target.floor(
            one.flops or 0, one.bytes or 0, compiled.devices[one.kernel].uses_tensor_cores
        )
        for k, one in enumerate(compiled.program.launches)
    }


def _report(
    compiled: Compiled,
    plan: Plan,
    proven: Sequence[str],
    functions: Mapping[str, tuple[DeviceFunction, ...]],
    target: str,
    trace: Trace,
    floors: Mapping[int, float] | None = None,
    predicted: Sequence[float] | None = None,
) -> Report:
    """One row a launch: the schedule and proof of its kernel, the nodes and costs of the launch.

    floors: the least seconds of launches, by position; predicted: what they take on a CPU.
    """
    told = {row.name: row for row in compiled.rows}
    rows = tuple(
        KernelRow(
            launch.kernel,
            launch.origin,
            schedule,
            launch.runs * launch.flops,
            launch.runs * launch.bytes,
            told[launch.kernel].proof,
            operators=tuple(compiled.operators.get(node, "") for node in launch.origin),
            gain=gain,
            copies=launch.copies,
            functions=functions.get(launch.kernel, ()),
            floor=(floors or {}).get(position),
            called=called,
            steps=str(launch.step.steps) if launch.step else "",
            branches=show_branches(launch.branches),
            predicted=predicted[position] if predicted else None,
        )
        for position, (launch, gain, (called, schedule)) in enumerate(
            zip(compiled.program.launches, compiled.gains, compiled.schedules, strict=True)
        )
    )
    return Report(
        compiled.program.name,
        target,
        rows,
        rewrites=compiled.rewrites,
        arena_bytes=plan.arena_bytes,
        arena_lower_bound=plan.lower_bound,
        weights_bytes=plan.weights_bytes,
        stage_seconds=dict(trace.seconds),
        not_fused=compiled.not_fused,
        proven=tuple(proven),
        float_sums=compiled.float_sums,
    )
