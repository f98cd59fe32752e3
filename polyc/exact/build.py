"""A model as two libraries that compute in a prime field: as printed, and as lowered.

The printed kernels are compiled as they are, but as C++ with the headers of `runtime/exact` in
front; the driver, which names no element, is compiled as C. Barriers, threads, arena and launches
are so those of any call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.bundle import Bundle
from polyc.build.cache import open_cache
from polyc.build.manifest import make_manifest
from polyc.build.pages import allocate_pages
from polyc.build.runtime_files import find_runtime, read_exact_runtime
from polyc.build.toolchain import (
    LIBRARY_FILE,
    OBJECT_FILE,
    LibraryBuild,
    Recipe,
    c_recipe,
    find_compiler,
    run_compiler,
)
from polyc.codegen.driver import DRIVER_FILE, print_driver
from polyc.codegen.driver_nest import make_driver
from polyc.exact.field import Field, encode, field_for
from polyc.exact.field_model import FieldModel
from polyc.exact.print_reference import declare_reference, print_reference
from polyc.memory.plan import plan_memory
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.report.report import Report
from polyc.schedule.barriers import place_barriers
from polyc.scop.expr import walk
from polyc.scop.scop import Scop
from polyc.sizes import assume
from polyc.target.machine import Target
from polyc.trace import make_trace

FLAGS = (
    "-x",
    "c++",
    "-std=gnu++20",
    "-O2",
    "-fPIC",
    "-pthread",
    # What C allows and C++ only with a word: compound literals have no address.
    "-fpermissive",
    # A lane of a vector is an element too.
    "-fno-strict-aliasing",
    "-w",
    "-fno-exceptions",
    "-fno-rtti",
)


@dataclass(frozen=True)
class Reference:
    """The statements as lowered, as C functions on arrays in the order of the scop."""

    scop: Scop
    constants: Mapping[str, np.ndarray]
    functions: Sequence[Any]
    ffi: Any


@dataclass(frozen=True)
class Built:
    """What is run, what it is compared with, and the choice of a run, which both go by."""

    model: FieldModel
    reference: Reference
    choose: Any
    field: Field
    compiled: Compiled


def build_exact(model: Any, target: Target, options: Options) -> Built:
    """Compile a model for the exact run.

    Raises what `polyc.compile` raises for a model that is not compiled ahead, and BuildError
    without a C++ compiler.
    """
    options = replace(options, tune=0.0, dump=())
    trace = make_trace(options)
    compiled = run_pipeline(model, target, options, trace)
    program = compiled.program
    field = field_for(dtypes_of(compiled.lowered))
    with assume(program.sizes):
        plan = plan_memory(program)
        barriers = place_barriers(compiled.touched, plan.slots)
        nest = make_driver(program, plan, barriers)
        driver = print_driver(program, plan, nest, pinned=options.pinned)
    texts = {name: in_field(text, field) for name, text in compiled.sources.items()}
    sizes = [size.name for size in program.sizes]
    units = print_reference(compiled.lowered, sizes)
    for k, text in enumerate(units):
        texts[f"reference_{k}.c"] = in_field(text, field, c_names=False) + ("" if k else _CHOICE)
    library = _build({**texts, DRIVER_FILE: driver}, target, options)
    manifest = make_manifest(
        program,
        plan,
        Report(program.name, str(target), (), (), (), ()),
        {},
        threads=options.threads,
        features=target.features,
        flags=target.flags,
    )
    bundle = Bundle(manifest, {LIBRARY_FILE: library.read_bytes()}, allocate_pages(0), "")
    declarations = declare_reference(len(units)) + _DECLARE_CHOICE
    tested = FieldModel(bundle, program, plan, field, declarations)
    functions = [getattr(tested.functions, f"pc_reference_{k}") for k in range(len(units))]
    constants = {n: encode(a.value, field) for n, a in compiled.lowered.arrays.items()
                 if a.value is not None}  # fmt: skip
    return Built(
        tested,
        Reference(compiled.lowered, constants, functions, tested.ffi),
        tested.functions.pc_choose,
        field,
        compiled,
    )


def dtypes_of(scop: Scop) -> set[np.dtype]:
    """All element types that a scop stores or computes."""
    found = {array.dtype for array in scop.arrays.values()}
    return found.union(e.dtype for s in scop.statements for e in walk(s.value))


def in_field(text: str, field: Field, c_names: bool = True) -> str:
    """A printed kernel as a unit of C++ whose functions C can call."""
    head = f'#define PC_PRIME {field.prime}\n#include "polyc.h"\n'
    return f'{head}extern "C" {{\n{text}\n}}\n' if c_names else head + text


_CHOICE = """
struct pc_exact_choice pc_exact;
extern "C" void pc_choose(u64 zero, u64 salt) { pc_exact.zero = zero, pc_exact.salt = salt; }
"""

_DECLARE_CHOICE = "void pc_choose(uint64_t zero, uint64_t salt);"


def _build(texts: Mapping[str, str], target: Target, options: Options) -> Path:
    with LibraryBuild(_recipe(target, options), target.cores, open_cache(options)) as build:
        for name, text in texts.items():
            build.add(name, text)
        return build.link()


def _recipe(target: Target, options: Options) -> Recipe:
    """C++ in the field, but for the driver."""
    plain = c_recipe(target, options)
    compiler = find_compiler(options.cc, options.patience)
    runtime = find_runtime()
    command = (*compiler.command, *FLAGS, *target.flags)

    def compile(folder: Path, name: str) -> None:
        if name == DRIVER_FILE:
            plain.compile(folder, name)
            return
        includes = ["-I", str(runtime / "exact"), "-I", str(runtime)]
        arguments = [*command, *includes, "-c", plain.unit_file, "-o", OBJECT_FILE]
        run_compiler(arguments, folder, f"file {name!r} of the exact run", options.patience)

    return replace(
        plain,
        command=(*plain.command, *command),
        headers={**plain.headers, **read_exact_runtime()},
        compile=compile,
    )
