"""Products of matrices in registers of their own: the numbers of NumPy, wherever they are run."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.errors import IllegalSchedule
from polyc.target.machine import Target
from tests.e2e.test_dot4 import run, whole, wrapped
from tests.machines import TILES, find_tiles
from tests.sampling import thorough

TARGETS = [TILES, find_tiles()]
KINDS = {
    "u8s8": (np.uint8, np.int8),
    "s8u8": (np.int8, np.uint8),
    "s8s8": (np.int8, np.int8),
}


def schedule(kind: str, rows: int, columns: int, depth: int) -> str:
    return (
        f"order j i | split i {rows} | split j {columns} | vector j' | split k {depth} | "
        "split k' 4 | sink i' j' k' k'' | "
        f"use tile.{kind} product_2.i' product_2.j' k' k'' | parallel j i | keep all at i"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((56, 128, 64), (28, 32, 64)),
        ((41, 100, 50), (20, 32, 64)),  # the last tile has one row; 36 bytes of depth, 18 columns
        *(
            thorough(*case)
            for case in (
                ((33, 67, 48), (32, 48, 32)),  # and a word of three terms
                (
                    (140, 256, 96),
                    (70, 48, 128),
                ),  # several groups of sums, and words for two products
                ((40, 80, 17), (5, 16, 80)),  # 20 words are 10 and 10
            )
        ),
    ],
    ids=str,
)
def test_products(target: Target, kind: str, shape, tile):
    m, depth, n = shape
    rng = np.random.default_rng(m)
    x, w = whole(rng, KINDS[kind][0], m, depth), whole(rng, KINDS[kind][1], depth, n)
    model, y = run(target, x, w, True, schedule(kind, *tile))
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert f"PC_TILE_PRODUCT({kind.replace('s', 'i')}, " in model.source


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_on_several_threads(threads):
    rng = np.random.default_rng(threads)
    x, w = whole(rng, np.uint8, 130, 192), whole(rng, np.int8, 192, 64)
    _, y = run(find_tiles(), x, w, True, schedule("u8s8", 26, 32, 64), threads=threads)
    np.testing.assert_array_equal(y, wrapped(x, w))


def test_sums_stay_in_registers_while_their_depth_is_walked():
    rng = np.random.default_rng(0)
    x, w = whole(rng, np.uint8, 56, 256), whole(rng, np.int8, 256, 32)
    model, _ = run(TILES, x, w, True, schedule("u8s8", 28, 32, 64))
    source = model.source
    walk = source.index("PC_TILE_PRODUCT")
    assert source.rindex("PC_TILE_ZERO", 0, walk) < source.rindex("for (", 0, walk)
    assert source.index("PC_TILE_STORE") > source.index("}", walk)
    assert source.count("PC_TILE_ZERO") == source.count("PC_TILE_STORE")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            schedule("u8s8", 28, 32, 64).replace("split k' 4", "split k' 8"),
            "steps of its loop c. are 1, 0, 8 in the result and the factors",
        ),
        (schedule("s8s8", 28, 32, 64), "what it computes is another expression"),
        (
            "order j i | split i 28 | split j 32 | vector j' | split k 4 | sink i' j' k' | "
            "use tile.u8s8 product_2.i' k' | keep all at i",
            "an instruction is the innermost loop, and j' is inside of it",
        ),
    ],
)
def test_what_is_no_such_product_is_refused(text, said):
    rng = np.random.default_rng(1)
    x, w = whole(rng, np.uint8, 56, 128), whole(rng, np.int8, 128, 64)
    with pytest.raises(IllegalSchedule, match=said):
        run(TILES, x, w, True, text)
