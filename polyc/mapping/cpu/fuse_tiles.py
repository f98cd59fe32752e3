"""Fusion of tiles: clusters that hand over more than a cache holds run tile by tile.

    for i: S[i, :] = q[i, :] k              for I step 52:                  # parallel
    for i: P[i, :] = softmax(S[i, :])   ->    for i in I: S[i, :] = …       # S and P are local
    for i: y[i, :] = P[i, :] v                for i in I: P[i, :] = …
                                              for i in I: y[i, :] = …

Each part keeps the tiles and the vector loop that were chosen for it alone; what is shared is only
a band around them. So contractions can be fused that have nothing in common but a loop: the scores
of an attention never leave the cache, nor do the transformed tiles of a Winograd convolution, or
what a depthwise convolution gives to the pointwise one behind it; frames around images are filled
tile by tile as well (`free_fills.py`).

It pays if what is handed over would have left the second-level cache, or a frame the first, and the
other operands, which are walked once a tile now, do not cost as much: either they all stay in that
cache next to the tile, or they are fetched for every tile again. What would have gone to memory and
come back, as of large images, is worth a larger tile, and fetching weights from the third-level
cache for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from math import ceil, lcm, prod

from polyc.errors import IllegalSchedule
from polyc.mapping.cpu.choose import schedule_cluster
from polyc.mapping.cpu.contraction.loop_order import stays_near
from polyc.mapping.cpu.contraction.register_tile import rank_register_tiles
from polyc.mapping.cpu.free_fills import along_with_fills, is_frame, set_fills_free
from polyc.mapping.cpu.fuse_copy import tile_copy
from polyc.mapping.cpu.handed import extra_bytes, saved_cycles
from polyc.mapping.cpu.lay_by_tiles import lay_by_tiles
from polyc.mapping.cpu.strategies.columns import is_by_columns
from polyc.mapping.cpu.strategies.picked import find_picked
from polyc.mapping.cpu.strategies.pointwise import is_transposed
from polyc.mapping.open_cluster import compute_all_strides
from polyc.mapping.reading import Tile, read_grouped, read_packed
from polyc.mapping.signature import sign_layouts
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel, homes_of
from polyc.names import show
from polyc.promote.local_arrays import LARGEST_HANDED
from polyc.schedule.cluster import MANY_ITERATIONS, Cluster, is_too_large, shared_loops
from polyc.schedule.initial import InitialLoops
from polyc.schedule.names import short
from polyc.scop.scop import Array
from polyc.target.costs import far_bytes
from polyc.target.machine import Target

LEAST_HEIGHT = 0.75
"""Of a register tile's height, to be left when it is made to divide the tile around it; and what
the best tile may cost of one that takes its rows along another loop."""


Fuse = Callable[[StoredKernel, StoredCluster, frozenset[str]], StoredKernel | None]
"""Of a kernel and a cluster that it hands arrays to: both as one kernel; None if they stay two."""


def fuse_tiles(
    stored: Sequence[StoredCluster], arrays: Mapping[str, Array], target: Target
) -> tuple[StoredKernel, ...]:
    """The kernels that the clusters become, in an order that respects what they hand over."""
    return fuse_readers(
        stored, arrays, lambda kernel, one, handed: _fuse(kernel, one, handed, arrays, target)
    )


def fuse_readers(
    stored: Sequence[StoredCluster], arrays: Mapping[str, Array], fuse: Fuse
) -> tuple[StoredKernel, ...]:
    """The clusters as kernels, each fused with the one that hands it most where `fuse` says so."""
    users: dict[str, set[str]] = {}  # array -> the clusters that touch its memory, as `last`
    for one in stored:
        for name in homes_of(one.arrays, arrays):
            users.setdefault(name, set()).add(one.last)
    kernels: list[StoredKernel] = []
    writers: dict[str, set[int]] = {}  # array -> positions of the kernels that write it
    for one in stored:
        start = len(kernels)
        kernel = StoredKernel((one,))
        same = [k for k, other in enumerate(kernels) if one.given and other.given == one.given]
        near = same or sorted(set().union(*(writers.get(name, ()) for name in one.arrays)))
        position, handed = _find_producer(kernels, near, one, users, arrays)
        fits = handed and not is_too_large((*kernels[position].body, *kernel.body))
        # What is read under another shape must be whole by then.
        other = {arrays[name].memory for name in one.arrays}
        fits = fits and kernels[position].written.isdisjoint(other)
        fused: StoredKernel | None = None
        if same:
            position, first = same[0], kernels[same[0]]
            fused = StoredKernel((*first.parts, one), (), (), first.handed | handed)
        elif fits and not (one.given or kernels[position].given):
            fused = fuse(kernels[position], one, handed)
        moved: tuple[list[StoredKernel], list[StoredKernel]] | None = None
        if fused:
            moved = _move_between(kernels[position + 1 :], kernels[position], kernel, arrays)
        if same and moved is None:
            raise IllegalSchedule(
                f"the schedule of {show(one.given)} fuses "
                f"{show(short(one.cluster.statements[-1].name))} with what cannot run next to it: "
                "kernels between them have to stay between"
            )
        if fused and moved:
            before, after = moved
            for name in {n for k in kernels[position:] for n in k.written}:
                writers[name] = {k for k in writers[name] if k < position}
            kernels[position:], start = [*before, fused, *after], position
        else:
            kernels.append(kernel)
        for k in range(start, len(kernels)):
            for name in kernels[k].written:
                writers.setdefault(name, set()).add(k)
    return tuple(kernels)


def _find_producer(
    kernels: Sequence[StoredKernel],
    positions: Iterable[int],
    one: StoredCluster,
    users: Mapping[str, Set[str]],
    arrays: Mapping[str, Array],
) -> tuple[int, frozenset[str]]:
    """(position of the kernel that hands over most to a cluster alone, what it hands over)."""
    found: tuple[int, frozenset[str]] = (-1, frozenset())
    most = 0
    for position in positions:
        kernel = kernels[position]
        handed = frozenset(
            name
            for name in kernel.written.intersection(one.arrays)
            if arrays[name].kind == "temporary"
            and name in users
            and users[name] <= {p.last for p in (*kernel.parts, one) if name in p.arrays}
        )
        size = sum(arrays[name].bytes for name in handed)
        if size > most:
            found, most = (position, handed), size
    return found


def _move_between(
    between: Sequence[StoredKernel],
    first: StoredKernel,
    second: StoredKernel,
    arrays: Mapping[str, Array],
) -> tuple[list[StoredKernel], list[StoredKernel]] | None:
    """The kernels between two that are to become one: (those to run before, those after)."""
    alike = second.step, second.branches
    if any((kernel.step, kernel.branches) != alike for kernel in (first, *between)):
        return None  # a loop over steps stays in one piece, and so does a branch
    if not first.written.isdisjoint(second.awaited):
        return None  # nothing is known of the second before the first has ended
    before: list[StoredKernel] = []
    after: list[StoredKernel] = []
    for kernel in reversed(between):
        if any(kernel.conflicts_with(later, arrays) for later in (second, *before)):
            before.insert(0, kernel)
        else:
            after.insert(0, kernel)
    return (
        None if any(first.conflicts_with(kernel, arrays) for kernel in before) else (before, after)
    )


def _fuse(
    kernel: StoredKernel,
    one: StoredCluster,
    handed: frozenset[str],
    arrays: Mapping[str, Array],
    target: Target,
) -> StoredKernel | None:
    """The kernel with a cluster at the end of each of its tiles; None where that does not pay."""
    total = sum(arrays[name].bytes for name in handed)
    longest = sum(arrays[name].long_bytes for name in handed)
    if longest <= (target.l1d if is_frame(kernel, handed) else target.l2 // 2):
        return None
    if not all(_is_plain(part, arrays) for part in (*kernel.parts, one)):
        return None
    common = [a for a in one.arrays if a in kernel.arrays]
    if sign_layouts(common, one.storages, handed) != sign_layouts(common, kernel.storages, handed):
        return None  # a constant lies differently for each of them
    if any(load.dynamic for s in one.cluster.statements for load in s.loads):
        return None
    parts = [p for part in (*kernel.parts, one) for p in set_fills_free(part, arrays)]
    loops = along_with_fills(common_loops(kernel, one), [part.cluster for part in parts])
    members = [_with_own_loops(part, arrays, target) for part in parts]
    whole = StoredKernel(tuple(members), loops, (), kernel.handed | handed)
    for tiled in _list_tiled(whole, arrays, target):
        extra = extra_bytes(tiled, arrays, target) - extra_bytes(kernel, arrays, target)
        if extra / far_bytes(target) < saved_cycles(total, longest, target):
            return lay_by_tiles(tiled, arrays)
    return None


def _list_tiled(
    whole: StoredKernel, arrays: Mapping[str, Array], target: Target
) -> Iterator[StoredKernel]:
    """The kernel in tiles that fit, the best of them first."""
    rooms = _list_rooms(whole, arrays, target)
    copied = tile_copy(whole, rooms[0][1], arrays, target)
    if copied is not None:
        tiled = _fit_parts(whole, copied.sizes, arrays, target)
        tiled = tiled and replace(tiled, terms=copied.terms)
        if tiled and tiled.schedule.directives:
            yield tiled
    for large, room in rooms:
        tiled = _fit_parts(whole, _choose_sizes(whole, large, room), arrays, target)
        if tiled:
            yield tiled


def _list_rooms(
    kernel: StoredKernel, arrays: Mapping[str, Array], target: Target
) -> list[tuple[int, int]]:
    """(bytes of all tiles together, room for one of them): little room first.

    What is far away otherwise is worth more of it; and what the last part gives may be handed on.
    """
    handed = sum(arrays[name].long_bytes for name in kernel.handed)
    rooms = [(handed, min(LARGEST_HANDED // 2, target.l2 // 4))]
    if not stays_near(handed, target):
        given = arrays[kernel.parts[-1].cluster.statements[-1].array]
        last = given.long_bytes if given.kind == "temporary" else 0
        rooms.append((handed + last, LARGEST_HANDED))
    return rooms


def _fit_parts(
    whole: StoredKernel, sizes: Sequence[int] | None, arrays: Mapping[str, Array], target: Target
) -> StoredKernel | None:
    """The kernel in tiles of these sizes, each part with a register tile that fits; None if not."""
    if sizes is None:
        return None
    extents = whole.long_extents
    kept = [k for k, (n, size) in enumerate(zip(extents, sizes, strict=True)) if size < n]
    loops, steps = tuple(whole.loops[k] for k in kept), tuple(sizes[k] for k in kept)
    tiled = replace(whole, loops=loops, sizes=steps)
    parts = [_fit(part, tiled, arrays, target) for part in tiled.parts]
    fitted = tuple(part for part in parts if part is not None)
    if not kept or len(fitted) < len(parts):
        return None
    fused = replace(tiled, parts=fitted)
    return fused if fused.schedule.directives else None


def _is_plain(one: StoredCluster, arrays: Mapping[str, Array]) -> bool:
    """Whether all tiles of a cluster are those of its loops."""
    cluster, vector, (unroll, _, _) = one.cluster, one.vector, one.tile
    across = vector is not None and is_transposed(cluster, vector, unroll, arrays, one.storages)
    by_columns = vector is not None and is_by_columns(cluster)
    if cluster.summed or by_columns or across:
        return False
    return find_picked(cluster) is None


def common_loops(kernel: StoredKernel, one: StoredCluster) -> tuple[Mapping[str, int], ...]:
    """The loops around the kernel that the cluster shares: it reads at i what was written at i."""
    outer = kernel.loops or kernel.parts[0].cluster.shared
    around = Cluster(kernel.statements, tuple(outer), has_reuse=False)
    return shared_loops(around, one.cluster)


def _choose_sizes(kernel: StoredKernel, total: int, room: int) -> list[int] | None:
    """Tile sizes of the loops: inner ones grow first, as long as there is room and parallelism.

    total: bytes of all tiles together; room: those of one, at most.
    """
    extents = kernel.long_extents
    sizes = [1] * len(extents)

    def suits(sizes: Sequence[int]) -> bool:
        within = prod(size / n for size, n in zip(sizes, extents, strict=True))
        tiles = prod(ceil(n / size) for size, n in zip(sizes, extents, strict=True))
        return total * within <= room and tiles >= MANY_ITERATIONS

    def suits_along(k: int, size: int) -> bool:
        return suits([*sizes[:k], size, *sizes[k + 1 :]])

    for k in reversed(range(len(extents))):
        most = _largest(extents[k], partial(suits_along, k))
        if not most:
            break
        if most < extents[k]:
            large = [size for size in _list_multiples(kernel, k, most) if 2 * size > most]
            sizes[k] = max(large, key=lambda size: (_share_of_heights(kernel, k, size), size))
            break
        sizes[k] = extents[k]
    return sizes if suits(sizes) else None


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest of 1 … limit that fits, where whatever is smaller than one fits too; 0 if none.

    A larger tile needs more room, and leaves fewer tiles for threads.
    """
    return bisect_left(range(1, limit + 1), True, key=lambda size: not fits(size))


def _list_multiples(kernel: StoredKernel, k: int, most: int) -> set[int]:
    """For any heights of the parts' register tiles along loop k: the largest tile around them.

    parts of heights 4 and 6, most 100:  {100, 99, 96}      multiples of 1, 2, 4, 5; of 3; of 12, 6
    """
    steps = {1}
    for one in kernel.parts:
        heights = range(1, _tile_along(one, kernel.loops[k]) + 1)
        steps = {lcm(step, height) for step in steps for height in heights}
        steps = {step for step in steps if step <= most}
    return {most // step * step for step in steps}


def _share_of_heights(kernel: StoredKernel, k: int, size: int) -> float:
    """How much of its register tile along loop k the worst part keeps in tiles of that size."""
    loop = kernel.loops[k]
    return min(_height_within(one, loop, size) / _tile_along(one, loop) for one in kernel.parts)


def _height_within(part: StoredCluster, loop: Mapping[str, int], size: int) -> int:
    """The largest register tile along a loop, up to the part's own, that divides a tile around."""
    own = _tile_along(part, loop)
    return max(h for h in range(1, own + 1) if size % h == 0)


def _tile_along(part: StoredCluster, loop: Mapping[str, int]) -> int:
    """The register tile of a part along a loop around it; 1 if it has none there."""
    vector, (unroll, height, width) = part.vector, part.tile
    first = part.cluster.statements[0].name
    for d, size in ((vector, width), (unroll, height)):
        if d is not None and part.cluster.shared[d][first] == loop[first]:
            return size
    return 1


def _fit(
    part: StoredCluster, kernel: StoredKernel, arrays: Mapping[str, Array], target: Target
) -> StoredCluster | None:
    """The part with a register tile that divides the tile around it; None if that is far off.

    A tile that is as wide, and costs little more, may take its rows along another loop.
    """
    fitted = _fit_height(part, kernel, arrays, target)
    if fitted is not None or not part.cluster.has_reuse or part.vector is None or part.rows:
        return fitted
    strides = compute_all_strides(part.cluster, arrays, part.storages)
    about = part.cluster, part.vector, strides, arrays, target
    for tile in rank_register_tiles(*about, most=1 / LEAST_HEIGHT):
        if tile[2] == part.tile[2] and tile[0] not in (None, part.tile[0]):
            other = _with_tile(part, tile, arrays, target)
            if (fitted := _fit_height(other, kernel, arrays, target)) is not None:
                return fitted
    return None


def _fit_height(
    part: StoredCluster, kernel: StoredKernel, arrays: Mapping[str, Array], target: Target
) -> StoredCluster | None:
    """The part with a register tile of fewer rows, if the tile around it wants that."""
    unroll, own_height, width = part.tile
    height = own_height
    for loop, size in zip(kernel.loops, kernel.sizes, strict=True):
        own, fitting = _tile_along(part, loop), _height_within(part, loop, size)
        if fitting == own:
            continue
        first = part.cluster.statements[0].name
        if unroll is None or part.cluster.shared[unroll][first] != loop[first]:
            return None  # vectors are as wide as they are
        if fitting < LEAST_HEIGHT * own:
            return None
        height = fitting
    if height == own_height:
        return part
    return _with_tile(part, (unroll, height, width), arrays, target)


def _with_own_loops(
    part: StoredCluster, arrays: Mapping[str, Array], target: Target
) -> StoredCluster:
    """The part with a tile as wide of which each loop runs by itself: others may share it then."""
    if not part.rows:
        return part
    assert part.vector is not None
    strides = compute_all_strides(part.cluster, arrays, part.storages)
    ranked = rank_register_tiles(part.cluster, part.vector, strides, arrays, target)
    tile = next(tile for tile in ranked if tile[2] == part.tile[2])
    return _with_tile(part, tile, arrays, target)


def _with_tile(
    part: StoredCluster, tile: Tile, arrays: Mapping[str, Array], target: Target
) -> StoredCluster:
    packed = read_packed(part.schedule)
    grouped = read_grouped(part.schedule, InitialLoops((part.cluster,)))
    schedule = schedule_cluster(
        part.cluster, part.vector, tile, arrays, part.storages, target, packed, (), grouped
    )
    return replace(part, schedule=schedule)
