"""The arrays of a program as launches name them, constants laid out for each that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage, arrange
from polyc.program.program import Launch, StoredArray
from polyc.scop.scop import Scop


def bind_arrays(
    stored: Sequence[StoredKernel], launches: Sequence[Launch], scop: Scop
) -> tuple[dict[str, StoredArray], tuple[Launch, ...]]:
    """The arrays that launches name, as stored; a constant read in two layouts becomes two."""
    arrays: dict[str, StoredArray] = {}
    layouts: dict[tuple[object, ...], str] = {}
    bound: list[Launch] = []
    for one, launch in zip(stored, launches, strict=True):
        names = [_store(n, one.storages[n], scop, arrays, layouts) for n in launch.arguments]
        bound.append(replace(launch, arguments=tuple(names)))
    return arrays, tuple(bound)


def _store(
    name: str,
    storage: Storage,
    scop: Scop,
    arrays: dict[str, StoredArray],
    layouts: dict[tuple[object, ...], str],
) -> str:
    """The program's name for an array in a layout, entered in the tables at its first use."""
    array = scop.arrays[name]
    if array.value is None:
        stored = StoredArray(name, array.dtype, array.kind, storage, memory=array.memory)
        arrays.setdefault(name, stored)
        return name
    key = (name, storage.permutation, storage.blocks, storage.shape)
    if key not in layouts:
        layouts[key] = name if name not in arrays else f"{name}_layout{len(layouts)}"
        value = arrange(array.value, storage)
        stored = StoredArray(layouts[key], array.dtype, array.kind, storage, value, name)
        arrays[layouts[key]] = stored
    return layouts[key]
