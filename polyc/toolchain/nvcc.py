"""CUDA text -> shared library: by nvcc for a GPU, or by the C++ compiler for the emulator.

Like C for the CPU, files are compiled side by side, and objects are cached by content. What ptxas
says about each kernel is kept with its object.
"""

from __future__ import annotations

import functools
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyc.budget import UNLIMITED, Budget
from polyc.errors import BuildError
from polyc.options import PATIENCE, Options
from polyc.toolchain.c_compiler import (
    LIBRARY_FILE,
    OBJECT_FILE,
    OBJECT_LIST,
    QUESTION_SECONDS,
    Recipe,
    find_compiler,
    run_compiler,
)
from polyc.toolchain.execute import execute
from polyc.toolchain.runtime_files import find_runtime, read_cuda_runtime

UNIT_FILE = "unit.cu"
LOG_FILE = "ptxas.txt"

NVCC_FLAGS = (
    "-std=c++17",
    "-O3",
    "-Xcompiler=-fPIC",
    "-Xptxas=-v",
    # A GPU that the compiler knows is enough.
    "-Wno-deprecated-gpu-targets",
)
NVCC_LINK_FLAGS = ("-shared", "-cudart=static", "-Xcompiler=-fPIC")
# Symbolic: no function of the process may stand in for one of the model's.
LINKER_FLAGS = ("-Xlinker=-Bsymbolic", "-Xlinker=--no-undefined")

EMULATOR_FLAGS = ("-std=gnu++17", "-O1", "-fPIC", "-pthread", "-Wno-psabi")
EMULATOR_LINK_FLAGS = ("-shared", "-pthread", "-Wl,-Bsymbolic")

_USUAL_PLACE = "/usr/local/cuda/bin/nvcc"


@dataclass(frozen=True)
class Nvcc:
    """NVIDIA's compiler: its path, and its version as (major, minor)."""

    path: str
    version: tuple[int, int]
    banner: str


@dataclass(frozen=True)
class Resources:
    """What a `__global__` function takes, as ptxas says.

    registers: of a thread; shared: bytes of a block that are known at compile time; spilled: bytes
    of a thread that did not fit its registers, stores and loads; stack: bytes of a thread.
    """

    registers: int
    shared: int = 0
    spilled: int = 0
    stack: int = 0


def find_nvcc(command: str = "nvcc", patience: float = PATIENCE) -> Nvcc:
    """The nvcc of that name or path, or that in the usual place; BuildError if there is none.

    patience: seconds to wait for its answer, up to a minute.
    """
    path = shutil.which(command) or shutil.which(_USUAL_PLACE)
    if path is None:
        raise BuildError(
            f"CUDA compiler {command!r} is not found; install NVIDIA's CUDA toolkit (11.4 or "
            "newer) and put nvcc on PATH, or set POLYC_NVCC to its path; target='cpu' needs none"
        )
    return _ask(path, min(patience, QUESTION_SECONDS))


@functools.cache
def _ask(path: str, patience: float) -> Nvcc:
    told = execute([path, "--version"], None, patience).stdout
    version = re.search(r"release (\d+)\.(\d+)", told)
    if version is None:
        raise BuildError(
            f"CUDA compiler {path} does not tell its version; set POLYC_NVCC to NVIDIA's nvcc"
        )
    return Nvcc(path, (int(version[1]), int(version[2])), " ".join(told.split()))


def architecture_flags(arch: str) -> tuple[str, ...]:
    """nvcc's flags for one architecture.

    "sm_80" -> machine code for it, and PTX that the driver translates for newer GPUs;
    "sm_90a" -> machine code alone: no other GPU could run it.
    """
    virtual = arch.replace("sm_", "compute_")
    code = arch if arch[-1].isalpha() else f"[{arch},{virtual}]"
    return (f"-gencode=arch={virtual},code={code}",)


def cuda_recipe(arch: str, options: Options, budget: Budget = UNLIMITED) -> Recipe:
    """CUDA for GPUs like "sm_90", or for the emulator if the options say so.

    Raises BuildError without a compiler.
    """
    return _emulated(options, budget) if options.emulated else _compiled(arch, options, budget)


def read_resources(objects: Iterable[Path]) -> dict[str, Resources]:
    """What kernels take, by `__global__` function; the emulator knows nothing of that."""
    found: dict[str, Resources] = {}
    for folder in objects:
        log = folder / LOG_FILE
        if log.is_file():
            found |= parse_resources(log.read_text(encoding="utf-8"))
    return found


def parse_resources(log: str) -> dict[str, Resources]:
    """ptxas -v -> {function: what it takes}; where several architectures are told, the last."""
    found: dict[str, Resources] = {}
    for part in log.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]
        registers = re.search(r"Used (\d+) registers", part)
        if registers is None:
            continue
        found[name] = Resources(
            int(registers[1]),
            _bytes(part, r"(\d+) bytes smem"),
            _bytes(part, r"(\d+) bytes spill stores") + _bytes(part, r"(\d+) bytes spill loads"),
            _bytes(part, r"(\d+) bytes stack frame"),
        )
    return found


def _bytes(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def _compiled(arch: str, options: Options, budget: Budget) -> Recipe:
    """The recipe for a GPU."""
    nvcc = find_nvcc(options.nvcc, options.patience)
    flags = (*NVCC_FLAGS, *architecture_flags(arch))

    def compile(folder: Path, name: str) -> None:
        arguments = [nvcc.path, *flags, "-I", str(find_runtime()), "-c", UNIT_FILE]
        arguments += ["-o", OBJECT_FILE]
        told = run_compiler(arguments, folder, f"file {name!r}", options.patience, budget)
        (folder / LOG_FILE).write_text(told, encoding="utf-8")

    link = (*NVCC_LINK_FLAGS, *LINKER_FLAGS)
    return Recipe(
        UNIT_FILE,
        (nvcc.path, nvcc.banner, *flags),
        read_cuda_runtime(),
        compile,
        (nvcc.banner, *link),
        lambda folder: _link([nvcc.path, *link], folder, options.patience, budget),
    )


def _emulated(options: Options, budget: Budget) -> Recipe:
    """The recipe for the emulator: the same text, as C++."""
    compiler = find_compiler(options.cc, options.patience)

    def compile(folder: Path, name: str) -> None:
        runtime = str(find_runtime())
        arguments = [*compiler.command, *EMULATOR_FLAGS, "-I", runtime, "-x", "c++", "-c"]
        arguments += [UNIT_FILE, "-o", OBJECT_FILE]
        run_compiler(arguments, folder, f"file {name!r}", options.patience, budget)

    link = (*compiler.command, *EMULATOR_LINK_FLAGS)
    return Recipe(
        UNIT_FILE,
        (compiler.banner, *compiler.command, *EMULATOR_FLAGS),
        read_cuda_runtime(),
        compile,
        link,
        lambda folder: _link(link, folder, options.patience, budget, "-lstdc++", "-lm"),
    )


def _link(
    command: Sequence[str], folder: Path, patience: float, budget: Budget, *libraries: str
) -> None:
    objects = shlex.split((folder / OBJECT_LIST).read_text(encoding="utf-8"))
    arguments = [*command, *objects, *libraries, "-o", LIBRARY_FILE]
    run_compiler(arguments, folder, "the model's library", patience, budget)
