"""Texts as C++ that computes in a prime field: the headers of `runtime/exact` stand in front."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from polyc.exact.field import Field
from polyc.options import Options
from polyc.toolchain.c_compiler import OBJECT_FILE, Recipe, find_compiler, run_compiler
from polyc.toolchain.runtime_files import find_runtime, read_exact_runtime

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
class Texts:
    """Files that are compiled in the field, by name, and the declarations of their functions."""

    files: Mapping[str, str]
    declarations: str


def in_field(text: str, field: Field, header: str) -> str:
    """C++ or CUDA whose floats are elements; `header` is what it includes first."""
    return f'#define PC_PRIME {field.prime}\n#include "{header}"\n{text}'


def field_recipe(
    plain: Recipe, options: Options, flags: Collection[str] = (), native: Collection[str] = ()
) -> Recipe:
    """A recipe that compiles files as C++ in the field, but for those named in `native`.

    flags: of the machine. BuildError without a compiler.
    """
    compiler = find_compiler(options.cc, options.patience)
    runtime = find_runtime()
    command = (*compiler.command, *FLAGS, *flags)

    def compile(folder: Path, name: str) -> None:
        if name in native or name in plain.units:
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
