"""How arrays lie in memory: every element in a place of its own, and constants in theirs.

w[o, i]  ->  [floor(o/16), i, o mod 16]      one to one, and inside of [n/16, m, 16]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations, product

import islpy as isl
import numpy as np

from polyc.analysis.witness import illegal, show_first, show_first_pair
from polyc.memory.storage import Storage
from polyc.poly.boxes import box
from polyc.poly.parameters import among_sizes
from polyc.program.program import Program, StoredArray
from polyc.scop.scop import Array, Scop
from polyc.types.branches import find_common, needs_in
from polyc.types.parameters import must_be_equal, needed_ranges
from polyc.types.ranges import assume
from polyc.types.sizes import Size
from polyc.types.spec import TensorSpec

IN, OUT, SET, DIV = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.div

CHUNK = 1 << 18
"""Elements of a constant that are compared at once."""


def verify_storages(program: Program, scop: Scop, arrays: Mapping[str, Array]) -> int:
    """Prove for every array of a program how it lies in memory, or raise IllegalSchedule.

    Each element has a place of its own, in the box that is stored; constants are arranged so; and
    the caller's arrays, in their order, are row-major without gaps. Gives the number of arrays.
    """
    seen: dict[object, list[Storage]] = {}
    for stored in program.arrays.values():
        array = arrays.get(stored.source)
        if array is None or array.dtype != stored.dtype:
            raise illegal(f"array {stored.name}", "it is no array of the model, or of another type")
        _check_memory(stored, program, arrays)
        if array.value is None and stored.name != stored.source:
            raise illegal(f"array {stored.name}", f"{stored.source} changes, and is stored twice")
        alike = seen.setdefault((array.shape, stored.storage.shape), [])
        if not any(same_storage(other, stored.storage) for other in alike):
            _check_map(array, stored.storage)
            alike.append(stored.storage)
        if array.value is not None:
            _check_value(stored, array.value)
    for names, specs in ((scop.inputs, program.inputs), (scop.outputs, program.outputs)):
        if tuple(names) != tuple(name for _, name in specs):
            raise illegal("program", "its inputs and outputs are not in the order of the model")
        for spec, name in specs:
            _check_interface(spec, program.arrays[name], arrays[name])
    return len(program.arrays)


def _check_memory(stored: StoredArray, program: Program, arrays: Mapping[str, Array]) -> None:
    """The memory of another array has its elements, without gaps, in their order."""
    array = arrays[stored.source]
    if stored.memory != array.memory:
        raise illegal(f"array {stored.name}", f"it is the memory of {array.memory or 'no other'}")
    if not stored.memory:
        return
    home = arrays[stored.memory]
    with assume(needed_ranges(_list_needs(stored, program))):
        same_size = must_be_equal(math.prod(home.shape), math.prod(array.shape))
    plain = _is_plain(stored, array) and _is_plain(program.arrays[home.name], home)
    if home.memory or home.dtype != array.dtype or not same_size or not plain:
        rule = f"it is the memory of {home.name}, which is {home.dtype}{list(home.shape)}"
        raise illegal(f"array {stored.name}", rule)


def _list_needs(stored: StoredArray, program: Program) -> tuple[Size, ...]:
    """What holds of sizes in all calls in which some launch touches an array."""
    users = [one.branches for one in program.launches if stored.name in one.touched]
    return needs_in(program.demands, find_common(users)) if users else ()


def same_storage(one: Storage, other: Storage) -> bool:
    """Whether two storages are equal but for the names of what they map."""
    maps = [s.map.reset_tuple_id(IN).reset_tuple_id(OUT) for s in (one, other)]
    return one.shape == other.shape and bool(maps[0].plain_is_equal(maps[1]))


def _check_map(array: Array, storage: Storage) -> None:
    """No two elements lie in one place, and all lie in the box."""
    where = f"array {array.name}"
    places = storage.map.as_map().set_tuple_name(IN, array.name)  # A -> M
    places = places.intersect_domain(among_sizes(box(array.name, array.shape)))
    if not places.is_injective():
        both = places.apply_range(places.reverse())
        twice = both.subtract(isl.Map.identity(both.space))
        raise illegal(where, "two elements are stored in one place", show_first_pair(twice))
    taken = places.range()
    inside = box(taken.get_tuple_name() or "", storage.shape)
    if not taken.is_subset(inside):
        rule = f"an element is stored outside of {list(storage.shape)}"
        raise illegal(where, rule, show_first(taken.subtract(inside)))


Tables = Sequence[tuple[int, np.ndarray]]
"""For each coordinate the index that it depends on, and what it is for each value of that."""


def _check_value(stored: StoredArray, value: np.ndarray) -> None:
    """Every element of a constant is where its storage says.

    Each coordinate of a storage map is a function of one index, and so a table. Where those of an
    index are its digits, as nearly always, parts are compared as they lie, without a copy.
    """
    where, shape = f"array {stored.name}", tuple(map(int, stored.storage.shape))
    placed = stored.value
    if placed is None or placed.shape != shape or placed.dtype != value.dtype:
        raise illegal(where, f"its contents do not fill {list(shape)}")
    if not value.size:
        return
    bits = np.dtype(f"u{value.itemsize}")  # in which NaNs are equal, too
    content, values = placed.view(bits), value.view(bits).reshape(value.shape or (1,))
    tables = _tabulate_coordinates(stored.storage, values.shape)
    parts = _divide(values.shape, tables)
    if parts is None:
        _check_elements(where, content, values, tables)
    elif not all(_is_placed(content, values, chosen) for chosen in product(*parts)):
        raise illegal(where, "elements are not where they are stored")


def _tabulate_coordinates(storage: Storage, extents: tuple[int, ...]) -> Tables:
    tables = []
    for k in range(storage.map.dim(OUT)):
        aff = storage.map.get_aff(k)
        moving = [d for d in range(aff.dim(IN)) if aff.involves_dims(IN, d, 1)] or [0]
        if len(moving) > 1:
            raise illegal(f"array {storage.array}", "a coordinate depends on several indices")
        tables.append((moving[0], _tabulate(aff, moving[0], extents[moving[0]])))
    return tables


@dataclass(frozen=True)
class _Part:
    """Values of one index, from `first` on, as a range of each coordinate that counts them.

    along: (coordinate, its first value, how many), the one that moves slowest first.
    """

    first: int
    along: tuple[tuple[int, int, int], ...]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(extent for _, _, extent in self.along)

    @property
    def values(self) -> slice:
        return slice(self.first, self.first + math.prod(self.extents))


def _divide(shape: Sequence[int], tables: Tables) -> list[list[_Part]] | None:
    """The parts of each index in which coordinates are its digits; None if they are not."""
    parts = []
    for d, extent in enumerate(shape):
        mine = {k: table for k, (of, table) in enumerate(tables) if of == d and table.any()}
        found = _read_digits(extent, mine)
        if found is None:
            return None
        parts.append(found)
    return parts


def _read_digits(extent: int, tables: Mapping[int, np.ndarray]) -> list[_Part] | None:
    """An index whose coordinates are its digits: all that are full, then what is left.

    i < 50 as floor(i/16) and i mod 16  ->  48 of (0 .. 2, 0 .. 15), and 2 of (3, 0 .. 1)
    """
    index = np.arange(extent)
    if len(tables) < 2:
        whole = all(np.array_equal(table, index) for table in tables.values())
        fits = whole and (tables or extent == 1)
        return [_Part(0, tuple((k, 0, extent) for k in tables))] if fits else None
    for high, low in permutations(tables, 2):
        base = int(tables[low].max()) + 1
        fits = len(tables) == 2 and np.array_equal(tables[low], index % base)
        if fits and np.array_equal(tables[high], index // base):
            full, left = divmod(extent, base)
            parts = [_Part(0, ((high, 0, full), (low, 0, base)))]
            return parts + [_Part(full * base, ((high, full, 1), (low, 0, left)))] * bool(left)
    return None


def _is_placed(content: np.ndarray, values: np.ndarray, parts: Sequence[_Part]) -> bool:
    """Whether a part of a constant is where its coordinates say."""
    where = [slice(0, 1)] * content.ndim
    moving = [one for part in parts for one in part.along]
    for k, first, extent in moving:
        where[k] = slice(first, first + extent)
    rest = [k for k in range(content.ndim) if k not in {one[0] for one in moving}]
    order = np.argsort([*(k for k, _, _ in moving), *rest])
    extents = [*(extent for _, _, extent in moving), *(1 for _ in rest)]
    seen = values[tuple(part.values for part in parts)].reshape(extents).transpose(order)
    return np.array_equal(content[tuple(where)], seen)


def _check_elements(where: str, content: np.ndarray, values: np.ndarray, tables: Tables) -> None:
    """The same, element by element: its place is the sum of what each index adds."""
    rank, flat = values.ndim, np.ascontiguousarray(content).reshape(-1)
    offsets = [np.zeros(n, np.int64) for n in values.shape]
    for k, (d, table) in enumerate(tables):
        offsets[d] += math.prod(content.shape[k + 1 :]) * table
    shaped = [o.reshape([-1 if k == d else 1 for k in range(rank)]) for d, o in enumerate(offsets)]
    inner = reduce(np.add, shaped[1:], np.zeros((1,) * rank, np.int64))
    rows = max(1, CHUNK // max(1, inner.size))
    for start in range(0, len(values), rows):
        found = flat[inner + shaped[0][start : start + rows]]
        if not np.array_equal(found, values[start : start + rows]):
            raise illegal(where, f"elements from index {start} on are not where they are stored")


def _tabulate(aff: isl.Aff, dimension: int, extent: int) -> np.ndarray:
    """floor(aff) for each value 0 .. extent - 1 of the one index that it depends on, if of any."""
    scale = aff.get_denominator_val()
    total = np.full(extent, aff.get_constant_val().mul(scale).to_python(), np.int64)
    if dimension < aff.dim(IN):
        slope = aff.get_coefficient_val(IN, dimension).mul(scale).to_python()
        total += slope * np.arange(extent)
    for k in range(aff.dim(DIV)):
        slope = aff.get_coefficient_val(DIV, k).mul(scale).to_python()
        if slope:
            total += slope * _tabulate(aff.get_div(k), dimension, extent)
    return total // scale.to_python()


def _is_plain(stored: StoredArray, array: Array) -> bool:
    """Whether an array is stored row-major, without gaps."""
    coordinates = [stored.storage.map.get_aff(k) for k in range(stored.storage.map.dim(OUT))]
    plain = [
        isl.Aff.var_on_domain(aff.get_domain_local_space(), SET, k).plain_is_equal(aff)
        for k, aff in enumerate(coordinates[: len(array.shape)])
    ]
    fits = len(coordinates) == len(array.shape) and stored.storage.shape == array.shape
    return fits and all(plain)


def _check_interface(spec: TensorSpec, stored: StoredArray, array: Array) -> None:
    """An array of the caller is stored as callers store arrays: row-major, without gaps."""
    where = f"array {stored.name}"
    if not _is_plain(stored, array):
        rule = f"it is the caller's, but is stored by {stored.storage.map}"
        raise illegal(where, f"{rule} in {list(stored.storage.shape)}, not {list(array.shape)}")
    known = zip(spec.shape, array.shape, strict=False)
    fits = all(isinstance(n, str) or isinstance(m, Size) or n == m for n, m in known)
    if spec.dtype != array.dtype or len(spec.shape) != len(array.shape) or not fits:
        rule = f"the caller takes it for {spec.dtype}{list(spec.shape)}"
        raise illegal(where, f"{rule}, but it is {array.dtype}{list(array.shape)}")
