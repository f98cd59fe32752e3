"""Who takes part: polyc, C compilers on the plain loops, Numba and NumPy.

An engine makes a call of a problem: a function of its arguments, which it changes in place.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.polybench.plain_c import PlainC, print_plain
from bench.polybench.problem import Problem
from polyc.loops.read.types import argument_of
from polyc.loops.run.kernel import LoopKernel

Call = Callable[[Mapping[str, Any]], object]

OURS = "polyc"
REFERENCE = "gcc -O3"
"""Whose results are taken as right: it may reorder nothing."""

PATIENCE = 300.0
"""Seconds that a C compiler has."""


class NotThere(Exception):
    """An engine that has nothing for a problem, and why."""


@dataclass(frozen=True)
class Engine:
    """open: problem, arguments, threads, a folder for files -> the call.

    compiler: whether it competes; NumPy is shown, but its calls are somebody's hand-written code.
    """

    name: str
    open: Callable[[Problem, Mapping[str, Any], int, Path], Call]
    compiler: bool = True


def find_engines(threads: int) -> dict[str, Engine]:
    """Those that are installed here, by name."""
    found = [Engine(OURS, _open_polyc)]
    native = "-march=native"
    if shutil.which("gcc"):
        found += [_c(REFERENCE, "gcc", "-O3"), _c("gcc -Ofast", "gcc", "-Ofast", native)]
    if clang := _find_clang():
        found.append(_c("clang -Ofast", clang, "-O3", "-ffast-math", native))
        polly = ["-O3", "-mllvm", "-polly", native]
        if threads > 1:
            polly += ["-mllvm", "-polly-parallel", "-mllvm", f"-polly-num-threads={threads}"]
        if _accepts(clang, tuple(polly)):
            found.append(_c("Polly", clang, *polly, libraries=("-lgomp",) if threads > 1 else ()))
    if importlib.util.find_spec("numba"):
        found.append(Engine("Numba", _open_numba))
    found.append(Engine("NumPy", _open_numpy, compiler=False))
    return {engine.name: engine for engine in found}


def _find_clang() -> str | None:
    """The newest clang; distributions add the version to its name."""
    names = [*(f"clang-{n}" for n in range(30, 13, -1)), "clang"]
    return next((path for name in names if (path := shutil.which(name))), None)


@cache
def _accepts(compiler: str, flags: tuple[str, ...]) -> bool:
    """Whether a compiler takes these flags: Polly is left out of some builds of clang."""
    command = [compiler, *flags, "-x", "c", "-c", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input="int x;", text=True, capture_output=True, timeout=PATIENCE)
    return done.returncode == 0


def _c(name: str, compiler: str, *flags: str, libraries: tuple[str, ...] = ()) -> Engine:
    return Engine(name, partial(_open_c, compiler, flags, libraries))


def _open_polyc(problem: Problem, arguments: Mapping[str, Any], threads: int, folder: Path) -> Call:
    kernel = LoopKernel(problem.kernel.python)  # which takes no more than the cores there are
    kernel.compile(**{name: argument_of(name, value) for name, value in arguments.items()})
    return lambda given: kernel(**given)


def _open_c(
    compiler: str,
    flags: tuple[str, ...],
    libraries: tuple[str, ...],
    problem: Problem,
    arguments: Mapping[str, Any],
    threads: int,
    folder: Path,
) -> Call:
    """The plain loops, compiled. What links is told nothing of -Ofast.

    Else it would add code that rounds tiny numbers to 0 in the whole process, for all engines.
    """
    plain = print_plain(problem.kernel.function, arguments)
    folder.mkdir(parents=True)
    source, unit, library = (folder / f"plain.{end}" for end in ("c", "o", "so"))
    source.write_text(plain.text)
    _run(compiler, *flags, "-fPIC", "-c", str(source), "-o", str(unit))
    _run(compiler, "-shared", str(unit), "-o", str(library), "-lm", *libraries)
    function = getattr(ctypes.CDLL(str(library)), plain.name)
    function.restype = None
    return lambda given: function(*_pass(plain, given))


def _pass(plain: PlainC, given: Mapping[str, Any]) -> Iterator[Any]:
    """What C is given: pointers, and numbers."""
    for name in plain.parameters:
        value = given[name]
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous
            yield ctypes.c_void_p(value.ctypes.data)
        else:
            yield ctypes.c_double(value)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise NotThere(f"{command[0]} took more than {PATIENCE:.0f} s") from error
    if done.returncode:
        raise NotThere(done.stderr.strip().splitlines()[-1])


def _open_numba(problem: Problem, arguments: Mapping[str, Any], threads: int, folder: Path) -> Call:
    import numba

    compiled = numba.njit(fastmath=True)(problem.kernel.python)
    compiled.compile(tuple(numba.typeof(value) for value in arguments.values()))
    return lambda given: compiled(*given.values())


def _open_numpy(problem: Problem, arguments: Mapping[str, Any], threads: int, folder: Path) -> Call:
    compute = problem.numpy
    if compute is None:
        raise NotThere("there is no natural form")
    return lambda given: compute(*given.values())
