"""Where every array lives: temporaries share one arena, constants share one blob.

An array whose size is known only at run time has a region of the arena, behind all that is known,
and one whose size a call finds has room for the most that there can be. Arrays that are not needed
at the same time share one, which is as large as the largest of them.

Two temporaries may overlap in the arena when no launch needs both. Finding the smallest arena is
offline dynamic storage allocation, i.e. packing rectangles (lifetime x bytes) into a strip; it is
NP-hard (Garey and Johnson 1979, problem SR2), and greedy best fit by decreasing size comes within a
few percent on networks (Pisarchyk and Lee 2020, "Efficient memory management for deep neural net
inference", section 5). Several orders are tried, and the smallest result is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from polyc.errors import ShapeError
from polyc.program.program import Program, StoredArray
from polyc.types.estimate import hinted
from polyc.types.found import at_most
from polyc.types.ranges import ADDRESS_LIMIT, Step
from polyc.types.sizes import Extent, Size

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector register."""


@dataclass(frozen=True)
class Slot:
    """A temporary's place in the arena, and the first and last launch that touch it.

    region: 0 is what is known when compiling, where `offset` and `bytes` count. Any other region
    holds one array at a time, from its beginning; the bytes are then those at the hint.
    """

    array: str
    offset: int
    bytes: int
    first: int
    last: int
    region: int = 0

    def meets(self, other: Slot) -> bool:
        """Whether some launch needs both."""
        return self.first <= other.last and other.first <= self.last

    def shares_memory(self, other: Slot) -> bool:
        """Whether some byte of the arena belongs to both."""
        if self.region or other.region:
            return self.region == other.region
        return self.offset < other.offset + other.bytes and other.offset < self.offset + self.bytes


@dataclass(frozen=True)
class Plan:
    """Offsets of temporaries in the arena and of constants in the weights, all in bytes.

    `arena_bytes` are those of region 0, and `regions` the sizes of the arrays that share each of
    the others, in bytes. `lower_bound` is the largest live set: no arena can be smaller.
    """

    slots: tuple[Slot, ...]
    arena_bytes: int
    lower_bound: int
    constants: Mapping[str, int]
    weights_bytes: int
    regions: tuple[tuple[Size, ...], ...] = ()


@dataclass(frozen=True)
class Layout:
    """Where constants lie in the weights, by name, and the bytes of all."""

    offsets: Mapping[str, int]
    bytes: int


def plan_memory(program: Program, alignment: int = ALIGNMENT, placed: Layout | None = None) -> Plan:
    """Place the program's temporaries and constants, each at a multiple of `alignment` bytes.

    placed: where constants are already, those of the program and perhaps others.

    lifetimes t1 [0, 1] 64 B, t2 [1, 2] 32 B, t3 [2, 3] 64 B  ->  t1 at 0, t2 at 64, t3 at 0
    """
    bound = {name for _, name in (*program.inputs, *program.outputs)}
    lifetimes = find_lifetimes(program)
    moved = [n for n in lifetimes if n not in bound and program.arrays[n].value is None]
    sizes = {n: at_most(byte_size(program.arrays[n])) for n in moved}
    slots = [Slot(n, 0, aligned(hinted(sizes[n]), alignment), *lifetimes[n]) for n in moved]
    fixed = [slot for slot in slots if not isinstance(sizes[slot.array], Size)]
    varying, regions = _share_regions(
        [slot for slot in slots if isinstance(sizes[slot.array], Size)], sizes
    )
    touched = dict.fromkeys([*lifetimes, *(name for _, name in program.outputs)])
    read = [n for n in touched if program.arrays[n].value is not None]
    if placed is None:
        sizes_of = [(n, int(byte_size(program.arrays[n]))) for n in read]
        placed = lay_out(sizes_of, alignment)
    constants = {n: placed.offsets[n] for n in read}
    packed = pack(fixed)
    arena_bytes = max((s.offset + s.bytes for s in packed), default=0)
    _check_total("the arena of temporaries", arena_bytes)
    least = compute_lower_bound(slots)
    return Plan((*packed, *varying), arena_bytes, least, constants, placed.bytes, regions)


def find_lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """Array -> the first and the last launch that it is needed in, under any shape.

    What a loop over steps touches is needed in all of it: the next step may read it.
    """
    launches = program.launches
    spans: dict[Step, tuple[int, int]] = {}
    for position, launch in enumerate(launches):
        if launch.step:
            spans[launch.step] = (spans.get(launch.step, (position, 0))[0], position)
    lifetimes: dict[str, tuple[int, int]] = {}
    for position, launch in enumerate(launches):
        start, end = spans[launch.step] if launch.step else (position, position)
        for name in map(program.home, launch.touched):
            first, last = lifetimes.get(name, (start, end))
            lifetimes[name] = (min(first, start), max(last, end))
    return lifetimes


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """size rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def byte_size(array: StoredArray) -> Extent:
    """Bytes of an array as stored, padding included; exact, however large."""
    size = math.prod(array.storage.shape) * array.dtype.itemsize
    what = f"array {array.name!r} of stored shape {list(array.storage.shape)}"
    _check_total(what, hinted(size))
    return size


def _share_regions(
    slots: Sequence[Slot], sizes: Mapping[str, Extent]
) -> tuple[list[Slot], tuple[tuple[Size, ...], ...]]:
    """Each array in the first region whose arrays it never meets, the largest array first."""
    members: list[list[Slot]] = []
    for slot in sorted(slots, key=lambda s: -s.bytes):
        free = (k for k, m in enumerate(members) if not any(slot.meets(other) for other in m))
        region = next(free, len(members))
        if region == len(members):
            members.append([])
        members[region].append(replace(slot, region=region + 1))
    placed = [slot for together in members for slot in together]
    regions = []
    for together in members:
        found = dict.fromkeys(sizes[slot.array] for slot in together)
        regions.append(tuple(size for size in found if isinstance(size, Size)))
    return placed, tuple(regions)


def compute_lower_bound(slots: Sequence[Slot]) -> int:
    """max over launches t of the sum of bytes of the slots alive at t."""
    change: dict[int, int] = {}
    for slot in slots:
        change[slot.first] = change.get(slot.first, 0) + slot.bytes
        change[slot.last + 1] = change.get(slot.last + 1, 0) - slot.bytes
    live = most = 0
    for _, delta in sorted(change.items()):
        live += delta
        most = max(most, live)
    return most


def pack(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """The slots at offsets where no two that meet overlap, in order of first use."""
    bound = compute_lower_bound(slots)
    best: list[Slot] = []
    height: int | None = None
    for order in _ORDERS:
        placed = _place(sorted(slots, key=order))
        top = max((s.offset + s.bytes for s in placed), default=0)
        if height is None or top < height:
            best, height = placed, top
        if height == bound:
            break
    return tuple(sorted(best, key=lambda s: (s.first, s.offset, s.array)))


_ORDERS: tuple[Callable[[Slot], tuple[int, ...]], ...] = (
    lambda s: (-s.bytes, s.first),
    lambda s: (-s.bytes * (s.last - s.first + 1), s.first),
    lambda s: (s.first - s.last, -s.bytes),
    lambda s: (s.first, -s.bytes),
    lambda s: (-s.last, -s.bytes),
)


def _place(slots: Iterable[Slot]) -> list[Slot]:
    """Each slot in turn at the tightest gap below the slots it meets, or on top of them."""
    placed: list[Slot] = []
    begun: dict[int, list[Slot]] = {}  # launch -> those that are needed from it on
    live: dict[int, list[Slot]] = {}  # launch -> those that are needed in it
    for slot in slots:
        later = (begun.get(t, ()) for t in range(slot.first + 1, slot.last + 1))
        met = chain(live.get(slot.first, ()), *later)
        around = sorted((p.offset, p.bytes) for p in met)
        top, best, tightest = 0, -1, 0
        for offset, size in around:
            gap = offset - top
            if gap >= slot.bytes and (best < 0 or gap < tightest):
                best, tightest = top, gap
            top = max(top, offset + size)
        offset = best if best >= 0 else top
        here = Slot(slot.array, offset, slot.bytes, slot.first, slot.last)
        placed.append(here)
        begun.setdefault(slot.first, []).append(here)
        for launch in range(slot.first, slot.last + 1):
            live.setdefault(launch, []).append(here)
    return placed


def lay_out(constants: Iterable[tuple[str, int]], alignment: int = ALIGNMENT) -> Layout:
    """Constants one after the other, by name and in bytes."""
    offsets, end = {}, 0
    for name, size in constants:
        offsets[name] = end
        end += aligned(size, alignment)
    _check_total("the model's constants", end)
    return Layout(offsets, end)


def _check_total(what: str, size: int) -> None:
    if not 0 <= size < ADDRESS_LIMIT:
        raise ShapeError(
            f"{what} needs {size} bytes, more than a process can address ({ADDRESS_LIMIT}); "
            "use smaller dimensions"
        )
