"""Calling a compiled kernel: NumPy arrays in place, checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import islpy as isl
import numpy as np

from polyc.build.load import STOPPED, Library
from polyc.errors import RuntimeFailure, ShapeError
from polyc.loops.read.sizes import Signature
from polyc.loops.read.types import Argument
from polyc.loops.run.compile import CompiledLoops
from polyc.target.machine import available_cores
from polyc.threads.worth import choose_threads
from polyc.toolchain.pages import allocate_pages

PARAM = isl.dim_type.param

MOST_CHOSEN = 4096
"""Sets of sizes that are remembered."""

MOST_WORK = 100_000
"""What NumPy may spend on whether two arrays share memory; its stubs know of two values alone."""


@dataclass(frozen=True)
class Loaded:
    """A compiled kernel in memory; teams: of how many threads calls with some sizes are worth."""

    compiled: CompiledLoops
    library: Library
    teams: dict[tuple[int, ...], int] = field(default_factory=dict)

    def share(self, sizes: tuple[int, ...]) -> int:
        """The threads for a call of which nobody says how many."""
        cores = available_cores()
        key = (cores, *sizes)
        if key not in self.teams:
            if len(self.teams) >= MOST_CHOSEN:
                self.teams.clear()
            names = (size.name for size in self.compiled.signature.sizes)
            known = dict(zip(names, sizes, strict=True))
            self.teams[key] = choose_threads(self.compiled.kernel, known, cores)
        return self.teams[key]

    def admits(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is compiled for these sizes."""
        return not _at(self.compiled.sizes, sizes).is_empty()


@dataclass
class Caller:
    """A kernel ready to be called with arguments of some types.

    usual: what is compiled for the usual sizes; load_general: compiles it for all, when that is
    first needed; chosen: which of them some sizes need.
    """

    usual: Loaded
    load_general: Callable[[], Loaded]
    general: Loaded | None = None
    chosen: dict[tuple[int, ...], Loaded] = field(default_factory=dict)

    @property
    def signature(self) -> Signature:
        return self.usual.compiled.signature

    def prepare(self, values: Mapping[str, Any]) -> Call:
        """A call with these arguments; ShapeError for those that do not fit."""
        signature, scop = self.signature, self.usual.compiled.lowered.scop
        arrays: dict[str, np.ndarray] = {}
        numbers: dict[str, int] = {}
        for name, argument in signature.arguments.items():
            if name in signature.numbers:
                numbers[name] = _whole(name, values[name])
            else:
                arrays[name] = _array(name, values[name], argument)
        sizes = tuple(signature.measure({n: a.shape for n, a in arrays.items()}, numbers))
        loaded = self.chosen.get(sizes) or self._choose(sizes)
        written = tuple(n for n in arrays if signature.arrays[n].name in scop.outputs)
        _check_written(arrays, written)
        return Call(loaded, arrays, written, sizes, *_tell_sizes(loaded, sizes))

    def _choose(self, sizes: tuple[int, ...]) -> Loaded:
        """What is compiled for some sizes; ShapeError if Python would leave an array with them."""
        named = dict(zip((s.name for s in self.signature.sizes), sizes, strict=True))
        loaded = self.usual
        if not loaded.admits(named):
            self._check_sizes(named)
            self.general = loaded = self.general or self.load_general()
        if len(self.chosen) >= MOST_CHOSEN:
            self.chosen.clear()
        self.chosen[sizes] = loaded
        return loaded

    def _check_sizes(self, named: Mapping[str, int]) -> None:
        for requirement in self.usual.compiled.requirements:
            if not _at(requirement.sizes, named).is_empty():
                shown = ", ".join(f"{s.shown} = {named[s.name]}" for s in self.signature.sizes)
                raise ShapeError(
                    f"{requirement.place}: {requirement.what} where {shown}; give arrays of other "
                    "sizes"
                )


@dataclass(frozen=True)
class Call:
    """A call whose arguments were checked.

    An array that is not contiguous is copied, and copied back if it is written.

    arrays: the arguments that are kept in memory; written: those that change. told: the sizes in C.
    arena_bytes: what the call works in.
    """

    loaded: Loaded
    arrays: Mapping[str, np.ndarray]
    written: tuple[str, ...]
    sizes: tuple[int, ...]
    told: Any
    arena_bytes: int

    def run(self, threads: int) -> bool:
        """Run the kernel; whether it worked on the arrays themselves, and not on copies."""
        held = {name: _contiguous(array) for name, array in self.arrays.items()}
        pointers = {name: point_to(self.loaded, array) for name, array in held.items()}
        share = threads or self.loaded.share(self.sizes)
        launch(
            self.loaded,
            [pointers[name] for name in (*pointers, *self.written)],
            self.told,
            self.arena_bytes,
            share,
        )
        copied = [name for name in held if held[name] is not self.arrays[name]]
        for name in copied:
            if name in self.written:
                self.arrays[name][...] = held[name]
        return not copied


def _at(sizes: isl.Set, values: Mapping[str, int]) -> isl.Set:
    """A set of sizes, for some values of them: empty if they are not in it."""
    for name, value in values.items():
        position = sizes.find_dim_by_name(PARAM, name)
        if position >= 0:
            sizes = sizes.fix_val(PARAM, position, isl.Val(value))
    return sizes


def launch(
    loaded: Loaded, pointers: Sequence[Any], told: Any, arena_bytes: int, threads: int
) -> None:
    """Call the driver; it finds arrays that share memory before it begins.

    pointers: to all arrays, then once more to those that are written. told: the sizes, in C.
    """
    ffi, functions = loaded.library.ffi, loaded.library.functions
    arena = ffi.from_buffer(allocate_pages(arena_bytes)) if arena_bytes else ffi.NULL
    status = functions.polyc_run(pointers, ffi.NULL, arena, told, threads)
    if status == STOPPED:
        raise loaded.library.raised.pop()
    scop = loaded.compiled.lowered.scop
    if status < 0:
        raise _shared(scop.outputs[-status - 1], "another argument")
    if status:
        raise RuntimeFailure(
            f"kernel {scop.name!r}: a subscript that is data leaves its array; arrays that are "
            "written hold undefined values"
        )


def _tell_sizes(loaded: Loaded, sizes: tuple[int, ...]) -> tuple[Any, int]:
    """The sizes in C, and the bytes that a call with them works in."""
    told = loaded.library.ffi.new("int64_t[]", list(sizes) or [0])
    arena_bytes = loaded.library.functions.polyc_arena_bytes(told)
    if arena_bytes < 0:
        raise ShapeError(
            f"kernel {loaded.compiled.lowered.scop.name!r} needs more memory than a process can "
            "address; use smaller sizes"
        )
    return told, arena_bytes


def point_to(loaded: Loaded, array: np.ndarray) -> Any:
    """The address of an array in C, which keeps its memory where it is.

    A buffer of no bytes has none that C could be given: any other will do.
    """
    return loaded.library.ffi.from_buffer(array if array.size else np.empty(1, array.dtype))


def _shared(one: str, other: str) -> ShapeError:
    return ShapeError(
        f"argument {one!r}, which is written, shares memory with {other}; give a copy"
    )


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ShapeError(
            f"argument {name!r} is a {type(value).__name__}, but must be a whole number"
        )
    return int(value)


def _array(name: str, value: Any, argument: Argument) -> np.ndarray:
    """The argument as an array; a number has no dimensions."""
    if argument.dims is None:
        if isinstance(value, np.ndarray):
            raise ShapeError(f"argument {name!r} is an array, but must be a number")
        wanted = float if argument.dtype.kind == "f" else bool
        if wanted is bool and not isinstance(value, bool | np.bool_):
            raise ShapeError(f"argument {name!r} is {value!r}, but must be a boolean")
        if not isinstance(value, int | float | np.integer | np.floating | np.bool_):
            raise ShapeError(f"argument {name!r} is a {type(value).__name__}, not a number")
        return np.array(value, argument.dtype)
    if not isinstance(value, np.ndarray):
        raise ShapeError(
            f"argument {name!r} is a {type(value).__name__}, but must be a NumPy array, which is "
            "changed in place"
        )
    if value.dtype != argument.dtype:
        raise ShapeError(
            f"argument {name!r} is of type {value.dtype}, but must be of {argument.dtype}; convert "
            f"it with .astype, or compile the kernel for this type"
        )
    if value.ndim != len(argument.dims):
        raise ShapeError(
            f"argument {name!r} has {value.ndim} dimensions, but must have {len(argument.dims)}"
        )
    return value


def _check_written(arrays: Mapping[str, np.ndarray], written: Sequence[str]) -> None:
    """Arrays that are written can be, and share no memory with any other."""
    for one in written:
        if not arrays[one].flags.writeable:
            raise ShapeError(f"argument {one!r} is read-only, but is written; give a copy")
        if _overlaps_itself(arrays[one]):
            raise ShapeError(f"argument {one!r} has elements that share memory; give a copy")
        for other, array in arrays.items():
            if other != one and _share(arrays[one], array):
                raise _shared(one, f"argument {other!r}")


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays share memory, or might: then the question is too hard for NumPy."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements lie in one place, as in a broadcast array."""
    dims = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, extent in dims:
        if stride < reach:
            return bool(array.size) and not array.flags.c_contiguous
        reach += stride * (extent - 1)
    return False


def _contiguous(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy of it in the order in which C has it."""
    aligned = array.flags.c_contiguous and array.flags.aligned
    return array if aligned else np.array(array, order="C", copy=True)
