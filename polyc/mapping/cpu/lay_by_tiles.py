"""What a fused tile hands on lies in one run, so that it may stay near.

    for i step 14:                     # scores of 4 heads, s of a row
      for i in I: a[h, i, 0 .. s] = …      stored as a[h][i][0 .. s] the tile has 4 runs, far apart;
      for i in I: … = a[h, i, 0 .. s]      stored as a[i][h][0 .. s] it has one, of 14 * 4 * s

Nothing else touches what is handed on, so it may lie as the kernel likes. Where a call says how
long rows are, only one run can be taken to the stack (`promote/near.py`); an array whose tiles have
a size when compiling becomes a local one anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage, permuted
from polyc.poly.affine import columns_of, moving_dimension
from polyc.scop.scop import Array
from polyc.types.sizes import Size


def lay_by_tiles(kernel: StoredKernel, arrays: Mapping[str, Array]) -> StoredKernel:
    """The kernel with the arrays that it hands on stored along the loops around its tiles first."""
    changed: dict[str, Storage] = {}
    for name in kernel.handed:
        array, storage = arrays[name], kernel.storages[name]
        if storage.blocks or not any(isinstance(n, Size) for n in array.shape):
            continue
        walked = _find_walked(kernel, name)
        rest = [d for d in storage.permutation if d not in walked]
        if rest and rest[-1] == storage.permutation[-1]:  # vectors stay as they are
            gap = storage.shape[-1] - array.shape[rest[-1]]
            changed[name] = permuted(array, [*walked, *rest], gap=gap)
    parts = (
        replace(one, storages={n: changed.get(n, s) for n, s in one.storages.items()})
        for one in kernel.parts
    )
    return replace(kernel, parts=tuple(parts)) if changed else kernel


def _find_walked(kernel: StoredKernel, name: str) -> list[int]:
    """The dimensions of an array along which the loops around tiles go, by what writes it first."""
    s = next(s for s in kernel.statements if s.array == name)
    columns = columns_of(s.write)
    moving = [moving_dimension(columns[loop[s.name]]) for loop in kernel.loops]
    return [d for d in moving if d is not None]
