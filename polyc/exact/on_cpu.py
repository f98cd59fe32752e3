"""A model for a CPU whose floats are elements of a field.

The printed kernels are compiled as they are, but as C++ in the field; the driver, which names no
element, is compiled as C. Barriers, threads, arena and launches are so those of any call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyc.build.bundle import Bundle
from polyc.build.manifest import make_manifest
from polyc.exact.compile_field import Texts, field_recipe, in_field
from polyc.exact.field import Field
from polyc.exact.guarded import GuardedMemory, encode_constants
from polyc.options import Options
from polyc.pipeline import Compiled
from polyc.printing.driver import DRIVER_FILE, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import plan_memory
from polyc.report.report import Report
from polyc.run.cpu_model import CpuModel, Variant
from polyc.target.machine import Target
from polyc.threads.barriers import place_barriers
from polyc.toolchain.c_compiler import LIBRARY_FILE, LibraryBuild, c_recipe
from polyc.toolchain.cache import open_cache
from polyc.types.ranges import assume
from polyc.types.spec import TensorSpec

POISON = 0xA5
"""In each byte of results whose sizes a call finds."""


class CpuFieldModel(CpuModel):
    """A compiled model that is called with arrays of elements, in guarded memory."""

    def __init__(self, bundle: Bundle, declarations: str) -> None:
        """`declarations` are those of functions in its library that are not every model's."""
        super().__init__(bundle, declarations)
        found = [TensorSpec(s.name, np.dtype(np.int64), (1,)) for s in bundle.manifest.found]
        self.memory = GuardedMemory(self.inputs, (*self.outputs, *found), bundle.weights)
        self._weights = self._view(self.memory.weights)

    @property
    def ffi(self) -> Any:
        return self._ffi

    @property
    def functions(self) -> Any:
        """Those of the library."""
        return self._library

    def places(self, threads: Sequence[int]) -> Iterator[str]:
        """On so many threads, one number after another: in words, as soon as calls run there."""
        for count in threads:
            self.threads = count
            yield self.place

    def execute(self, variant: Variant, arrays: Sequence[np.ndarray], function: Any = None) -> None:
        execute = super().execute
        for k in variant.found.positions if variant.found else ():
            arrays[len(self.inputs) + k].fill(POISON)  # what nobody writes there is wrong
        self.memory.run(arrays, lambda inside: execute(variant, inside, function))

    def _take_arena(self, size: int) -> Any:
        self._arenas.free.clear()
        return self._view(self.memory.take_arena(size))


def build_on_cpu(
    compiled: Compiled,
    reference: Texts,
    field: Field,
    target: Target,
    options: Options,
) -> CpuFieldModel:
    """The model, whose library holds the reference as well."""
    program = compiled.program
    with assume(program.sizes):
        plan = plan_memory(program)
        barriers = place_barriers(compiled.touched, plan.slots)
        nest = make_driver(program, plan, barriers)
        driver = print_driver(program, plan, nest, pinned=options.pinned)
    recipe = field_recipe(c_recipe(target.flags, options), options, target.flags, (DRIVER_FILE,))
    with LibraryBuild(recipe, target.cores, open_cache(options)) as build:
        for name, text in compiled.sources.items():
            build.add(name, in_field(f'extern "C" {{\n{text}\n}}\n', field, "polyc.h"))
        for name, text in reference.files.items():
            build.add(name, text)
        build.add(DRIVER_FILE, driver)
        library = build.link()
    manifest = make_manifest(
        program,
        plan,
        Report(program.name, str(target), ()),
        {},
        threads=options.threads,
        features=target.features,
        flags=target.flags,
    )
    files = {LIBRARY_FILE: library.read_bytes()}
    bundle = Bundle(manifest, files, encode_constants(program, plan, field), "")
    return CpuFieldModel(bundle, reference.declarations)
