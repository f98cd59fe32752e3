"""Products of matrices in registers of their own: the numbers of NumPy, wherever they are run."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import onnx
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import IllegalSchedule
from polyc.options import Options
from polyc.target.machine import Target
from tests.e2e.test_dot4 import convolution, model_of, run, whole, wrapped
from tests.exact.runs import exactly
from tests.machines import TILES, find_tiles, need, without_tiles
from tests.sampling import sampled, thorough

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


@pytest.mark.parametrize("known", [True, False], ids=["constant", "packed"])
@pytest.mark.parametrize("kind", sampled(KINDS, often=["u8s8"]))
@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
def test_strategies_take_them(target: Target, kind: str, known: bool):
    rng = np.random.default_rng(3)
    x, w = whole(rng, KINDS[kind][0], 70, 192), whole(rng, KINDS[kind][1], 192, 80)
    model, y = run(target, x, w, known)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert any(f"use tile.{kind} " in text for text in model.schedules.values())
    _, plain = run(without_tiles(target), x, w, known)
    np.testing.assert_array_equal(y, plain)


@pytest.mark.parametrize("shape", [(1, 64, 64), (40, 62, 64), (2, 8, 16)], ids=str)
def test_what_they_do_not_suit_is_right_without(shape):
    m, depth, n = shape
    rng = np.random.default_rng(m)
    x, w = whole(rng, np.uint8, m, depth), whole(rng, np.int8, depth, n)
    model, y = run(TILES, x, w, True)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert "PC_TILES" not in model.source


@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernel", "pad", "stride"),
    [(64, 48, 9, 3, 1, 1), thorough(64, 64, 11, 3, 0, 2), thorough(80, 64, 14, 1, 0, 1)],
)
def test_convolutions(target, channels, filters, size, kernel, pad, stride):
    need(target)
    graph, x, wanted = convolution(channels, filters, size, kernel, pad, stride)
    model = polyc.compile(graph, target=target)
    np.testing.assert_array_equal(model(x), wanted)
    assert any("use tile.u8s8 " in text for text in model.schedules.values())


def opened(model: onnx.ModelProto, *names: str | int) -> onnx.ModelProto:
    """The model with these dimensions of its first input, names or numbers."""
    shape = model.graph.input[0].type.tensor_type.shape
    for dim, name in zip(shape.dim, names, strict=True):
        if isinstance(name, str):
            dim.dim_param = name
        else:
            dim.dim_value = name
    return model


@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
def test_rows_of_any_batch_run_as_one(target):
    """What is left of the last tile are products of fewer rows, down to one."""
    need(target)
    rng = np.random.default_rng(11)
    w = whole(rng, np.int8, 64, 80)
    graph = opened(model_of("MatMulInteger", np.zeros((1, 1, 64), np.uint8), w, True), "b", "t", 64)
    model = polyc.compile(graph, target=target, hint={"b": 1, "t": 70})
    (text,) = model.schedules.values()
    assert "collapse b0 i" in text
    assert "use tile.u8s8 " in text
    for b, t in ((1, 70), (31, 1), (5, 3), (2, 32), (1, 1)):
        x = whole(rng, np.uint8, b, t, 64)
        np.testing.assert_array_equal(model(x), wrapped(x, w))


@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
@pytest.mark.parametrize("kernel", [1, thorough(3)])
def test_images_of_any_size(target, kernel):
    need(target)
    rng = np.random.default_rng(kernel)
    x, w = np.zeros((1, 64, 9, 9), np.uint8), whole(rng, np.int8, 64, 64, kernel, kernel)
    graph = model_of("ConvInteger", x, w, True, pads=[kernel // 2] * 4)
    opened(graph, "n", 64, "h", "w")
    model = polyc.compile(graph, target=target, hint={"n": 1, "h": 28, "w": 28})
    plain = polyc.compile(graph, target=without_tiles(target))
    assert any("use tile.u8s8 " in text for text in model.schedules.values())
    for n, height, width in ((1, 14, 14), (2, 1, 1), (1, 3, 31), (3, 5, 9)):
        x = whole(rng, np.uint8, n, 64, height, width)
        np.testing.assert_array_equal(model(x), plain(x))


def test_rows_a_size_apart_are_not_those_of_a_tile():
    """Along h each row is w pixels behind the one before: no number says so."""
    graph, _, _ = convolution(64, 48, 9, 3, 1, 1)
    tile = "use tile.u8s8 product_2.y' product_2.x product_2.o c c'"
    text = f"order n o x y | split y 4 | vector o | split c 4 | sink y' x o c c' | {tile}"
    with pytest.raises(IllegalSchedule):
        polyc.compile(
            opened(graph, "n", 64, "h", "w"), target=TILES, schedule={"product_2_out": text}
        )


ROWS_OF_ROWS = (
    "order o y x | split y 3 | vector o | split c 4 | sink y' x o c c' | "
    "use tile.u8s8 product_2.y' product_2.x product_2.o c c' | keep all at y"
)


@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
@pytest.mark.parametrize("kernel", [1, 3])  # all rows follow each other, or those of an image
def test_rows_of_several_loops(target, kernel):
    need(target)
    rng = np.random.default_rng(kernel)
    x, w = whole(rng, np.uint8, 1, 64, 7, 7), whole(rng, np.int8, 64, 64, kernel, kernel)
    graph = model_of("ConvInteger", x, w, True, pads=[kernel // 2] * 4)
    text = f"pack x | {ROWS_OF_ROWS}" if kernel == 1 else ROWS_OF_ROWS
    given = polyc.compile(graph, target=target, schedule={"product_2_out": text})
    plain = polyc.compile(graph, target=without_tiles(target))
    np.testing.assert_array_equal(given(x), plain(x))
    assert "PC_TILE_PRODUCT(u8i8, " in given.source


def test_panels_are_fetched_ahead():
    rng = np.random.default_rng(7)
    x, w = whole(rng, np.uint8, 96, 1024), whole(rng, np.int8, 1024, 128)
    model, y = run(TILES, x, w, True)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert "prefetch w_centred" in str(model.schedules)
    assert "PC_FETCH(" in model.source
    assert "PC_TILE_LOAD(" in model.source


@pytest.mark.parametrize("target", TARGETS, ids=["loops", "here"])
def test_sums_of_bfloat16(target):
    need(target)
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((48, 128), (128, 64)))
    graph = Graph.of(y=ops.matmul(ops.input("x", x.shape), w))
    model = polyc.compile(graph, target=target, options=Options(precision="bf16"))
    a, b = (v.astype(ml_dtypes.bfloat16).astype(np.float64) for v in (x, w))
    np.testing.assert_allclose(model(x), a @ b, rtol=1e-5, atol=1e-4)
    assert any("use tile.bf16 " in text for text in model.schedules.values())


def test_the_exact_run_agrees():
    graph = Graph.of(y=ops.relu(ops.matmul(ops.input("x", (20, 64)), np.ones((64, 32), "f"))))
    assert exactly(graph, target=TILES, choices={"precision": "bf16"}).agrees


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


@pytest.mark.parametrize(("columns", "rows"), [(16, 4), (32, 2), (64, 1)])
def test_a_product_of_no_use_comes_with_so_many_results(columns, rows):
    rng = np.random.default_rng(0)
    x, w = whole(rng, np.uint8, 56, 256), whole(rng, np.int8, 256, 64)
    model, y = run(TILES, x, w, True, schedule("u8s8", 28, columns, 64))
    np.testing.assert_array_equal(y, wrapped(x, w))
    behind = model.source[model.source.rindex("PC_TILE_STORE") :]
    assert behind.count("PC_TILE_PRODUCT") == 1
    asked = re.findall(r"if \(pc_mod\(\w+, (\d+)\) == 0\) \{\s+PC_TILE_PRODUCT", behind)
    assert asked == ([str(rows)] if rows > 1 else [])


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
