"""A model for a GPU whose floats are elements of a field: on the emulator.

The printed kernels and their driver are one text for the emulator, which is compiled as it is. The
device's memory is this process's, so a call works on guarded arrays like one on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyc.build.bundle import Bundle
from polyc.build.manifest import make_manifest
from polyc.codegen.cuda.driver import (
    DEVICE_ALIGNMENT,
    MODEL_FILE,
    print_driver,
    print_unit,
)
from polyc.exact.compile_field import Texts, field_recipe, in_field
from polyc.exact.field import Field
from polyc.exact.guarded import GuardedMemory, encode_constants
from polyc.options import Options
from polyc.pipeline import Compiled
from polyc.program.driver_nest import make_driver
from polyc.program.plan import plan_memory
from polyc.report.report import Report
from polyc.run.cuda.calls import Argument
from polyc.run.cuda.model import CudaModel
from polyc.target.cuda import CudaTarget
from polyc.target.machine import available_cores
from polyc.toolchain.c_compiler import LIBRARY_FILE, LibraryBuild
from polyc.toolchain.cache import open_cache
from polyc.toolchain.nvcc import architecture_flags, cuda_recipe


class CudaFieldModel(CudaModel):
    """A compiled model that is called with arrays of elements, in guarded memory."""

    def __init__(self, bundle: Bundle, declarations: str) -> None:
        """`declarations` are those of functions in its library that are not every model's."""
        super().__init__(bundle, declarations)
        self.memory = GuardedMemory(self.inputs, self.outputs, bundle.weights)
        self._order = 0

    @property
    def ffi(self) -> Any:
        return self._library.ffi

    @property
    def functions(self) -> Any:
        """Those of the library."""
        return self._library.functions

    def places(self, threads: Sequence[int]) -> Iterator[str]:
        """The emulator, once, whose threads take turns in an order that they have not had yet."""
        self._order += 1
        self.functions.polyc_emulator_set(self._order, available_cores())
        yield self.place

    def _launch(
        self, inputs: Sequence[Argument], outputs: Sequence[Argument], stream: int, seconds: Any
    ) -> None:
        arrays = [a.on_host for a in (*inputs, *outputs)]
        self.memory.run([a for a in arrays if a is not None], self._run)

    def _run(self, arrays: Sequence[np.ndarray]) -> None:
        """polyc_run where the arrays are."""
        workspace = self.memory.take_arena(self._manifest.workspace_bytes)
        failed = workspace[self._manifest.arena_bytes :]
        failed[:] = 0
        held = (*arrays, self.memory.weights)
        addresses = self.ffi.new("uintptr_t[]", [array.ctypes.data for array in held])
        buffers = self.ffi.cast("void *const *", addresses)
        place = self._library.pointer(workspace.ctypes.data)
        self._check_status(self.functions.polyc_run(buffers, place, self.ffi.NULL))
        self.memory.expect(not failed.any(), "a launch meets an index along an empty dimension")


def build_on_cuda(
    compiled: Compiled,
    reference: Texts,
    field: Field,
    target: CudaTarget,
    options: Options,
) -> CudaFieldModel:
    """The model, whose library holds the reference as well."""
    program = compiled.program
    plan = plan_memory(program, DEVICE_ALIGNMENT)
    driver = print_driver(program, plan, make_driver(program, plan, ()))
    text = f"{print_unit(program.kernels, compiled.devices)}\n{driver}"
    recipe = field_recipe(cuda_recipe(target.arch, replace(options, emulated=True)), options)
    with LibraryBuild(recipe, available_cores(), open_cache(options)) as build:
        build.add(MODEL_FILE, in_field(text, field, "polyc_cuda.cuh"))
        for name, unit in reference.files.items():
            build.add(name, unit)
        library = build.link()
    manifest = make_manifest(
        program,
        plan,
        Report(program.name, f"{target}, emulated", ()),
        {},
        threads=1,
        features=(),
        flags=architecture_flags(target.arch),
        platform="emulated",
    )
    files = {LIBRARY_FILE: library.read_bytes()}
    bundle = Bundle(manifest, files, encode_constants(program, plan, field), "")
    return CudaFieldModel(bundle, reference.declarations)
