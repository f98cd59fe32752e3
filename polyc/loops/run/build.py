"""A kernel as a program of one launch: its driver, and the library that both become.

Arguments that are written are states of the program: input and output lie in one place, so that C
changes the caller's array, and refuses one that shares memory with another argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyc.codegen.cuda import driver as cuda
from polyc.codegen.cuda.grid import DeviceText
from polyc.graph.states import State
from polyc.loopnest.nodes import Kernel
from polyc.loops.read.sizes import Signature
from polyc.memory.storage import Storage
from polyc.options import Options
from polyc.printing.driver import DRIVER_FILE, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import Plan, plan_memory
from polyc.program.program import Launch, Program, StoredArray
from polyc.scop.scop import Scop
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target, available_cores
from polyc.toolchain.c_compiler import LibraryBuild, build_library
from polyc.toolchain.cache import open_cache
from polyc.toolchain.nvcc import cuda_recipe
from polyc.trace import make_trace
from polyc.types.sizes import spell_shape
from polyc.types.spec import TensorSpec


@dataclass(frozen=True)
class Sources:
    """The C text of a kernel and of its driver, by file, and what a call works in."""

    files: dict[str, str]
    program: Program
    plan: Plan


def make_program(
    kernel: Kernel, scop: Scop, storages: dict[str, Storage], signature: Signature
) -> Program:
    """The program that launches a kernel once."""
    arrays = {
        name: StoredArray(name, array.dtype, array.kind, storages[name])
        for name, array in scop.arrays.items()
    }

    def bound(names: tuple[str, ...]) -> tuple[tuple[TensorSpec, str], ...]:
        shaped = ((n, scop.arrays[n]) for n in names)
        return tuple((TensorSpec(n, a.dtype, spell_shape(a.shape)), n) for n, a in shaped)

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
        signature.sizes,
        states,
    )


def print_sources(kernel: Kernel, text: str, program: Program) -> Sources:
    """The files of a library, with the place of everything in memory."""
    plan = plan_memory(program)
    driver = print_driver(program, plan, make_driver(program, plan, ()))
    return Sources({f"{kernel.name}.c": text, DRIVER_FILE: driver}, program, plan)


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


def build_for_cuda(sources: Sources, target: CudaTarget, options: Options) -> bytes:
    """The content of the library for a GPU, or for the emulator."""
    recipe = cuda_recipe(target.arch, options, make_trace(options).budget)
    with LibraryBuild(recipe, available_cores(), open_cache(options)) as building:
        for name, text in sources.files.items():
            building.add(name, text)
        return building.link().read_bytes()


def build(sources: Sources, target: Target, options: Options) -> bytes:
    """The content of the library."""
    return build_library(sources.files, target.flags, options, workers=target.cores).read_bytes()
