"""Every candidate of the search space is a kernel that is proven and right; nothing else is one."""

from dataclasses import replace

import numpy as np
import pytest

from polyc.mapping.parameters import Parameters
from polyc.mapping.space import MOVES, is_candidate
from polyc.mapping.storing import choose_parameters, keeps_layouts, store_clusters
from polyc.schedule.cluster import find_clusters
from tests.analysis.nests import conv_scop, matmul_scop, softmax_scop
from tests.mapping.stages import AVX512, compile_stages, open_cluster
from tests.mapping.test_register_tile import add, filled
from tests.mapping.test_storing import conv_then_transposed_reader
from tests.scop.interpreter import interpret

SCOPS = {
    "matmul": matmul_scop(5, 40, 3),
    "conv": conv_scop(17, 3, 4, 2, 3),
    "pointwise": add(70),
    "rows": softmax_scop(6, 16),
}


def candidates(of):
    one = open_cluster(of)
    chosen = choose_parameters(one, AVX512)
    return one, list(dict.fromkeys([chosen, *(p for m in MOVES for p in m(one, chosen, AVX512))]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCOPS)
def test_candidates_are_proven_and_right(name):
    of = filled(SCOPS[name])
    one, found = candidates(of)
    generator = np.random.default_rng(0)
    feeds = {n: generator.integers(-3, 4, of.arrays[n].shape).astype("f4") for n in of.inputs}
    constants = {n: a.value for n, a in of.arrays.items() if a.kind == "constant"}
    expected = interpret(of, feeds)
    for parameters in found[:: max(1, len(found) // 12)]:
        assert is_candidate(one, parameters, AVX512)
        stages = compile_stages(of, parameters=parameters)
        assert stages.prove().statements == len(of.statements)
        results = stages.run(stages.final, {**feeds, **constants})
        for output, value in expected.items():
            np.testing.assert_allclose(results[output], value, rtol=1e-5, err_msg=str(parameters))


def test_the_order_that_is_asked_for_is_the_order_of_the_loops():
    one, _ = candidates(SCOPS["conv"])
    chosen = choose_parameters(one, AVX512)
    orders = [p for p in MOVES[1](one, chosen, AVX512) if p.order]
    assert orders
    for parameters in orders[:3]:
        stages = compile_stages(SCOPS["conv"], parameters=parameters)
        assert stages.mapping.order == parameters.order


@pytest.mark.parametrize(
    "changes",
    [
        {"vector": 7},
        {"vector": -1},
        {"tile": (0, 40, 64)},
        {"tile": (1, 4, 16)},
        {"tile": (0, 0, 16)},
        {"packed": (9,)},
        {"packed": (0,)},
        {"order": (0, 0)},
        {"order": (0,)},
        {"vector": None},
    ],
)
def test_what_is_not_in_the_space_is_refused(changes):
    one, _ = candidates(matmul_scop(64, 64, 64))
    chosen = choose_parameters(one, AVX512)
    assert is_candidate(one, chosen, AVX512)
    assert not is_candidate(one, replace(chosen, **changes), AVX512)


def test_another_vector_loop_may_change_what_others_see():
    of = conv_then_transposed_reader()
    producer, _ = store_clusters(find_clusters(of, AVX512)[0], of, AVX512).opened
    chosen = choose_parameters(producer, AVX512)
    other = Parameters((chosen.vector or 0) + 1, (None, 1, 8))
    assert not keeps_layouts(producer, chosen, other, AVX512)
    assert keeps_layouts(producer, chosen, replace(chosen, tile=(None, 1, 16)), AVX512)
    alone = open_cluster(conv_scop(32, 8, 8, 16, 3))
    assert keeps_layouts(alone, choose_parameters(alone, AVX512), other, AVX512)


def test_parameters_survive_json():
    for parameters in (Parameters(None), Parameters(2, (None, 1, 32)), Parameters(0, (1, 4, 16))):
        assert Parameters.from_json(parameters.to_json()) == parameters
    full = Parameters(1, (0, 14, 32), (2,), (0, 2, 1))
    assert Parameters.from_json(full.to_json()) == full
