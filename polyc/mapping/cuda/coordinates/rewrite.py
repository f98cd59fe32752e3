"""What a schedule for a GPU says of statements, done to them (`schedule/coordinates.py`).

    join i j as e | cut k as q t v by 32 4 | partial S.t

    S[i, j, k]   ->   S_start[e, t], S[e, q, t, v], S_combine[e, t]

What comes out are clusters like any others, from which the loop tree of the kernel is made; each
directive finds its loops by the names that these have after the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.coordinates.change import free_name, join_shared
from polyc.mapping.cuda.coordinates.digits import cut_digits
from polyc.mapping.cuda.coordinates.partial_sums import split_sum
from polyc.mapping.cuda.coordinates.product_tiles import tile_product
from polyc.mapping.cuda.coordinates.stages import stage_loads
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses
from polyc.names import ISL_WORDS, is_iterator, show
from polyc.promote.local_arrays import LARGEST_SHARED, LARGEST_STACK
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import COORDINATES, Cut, Join, Partial, Stage, Tile
from polyc.schedule.initial import InitialLoop, InitialLoops, Room
from polyc.schedule.keeping import Keep
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell
from polyc.scop.scop import Array, Statement


@dataclass(frozen=True)
class Rewritten:
    """The clusters of a kernel in the coordinates of its schedule.

    arrays: all that they touch; made: those that the schedule has made, each with the array that
    its name begins with; statements_made: likewise, with an array or a statement. room: the extents
    of digits, by statement and iterator.
    """

    clusters: tuple[Cluster, ...]
    arrays: Mapping[str, Array]
    storages: Mapping[str, Storage] = field(repr=False)
    private: frozenset[str]
    made: Mapping[str, str] = field(default_factory=dict)
    statements_made: Mapping[str, str] = field(default_factory=dict)
    room: Room = field(default_factory=dict)

    @cached_property
    def named(self) -> InitialLoops:
        """The loops that directives move."""
        return InitialLoops(self.clusters, counted=True, room=self.room)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for cluster in self.clusters for s in cluster.statements)

    @property
    def touched_private(self) -> frozenset[str]:
        """The arrays that nobody outside of the kernel touches."""
        touched = {name for s in self.statements for name, _, _ in accesses(s)}
        return (self.private | frozenset(self.made)) & touched

    def find(self, name: str) -> list[InitialLoop]:
        """The loops of a name; IllegalSchedule if there are none."""
        found = self.named.find(name)
        if not found:
            there = ", ".join(dict.fromkeys(loop.name for loop in self.named.loops))
            raise IllegalSchedule(f"there is no loop {show(name)} here; there are {there}")
        return found

    def home(self, loop: InitialLoop) -> int:
        """The position of the cluster that a loop is of."""
        name = loop.key[0]
        return next(k for k, c in enumerate(self.clusters) if name in c.names)

    def own(self, position: int) -> frozenset[str]:
        """The private arrays that no other cluster touches."""
        others = (c for k, c in enumerate(self.clusters) if k != position)
        touched = {name for c in others for s in c.statements for name, _, _ in accesses(s)}
        return self.private - touched

    def with_cluster(
        self,
        position: int,
        cluster: Cluster,
        arrays: Mapping[str, tuple[Array, str]],
        statements: Mapping[str, str] | None = None,
    ) -> Rewritten:
        """With another cluster in a place, and new arrays, by name with what each comes from."""
        made = {name: self.made.get(base, base) for name, (_, base) in arrays.items()}
        return replace(
            self,
            clusters=(*self.clusters[:position], cluster, *self.clusters[position + 1 :]),
            arrays={**self.arrays, **{name: array for name, (array, _) in arrays.items()}},
            made={**self.made, **made},
            statements_made={**self.statements_made, **(statements or {})},
        )

    def with_room(self, room: Room) -> Rewritten:
        """With extents of digits."""
        return replace(self, room={**self.room, **room})


def rewrite(start: Rewritten, schedule: Schedule) -> Rewritten:
    """All that a schedule says of statements; IllegalSchedule, which names what cannot be."""
    directives = [d for d in schedule.directives if isinstance(d, COORDINATES)]
    if [*schedule.directives[: len(directives)]] != directives:
        late = next(d for d in reversed(directives))
        raise IllegalSchedule(
            f"{spell(late)}: what rewrites statements stands in front of all that moves their loops"
        )
    largest = LARGEST_STACK if _keeps_by_thread(schedule) else LARGEST_SHARED
    now = start
    for directive in directives:
        try:
            _check_names(directive)
            now = _step(now, directive, largest)
        except IllegalSchedule as error:
            raise IllegalSchedule(f"{spell(directive)}: {error}") from None
    return now


def _keeps_by_thread(schedule: Schedule) -> bool:
    return any(isinstance(d, Keep) and d.space == "stack" for d in schedule.directives)


def _check_names(directive: Join | Cut | Partial | Stage | Tile) -> None:
    """Raise IllegalSchedule for a new loop whose name no set can have."""
    match directive:
        case Join(name=name):
            names: tuple[str, ...] = (name,)
        case Cut(names=names):
            pass
        case Tile(rows, columns, sums):
            names = tuple(name for side in (rows, columns, sums) for name, _ in side.digits)
        case _:
            names = ()
    for name in names:
        if not is_iterator(name):
            raise IllegalSchedule(
                f"{show(name)} cannot name a loop: that is a letter, and letters, digits and _ "
                f"behind it, and none of {', '.join(sorted(ISL_WORDS))}"
            )


def _step(
    now: Rewritten, directive: Join | Cut | Partial | Stage | Tile, largest: int
) -> Rewritten:
    match directive:
        case Join():
            return _join(now, directive, largest)
        case Cut():
            return _cut(now, directive)
        case Partial(loop):
            return _partial(now, loop)
        case Stage():
            return _stage(now, directive)
        case Tile():
            return _tile(now, directive)


def _join(now: Rewritten, directive: Join, largest: int) -> Rewritten:
    loops = [one for name in directive.loops for one in now.find(name)]
    homes = {now.home(loop) for loop in loops} or {0}
    position, cluster = homes.pop(), now.clusters[0]
    if homes:
        raise IllegalSchedule("the loops of one cluster are joined at a time")
    cluster = now.clusters[position]
    shared = [now.named.shared(cluster, d) for d in range(len(cluster.shared))]
    order = [shared.index(loop) for loop in loops if loop in shared]
    if len(order) < len(loops) or sorted(order) != [*range(len(shared))]:
        names = ", ".join(loop.name for loop in shared if loop)
        raise IllegalSchedule(
            f"all loops that statements share are joined, each once; these are {names or 'none'}"
        )
    if not 1 <= directive.multiple <= 1024:
        raise IllegalSchedule("the last loop is made a multiple of 1 to 1024")
    if any(directive.name in s.iterators for s in cluster.statements):
        raise IllegalSchedule(f"there is a loop {show(directive.name)} already; take another name")
    flat, made = join_shared(
        cluster,
        order,
        directive.name,
        now.own(position),
        now.arrays,
        largest,
        directive.multiple,
    )
    named = {new.name: (new, old) for old, new in made.items()}
    return now.with_cluster(position, flat, named)


def _cut(now: Rewritten, directive: Cut) -> Rewritten:
    if len(directive.names) != len(directive.sizes) + 1 or min(directive.sizes) < 1:
        raise IllegalSchedule("there is a size for each name but the first, of at least 1")
    loops = [one for name in directive.loops for one in now.find(name)]
    own: dict[str, list[int]] = {}
    for loop in loops:
        if len(loop.where) > 1 or _is_shared(loop, now):
            raise IllegalSchedule(f"{show(loop.name)} is shared; what is cut is a statement's own")
        name, position = loop.key
        own.setdefault(name, []).append(position)
    for name, positions in own.items():
        if len(set(positions)) < len(positions):
            raise IllegalSchedule(f"a loop of {show(short(name))} is named twice")
    for k, cluster in enumerate(now.clusters):
        if own.keys() & cluster.names:
            new = cut_digits(cluster, own, directive.names, directive.sizes)
            now = now.with_cluster(k, new, {})
    digits = [*zip(directive.names[1:], directive.sizes, strict=True)]
    return now.with_room({(s, name): size for s in own for name, size in digits})


def _is_shared(loop: InitialLoop, now: Rewritten) -> bool:
    name, position = loop.key
    cluster = now.clusters[now.home(loop)]
    return any(where[name] == position for where in cluster.shared)


def _partial(now: Rewritten, name: str) -> Rewritten:
    loops = now.find(name)
    if len(loops) > 1 or _is_shared(loops[0], now):
        raise IllegalSchedule("say the loop of which statement, one of its own, as in partial S.t")
    (loop,) = loops
    k, (statement, position) = now.home(loop), loop.key
    array = now.clusters[k].statement(statement).array
    if array not in now.touched_private:
        raise IllegalSchedule(f"{show(array)} is no array that this kernel has to itself")
    parts = free_name(f"{array}_parts", now.arrays)
    cluster, new = split_sum(
        now.clusters[k], statement, position, loop.extent or 1, parts, now.arrays
    )
    root = now.statements_made.get(statement, statement)
    statements = {f"{statement}{suffix}": root for suffix in ("_start", "_combine")}
    whole = now.with_cluster(k, cluster, {parts: (new, array)}, statements)
    return whole.with_room({(s, loop.name): new.shape[-1] for s in statements})


def _stage(now: Rewritten, directive: Stage) -> Rewritten:
    (cluster,) = _only(now)
    rows, columns = (_own_place(now, name) for name in (directive.rows, directive.columns))
    staged, made = stage_loads(cluster, rows, columns, directive.arrays, now.arrays, now.storages)
    (target,) = {s.array for s in cluster.statements}
    arrays = {name: (array, target) for name, array in made.items()}
    statements = {f"S_{name}": target for name in made}
    return now.with_cluster(0, staged, arrays, statements)


def _own_place(now: Rewritten, name: str) -> int:
    """The position of a loop among the iterators of the only statement."""
    (loop,) = now.find(name)
    return loop.key[1]


def _only(now: Rewritten) -> Sequence[Cluster]:
    if len(now.clusters) > 1 or len(now.clusters[0].statements) > 1:
        raise IllegalSchedule("what is staged is read by a kernel of one statement")
    return now.clusters


def _tile(now: Rewritten, directive: Tile) -> Rewritten:
    sides = (directive.rows, directive.columns, directive.sums)
    said = (*(side.loops for side in sides), directive.batch)
    loops = [[one for name in names for one in now.find(name)] for names in said]
    homes = {now.home(loop) for side in loops for loop in side}
    if len(homes) > 1:
        raise IllegalSchedule("these are loops of several products; say of which, as in S.i")
    (position,) = homes
    cluster = now.clusters[position]
    places = [[loop.key for loop in side] for side in loops]
    tiled, base = tile_product(cluster, directive, places, now.private, now.arrays)
    arrays = {name: (array, base) for name, array in tiled.arrays.items()}
    statements = {s.name: base for s in (tiled.left, tiled.right)}
    whole = now.with_cluster(position, tiled.cluster, arrays, statements)
    digits = [digit for side in sides for digit in side.digits]
    return whole.with_room(
        {(s.name, name): size for s in tiled.cluster.statements for name, size in digits}
    )
