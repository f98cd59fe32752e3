"""Where the vector loop stands among the tile loops, by what has to be fetched again."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from polyc.mapping.cpu.contraction.loop_order import choose_order, choose_row_blocks
from polyc.memory.storage import Storage, permuted, row_major
from polyc.schedule.cluster import find_clusters
from polyc.scop.expr import call
from polyc.scop.scop import Array, Scop
from polyc.target.machine import Target
from tests.analysis.nests import ZERO, array, conv_scop, load, matmul_scop, scop, statement
from tests.mapping.stages import AVX512


def batched_scop(b: int, m: int, n: int, k: int) -> Scop:
    """Y[b] = X[b] W[b]: both operands move with the batch."""
    product = call("mul", load("{ S[b,i,j,k] -> X[b,i,k] }"), load("{ S[b,i,j,k] -> W[b,k,j] }"))
    box = f"0<=b<{b} and 0<=i<{m} and 0<=j<{n}"
    return scop(
        [
            array("X", [b, m, k], "input"),
            array("W", [b, k, n], "constant"),
            array("acc", [b, m, n], "temporary"),
            array("Y", [b, m, n], "output"),
        ],
        statement(f"{{ Z[b,i,j] : {box} }}", "{ Z[b,i,j] -> acc[b,i,j] }", ZERO),
        statement(
            f"{{ S[b,i,j,k] : {box} and 0<=k<{k} }}", "{ S[b,i,j,k] -> acc[b,i,j] }", product, "add"
        ),
        statement(
            f"{{ T[b,i,j] : {box} }}",
            "{ T[b,i,j] -> Y[b,i,j] }",
            load("{ T[b,i,j] -> acc[b,i,j] }"),
        ),
    )


def channels_last(of: Array) -> Storage:
    """Images with their channels innermost; anything else row-major."""
    return permuted(of, (0, 2, 3, 1)) if len(of.shape) == 4 else row_major(of)


def grouped_scop(groups: int, channels: int, size: int) -> Scop:
    """A 1x1 convolution of so many channels a group."""
    box = f"0<=n<1 and 0<=g<{groups} and 0<=o<{channels} and 0<=y<{size} and 0<=x<{size}"
    member = f"{channels} g + o"
    product = call(
        "mul",
        load(f"{{ S[n,g,o,y,x,c] -> X[n,{channels} g + c,y,x] }}"),
        load(f"{{ S[n,g,o,y,x,c] -> W[{member},c] }}"),
    )
    image = [1, groups * channels, size, size]
    return scop(
        [
            array("X", image, "input"),
            array("W", [groups * channels, channels], "constant"),
            array("acc", [1, groups, channels, size, size], "temporary"),
            array("Y", image, "output"),
        ],
        statement(f"{{ Z[n,g,o,y,x] : {box} }}", "{ Z[n,g,o,y,x] -> acc[n,g,o,y,x] }", ZERO),
        statement(
            f"{{ S[n,g,o,y,x,c] : {box} and 0<=c<{channels} }}",
            "{ S[n,g,o,y,x,c] -> acc[n,g,o,y,x] }",
            product,
            "add",
        ),
        statement(
            f"{{ T[n,g,o,y,x] : {box} }}",
            f"{{ T[n,g,o,y,x] -> Y[n,{member},y,x] }}",
            load("{ T[n,g,o,y,x] -> acc[n,g,o,y,x] }"),
        ),
    )


def order(of: Scop, vector: str, tiles: dict[str, int], target: Target = AVX512) -> str:
    """The chosen order as the last statement's iterators, as in "b j i"."""
    (cluster,), _ = find_clusters(of, target)
    last = cluster.statements[-1]
    loops = [last.iterators[loop[last.name]] for loop in cluster.shared]
    sizes = {loops.index(name): size for name, size in tiles.items()}
    stored = {n: channels_last(a) if n == "Y" else row_major(a) for n, a in of.arrays.items()}
    at = loops.index(vector)
    chosen = choose_order(cluster, range(len(loops)), at, sizes, of.arrays, stored, target)
    return " ".join(loops[d] for d in chosen)


def test_panels_of_large_weights_are_read_once():
    assert order(matmul_scop(128, 3072, 768), "j", {"j": 48, "i": 9}) == "j i"


def test_tiles_of_bytes_share_a_line_with_their_neighbours():
    """Large weights are read once for results of bytes too: a tile is less than a line there."""
    of = matmul_scop(49, 512, 4608)
    bytes_ = replace(of.arrays["Y"], dtype=np.dtype(np.uint8))
    of = replace(of, arrays={**of.arrays, "Y": bytes_})
    assert order(of, "j", {"j": 16, "i": 5}) == "j i"
    assert order(of, "j", {"j": 96, "i": 5}) == "i j"

    def moves(statement):  # X[i, k] becomes X[i, k + j], which has a line of its own to each tile
        if not statement.reduction:
            return statement
        value = call("mul", load("{ S[i,j,k] -> X[i,k+j] }"), load("{ S[i,j,k] -> W[k,j] }"))
        return replace(statement, value=value)

    assert order(replace(of, statements=tuple(map(moves, of.statements))), "j", {"j": 16}) == "i j"


def test_with_few_columns_rows_are_read_once():
    # 16384 rows of 1 KiB by 2 panels of 32 KiB: the panels stay in the second-level cache
    assert order(matmul_scop(16384, 64, 256), "j", {"j": 32, "i": 14}) == "i j"


def test_a_large_batch_is_outermost():
    # all of X is beyond the cache; one matrix of it fits
    assert order(batched_scop(36, 784, 128, 128), "j", {"j": 32, "i": 14}) == "b j i"


@pytest.mark.parametrize(
    ("channels", "size", "expected"), [(64, 112, "n y o x"), (256, 14, "n o y x")]
)
def test_large_images_are_walked_once_and_small_ones_once_a_panel(
    channels: int, size: int, expected: str
):
    of = conv_scop(256, size, size, channels, 3)
    assert order(of, "o", {"o": 32, "x": 14}) == expected


@pytest.mark.parametrize(("channels", "expected"), [(32, "n g o y x"), (28, "n y g o x")])
def test_threads_do_not_share_out_rows_that_are_not_cut_at_cache_lines(
    channels: int, expected: str
):
    assert order(grouped_scop(4, channels, 28), "o", {"o": channels, "x": 14}) == expected


@pytest.mark.parametrize(
    ("words", "cores", "expected"),
    [(50257, 8, "j i"), (1001, 8, "i j"), (1001, 2, "j i"), (333, 2, "j i"), (100, 2, "i j")],
)
def test_a_row_of_many_tiles_a_core_is_shared_out_however_it_is_cut(words, cores, expected):
    of, target = matmul_scop(128, words, 768), replace(AVX512, cores=cores)
    assert order(of, "j", {"j": 48, "i": 9}, target) == expected


def blocked(of: Scop, first: str, target: Target) -> tuple[str, dict[str, int]]:
    """The order with blocks of rows, if that has them, and how many; tiles are 8 x 48."""
    (cluster,), _ = find_clusters(of, target)
    loops = [cluster.statements[-1].iterators[p["T"]] for p in cluster.shared]
    given = [loops.index(name) for name in first.split()]
    i, j = loops.index("i"), loops.index("j")
    sizes = {i: 8, j: 48}
    chosen, blocks = choose_row_blocks(cluster, given, j, i, sizes, of.arrays, target)
    return " ".join(loops[d] for d in chosen), {loops[d]: size for d, size in blocks.items()}


SLOW = replace(AVX512, l3=260 << 20, rates=replace(AVX512.rates, l3=18e9, read=18e9))
"""As an Emerald Rapids that has been measured."""


@pytest.mark.parametrize("first", ["j i", "i j"])
def test_what_would_pass_by_from_far_meets_a_block_of_rows(first):
    """2048 x 2048: all of one operand comes from beyond the second-level cache for each panel of
    the other. A block and a panel fit in 1.5 MB, and no block of twice as many rows does."""
    chosen, blocks = blocked(matmul_scop(2048, 2048, 2048), first, SLOW)
    assert chosen == "i j"
    assert blocks == {"i": 128}
    assert 4 * 2048 * (128 + 48 + 128 * 48 / 2048) <= 0.75 * SLOW.l2 < 4 * 2048 * (256 + 48)


@pytest.mark.parametrize(("rows", "expected"), [(197, 104), (400, 136), (1000, 128)])
def test_the_last_block_of_rows_is_as_large_as_the_others(rows, expected):
    """197 rows are blocks of 104 and 93, and not two of 96, for five more all passes by again."""
    target = replace(SLOW, l2=1 << 20)
    chosen, blocks = blocked(matmul_scop(rows, 3072, 1024), "i j", target)
    assert (chosen, blocks) == ("i j", {"i": expected})
    assert rows > (ceil(rows / expected) - 0.2) * expected


def test_what_stays_near_is_not_blocked():
    assert blocked(matmul_scop(256, 256, 256), "j i", SLOW) == ("j i", {})
    assert blocked(matmul_scop(384, 1024, 512), "j i", AVX512) == ("j i", {})
    assert blocked(matmul_scop(7, 4096, 4096), "j i", SLOW) == ("j i", {})


def test_what_leaves_the_third_level_is_blocked_for_it():
    chosen, blocks = blocked(matmul_scop(4096, 4096, 2048), "j i", replace(AVX512, l3=16 << 20))
    assert chosen == "i j"
    assert 64 <= blocks["i"] <= 1024


def test_rows_are_not_taken_out_of_other_loops():
    """Between the panels and the rows of a tile there are the rows of the image."""
    of = conv_scop(256, 14, 14, 256, 3)
    (cluster,), _ = find_clusters(of, SLOW)
    loops = list(range(len(cluster.shared)))
    names = [
        cluster.statements[-1].iterators[p[cluster.statements[-1].name]] for p in cluster.shared
    ]
    o, x = names.index("o"), names.index("x")
    given = [o, *(d for d in loops if d not in (o, x)), x]
    chosen = choose_row_blocks(cluster, given, o, x, {o: 32, x: 7}, of.arrays, SLOW)
    assert chosen == (tuple(given), {})


def test_a_loop_of_one_iteration_changes_nothing():
    assert order(matmul_scop(1, 4096, 4096), "j", {"j": 64}) == "i j"
