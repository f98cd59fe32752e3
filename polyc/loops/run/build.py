"""A kernel as a program of one launch: its driver, its manifest, and the library of all that.

Arguments that are written are states of the program: input and output lie in one place, so that C
changes the caller's array, and refuses one that shares memory with another argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import islpy as isl

from polyc.build.manifest import Manifest, make_manifest
from polyc.codegen.cuda import driver as cuda
from polyc.codegen.cuda.grid import DeviceText
from polyc.codegen.from_isl import to_condition
from polyc.graph.states import State
from polyc.loopnest.index import Condition
from polyc.loopnest.nodes import Kernel
from polyc.loops.read.sizes import Signature
from polyc.memory.storage import Storage
from polyc.options import Options
from polyc.printing.driver import DRIVER_FILE, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import Plan, plan_memory
from polyc.program.program import Launch, Program, StoredArray
from polyc.report.report import KernelRow, Report
from polyc.scop.scop import Scop
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target, available_cores
from polyc.toolchain.c_compiler import LibraryBuild, build_library
from polyc.toolchain.cache import Cache
from polyc.toolchain.nvcc import architecture_flags, cuda_recipe
from polyc.toolchain.runtime_files import METHOD_FILE, read_method
from polyc.trace import make_trace
from polyc.types.ranges import PREFIX
from polyc.types.sizes import Extent, Size, spell_shape
from polyc.types.spec import TensorSpec


@dataclass(frozen=True)
class Sources:
    """The text of a kernel and of its driver, by file, and what a call works in."""

    files: Mapping[str, str]
    program: Program
    plan: Plan


def make_program(
    kernel: Kernel, scop: Scop, storages: Mapping[str, Storage], signature: Signature
) -> Program:
    """The program that launches a kernel once."""
    arrays = {
        name: StoredArray(name, array.dtype, array.kind, storages[name])
        for name, array in scop.arrays.items()
    }
    shown: dict[str, Extent] = {
        s.name: Size.of(s.name.removeprefix(PREFIX)) for s in signature.sizes
    }

    def bound(names: Sequence[str]) -> tuple[tuple[TensorSpec, str], ...]:
        specs = []
        for name in names:
            array = scop.arrays[name]
            shape = [d.at(shown) if isinstance(d, Size) else d for d in array.shape]
            specs.append((TensorSpec(name, array.dtype, spell_shape(shape)), name))
        return tuple(specs)

    states = tuple(
        State(scop.inputs.index(name), k, in_place=True) for k, name in enumerate(scop.outputs)
    )
    launch = Launch(kernel.name, tuple(p.name for p in kernel.params))
    return Program(
        scop.name,
        (kernel,),
        (launch,),
        arrays,
        bound(scop.inputs),
        bound(scop.outputs),
        tuple(replace(s, shown=s.name.removeprefix(PREFIX)) for s in signature.sizes),
        states,
    )


def condition_of(sizes: isl.Set, context: isl.Set) -> Condition:
    """A set of sizes as a condition on them; context: what is known of all."""
    build = isl.AstBuild.from_context(isl.Set.universe(sizes.get_space()))
    return to_condition(build.expr_from_set(sizes.coalesce().gist(context)))


def print_sources(
    texts: Mapping[str, str], program: Program, refused: Sequence[Condition]
) -> Sources:
    """The files of a library, with the place of everything in memory.

    refused: conditions on sizes with which it does nothing (`printing/driver.py`).
    """
    plan = plan_memory(program)
    driver = print_driver(program, plan, make_driver(program, plan, ()), refused=refused)
    return Sources({**texts, DRIVER_FILE: driver}, program, plan)


def print_cuda_sources(
    kernel: Kernel, device: DeviceText, program: Program, *, emulated: bool
) -> Sources:
    """The same for a GPU; the emulator wants one file."""
    plan = plan_memory(program, cuda.DEVICE_ALIGNMENT)
    driver = cuda.print_driver(program, plan, make_driver(program, plan, ()))
    unit = cuda.print_unit([kernel], {kernel.name: device})
    if emulated:
        return Sources({cuda.MODEL_FILE: f"{unit}\n{driver}"}, program, plan)
    return Sources({"kernels_0.cu": unit, cuda.DRIVER_FILE: driver}, program, plan)


def build(sources: Sources, target: Target, options: Options, cache: Cache) -> Path:
    """The library, which lives in the cache; Python can call it by itself (`run/quick.py`)."""
    files = {**sources.files, METHOD_FILE: read_method()}
    return build_library(files, target.flags, options, cache, target.cores)


def build_for_cuda(sources: Sources, target: CudaTarget, options: Options, cache: Cache) -> Path:
    """The library for a GPU, or for the emulator."""
    recipe = cuda_recipe(target.arch, options, make_trace(options).budget)
    with LibraryBuild(recipe, available_cores(), cache) as building:
        for name, text in sources.files.items():
            building.add(name, text)
        return building.link()


def describe(
    sources: Sources,
    schedule: str,
    proof: str,
    target: Target,
    requirements: Sequence[tuple[str, str]],
) -> Manifest:
    """What must be known to call the library. requirements: what it refuses sizes for, in order."""
    return make_manifest(
        sources.program,
        sources.plan,
        _report(sources, schedule, proof, str(target)),
        {},
        threads=0,
        features=target.features,
        flags=target.flags,
        requirements=(*requirements,),
    )


def describe_for_cuda(
    sources: Sources, schedule: str, proof: str, target: CudaTarget, device: DeviceText, how: str
) -> Manifest:
    """The same for a GPU; how: the platform, "cuda" or "emulated"."""
    return make_manifest(
        sources.program,
        sources.plan,
        _report(sources, schedule, proof, str(target)),
        {},
        threads=1,
        features=(),
        flags=architecture_flags(target.arch),
        platform=how,
        fallible=(0,) if device.can_fail else (),
    )


def _report(sources: Sources, schedule: str, proof: str, target: str) -> Report:
    """What the manifest says; `explain()` has a text of its own."""
    row = KernelRow(sources.program.launches[0].kernel, (), schedule, None, None, proof)
    plan = sources.plan
    return Report(
        sources.program.name,
        target,
        (row,),
        arena_bytes=plan.arena_bytes,
        arena_lower_bound=plan.lower_bound,
        proven=(proof,) if proof else (),
    )
