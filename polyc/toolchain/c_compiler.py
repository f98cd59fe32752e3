"""C text -> shared library: every file compiled on its own, side by side, then linked.

Objects are cached by content: the text, the headers, the compiler's version and its flags. Equal
kernels of different models are therefore compiled once.
"""

from __future__ import annotations

import functools
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Self

from polyc.budget import UNLIMITED, Budget
from polyc.errors import BuildError
from polyc.files.digest import digest
from polyc.options import PATIENCE, Options
from polyc.toolchain.cache import Cache, open_cache
from polyc.toolchain.execute import execute
from polyc.toolchain.runtime_files import TEAM_FILE, find_runtime, read_runtime, read_team
from polyc.toolchain.turns import result_of

COMPILE_FLAGS = (
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-pthread",
    # NaN and infinities survive; only what no program here observes is given up: errno and traps.
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    # Loops that were proven to carry nothing say so to the C compiler (`#pragma omp simd`).
    "-fopenmp-simd",
    # Vectors wider than the machine's never cross a function boundary that is not inlined.
    "-Wno-psabi",
)
GCC_FLAGS = (
    # Keeping scalars for the next iteration of a reduction loop spills the register tile: with it
    # ResNet-50's first convolution (7x7, stride 2) took 3.0 ms instead of 2.1. clang does not.
    "-fno-predictive-commoning",
)
# Symbolic: no function of the process may stand in for a kernel of the same name.
LINK_FLAGS = ("-shared", "-pthread", "-Wl,-Bsymbolic", "-Wl,--no-undefined")
LIBRARY_FILE = "model.so"
UNIT_FILE = "unit.c"
OBJECT_FILE = "unit.o"
OBJECT_LIST = "objects.txt"

_ERROR_LINES = 8
QUESTION_SECONDS = 60.0
"""A compiler that takes longer to tell its version hangs."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the command, "gcc" or "clang", its version, and the line that it prints."""

    command: tuple[str, ...]
    kind: str
    version: str
    banner: str


def find_compiler(cc: str, patience: float = PATIENCE) -> Compiler:
    """The compiler that `cc` names ("gcc", "ccache clang", …); BuildError if there is none.

    patience: seconds to wait for its answer, up to a minute.
    """
    try:
        command = shlex.split(cc)
    except ValueError as error:
        raise BuildError(
            f"C compiler {cc!r} is no command ({error}); set POLYC_CC to one as a shell takes it"
        ) from error
    path = shutil.which(command[0]) if command else None
    if path is None:
        raise BuildError(
            f"C compiler {cc!r} is not found; install gcc (Debian, Ubuntu: apt install gcc) "
            "or set POLYC_CC to the command of another compiler"
        )
    return _ask((path, *command[1:]), min(patience, QUESTION_SECONDS))


@functools.cache
def _ask(command: tuple[str, ...], patience: float) -> Compiler:
    result = execute([*command, "--version"], None, patience)
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
    sources: Mapping[str, str],
    flags: Sequence[str],
    options: Options,
    cache: Cache | None = None,
    workers: int = 1,
) -> Path:
    """Compile and link C files; the path of the shared library, which lives in the cache.

    {"conv.c": …, "driver.c": …} -> <cache>/libraries/<key>/model.so

    Files named *.h are headers of the others; `flags` are the target's; `workers` files are
    compiled at a time. Raises BuildError with the compiler's first messages.
    """
    headers = {n: t for n, t in sources.items() if n.endswith(".h")}
    recipe = c_recipe(flags, options, headers)
    with LibraryBuild(recipe, workers, cache or open_cache(options)) as build:
        for name, text in sources.items():
            if name.endswith(".c"):
                build.add(name, text)
        return build.link()


@dataclass(frozen=True)
class Recipe:
    """How files of text become a shared library.

    command: all that decides what an object is, besides its text and the headers; compile: makes
    OBJECT_FILE of the file `name` in a folder where it stands as `unit_file`; link_command and
    link: the same for LIBRARY_FILE, of the objects that OBJECT_LIST names; units: by name, files
    that every library has besides its own.
    """

    unit_file: str
    command: tuple[str, ...]
    headers: Mapping[str, str]
    compile: Callable[[Path, str], None]
    link_command: tuple[str, ...]
    link: Callable[[Path], None]
    units: Mapping[str, str] = field(default_factory=dict)


class LibraryBuild:
    """A library in the making: files are compiled as they come, side by side, then linked.

    with LibraryBuild(recipe, workers, cache) as build:
        build.add("conv.c", text)     # returns at once
        build.add("driver.c", driver)
        library = build.link()        # waits; BuildError if a file was refused

    Whoever generates files so has the compiler work at those before. Leaving the `with` early, by
    an exception, drops what has not begun.
    """

    def __init__(self, recipe: Recipe, workers: int, cache: Cache) -> None:
        headers = (x for item in sorted(recipe.headers.items()) for x in item)
        self._recipe = recipe
        self._cache = cache
        self._common = digest([*recipe.command, *headers])
        self._pool = ThreadPoolExecutor(max(1, workers))
        self._objects: list[Future[Path]] = []
        for name, text in recipe.units.items():
            self.add(name, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(
        self,
        name: str,
        text: str,
        symbols: Mapping[str, str] = MappingProxyType({}),
        alike: str | None = None,
    ) -> None:
        """Begin to compile a file; its name is for messages.

        symbols: what the object calls functions that have other names in the text; alike: what all
        files have in common of which the object is the same, so that one of them is compiled.
        """
        try:
            self._objects.append(self._pool.submit(self._build_object, name, text, symbols, alike))
        except RuntimeError:  # the system has no thread to give: then without
            done: Future[Path] = Future()
            done.set_result(self._build_object(name, text, symbols, alike))
            self._objects.append(done)

    def objects(self) -> list[Path]:
        """Wait for all files; the folders in which their objects are, in order."""
        return [result_of(future) for future in self._objects]

    def link(self) -> Path:
        """Wait for all files and link them; the path of the library, which lives in the cache.

        They are linked in one order, whatever the order in which they came.
        """
        objects = sorted(self.objects())

        def make(folder: Path) -> None:
            unique = dict.fromkeys(str((o / OBJECT_FILE).resolve()) for o in objects)
            # A file of arguments: thousands of objects would not fit a command line.
            text = "\n".join(map(_escape, unique))
            (folder / OBJECT_LIST).write_text(text, encoding="utf-8")
            self._recipe.link(folder)

        key = digest([*self._recipe.link_command, *(o.name for o in objects)])
        made = self._cache.fetch("libraries", key, make)
        self._cache.tidy()
        return made / LIBRARY_FILE

    def _build_object(
        self, name: str, text: str, symbols: Mapping[str, str], alike: str | None
    ) -> Path:
        defined = [f"#define {called} {symbol}\n" for called, symbol in symbols.items()]
        unit = "".join([*defined, "#line 1\n" if defined else "", text])

        def make(folder: Path) -> None:
            (folder / self._recipe.unit_file).write_text(unit, encoding="utf-8")
            self._recipe.compile(folder, name)

        return self._cache.fetch("objects", digest([self._common, alike or unit]), make)


def c_recipe(
    machine: Sequence[str],
    options: Options,
    headers: Mapping[str, str] = MappingProxyType({}),
    budget: Budget = UNLIMITED,
) -> Recipe:
    """C for a CPU; `headers`, by name, are for all files. BuildError without a compiler.

    machine: the target's flags, which say for which CPU.
    The compiler ends with the budget's time, by TooLong.
    """
    compiler = find_compiler(options.cc, options.patience)
    only = GCC_FLAGS if compiler.kind == "gcc" else ()
    flags = (*COMPILE_FLAGS, *only, *machine)

    def compile(folder: Path, name: str) -> None:
        for file, content in headers.items():
            (folder / file).write_text(content, encoding="utf-8")
        runtime = str(find_runtime())
        arguments = [*compiler.command, *flags, "-I", runtime, "-c", UNIT_FILE, "-o", OBJECT_FILE]
        what = f"file {name!r} of the generated code"
        run_compiler(arguments, folder, what, options.patience, budget)

    link = (*compiler.command, *LINK_FLAGS, f"@{OBJECT_LIST}", "-lm", "-o", LIBRARY_FILE)
    return Recipe(
        UNIT_FILE,
        (compiler.banner, *compiler.command, *flags),
        {**read_runtime(), **headers},
        compile,
        LINK_FLAGS,
        lambda folder: _link(link, folder, options.patience, budget),
        {TEAM_FILE: read_team()},
    )


def _link(arguments: Sequence[str], folder: Path, patience: float, budget: Budget) -> None:
    run_compiler(arguments, folder, "the model's library", patience, budget)


def _escape(path: str) -> str:
    """A path as files of arguments spell it, where a backslash speaks even between quotes."""
    return re.sub(r"""([\s'"\\])""", r"\\\1", path)


def run_compiler(
    arguments: Sequence[str],
    folder: Path,
    what: str,
    patience: float,
    budget: Budget = UNLIMITED,
) -> str:
    """Run a compiler and return its messages; BuildError with the first errors if it fails.

    Raises TooLong if the budget's time is over before it has ended.
    """
    budget.check("build")
    try:
        result = execute(arguments, folder, budget.wait(patience))
    except BuildError:
        budget.check("build")
        raise
    if result.returncode == 0:
        return result.stderr
    lines = (result.stderr + result.stdout).splitlines()
    errors = [x for x in lines if "error" in x or "undefined" in x] or lines
    raise BuildError(
        f"{what} was refused by {arguments[0]} (exit status {result.returncode}); run "
        "`polyc doctor`, or try another compiler with POLYC_CC:\n  "
        + "\n  ".join(errors[:_ERROR_LINES])
    )
