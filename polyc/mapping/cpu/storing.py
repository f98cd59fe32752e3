"""Vector loops and layouts for all clusters, decided together in execution order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyc.budget import UNLIMITED, Budget
from polyc.mapping.cpu.choose import schedule_cluster
from polyc.mapping.cpu.given import NOTHING, Given, read_given
from polyc.mapping.cpu.laying import Laid, Tiles, choose_tiles, lay_out, read_tiles, transfer
from polyc.mapping.cpu.layout import follow_order
from polyc.mapping.cpu.packing import Packing
from polyc.mapping.cpu.space import find_tuned
from polyc.mapping.cpu.strategies.pointwise import choose_pointwise_tile
from polyc.mapping.cpu.vector_loop import choose_vector_loop
from polyc.mapping.open_cluster import OpenCluster, compute_all_strides, list_touched
from polyc.mapping.reading import Tile, read_order
from polyc.mapping.signature import sign_cluster
from polyc.mapping.stored_cluster import Stored, StoredCluster
from polyc.mapping.tuned import Tuned
from polyc.memory.storage import Storage, row_major
from polyc.memory.strides import Strides
from polyc.poly.affine import exact_extents
from polyc.poly.parameters import at_sizes
from polyc.schedule.canonical import from_positions, to_positions
from polyc.schedule.cluster import Cluster
from polyc.schedule.initial import InitialLoops
from polyc.schedule.keeping import Prefetch
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.scop.expr import Load
from polyc.scop.scop import Array, Scop, Statement, gather_steps
from polyc.target.machine import Target
from polyc.types.estimate import hinted

ROWS = 4
"""Rows that a copy writes at once into each panel, a run of lines there.

16.8 MB in panels of 64 bytes a row take 3.3 ms in place of 5.9 (Zen 3).
"""


def store_clusters(
    clusters: Sequence[Cluster],
    scop: Scop,
    target: Target,
    tuned: Mapping[str, Tuned] | None = None,
    budget: Budget = UNLIMITED,
    given: Given = NOTHING,
) -> Stored:
    """Each cluster with its vector loop, register tile and storage maps, in execution order.

    Layouts are settled in that order, but for those of arrays that are only copied to, such as the
    model's input inside a frame: they are left to their readers. A contraction that wants an
    operand packed is preceded by the copy. `tuned` holds measured schedules by `OpenCluster.key`,
    `given` those that are asked for; the cost model chooses the others.
    """
    store = _Store(clusters, scop, target, tuned or {}, given)
    for position, cluster in budget.over(enumerate(clusters), "cluster"):
        copy = _copied_to(cluster, store.arrays)
        if copy and store.arrays[copy].kind == "temporary" and copy not in store.decided:
            store.waiting.setdefault(copy, []).append(position)
        else:
            store.settle(position)
    store.settle_copies(list(store.waiting))
    positions = range(len(clusters))
    return Stored(
        gather_steps(part for position in positions for part in store.stored[position]),
        replace(scop, arrays=store.arrays),
        tuple(store.opened[position] for position in positions),
    )


class _Store:
    """Layouts as far as they are settled, and the copies whose layouts wait for a reader."""

    def __init__(
        self,
        clusters: Sequence[Cluster],
        scop: Scop,
        target: Target,
        tuned: Mapping[str, Tuned],
        given: Given,
    ) -> None:
        self.clusters, self.target, self.tuned, self.given = clusters, target, tuned, given
        self.arrays: Mapping[str, Array] = dict(scop.arrays)
        users = Counter(name for cluster in clusters for name in list_touched(cluster))
        self.alone = frozenset(
            n for n, a in self.arrays.items() if a.kind == "temporary" and users[n] == 1
        )
        self.decided: dict[str, Storage] = {
            n: row_major(a)
            for n, a in self.arrays.items()
            if a.kind in ("input", "output", "state")
        }
        self.waiting: dict[str, list[int]] = {}
        self.stored: dict[int, list[StoredCluster]] = {}
        self.opened: dict[int, OpenCluster] = {}
        # What the cost model took for the first of clusters that are equal but for names.
        self.chosen: dict[str, tuple[OpenCluster, Tiles]] = {}
        # What the strategy made for it, with positions for names.
        self.scheduled: dict[str, Schedule] = {}

    def settle(self, position: int) -> None:
        """Choose for one cluster, and for the waiting copies that it reads."""
        one = self._open(position)
        copies = [name for name in one.touched if name in self.waiting]
        if copies and self._suits(position, copies):
            self.settle_copies(copies)
            one = self._open(position)
        name = self.given.homes.get(position, "")
        known = None if name else self.tuned.get(one.key)
        tuned = find_tuned(one, known, self.target) if known and known.gain else None
        gain = known.gain if known and tuned else 0.0
        if tuned:
            parts, self.arrays = store_cluster(one, tuned, self.target)
        else:
            laid = lay_out(one, self._choose_tiles(position, one))
            schedule = self.given.schedules[name] if name else self._schedule(one, laid)
            parts, self.arrays = _store(one, laid, schedule, self.target)
        parts = (*map(self._give, parts[:-1]), replace(parts[-1], given=name, gain=gain))
        for part in parts:
            # A constant is stored anew for each reader that wants it otherwise; the rest is shared.
            kept = {n: s for n, s in part.storages.items() if self.arrays[n].kind != "constant"}
            self.decided.update(kept)
        self.stored[position] = list(parts)
        self.opened[position] = one
        self.settle_copies(copies)

    def _choose_tiles(self, position: int, one: OpenCluster) -> Tiles:
        """What a given schedule says, or what the cost model takes."""
        name = self.given.homes.get(position)
        if name is not None:
            return read_given(one, self.given.schedules[name])
        if one.key not in self.chosen:
            self.chosen[one.key] = one, choose_tiles(one, self.target)
        like, tiles = self.chosen[one.key]
        return tiles if like is one else transfer(tiles, like, one)

    def _schedule(self, one: OpenCluster, laid: Laid) -> Schedule:
        """The strategy's schedule, made once for clusters that are equal but for names."""
        if one.key in self.scheduled:
            return from_positions(self.scheduled[one.key], one.named, one.nameable)
        schedule = laid.schedule(self.target)
        self.scheduled[one.key] = to_positions(schedule, one.named, one.nameable)
        return schedule

    def _give(self, copy: StoredCluster) -> StoredCluster:
        """A copy that packs, with its given schedule if there is one."""
        home = self.given.home_of_copy(short(copy.cluster.statements[-1].name))
        return replace(copy, schedule=self.given.schedules[home], given=home) if home else copy

    def _open(self, position: int, assumed: Mapping[str, Storage] | None = None) -> OpenCluster:
        cluster = self.clusters[position]
        touched = list_touched(cluster)
        storages = {n: self.decided[n] for n in touched if n in self.decided}
        private = self.alone.intersection(touched)
        return OpenCluster(cluster, self.arrays, {**storages, **(assumed or {})}, private)

    def settle_copies(self, names: Sequence[str]) -> None:
        """Choose for the copies that fill these arrays, as far as they still wait."""
        for name in names:
            for position in self.waiting.pop(name, ()):
                self.settle(position)

    def _suits(self, position: int, copies: Sequence[str]) -> bool:
        """Whether a cluster reads copies in vectors that lie as what they are copied from."""
        assumed = {}
        for name in copies:
            copy = self._open(self.waiting[name][0])
            tiles = self._choose_tiles(self.waiting[name][0], copy)
            assumed[name] = lay_out(copy, tiles).storages[name]
        one = self._open(position, assumed)
        tiles, free = (self._choose_tiles(position, o) for o in (one, self._open(position)))
        if free.grouped and (not tiles.grouped or len(tiles.packed) > len(free.packed)):
            return False
        vector = tiles.vector
        if vector is None:
            return free.vector is None
        if _runs_once_at_hint(one, free.vector) and not _runs_once_at_hint(one, vector):
            return True  # along a batch of one all lanes but one would be idle
        return all(
            access.steps[loop] in (0, 1) and loop not in access.data
            for s in one.cluster.statements
            for loop in [one.cluster.shared[vector][s.name]]
            for access in one.strides[s.name]
            if access.array in copies
        )


def _runs_once_at_hint(one: OpenCluster, loop: int | None) -> bool:
    """Whether a shared loop is over a batch of one, though it is planned for two."""
    if loop is None:
        return False
    s = one.cluster.statements[0]
    return exact_extents(at_sizes(s.domain, hinted))[one.cluster.shared[loop][s.name]] == 1


def _copied_to(cluster: Cluster, arrays: Mapping[str, Array]) -> str | None:
    """The array that a cluster only copies to, or fills with what lies between elements of another.

    Its readers know better how it should lie.
    """
    if len(cluster.statements) > 1:
        return None
    (s,) = cluster.statements
    if s.reduction:
        return None
    if any(load.dynamic for load in s.loads):
        return s.array if _is_between(s, arrays) else None
    if isinstance(s.value, Load):
        return s.array
    read = [k for k, load in enumerate(s.loads) if arrays[load.array].kind != "constant"]
    steps = {step for k in read for column in s.columns[1 + k] for step in column}
    between = None in steps and len({s.loads[k].array for k in read}) == 1
    return s.array if between else None


def _is_between(s: Statement, arrays: Mapping[str, Array]) -> bool:
    """Whether a statement puts together elements of one image, whose places and weights are tables.

    y[i, j] = w[i]*x[k[i], j] + v[i]*x[k[i] + 1, j]
    """
    images = {load.array for load in s.loads if load.dynamic}
    return len(images) == 1 and all(arrays[name].kind != "constant" for name in images)


def store_cluster(
    one: OpenCluster, schedule: Schedule, target: Target
) -> tuple[tuple[StoredCluster, ...], Mapping[str, Array]]:
    """The cluster stored as its schedule wants it, after the copies that pack its operands.

    The arrays that are returned hold those of the copies as well.
    """
    return _store(one, lay_out(one, read_tiles(one, schedule)), schedule, target)


def _store(
    one: OpenCluster, laid: Laid, schedule: Schedule, target: Target
) -> tuple[tuple[StoredCluster, ...], Mapping[str, Array]]:
    copies = [_store_copy(packing, laid, target) for packing in laid.packings]
    names = list_touched(laid.cluster)
    order = read_order(schedule, InitialLoops((laid.cluster,)))
    laid_out = follow_order(laid.cluster, order, laid.arrays, laid.storages)
    storages = {n: laid_out[n] for n in names}
    signature = sign_cluster(laid.cluster, names, laid.arrays) if copies else one.signature
    private = one.private.intersection(names)
    stored = StoredCluster(laid.cluster, schedule, names, storages, private, signature, one.key)
    return (*copies, stored), laid.arrays


def _find_terms(
    copy: Cluster, moves: Mapping[str, tuple[Strides, ...]], laid: Laid
) -> tuple[int, Tile] | None:
    """(lanes, and as many rows as an instruction takes terms in each) of a copy that packs rows.

    Bp[k / 4][j][k mod 4] = B[k][j]        vectors along j, of 4 rows at once
    """
    if laid.tiles.grouped is None:
        return None
    size, (s,) = laid.tiles.grouped.size, copy.statements
    written, read = ([a.steps[loop[s.name]] for loop in copy.shared] for a in moves[s.name])
    lanes = [d for d, steps in enumerate(zip(written, read, strict=True)) if steps == (size, 1)]
    rows = [d for d, step in enumerate(written) if step == 1 and copy.extents[d] >= size]
    if len(lanes) != 1 or len(rows) != 1:
        return None
    width = min(laid.tiles.tile[2], copy.extents[lanes[0]])
    return lanes[0], (rows[0], size, width)


def _find_rows(
    copy: Cluster, vector: int, width: int, moves: Mapping[str, tuple[Strides, ...]]
) -> int | None:
    """The loop along which rows of a panel lie one behind the other in a copy."""
    (s,) = copy.statements
    steps = [moves[s.name][0].steps[loop[s.name]] for loop in copy.shared]
    found = (d for d, step in enumerate(steps) if step == width and copy.extents[d] >= ROWS)
    return next((d for d in found if d != vector), None)


def _store_copy(packing: Packing, laid: Laid, target: Target) -> StoredCluster:
    """The copy that packs an operand, in vectors as wide as a panel to stay inside one."""
    copy, arrays = packing.copy, laid.arrays
    moves = compute_all_strides(copy, arrays, laid.storages)
    vector = choose_vector_loop(copy, moves, target)
    tile: Tile = (None, 1, 1)
    if vector is not None:
        crossing, height, wide = choose_pointwise_tile(copy, vector, moves, arrays, target)
        if laid.tiles.vector is not None:
            wide = min(laid.tiles.tile[2], copy.extents[vector])
        tile = (crossing, height, wide)
    terms = _find_terms(copy, moves, laid)
    if terms is not None:
        vector, tile = terms
    elif vector is not None and tile[0] is None:
        rows = _find_rows(copy, vector, tile[2], moves)
        tile = tile if rows is None else (rows, ROWS, tile[2])
    names = list_touched(copy)
    storages = {n: laid.storages[n] for n in names}
    schedule = schedule_cluster(copy, vector, tile, arrays, storages, target)
    read = [load.array for s in copy.statements for load in s.loads]
    if tile[1] == ROWS and any(arrays[name].bytes > target.l2 for name in read):
        schedule = Schedule((Prefetch(tuple(read)),)) + schedule
    signature = sign_cluster(copy, names, arrays)
    return StoredCluster(copy, schedule, names, storages, frozenset(), signature)
