"""Strategies on clusters from literals: tiles fit, trees are legal, results agree."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.loopnest.nodes import Block, For, walk_nodes
from polyc.mapping.cpu.contraction.register_tile import choose_register_tile
from polyc.mapping.cpu.contraction.rows_as_one import list_rows_as_one
from polyc.memory.storage import row_major
from polyc.memory.strides import compute_strides
from polyc.poly.show import show_tree
from polyc.schedule.cluster import SMALL_WORK, find_clusters
from polyc.scop.expr import Call, Const, call
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from tests.analysis.nests import (
    F32,
    ZERO,
    array,
    conv_scop,
    load,
    matmul_scop,
    scop,
    softmax_scop,
    statement,
)
from tests.mapping.stages import AVX2, AVX512, TARGETS, check, compile_stages
from tests.sampling import sampled, thorough


def loops(block: Block, kind: str) -> list[For]:
    return [n for n in walk_nodes(block) if isinstance(n, For) and n.kind == kind]


def add(columns: int) -> Scop:
    value = Call("add", (load("{ P[i, j] -> X[i, j] }"), load("{ P[i, j] -> B[j] }")), F32)
    ij = f"0 <= i < 5 and 0 <= j < {columns}"
    return scop(
        [
            array("X", [5, columns], "input"),
            array("B", [columns], "constant"),
            array("Y", [5, columns], "output"),
        ],
        statement(f"{{ P[i, j] : {ij} }}", "{ P[i, j] -> Y[i, j] }", value),
    )


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.isa)
@pytest.mark.parametrize("size", [(1, 1, 1), (3, 17, 5), thorough((5, 40, 7)), (7, 33, 3)])
def test_matmuls(size, target):
    stages = check(matmul_scop(*size), target)
    assert "acc" in stages.promoted


@pytest.mark.parametrize("target", sampled(TARGETS, often=[AVX2]), ids=lambda t: t.isa)
@pytest.mark.parametrize("size", [(20, 3, 5, 3, 3), (1, 4, 9, 2, 1), (17, 1, 1, 5, 1)])
def test_convolutions(size, target):
    check(conv_scop(*size), target)


@pytest.mark.parametrize("size", [(1, 1), (3, 37), (6, 16)])
def test_softmax_keeps_its_row_to_itself(size):
    stages = check(softmax_scop(*size), rtol=1e-5)
    assert set(stages.promoted) == {"M", "D", "N"}


@pytest.mark.parametrize("columns", [1, 15, 32, 45])
def test_pointwise(columns):
    check(add(columns))


def test_the_tree_of_a_contraction():
    stages = compile_stages(matmul_scop(64, 64, 64))
    lines = [line.strip("└├│ ") for line in show_tree(stages.tree).splitlines()]
    (mark,) = [n for n, line in enumerate(lines) if line.startswith("mark  scope")]
    below = lines[mark:]
    filters = [n for n, line in enumerate(below) if line.startswith("filter")]
    assert [below[n] for n in filters] == ["filter  Z", "filter  S", "filter  T"]
    update = below[filters[1] : filters[2]]
    assert update[1].startswith("band  k")  # the reduction runs around the register tile
    marks = [line for line in update if line.startswith("mark")]
    assert sorted(marks) == ["mark  unroll", "mark  vector"]


def test_accumulators_are_registers_in_the_printed_loops():
    for of in (matmul_scop(64, 64, 64), conv_scop(32, 8, 8, 16, 3)):
        final = compile_stages(of).final
        locals_ = [lo for n in walk_nodes(final) if isinstance(n, Block) for lo in n.locals]
        accumulators = [lo for lo in locals_ if not lo.is_tile]
        assert accumulators
        assert all(lo.in_registers for lo in accumulators)


def test_little_work_stays_on_one_thread_and_much_is_shared_out():
    small, large = compile_stages(matmul_scop(4, 32, 5)), compile_stages(matmul_scop(64, 64, 64))
    assert SMALL_WORK < 64 * 64 * 64
    assert not loops(small.nest, "parallel")
    assert loops(large.nest, "parallel")
    assert "parallel" not in str(small.schedule)
    assert "parallel" in str(large.schedule)


def test_the_schedule_names_tiles_loops_and_where_sums_are_kept():
    text = str(compile_stages(conv_scop(64, 30, 30, 16, 3)).schedule)
    for directive in ("order ", "split ", "sink ", "unroll ", "vector ", "keep acc in registers"):
        assert directive in text


@given(st.integers(1, 70), st.integers(1, 200), st.integers(1, 300), st.sampled_from(TARGETS))
@settings(max_examples=40, deadline=None)
def test_a_register_tile_fits_the_registers_and_the_problem(rows, columns, depth, target):
    of = matmul_scop(rows, columns, depth)
    (cluster,), _ = find_clusters(of, target)
    strides = {s.name: compute_strides(s, of.arrays, {}) for s in cluster.statements}
    unroll, height, width = choose_register_tile(cluster, 1, strides, of.arrays, target)[0]
    lanes = target.lanes(F32)
    vectors = -(-width // lanes)
    assert 1 <= width <= columns
    assert 1 <= height <= (rows if unroll is not None else 1)
    assert height * vectors + min(height, vectors) + 1 <= target.vectors.registers


@pytest.mark.parametrize("channels", [24, 512])
def test_rows_of_a_tile_share_lines_where_these_are_waited_for(channels):
    """1x1 on 7x7 images, 16 of them: images are far apart, and 8 of 16 would fill a tile best."""
    full = "0<=n<16 and 0<=o<96 and 0<=y<7 and 0<=x<7"
    value = call("mul", load("{ S[n,o,y,x,c] -> X[n,c,y,x] }"), load("{ S[n,o,y,x,c] -> W[o,c] }"))
    of = scop(
        [
            array("X", [16, channels, 7, 7], "input"),
            array("W", [96, channels], "constant"),
            array("Y", [16, 7, 7, 96], "output"),
        ],
        statement(f"{{ Z[n,o,y,x] : {full} }}", "{ Z[n,o,y,x] -> Y[n,y,x,o] }", ZERO),
        statement(
            f"{{ S[n,o,y,x,c] : {full} and 0<=c<{channels} }}",
            "{ S[n,o,y,x,c] -> Y[n,y,x,o] }",
            value,
            "add",
        ),
    )
    (cluster,), _ = find_clusters(of, AVX512)
    storages = {n: row_major(a) for n, a in of.arrays.items() if a.kind != "constant"}
    strides = {s.name: compute_strides(s, of.arrays, storages) for s in cluster.statements}
    runs = list_rows_as_one(cluster, 1, strides, of.arrays, storages)
    (unroll, height, _), rows = choose_register_tile(cluster, 1, strides, of.arrays, AVX512, runs)
    near = channels == 24  # all that a tile reads of 8 images stays in the first-level cache
    assert (unroll, height, rows) == ((0, 8, ()) if near else (2, 9, (2, 3)))


def test_a_large_contraction_uses_most_registers():
    """Fewer than 8 accumulators leave the multiply-add pipes waiting."""
    of = matmul_scop(512, 512, 512)
    (cluster,), _ = find_clusters(of, AVX512)
    strides = {s.name: compute_strides(s, of.arrays, {}) for s in cluster.statements}
    _, height, width = choose_register_tile(cluster, 1, strides, of.arrays, AVX512)[0]
    assert height * (width // 16) >= 16


@pytest.mark.parametrize(
    ("isa", "rows", "columns", "tile"),
    [
        ("avx512", 126, 3072, (9, 48)),
        ("avx2", 128, 3072, (3, 32)),  # 12 sums, three elements, and a vector that passes by
        ("avx2", 6, 16, (6, 16)),
        ("avx2", 8, 24, (4, 24)),  # one tile a row: no other begins inside its last line
        ("baseline", 128, 3072, (3, 16)),
    ],
)
def test_a_tile_suits_the_registers_of_a_target(isa, rows, columns, tile):
    """A tile of 12 sums keeps two multiply-adds busy, and its rows end where cache lines do."""
    of, target = matmul_scop(rows, columns, 512), Target.named(isa)
    (cluster,), _ = find_clusters(of, target)
    strides = {s.name: compute_strides(s, of.arrays, {}) for s in cluster.statements}
    assert choose_register_tile(cluster, 1, strides, of.arrays, target)[0][1:] == tile


@pytest.mark.parametrize(("terms", "tile"), [(512, (3, 32)), (18432, (6, 16))])
def test_what_streams_from_afar_is_used_for_many_rows(terms, tile):
    """Of 18432 terms 32 columns are 2.4 MB, which each tile of rows fetches again."""
    of, target = matmul_scop(128, 3072, terms), Target.named("avx2")
    (cluster,), _ = find_clusters(of, target)
    strides = {s.name: compute_strides(s, of.arrays, {}) for s in cluster.statements}
    assert choose_register_tile(cluster, 1, strides, of.arrays, target)[0][1:] == tile


def test_a_recurrence_along_the_lanes_is_not_vectorised():
    """Y[i, j] = Y[i, j - 1] + X[i, j], rows side by side."""
    value = call("add", load("{ R[i, j] -> Y[i, j - 1] }"), load("{ R[i, j] -> X[i, j] }"))
    of = scop(
        [array("X", [64, 40], "input"), array("Y", [64, 40], "output")],
        statement("{ B[i] : 0 <= i < 64 }", "{ B[i] -> Y[i, 0] }", load("{ B[i] -> X[i, 0] }")),
        statement("{ R[i, j] : 0 <= i < 64 and 1 <= j < 40 }", "{ R[i, j] -> Y[i, j] }", value),
    )
    (rows,) = [c for c in find_clusters(of, AVX512)[0] if c.statements[-1].name == "R"]
    assert len(rows.shared) == 1
    stages = compile_stages(Scop("r", of.statements[1:], of.arrays, ("X",), ("Y",)))
    assert not loops(stages.nest, "vector")


def depthwise(channels: int, size: int, taps: int) -> Scop:
    """Y[c, y, x] = sum of X[c, y + r, x + q] * W[c, r, q], and X[c] stored innermost."""
    inside = f"0 <= c < {channels} and 0 <= y < {size} and 0 <= x < {size}"
    point, end = "y, x, c", size + taps - 1
    value = call(
        "mul",
        load("{ S[c, y, x, r, q] -> X[y + r, x + q, c] }"),
        load("{ S[c, y, x, r, q] -> W[c, r, q] }"),
    )
    return scop(
        [
            array("X", [end, end, channels], "input"),
            array("W", [channels, taps, taps], "constant"),
            array("acc", [channels, size, size], "temporary"),
            array("Y", [size, size, channels], "output"),
        ],
        statement(
            f"{{ Z[c, y, x] : {inside} }}", "{ Z[c, y, x] -> acc[c, y, x] }", Const(0.0, F32)
        ),
        statement(
            f"{{ S[c, y, x, r, q] : {inside} and 0 <= r < {taps} and 0 <= q < {taps} }}",
            "{ S[c, y, x, r, q] -> acc[c, y, x] }",
            value,
            "add",
        ),
        statement(
            f"{{ T[c, y, x] : {inside} }}",
            f"{{ T[c, y, x] -> Y[{point}] }}",
            load("{ T[c, y, x] -> acc[c, y, x] }"),
        ),
    )


def test_a_depthwise_convolution():
    stages = check(depthwise(20, 5, 3))
    assert stages.stored.vector == 0


@pytest.mark.parametrize(("target", "vectors", "rows"), [("avx512", 2, 2), ("avx2", 1, 2)])
def test_the_weights_of_few_taps_stay_in_registers(target, vectors, rows):
    """9 vectors of weights for each vector of channels, and the tile's sums."""
    machine = Target.named(target)
    stages = compile_stages(depthwise(192, 14, 3), machine)
    _, height, width = stages.stored.tile
    assert (height, width) == (rows, vectors * machine.lanes(F32))


def test_the_weights_of_many_taps_are_used_for_many_rows():
    _, height, width = compile_stages(depthwise(192, 14, 7)).stored.tile
    assert height >= 7
    assert width >= AVX512.lanes(F32)


@pytest.mark.parametrize(("length", "driven_out"), [(1024, True), (1040, False), (3072, True)])
def test_lines_of_a_tile_do_not_drive_each_other_out(length, driven_out):
    """Rows a multiple of 4096 bytes apart fall in one set; a tile of 14 would fit the registers."""
    of = matmul_scop(500, 32, length)
    (cluster,), _ = find_clusters(of, AVX512)
    storages = {n: row_major(a) for n, a in of.arrays.items()}
    strides = {s.name: compute_strides(s, of.arrays, storages) for s in cluster.statements}
    target = replace(AVX512, l1d=32 << 10, l1d_ways=8)
    _, height, _ = choose_register_tile(cluster, 1, strides, of.arrays, target)[0]
    assert (height <= 8) == driven_out
    roomy = replace(target, l1d=64 << 10, l1d_ways=16)
    _, height, _ = choose_register_tile(cluster, 1, strides, of.arrays, roomy)[0]
    assert height > 8
