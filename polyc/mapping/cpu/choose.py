"""The schedule of a cluster on a CPU: by what its iterators index, never by name.

* *contraction*, for reductions with reuse: the vector loop walks one operand with unit step,
  another loop is unrolled so that this operand's registers are used again, and their tile of
  accumulators stays in registers while the reduction loops run inside; where images are small,
  their loops run as one (`contraction/rows_as_one.py`);
* *pointwise*: the same without reduction; only the vector loop is tiled, or, where some accesses
  are across it, a square of two loops that is transposed in registers;
* *transform*, for a group of statements with small loops of their own: these are unrolled, the
  vector loop is the innermost, and what the statements hand each other stays in registers;
* *columns*, for reductions without reuse across a loop with unit step: a strip of it is the tile;
* *rows*: shared outer loops run in parallel, each statement vectorises an inner loop of its own;
* *picked*, for what is written where data says: the loops over updates run around those over
  positions, of which data picks one.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from math import ceil, prod

from polyc.mapping.cpu.contraction.fetching import choose_fetched
from polyc.mapping.cpu.contraction.loop_order import choose_order, choose_row_blocks
from polyc.mapping.cpu.contraction.register_tile import choose_diagonal, find_run
from polyc.mapping.cpu.contraction.rows_as_one import Rows, spread_rows
from polyc.mapping.cpu.strategies.columns import is_by_columns, schedule_columns
from polyc.mapping.cpu.strategies.picked import find_picked, schedule_picked
from polyc.mapping.cpu.strategies.pointwise import choose_blocks, choose_pointwise_order
from polyc.mapping.cpu.strategies.rows import order_fills, schedule_rows
from polyc.mapping.cpu.strategies.tiles import schedule_tiles
from polyc.mapping.reading import Grouped, Tile
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.schedule.cluster import MANY_ITERATIONS, SMALL_WORK, Cluster
from polyc.schedule.directives import Run
from polyc.schedule.initial import InitialLoops
from polyc.schedule.keeping import Pack, Prefetch
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array
from polyc.target.machine import Target


def schedule_cluster(
    cluster: Cluster,
    vector: int | None,
    tile: Tile,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
    packed: Sequence[str] = (),
    order: Sequence[int] = (),
    grouped: Grouped | None = None,
    rows: Rows = (),
) -> Schedule:
    """The schedule by the strategy that fits the cluster.

    vector: the shared loop in SIMD lanes; tile: the register tile; packed: arrays that are read as
    copies; order: of the shared loops, if it is not to be the strategy's own; grouped: the loop of
    a sum that an instruction runs in each lane; rows: shared loops that run as one.
    """
    named = InitialLoops((cluster,))
    before = Schedule((Pack(tuple(packed)),) if packed else ())
    before += order_fills(cluster, named, arrays, storages)
    picked = find_picked(cluster)
    if picked is not None:
        return before + schedule_picked(cluster, named, picked, target)
    loops = tuple(range(len(cluster.shared)))
    if vector is None:
        parallel = count_parallel(cluster, loops, {})
        return before + schedule_rows(cluster, named, parallel, arrays, storages, target)
    unroll, height, width = tile
    if is_by_columns(cluster):
        order = order or (*(d for d in loops if d != vector), vector)
        parallel = count_parallel(cluster, order, {vector: width})
        strip = schedule_columns(cluster, named, order, vector, width, parallel, arrays, target)
        return before + strip
    strides = compute_strides(cluster.statements[-1], arrays, storages)
    in_matrices = grouped is not None and bool(grouped.words)
    run = None if in_matrices else find_run(cluster, vector, unroll, strides[0])
    sizes = {vector: width} | ({} if unroll is None else {unroll: height})
    sizes |= {} if run is None else {run: cluster.extents[run]}
    spread = spread_rows(rows, height, cluster.extents)
    blocks: Table[int, int]
    if any(s.reduction for s in cluster.statements):
        nested = arrays, storages, target
        order = order or choose_order(cluster, loops, vector, sizes | spread, *nested, rows)
        blocks = {}
        if not rows:
            order, blocks = choose_row_blocks(cluster, order, vector, unroll, sizes, arrays, target)
        fetched = choose_fetched(cluster, vector, tile, *nested, order, blocks)
        before += Schedule((Prefetch(fetched),) if fetched else ())
    else:
        order = order or choose_pointwise_order(cluster, loops, sizes, vector, arrays, storages)
        blocks = choose_blocks(cluster, vector, unroll, height, arrays, storages)
    parallel = count_parallel(cluster, order, {**sizes, **blocks, **spread})
    diagonal = (
        None if rows or in_matrices else choose_diagonal(cluster, vector, tile, arrays, target)
    )
    loops_of_tiles = sizes, blocks, vector, unroll, parallel, grouped, diagonal, run, rows
    whole = schedule_tiles(cluster, named, order, *loops_of_tiles)
    return before + whole + (_unroll_own(cluster, named) if cluster.is_group else Schedule())


def count_parallel(cluster: Cluster, order: Sequence[int], sizes: Table[int, int]) -> int:
    """How many leading loops to run on threads: enough for balance, none for little work."""
    if sum(prod(s.estimated_extents) for s in cluster.statements) < SMALL_WORK:
        return 0
    count, iterations = 0, 1
    for d in order:
        if iterations >= 4 * MANY_ITERATIONS:
            break
        count += 1
        iterations *= ceil(cluster.extents[d] / sizes.get(d, 1))
    return count if iterations > 1 else 0


def _unroll_own(cluster: Cluster, named: InitialLoops) -> Schedule:
    """The loops of a transform's statements, written out."""
    own = [loop for s in cluster.statements for loop in named.alone(cluster, s)]
    return Schedule((Run("unroll", named.spell(own)),) if own else ())
