"""Products by threads alone: each has a few rows and columns of its block's tile in registers.

A thread's rows are runs of four, and so are its columns: it reads shared memory in vectors of
four, of which those of neighbouring threads are neighbours.

    row  =  4 threads_down rm + 16 wm + 8 lm + 4 pm + im        run, thread, place in the run
    column  =  4 threads_across rn + 32 wn + 8 ln + 4 pn + jn
    lane  =  16 lm + 4 ln + 2 pm + pn

Shared memory answers loads of 16 bytes a quarter of a warp at a time; and half a warp at a time if
each lane's neighbour, or each lane's next but one, loads the same. So the lowest bit of a lane is
one of its column, and the next one of its row. On an H200 a product of float32 took 1.03 times as
long with lanes of 4 x 8 in plain order: 554 million answers of shared memory in place of 419.
"""

from __future__ import annotations

from polyc.mapping.cuda.coordinates.cut_tiles import Digits, Tile
from polyc.mapping.cuda.tiles import Shape

RUN = 4
"""Rows, and columns, of a thread that are neighbours: one access of 128 bits to shared memory."""

DEPTH = 16


def _shape(rows: int, columns: int, each_rows: int, each_columns: int) -> Shape:
    """Tiles of rows x columns, of which a thread has each_rows x each_columns."""
    down, across = rows // each_rows, columns // each_columns
    tile = Tile(
        Digits(("rm", "wm", "lm", "pm", "im"), (each_rows // RUN, down // 4, 2, 2, RUN)),
        Digits(("rn", "wn", "ln", "pn", "jn"), (each_columns // RUN, across // 8, 4, 2, RUN)),
        Digits(("ki",), (DEPTH,)),
        ("wm", "wn", "lm", "ln", "pm", "pn", "rm", "im", "rn", "jn"),
    )
    own = ("rm", "im", "rn", "jn")
    # For each step of the sum a thread issues a multiply-add for each of its results, loads its
    # rows and columns in fours, which takes two slots, and copies its part of the tiles.
    results = each_rows * each_columns
    copies = 3 * (rows + columns) / (down * across)
    return Shape(
        tile,
        ("wm", "wn"),
        ("lm", "ln", "pm", "pn"),
        own,
        ("ki",),
        own,
        None,
        (results + (each_rows + each_columns) / 2 + copies) / results,
    )


THREAD_SHAPES = (
    _shape(128, 256, 8, 16),
    _shape(128, 128, 8, 8),
    _shape(128, 64, 8, 8),
    _shape(64, 128, 8, 8),
    _shape(64, 64, 8, 4),
    _shape(32, 128, 4, 8),
    _shape(128, 32, 8, 4),
    _shape(32, 64, 4, 4),
    _shape(64, 32, 4, 4),
    _shape(32, 32, 4, 4),
)

ROW_SHAPES = (
    _shape(16, 256, 4, 4),
    _shape(16, 128, 4, 4),
    _shape(16, 64, 4, 4),
    _shape(32, 256, 4, 8),
    _shape(32, 128, 4, 4),
    _shape(64, 256, 8, 8),
    _shape(64, 128, 8, 4),
    _shape(64, 64, 4, 4),
)
"""For blocks that take rows through several products: more threads, as such blocks are few."""
