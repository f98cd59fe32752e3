"""Rows: what a cluster does with all of a row at a time, such as softmax and norms.

    block   floor(e/8)                    8 rows at a time, a warp each; long rows have a block each
    └ shared
      ├ start    thread e mod 8, t         parts[e, t] = 0
      ├ update   thread e mod 8, t ─ …     parts[e, t] += x[e, j]      j = 128 k + 4 t + v
      ├ combine  thread e mod 8 ─ t        total[e] += parts[e, t]     by all threads of the row
      ├ finish   thread e mod 8            mean[e] = total[e] / n      by each, in its own registers
      └ rest     thread e mod 8, t ─ …     y[e, j] = x[e, j] - mean[e]

The shared loops are joined into one over rows, and the loops of each statement into one over its
elements, which threads walk side by side in vectors. So a thread meets the same elements in every
statement, and what is kept of a row lies in its registers. A sum of n elements becomes two: one for
each thread, and one over threads, which they compute together (`combine`).
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

import islpy as isl

from polyc.loopnest.nodes import LoopKind
from polyc.mapping.cuda.coordinates import change_coordinates, digits, join_shared
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.mapping.cuda.threads import THREADS, by_stride
from polyc.mapping.layout import accesses, compute_strides
from polyc.memory.storage import Storage
from polyc.poly.affine import coefficients, estimated_extents, outputs
from polyc.promote.local_arrays import LARGEST_SHARED
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Const, Load
from polyc.scop.scop import Array, Statement, identity
from polyc.target.cuda import CudaTarget

SHORTEST = 32
"""Elements of a row from which on a warp shares it."""

FEW_VECTORS = 8
"""Vectors of a row that a thread takes before the row gets more threads."""

OWN_ELEMENTS = 64
"""Elements up to which a thread keeps its part of a row in registers, its loops written out."""


def suits_rows(
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
) -> bool:
    """Whether threads can share the rows of a cluster, and that is better than a row a thread."""
    own = [s for s in cluster.statements if _own(s, cluster)]
    if not own or max(_length(s, cluster) for s in own) < SHORTEST:
        return False
    if not can_share_rows(cluster, private, arrays):
        return False
    longest = max(own, key=lambda s: _length(s, cluster))
    strides = compute_strides(longest, arrays, storages)
    along = any(a.steps[p] == 1 for a in strides for p in _own(longest, cluster))
    rows = prod(cluster.extents)
    return along or rows < THREADS * target.multiprocessors // 4


def can_share_rows(cluster: Cluster, private: frozenset[str], arrays: Table[str, Array]) -> bool:
    """Whether threads may share a row: what they do with it is in any order, or a sum."""
    own = [s for s in cluster.statements if _own(s, cluster)]
    return not any(
        _is_serial(s, cluster) or not _can_combine(s, cluster, private, arrays) for s in own
    )


def _own(s: Statement, cluster: Cluster) -> list[int]:
    """The iterators of a statement that it does not share."""
    shared = cluster.shared_positions(s)
    return [p for p in range(len(s.iterators)) if p not in shared]


def _length(s: Statement, cluster: Cluster) -> int:
    """Elements that a statement walks in a row."""
    sizes = estimated_extents(s.domain)
    return prod(sizes[p] for p in _own(s, cluster))


def _is_serial(s: Statement, cluster: Cluster) -> bool:
    """Whether a statement reads what it has written itself, element by element."""
    return s.reduction is None and any(load.array == s.array for load in s.loads)


def _can_combine(
    s: Statement, cluster: Cluster, private: frozenset[str], arrays: Table[str, Array]
) -> bool:
    """Whether a statement is no reduction, or one of a row to one element of a private array."""
    if s.reduction is None:
        return True
    if s.array not in private or arrays[s.array].dtype.itemsize not in (4, 8):
        return False
    return not any(coefficients(f)[p] for f in outputs(s.write) for p in _own(s, cluster))


@dataclass(frozen=True)
class Row:
    """How threads share a row: `threads` of them, each vectors of `lanes`; `rows` a block."""

    threads: int
    lanes: int
    rows: int

    @property
    def step(self) -> int:
        """Elements that the threads take at a time."""
        return self.threads * self.lanes

    def around(self, e: str) -> list[Loop]:
        """The loop over the rows of a block, around what threads do with one."""
        return [Loop("thread", f"{e} mod {self.rows}", self.rows, self.threads)] * (self.rows > 1)

    def walk(self, s: Statement) -> list[Loop]:
        """Loops over the elements of a row, whose places a statement has as [e, k, t, v]."""
        _, k, t, v = s.iterators
        steps = estimated_extents(s.domain)[1]
        kind: LoopKind = "unroll" if steps * self.lanes <= OWN_ELEMENTS else "sequential"
        return [
            Loop("thread", t, self.threads),
            Loop(kind, k),
            *([Loop("vector", v)] if self.lanes > 1 else []),
        ]


def map_rows(
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
) -> Mapped:
    """The tree of a cluster that works on rows."""
    order = by_stride(cluster, arrays, storages)
    flat, made = join_shared(cluster, order, private, arrays, LARGEST_SHARED)
    known = {**arrays, **made}
    sizes = [estimated_extents(s.domain) for s in flat.statements]
    count, length = max(n for n, *_ in sizes), max(prod(own) for _, *own in sizes)
    row = choose_row(count, length, flat, known, target)
    e = flat.statements[0].iterators[0]
    parts, more = share_rows(flat.statements, row, known, storages)
    made |= more
    statements = tuple(s for part in parts for s in part.statements)
    whole = Cluster(statements, ({s.name: 0 for s in statements},), has_reuse=False)
    block = Loop("block", f"floor({e}/{row.rows})" if row.rows > 1 else e)
    each = f"{row.rows} rows a block" if row.rows > 1 else "a row a block"
    return Mapped(
        whole,
        made,
        private_of(whole, private, made),
        build_tree(Part(statements, [block], "shared", parts)),
        row.threads * row.rows,
        f"rows: {count} of {length}, {each}, {row.threads} threads a row, vector {row.lanes}",
    )


def share_rows(
    statements: Sequence[Statement],
    row: Row,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> tuple[list[Part], dict[str, Array]]:
    """(what threads do with `row.rows` rows at a time, arrays of parts of sums).

    The statements' first iterator counts rows, the others are elements of a row.
    """
    parts: list[Part] = []
    known, made = dict(arrays), {}
    for s in statements:
        e = s.iterators[0]
        if len(s.iterators) == 1:
            parts.append(Part([s], row.around(e)))
            continue
        s = _cut(s, row, known, storages)
        if s.reduction is None:
            parts.append(Part([s], [*row.around(e), *row.walk(s)]))
        else:
            array, new = _split(s, row, known)
            known[array.name] = made[array.name] = array
            parts += [Part([x], [*row.around(e), *loops]) for x, loops in new]
    return parts, made


def choose_row(
    count: int, length: int, flat: Cluster, arrays: Table[str, Array], target: CudaTarget
) -> Row:
    """A warp a row, or more if it is long, or if there are too few rows to fill the device."""
    lanes = choose_lanes(length, flat.statements, arrays, target)
    threads = target.warp
    vectors = ceil(length / lanes)
    enough = THREADS * target.multiprocessors
    while threads < 1024 and vectors > threads * (FEW_VECTORS if count * threads >= enough else 1):
        threads *= 2
    alone = threads > target.warp or count * threads < enough
    return Row(threads, lanes, 1 if alone else THREADS // threads)


def choose_lanes(
    length: int, statements: Sequence[Statement], arrays: Table[str, Array], target: CudaTarget
) -> int:
    """Elements of a row that a thread takes at once: whole accesses, of all types."""
    types = {arrays[name].dtype for s in statements for name, _, _ in accesses(s)}
    lanes = min(map(target.lanes, types))
    while lanes > 1 and length % lanes:
        lanes //= 2
    return lanes


def _cut(
    s: Statement, row: Row, arrays: Table[str, Array], storages: Table[str, Storage]
) -> Statement:
    """The statement as S[e, k, t, v]: an element's place in its row, for its own iterators."""
    own = list(range(1, len(s.iterators)))
    steps = compute_strides(s, arrays, storages)
    own.sort(key=lambda p: -max(abs(a.steps[p] or 0) for a in steps))
    sizes = estimated_extents(s.domain)
    extents = [sizes[p] for p in own]
    e, k, t, v = s.iterators[0], *(_fresh(s, name) for name in "ktv")
    place = f"({row.step}*{k} + {row.lanes}*{t} + {v})"
    formulas = [e, *s.iterators[1:]]
    for p, digit in zip(own, digits(place, extents), strict=True):
        formulas[p] = digit
    length = prod(extents)
    bounds = (
        f"0 <= {k} < {ceil(length / row.step)} and 0 <= {t} < {row.threads} "
        f"and 0 <= {v} < {row.lanes} and {place} < {length}"
    )
    return change_coordinates(s, [e, k, t, v], formulas, bounds)


def _fresh(s: Statement, name: str) -> str:
    while name in s.iterators:
        name += "_"
    return name


def _split(
    s: Statement, row: Row, arrays: Table[str, Array]
) -> tuple[Array, list[tuple[Statement, list[Loop]]]]:
    """A sum over a row as one for each thread, and one over threads.

    total[e] += x[e, k, t, v]  ->  parts[e, t] = 0;  parts[e, t] += x[e, k, t, v];
                                   total[e] += parts[e, t]
    """
    assert s.reduction is not None
    e, k, t, v = s.iterators
    count = estimated_extents(s.domain)[0]
    total, name = arrays[s.array], f"{s.array}_parts"
    while name in arrays:
        name += "_"
    parts = Array(name, total.dtype, (count, row.threads), "temporary")
    start, combine = f"{s.name}_start", f"{s.name}_combine"

    def place(name: str, iterators: str) -> isl.PwMultiAff:
        return isl.PwMultiAff(f"{{ {name}[{iterators}] -> {parts.name}[{e}, {t}] }}")

    def on_threads(name: str) -> Statement:
        # S -> T: all threads, for each row that there is
        on = isl.Map(f"{{ {s.name}[{e}, k, p, v] -> {name}[{e}, {t}] : 0 <= {t} < {row.threads} }}")
        domain = s.domain.apply(on).coalesce().set_dim_name(isl.dim_type.set, 0, e)
        domain = domain.set_dim_name(isl.dim_type.set, 1, t)
        return replace(s, name=name, domain=domain, iterators=(e, t))

    neutral = Const(identity(s.reduction, total.dtype), total.dtype)
    first = isl.PwMultiAff(f"{{ {combine}[{e}, {t}] -> {s.name}[{e}, 0, 0, 0] }}")
    begun = replace(
        on_threads(start),
        array=parts.name,
        write=place(start, f"{e}, {t}"),
        value=neutral,
        reduction=None,
    )
    update = replace(s, array=parts.name, write=place(s.name, f"{e}, {k}, {t}, {v}"))
    combined = replace(
        on_threads(combine),
        write=s.write.pullback_pw_multi_aff(first),
        value=Load(parts.name, place(combine, f"{e}, {t}"), total.dtype),
    )
    return parts, [
        (begun, [Loop("thread", t, row.threads)]),
        (update, row.walk(s)),
        (combined, [Loop("combine", t, row.threads)]),
    ]
