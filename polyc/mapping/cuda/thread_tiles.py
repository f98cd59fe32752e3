"""Products by threads alone: each has a few rows and columns of its block's tile in registers.

A thread's rows are runs of four, and so are its columns: it reads shared memory in vectors of
four, of which those of neighbouring threads are neighbours.

    row  =  4 threads_down rm + 4 tm + im        run, thread, place in the run
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
        Digits(("rm", "tm", "im"), (each_rows // RUN, down, RUN)),
        Digits(("rn", "tn", "jn"), (each_columns // RUN, across, RUN)),
        Digits(("ki",), (DEPTH,)),
        ("tm", "tn", "rm", "im", "rn", "jn"),
    )
    own = ("rm", "im", "rn", "jn")
    # For each step of the sum a thread issues a multiply-add for each of its results, loads its
    # rows and columns in fours, which takes two slots, and copies its part of the tiles.
    results = each_rows * each_columns
    copies = 3 * (rows + columns) / (down * across)
    return Shape(
        tile,
        (),
        ("tm", "tn"),
        own,
        ("ki",),
        own,
        None,
        (results + (each_rows + each_columns) / 2 + copies) / results,
    )


THREAD_SHAPES = (
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
