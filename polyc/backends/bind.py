"""The arrays of a program as launches name them, constants laid out for each that reads them.

Where the constants of all kernels lie is known before the first of these is compiled, so that they
are put in place meanwhile (`Begin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage, arrange
from polyc.program.program import Launch, StoredArray
from polyc.scop.scop import Scop

Key = tuple[object, ...]
"""A constant in one layout."""


@dataclass(frozen=True)
class Constant:
    """A constant under the program's name: its content by its indices, and how it is stored."""

    name: str
    content: np.ndarray
    storage: Storage

    @property
    def bytes(self) -> int:
        return int(self.storage.size) * self.content.itemsize


@dataclass(frozen=True)
class Placed:
    """By name, constants as they are stored; they are there when `wait` has returned."""

    values: Mapping[str, np.ndarray]
    wait: Callable[[], None] = lambda: None


Begin = Callable[[Sequence[Constant]], Placed]
"""Takes the constants of a program and begins to put them in place."""


def place_at_once(constants: Iterable[Constant]) -> Placed:
    """A `Begin` for those who have no place for them: views of their contents, or copies."""
    return Placed({one.name: arrange(one.content, one.storage) for one in constants})


def find_constants(stored: Sequence[StoredKernel], scop: Scop) -> dict[Key, Constant]:
    """The constants that kernels read; one that is read in two layouts becomes two."""
    found: dict[Key, Constant] = {}
    taken: set[str] = set()
    for one in stored:
        for name in one.arrays:
            value = scop.arrays[name].value if name in scop.arrays else None
            storage = one.storages.get(name)
            if value is None or storage is None or (key := _key(name, storage)) in found:
                continue
            known = name if name not in taken else f"{name}_layout{len(found)}"
            found[key] = Constant(known, value, storage)
            taken.add(known)
    return found


def bind_arrays(
    stored: Sequence[StoredKernel],
    launches: Sequence[Launch],
    scop: Scop,
    constants: Mapping[Key, Constant],
    placed: Placed,
) -> tuple[dict[str, StoredArray], tuple[Launch, ...]]:
    """The arrays that launches name, as stored, and the launches with these for arguments."""
    arrays: dict[str, StoredArray] = {}
    bound: list[Launch] = []
    for one, launch in zip(stored, launches, strict=True):
        names = []
        for argument in launch.arguments:
            array, storage = scop.arrays[argument], one.storages[argument]
            name, value = argument, None
            if array.value is not None:
                name = constants[_key(argument, storage)].name
                value = placed.values[name]
            whose = argument if value is not None else ""
            if name not in arrays:
                arrays[name] = StoredArray(
                    name, array.dtype, array.kind, storage, value, whose, array.memory
                )
            names.append(name)
        bound.append(replace(launch, arguments=tuple(names)))
    return arrays, tuple(bound)


def _key(name: str, storage: Storage) -> Key:
    return name, storage.permutation, storage.blocks, storage.shape
