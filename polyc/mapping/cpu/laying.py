"""What is decided of a cluster at first, its vectors and copies, and the layouts that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyc.mapping.cpu.choose import schedule_cluster
from polyc.mapping.cpu.contraction.grouping import find_group, is_grouped
from polyc.mapping.cpu.contraction.matrix_tile import list_matrix_tiles
from polyc.mapping.cpu.contraction.register_tile import choose_register_tile
from polyc.mapping.cpu.contraction.rows_as_one import Rows, list_rows_as_one
from polyc.mapping.cpu.layout import decide_layouts
from polyc.mapping.cpu.packing import Packing, find_operands, pack
from polyc.mapping.cpu.strategies.columns import choose_strip, is_by_columns
from polyc.mapping.cpu.strategies.pointwise import choose_pointwise_tile
from polyc.mapping.cpu.vector_loop import choose_vector_loop
from polyc.mapping.join_rows import find_even_rows
from polyc.mapping.open_cluster import OpenCluster, list_touched
from polyc.mapping.reading import Grouped, Tile, read_grouped, read_packed, read_vector
from polyc.mapping.signature import sign_layouts
from polyc.memory.storage import Storage
from polyc.schedule.cluster import Cluster
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array
from polyc.target.machine import Target


@dataclass(frozen=True)
class Tiles:
    """What is decided about a cluster before its layout: the rest of its schedule follows.

    vector: the shared loop in SIMD lanes; packed: arrays that are read as copies; grouped: the loop
    of which an instruction takes several iterations in each lane; rows: shared loops that run as
    one, of which the tile unrolls some iterations.
    """

    vector: int | None
    tile: Tile
    packed: tuple[str, ...]
    grouped: Grouped | None = None
    rows: Rows = ()


@dataclass(frozen=True)
class Laid:
    """A cluster that reads packed copies, and how all that it touches lies, with the copies."""

    tiles: Tiles
    cluster: Cluster
    packings: tuple[Packing, ...]
    arrays: Mapping[str, Array]
    storages: Mapping[str, Storage]

    def schedule(self, target: Target, order: Sequence[int] = ()) -> Schedule:
        """The strategy's schedule; `order` is that of the shared loops if it is not its own."""
        vector, tile, packed = self.tiles.vector, self.tiles.tile, self.tiles.packed
        return schedule_cluster(
            self.cluster,
            vector,
            tile,
            self.arrays,
            self.storages,
            target,
            packed,
            order,
            self.tiles.grouped,
            self.tiles.rows,
        )


def choose_tiles(one: OpenCluster, target: Target) -> Tiles:
    """What the cost model takes."""
    vector = choose_vector_loop(one.cluster, one.strides, target)
    shared = sorted(range(len(one.cluster.shared)), key=lambda d: -one.cluster.extents[d])
    for d in (vector, *(d for d in shared if d != vector)):
        together = None if vector is None or d is None else _group(one, d, target)
        if together is not None:
            return together
    for may_join in (True, False):
        tile, rows = _choose_tile(one, vector, target, may_join)
        packed = find_operands(one.cluster, vector, one.strides, tile[1])
        tiles = Tiles(vector, tile, packed, rows=rows)
        if lies_evenly(one, tiles):
            break
    return tiles


def transfer(tiles: Tiles, one: OpenCluster, like: OpenCluster) -> Tiles:
    """The tiles of a cluster for one that is equal to it but for names (`OpenCluster.key`)."""
    arrays = dict(zip(one.touched, like.touched, strict=True))
    pairs = zip(one.cluster.statements, like.cluster.statements, strict=True)
    names = {mine.name: other.name for mine, other in pairs}
    grouped = tiles.grouped
    if grouped is not None:
        grouped = replace(grouped, statement=names[grouped.statement])
    return replace(tiles, packed=tuple(arrays[name] for name in tiles.packed), grouped=grouped)


def _group(one: OpenCluster, vector: int, target: Target) -> Tiles | None:
    """Tiles with an instruction for several terms of a sum in each lane, if there is one."""
    found = find_group(one, vector, target)
    if found is None:
        return None
    grouped, packed = found
    runs = _runs_to_join(one, vector)
    for tile, several, rows in list_matrix_tiles(one, vector, grouped, target, runs):
        tiles = Tiles(vector, tile, packed, several, rows)
        along = rows[-1] if rows else tile[0]
        if lies_evenly(one, tiles) and _fits(one, tiles, several, vector, along):
            return tiles
    for may_join in (True, False):
        tile, rows = _choose_tile(one, vector, target, may_join)
        tiles = Tiles(vector, tile, packed, grouped, rows)
        if lies_evenly(one, tiles):
            break
    return tiles if _fits(one, tiles, grouped, vector) else None


def _runs_to_join(one: OpenCluster, vector: int) -> list[Rows]:
    """The loops that may run as one where a call decides how often: evenly apart, so far."""
    of = one.cluster, vector, one.strides, one.arrays, one.storages
    known = list_rows_as_one(*of, may_join=False)
    return [run for run in list_rows_as_one(*of) if run not in known]


def lies_evenly(one: OpenCluster, tiles: Tiles) -> bool:
    """Whether rows that run as one lie so that they can, where only a call knows how many."""
    loops = (one.named.shared(one.cluster, d) for d in tiles.rows)
    if all(loop is None or loop.extent is not None for loop in loops):
        return True
    laid = lay_out(one, tiles)
    return find_even_rows(laid.cluster, tiles.rows, laid.arrays, laid.storages) is not None


def _fits(
    one: OpenCluster, tiles: Tiles, grouped: Grouped, vector: int, rows: int | None = None
) -> bool:
    """Whether all that a cluster touches lies as an instruction takes it.

    rows: the shared loop over those of one that multiplies matrices.
    """
    laid = lay_out(one, tiles)
    return is_grouped(laid.cluster, grouped, vector, laid.arrays, laid.storages, rows)


def choose_schedule(one: OpenCluster, target: Target) -> Schedule:
    """The schedule by the cost model."""
    return lay_out(one, choose_tiles(one, target)).schedule(target)


def lay_out(one: OpenCluster, tiles: Tiles) -> Laid:
    """The layouts that suit these tiles."""
    vector, (_, _, width) = tiles.vector, tiles.tile
    cluster, packings = pack(
        one.cluster, tiles.packed, one.arrays, None if tiles.grouped else vector
    )
    packed = {p.array.name: p.array for p in packings}
    arrays = {**one.arrays, **packed} if packed else one.arrays
    new = decide_layouts(cluster, vector, width, arrays, one.storages, list(packed), tiles.grouped)
    decided = {**one.storages, **{n: new[n] for n in packed}}
    names = (*list_touched(cluster), *packed, *one.touched)
    storages = {n: new[n] if n in new else decided[n] for n in names if n in new or n in decided}
    return Laid(tiles, cluster, packings, arrays, storages)


def read_tiles(one: OpenCluster, schedule: Schedule) -> Tiles:
    """What a schedule says of vectors and copies, which layouts follow."""
    vector, width = read_vector(schedule, one.named)
    grouped = read_grouped(schedule, one.named)
    return Tiles(vector, (None, 1, width), read_packed(schedule), grouped)


def _choose_tile(
    one: OpenCluster, vector: int | None, target: Target, may_join: bool
) -> tuple[Tile, Rows]:
    """(the tile, the loops that run as one for it).

    may_join: also such as run as one because they are evenly apart, as far as layouts stand.
    """
    cluster, strides, arrays = one.cluster, one.strides, one.arrays
    if vector is None:
        return (None, 1, 1), ()
    if is_by_columns(cluster):
        return choose_strip(cluster, vector, strides, arrays, one.private, target), ()
    if any(s.reduction for s in cluster.statements):
        runs = list_rows_as_one(cluster, vector, strides, arrays, one.storages, may_join)
        return choose_register_tile(cluster, vector, strides, arrays, target, runs)
    return choose_pointwise_tile(cluster, vector, strides, arrays, target), ()


def keeps_layouts(one: OpenCluster, schedule: Schedule, other: Schedule) -> bool:
    """Whether another schedule leaves everything as it is stored that other clusters see."""
    tiles = [read_tiles(one, s) for s in (schedule, other)]
    if tiles[0].vector == tiles[1].vector:
        return True
    decides = [
        name
        for name in one.touched
        if name not in one.storages
        and name not in one.private
        and one.arrays[name].kind != "constant"
    ]
    laid = [lay_out(one, each).storages for each in tiles]
    layouts = [sign_layouts(decides, storages, one.private) for storages in laid]
    return layouts[0] == layouts[1]
