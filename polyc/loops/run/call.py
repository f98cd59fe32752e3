"""Calling a compiled kernel: NumPy arrays in place, checked before anything is changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyc.build.load import (
    DECLARATIONS,
    DECLARED_CHECK,
    DECLARED_METHOD,
    STOPPED,
    Library,
    check_features,
    open_library,
)
from polyc.build.manifest import Manifest
from polyc.errors import RuntimeFailure, ShapeError
from polyc.loops.read.sizes import Signature, leaves
from polyc.loops.read.types import Argument
from polyc.loops.run.stored import Stored
from polyc.target.machine import available_cores
from polyc.toolchain.arenas import Arenas

MOST_CHOSEN = 4096
"""Sets of sizes that are remembered."""

MOST_WORK = 100_000
"""What NumPy may spend on whether two arrays share memory; its stubs know of two values alone."""


DECLARED = DECLARATIONS + DECLARED_CHECK + DECLARED_METHOD

CallKind = tuple[int, tuple[int, ...]]
"""What is called, told by identity, and the sizes."""


@dataclass(frozen=True)
class Loaded:
    """A kernel in memory, and what its calls work in."""

    stored: Stored
    library: Library
    arenas: Arenas = field(default_factory=Arenas, repr=False)

    @staticmethod
    def open(stored: Stored) -> Loaded:
        manifest = stored.bundle.manifest
        check_features(manifest.name, manifest.features)
        return Loaded(stored, open_library(stored.bundle.library, manifest.name, DECLARED))

    @property
    def manifest(self) -> Manifest:
        return self.stored.bundle.manifest

    def share(self, told: Any) -> int:
        """The threads for a call with some sizes, of which nobody says how many."""
        return self.library.functions.polyc_team(told, available_cores())

    def find_refusal(self, sizes: Sequence[int]) -> int | None:
        """The number of the requirement that some sizes break; None if there is none."""
        told = self.library.ffi.new("int64_t[]", list(sizes) or [0])
        status = self.library.functions.polyc_check(told)
        return None if status == 0 else -status - len(self.manifest.outputs) - 1


@dataclass
class Caller:
    """A kernel ready to be called with arguments of some types.

    usual: what is compiled for the usual sizes; load_general: compiles it for all, when that is
    first needed; chosen: which of them some sizes need.
    """

    signature: Signature
    usual: Loaded
    load_general: Callable[[], Loaded]
    general: Loaded | None = None
    chosen: dict[tuple[int, ...], Loaded] = field(default_factory=dict)

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """The arrays that are changed."""
        return frozenset(spec.name for spec in self.usual.manifest.outputs)

    @property
    def stored(self) -> Stored:
        """What was made for the usual sizes."""
        return self.usual.stored

    def __call__(self, values: Mapping[str, Any], threads: int = 0) -> Call:
        """Run the kernel; ShapeError for arguments that do not fit, which are then unchanged."""
        bound = bind(self.signature, self.written, values)
        loaded = self.chosen.get(bound.sizes) or self._choose(bound.sizes)
        call = Call(loaded, bound, *_tell_sizes(loaded, bound.sizes))
        call.run(threads)
        return call

    def _choose(self, sizes: tuple[int, ...]) -> Loaded:
        """What is compiled for some sizes; ShapeError if Python would leave an array with them."""
        loaded = self.usual
        refused = loaded.find_refusal(sizes)
        if refused is not None:
            requirements = loaded.manifest.requirements or ()
            if refused < len(requirements) - 1:  # the last: they are not usual
                raise leaves(*requirements[refused], self.signature, sizes)
            self.general = loaded = self.general or self.load_general()
        if len(self.chosen) >= MOST_CHOSEN:
            self.chosen.clear()
        self.chosen[sizes] = loaded
        return loaded


@dataclass(frozen=True)
class Bound:
    """The arguments of a call that were found to fit: arrays as given, and as C takes them.

    An array that is not contiguous is copied, and copied back if it is written. sizes: in order.
    """

    arrays: Mapping[str, np.ndarray]
    held: Mapping[str, np.ndarray]
    written: frozenset[str]
    sizes: tuple[int, ...]

    @property
    def is_in_place(self) -> bool:
        """Whether C works on the arrays themselves, and on no copies."""
        return all(self.held[name] is array for name, array in self.arrays.items())

    def write_back(self) -> None:
        """Copy what was written in a copy to where the caller has it."""
        for name in self.written:
            if self.held[name] is not self.arrays[name]:
                self.arrays[name][...] = self.held[name]


def bind(signature: Signature, outputs: Collection[str], values: Mapping[str, Any]) -> Bound:
    """The arguments of a call; ShapeError for what does not fit. outputs: arrays that are written.

    Whatever is refused is refused before anything is changed.
    """
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, int] = {}
    for name, argument in signature.arguments.items():
        if name in signature.numbers:
            numbers[name] = _whole(name, values[name])
        else:
            arrays[name] = _array(name, values[name], argument)
    sizes = tuple(signature.measure({n: a.shape for n, a in arrays.items()}, numbers))
    written = frozenset(n for n in arrays if signature.arrays[n].name in outputs)
    _check_written(arrays, written)
    return Bound(arrays, {n: _contiguous(a) for n, a in arrays.items()}, written, sizes)


@dataclass(frozen=True)
class Call:
    """A call whose arguments fit. told: the sizes in C; arena_bytes: what it works in."""

    loaded: Loaded
    bound: Bound
    told: Any
    arena_bytes: int

    @property
    def kind(self) -> CallKind | None:
        """What calls have in common that one function of C makes; None if this one has copies."""
        return (id(self.loaded), self.bound.sizes) if self.bound.is_in_place else None

    def run(self, threads: int) -> None:
        bound = self.bound
        pointers = {name: point_to(self.loaded, array) for name, array in bound.held.items()}
        every = [*pointers.values(), *(p for name, p in pointers.items() if name in bound.written)]
        threads = threads or self.loaded.share(self.told)
        launch(self.loaded, every, self.told, self.arena_bytes, threads)
        bound.write_back()


def launch(
    loaded: Loaded, pointers: Sequence[Any], told: Any, arena_bytes: int, threads: int
) -> None:
    """Call the driver; it finds arrays that share memory before it begins.

    pointers: to all arrays, then once more to those that are written. told: the sizes, in C.
    """
    ffi, functions = loaded.library.ffi, loaded.library.functions
    arena = loaded.arenas.take(arena_bytes) if arena_bytes else ffi.NULL
    try:
        status = functions.polyc_run(pointers, ffi.NULL, arena, told, threads)
    finally:
        if arena_bytes:
            loaded.arenas.put_back(arena)
    check_status(loaded, status)


def check_status(loaded: Loaded, status: int) -> None:
    """Raise what a call's result says."""
    if status == STOPPED:
        raise loaded.library.raised.pop()
    if status < 0:
        raise _shared(loaded.manifest.outputs[-status - 1].name, "another argument")
    if status:
        raise data_leaves(loaded.manifest.name)


def _tell_sizes(loaded: Loaded, sizes: tuple[int, ...]) -> tuple[Any, int]:
    """The sizes in C, and the bytes that a call with them works in."""
    told = loaded.library.ffi.new("int64_t[]", list(sizes) or [0])
    arena_bytes = loaded.library.functions.polyc_arena_bytes(told)
    if arena_bytes < 0:
        raise ShapeError(
            f"kernel {loaded.manifest.name!r} needs more memory than a process can address; use "
            "smaller sizes"
        )
    return told, arena_bytes


def point_to(loaded: Loaded, array: np.ndarray) -> Any:
    """The address of an array in C, which keeps its memory where it is.

    A buffer of no bytes has none that C could be given: any other will do.
    """
    return loaded.library.ffi.from_buffer(array if array.size else np.empty(1, array.dtype))


def data_leaves(kernel: str) -> RuntimeFailure:
    return RuntimeFailure(
        f"kernel {kernel!r}: a subscript that is data leaves its array; arrays that are written "
        "hold undefined values"
    )


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


def _check_written(arrays: Mapping[str, np.ndarray], written: Collection[str]) -> None:
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
