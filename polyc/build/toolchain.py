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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

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
    headers = {n: t for n, t in sources.items() if n.endswith(".h")}
    with LibraryBuild(target, options, cache or open_cache(options), headers) as build:
        for name, text in sources.items():
            if name.endswith(".c"):
                build.add(name, text)
        return build.link()


class LibraryBuild:
    """A library in the making: files are compiled as they come, side by side, then linked.

    with LibraryBuild(target, options, cache) as build:
        build.add("conv.c", text)     # returns at once
        build.add("driver.c", driver)
        library = build.link()        # waits; BuildError if a file was refused

    Whoever generates files so has the compiler work at those before. Leaving the `with` early, by
    an exception, drops what has not begun. `headers`, by name, are for all files to include.
    """

    def __init__(
        self,
        target: Target,
        options: Options,
        cache: Cache,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._compiler = find_compiler(options.cc)
        self._flags = (*COMPILE_FLAGS, *target.flags)
        self._cache = cache
        self._headers = headers
        self._common = digest(
            [self._compiler.banner, *self._compiler.command, *self._flags]
            + [x for h in (read_runtime(), headers) for item in sorted(h.items()) for x in item]
        )
        self._pool = ThreadPoolExecutor(max(1, target.cores))
        self._objects: list[Future[Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, name: str, text: str) -> None:
        """Begin to compile a file; its name is for messages."""
        self._objects.append(self._pool.submit(self._build_object, name, text))

    def link(self) -> Path:
        """Wait for all files and link them; the path of the library, which lives in the cache."""
        objects = [future.result() for future in self._objects]
        key = digest([*LINK_FLAGS, *(o.parent.name for o in objects)])
        made = self._cache.fetch(
            "libraries", key, lambda folder: _link(self._compiler, objects, folder)
        )
        self._cache.tidy()
        return made / LIBRARY_FILE

    def _build_object(self, name: str, text: str) -> Path:
        def make(folder: Path) -> None:
            _compile(self._compiler, self._flags, folder, name, text, self._headers)

        return self._cache.fetch("objects", digest([self._common, text]), make) / "unit.o"


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
