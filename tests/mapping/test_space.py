"""Every candidate of the search space is a kernel that is proven and right; nothing else is one."""

import pytest

from polyc.mapping.cpu.laying import choose_schedule, keeps_layouts, lay_out, read_tiles
from polyc.mapping.cpu.space import MOVES, find_tuned
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.reading import read_order, read_packed, read_tile, read_vector
from polyc.mapping.tuned import Tuned
from polyc.schedule.canonical import to_positions
from polyc.schedule.cluster import find_clusters
from polyc.schedule.initial import InitialLoops
from polyc.schedule.schedule import Schedule
from tests.analysis.nests import conv_scop, matmul_scop, softmax_scop
from tests.mapping.stages import AVX512, check, filled, open_cluster
from tests.mapping.test_register_tile import add
from tests.mapping.test_storing import conv_then_transposed_reader

SCOPS = {
    "matmul": matmul_scop(5, 40, 3),
    "conv": conv_scop(17, 3, 4, 2, 3),
    "pointwise": add(70),
    "rows": softmax_scop(6, 16),
}


def candidates(of):
    one = open_cluster(of)
    chosen = choose_schedule(one, AVX512)
    return one, list(dict.fromkeys([chosen, *(p for m in MOVES for p in m(one, chosen, AVX512))]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCOPS)
def test_candidates_are_proven_and_right(name):
    one, found = candidates(filled(SCOPS[name]))
    for schedule in found[:: max(1, len(found) // 12)]:
        assert find_tuned(one, stored(one, schedule), AVX512) == schedule
        check(SCOPS[name], rtol=1e-5, schedule=schedule)


def stored(one, schedule):
    """As a search keeps it."""
    return Tuned(str(to_positions(schedule, InitialLoops((one.cluster,)), one.touched)), 0.1)


@pytest.mark.parametrize("name", SCOPS)
def test_what_a_strategy_emits_is_read_back(name):
    one, found = candidates(SCOPS[name])
    named = InitialLoops((one.cluster,))
    for schedule in found:
        laid = lay_out(one, read_tiles(one, schedule))
        assert read_packed(schedule) == laid.tiles.packed
        assert read_vector(schedule, named)[0] == laid.tiles.vector
        order = read_order(schedule, named)
        assert not order or sorted(order) == list(range(len(one.cluster.shared)))


def test_the_order_that_is_asked_for_is_the_order_of_the_loops():
    one = open_cluster(conv_scop(64, 30, 30, 16, 3))
    chosen = choose_schedule(one, AVX512)
    named = InitialLoops((one.cluster,))
    orders = {read_order(s, named) for s in MOVES[1](one, chosen, AVX512)}
    assert len(orders) > 1


@pytest.mark.parametrize(
    "text",
    [
        "vector L7",
        "vector k",
        "split L0 64 | vector L1",
        "split L1 16 | split L0 40 | vector L1' | unroll L0'",
        "order L0 L0",
        "pack a9",
        "pack a0",
        "parallel L0 | keep all",
        "reverse L2",
        "nonsense",
        "",
    ],
)
def test_what_is_not_in_the_space_is_refused(text):
    one, _ = candidates(matmul_scop(64, 64, 64))
    chosen = stored(one, choose_schedule(one, AVX512))
    assert find_tuned(one, chosen, AVX512)
    for other in (text, f"{chosen.schedule} | {text}" if text else "order L1 L0"):
        assert find_tuned(one, Tuned(other, 0.1), AVX512) is None


def test_another_vector_loop_may_change_what_others_see():
    of = conv_then_transposed_reader()
    producer, _ = store_clusters(find_clusters(of, AVX512)[0], of, AVX512).opened
    named = InitialLoops((producer.cluster,))
    chosen = choose_schedule(producer, AVX512)
    vector, _ = read_vector(chosen, named)
    names = [named.spell([loop])[0] for loop in named.loops]
    assert vector is not None
    lanes = names[vector - sum(n == 1 for n in producer.cluster.extents)]
    assert f"vector {lanes}" in str(chosen)
    across = next(name for name in names if name != lanes)
    other = Schedule.parse(f"split {across} 8 | vector {across}'")
    assert not keeps_layouts(producer, chosen, other)
    narrower = Schedule.parse(f"split {lanes} 16 | vector {lanes}'")
    assert read_tile(narrower, named) == (None, 1, 16)
    assert keeps_layouts(producer, chosen, narrower)
    alone = open_cluster(conv_scop(32, 8, 8, 16, 3))
    assert keeps_layouts(alone, choose_schedule(alone, AVX512), other)
