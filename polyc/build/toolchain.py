"""C text -> shared library: every file compiled on its own, side by side, then linked.

Objects are cached by content: the text, the headers, the compiler's version and its flags. Equal
kernels of different models are therefore compiled once.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyc.build.cache import Cache, digest, open_cache
from polyc.build.runtime_files import find_runtime, read_runtime
from polyc.errors import BuildError
from polyc.options import Options

if TYPE_CHECKING:
    from polyc.target.machine import Target

COMPILE_FLAGS = (
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-pthread",
    # NaN and infinities survive; only what no program here observes is given up: errno and traps.
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    # Vectors wider than the machine's never cross a function boundary that is not inlined.
    "-Wno-psabi",
    # Keeping scalars for the next iteration of a reduction loop spills the register tile: with it
    # ResNet-50's first convolution (7x7, stride 2) took 3.0 ms instead of 2.1.
    "-fno-predictive-commoning",
)
# Symbolic: no function of the process may stand in for a kernel of the same name.
LINK_FLAGS = ("-shared", "-pthread", "-Wl,-Bsymbolic", "-Wl,--no-undefined")
LIBRARY_FILE = "model.so"

_ERROR_LINES = 8


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the command, "gcc" or "clang", its version, and the line that it prints."""

    command: tuple[str, ...]
    kind: str
    version: str
    banner: str


def find_compiler(cc: str) -> Compiler:
    """The compiler that `cc` names ("gcc", "ccache clang", …); BuildError if there is none."""
    command = shlex.split(cc)
    path = shutil.which(command[0]) if command else None
    if path is None:
        raise BuildError(
            f"C compiler {cc!r} is not found; install gcc (Debian, Ubuntu: apt install gcc) "
            "or set POLYC_CC to the command of another compiler"
        )
    return _ask((path, *command[1:]))


@functools.cache
def _ask(command: tuple[str, ...]) -> Compiler:
    try:
        result = _execute([*command, "--version"])
    except OSError as error:
        raise BuildError(
            f"C compiler {command[0]} cannot be run: {error}; set POLYC_CC to another compiler"
        ) from error
    banner = result.stdout.partition("\n")[0].strip()
    version = re.search(r"version (\d+[\d.]*)|(\d+\.[\d.]*\d)\s*$", banner)
    if result.returncode or version is None:
        raise BuildError(
            f"C compiler {' '.join(command)} does not tell its version ({banner!r}); "
            "set POLYC_CC to gcc or clang"
        )
    kind = "clang" if "clang" in banner else "gcc"
    return Compiler(command, kind, version[1] or version[2], banner)


def build_library(
    sources: Mapping[str, str], target: Target, options: Options, cache: Cache | None = None
) -> Path:
    """Compile and link C files; the path of the shared library, which lives in the cache.

    {"conv.c": …, "driver.c": …} -> <cache>/libraries/<key>/model.so

    Files named *.h are headers of the others. Raises BuildError with the compiler's first messages.
    """
    cache = cache or open_cache(options)
    compiler = find_compiler(options.cc)
    headers = {n: t for n, t in sources.items() if n.endswith(".h")}
    units = {n: t for n, t in sources.items() if n.endswith(".c")}
    flags = (*COMPILE_FLAGS, *target.flags)
    common = digest(
        [compiler.banner, *compiler.command, *flags]
        + [x for h in (read_runtime(), headers) for item in sorted(h.items()) for x in item]
    )

    def build_object(unit: tuple[str, str]) -> Path:
        name, text = unit
        key = digest([common, text])
        made = cache.fetch(
            "objects", key, lambda folder: _compile(compiler, flags, folder, name, text, headers)
        )
        return made / "unit.o"

    workers = max(1, min(len(units), target.cores))
    with ThreadPoolExecutor(workers) as pool:
        objects = list(pool.map(build_object, units.items()))
    key = digest([*LINK_FLAGS, *(o.parent.name for o in objects)])
    made = cache.fetch("libraries", key, lambda folder: _link(compiler, objects, folder))
    cache.tidy()
    return made / LIBRARY_FILE


def _compile(
    compiler: Compiler,
    flags: Sequence[str],
    folder: Path,
    name: str,
    text: str,
    headers: Mapping[str, str],
) -> None:
    for file, content in {"unit.c": text, **headers}.items():
        (folder / file).write_text(content, encoding="utf-8")
    runtime = str(find_runtime())
    arguments = [*compiler.command, *flags, "-I", runtime, "-c", "unit.c", "-o", "unit.o"]
    _check(arguments, folder, f"file {name!r} of the generated code")


def _link(compiler: Compiler, objects: Sequence[Path], folder: Path) -> None:
    unique = dict.fromkeys(str(o.resolve()) for o in objects)
    # A file of arguments: thousands of objects would not fit a command line.
    (folder / "objects.txt").write_text("\n".join(map(shlex.quote, unique)), encoding="utf-8")
    arguments = [*compiler.command, *LINK_FLAGS, "@objects.txt", "-lm", "-o", LIBRARY_FILE]
    _check(arguments, folder, "the model's library")


def _check(arguments: Sequence[str], folder: Path, what: str) -> None:
    """Run a compiler; BuildError with its first error lines if it fails."""
    result = _execute(arguments, folder)
    if result.returncode == 0:
        return
    lines = result.stderr.splitlines()
    errors = [x for x in lines if "error" in x or "undefined" in x] or lines
    raise BuildError(
        f"{what} was refused by {arguments[0]} (exit status {result.returncode}); run "
        "`polyc doctor`, or try another compiler with POLYC_CC:\n  "
        + "\n  ".join(errors[:_ERROR_LINES])
    )


def _execute(
    arguments: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        arguments,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
