"""Kernels built alone run as often as one likes, whatever they read."""

import numpy as np
import pytest

from polyc.errors import IllegalSchedule
from polyc.mapping.cpu.laying import choose_schedule
from polyc.mapping.open_cluster import OpenCluster
from polyc.pipeline import cluster_model
from polyc.target.machine import detect_target
from polyc.toolchain.cache import Cache
from polyc.trace import Trace
from polyc.tuning.measure import Workbench
from tests.e2e.graph_builder import GraphBuilder
from tests.planted import Fault
from tests.programs import options

TARGET = detect_target()


def network() -> tuple[GraphBuilder, list]:
    """A padded convolution, a lookup by an index, a product that packs its operand."""
    generator, g = np.random.default_rng(0), GraphBuilder("n")

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    x = g.input(normal(1, 3, 9, 9))
    (wide,) = g.node("Conv", [x, g.constant(normal(20, 3, 3, 3))], exact=False, pads=[1] * 4)
    (again,) = g.node("Conv", [wide, g.constant(normal(8, 20, 3, 3))], exact=False, pads=[1] * 4)
    (rows,) = g.node("Gather", [again, g.input(np.array([0, 1]))], exact=False, axis=2)
    left, right = g.input(normal(80, 96)), g.input(normal(64, 96))
    (turned,) = g.node("Transpose", [right], exact=False, perm=[1, 0])
    (product,) = g.node("MatMul", [left, turned], exact=False)
    return g, [rows, product]


@pytest.fixture
def opened(tmp_path) -> tuple[OpenCluster, ...]:
    graph, outputs = network()
    front = cluster_model(graph.model(outputs), TARGET, options(tmp_path), Trace())
    stored = [one for kernel in front.kernels for one in kernel.parts]
    assert any(s.cluster.prelude for s in stored)
    assert any(not s.key for s in stored), "nothing is packed"
    return front.opened


@pytest.mark.thorough
@pytest.mark.parametrize("spread", [0, 1 << 20])
def test_every_kernel_of_a_network_runs_alone(opened, tmp_path, spread):
    choices = options(tmp_path)
    bench = Workbench(TARGET, choices, 2, Cache(tmp_path / "objects"), spread)
    for one in opened:
        built = bench.build(one, choose_schedule(one, TARGET))
        assert built.schedule
        assert all(built.run() > 0 for _ in range(20))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("polyc.program.plan:byte_size", "no room for"),
        ("polyc.backends.bind:arrange", "not where they"),
    ],
)
def test_a_candidate_is_proven_before_it_is_run(opened, tmp_path, monkeypatch, place, said):
    def wrong(right):
        if place.endswith("size"):
            return lambda array: right(array) // 2
        return lambda value, storage: np.roll(right(value, storage), 1)

    Fault(place, wrong, network, said).plant(monkeypatch)
    bench = Workbench(TARGET, options(tmp_path), 2, Cache(tmp_path / "objects"), 0)
    one = next(one for one in opened if one.cluster.has_reuse)
    with pytest.raises(IllegalSchedule, match=said):
        bench.build(one, choose_schedule(one, TARGET))
