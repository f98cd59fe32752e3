"""Whole compilations: right numbers on odd sizes, and the shape of what was generated."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import polyc
from polyc import CompiledModel, Graph, ops
from polyc.options import STAGES, Options, options_from_environment
from tests import networks
from tests.e2e.compare import find_difference
from tests.sampling import thorough

# The most launches that a network may take: contractions and windows, and what cannot join them.
NETWORKS: dict[Callable[[], Graph], int] = {
    networks.resnet: 14,
    networks.inception: 18,
    networks.densenet: 11,
    networks.mobilenet: 8,
    networks.transformer: 13,
}
OFTEN = {(networks.mobilenet, 8), (networks.transformer, 2)}
"""Networks, and threads, of an ordinary run."""

each_network = pytest.mark.parametrize("build", NETWORKS, ids=lambda n: n.__name__)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache for the module: each network is compiled once."""
    return tmp_path_factory.mktemp("cache")


def compile_network(graph: Graph, cache, threads: int = 2, **choices) -> CompiledModel:
    options = Options(threads=threads, cache_dir=cache, progress=False, **choices)
    return polyc.compile(graph, options=options)


def check(model: CompiledModel, graph: Graph) -> None:
    fault = find_difference(
        model.run(networks.feeds(graph))["y"], networks.reference(graph), 1e-4, 1e-5
    )
    assert fault is None, fault


@pytest.mark.parametrize(
    ("build", "threads"),
    [
        pytest.param(
            build, threads, id=f"{threads}-{build.__name__}",
            marks=() if (build, threads) in OFTEN else pytest.mark.thorough,
        )
        for threads in (1, 2, 8)
        for build in NETWORKS
    ],
)  # fmt: skip
def test_numbers(build, threads, cache):
    graph = build()
    check(compile_network(graph, cache, threads), graph)


@each_network
def test_structure(build, cache):
    model = compile_network(build(), cache)
    report = model.explain()
    assert report.fallbacks == ()
    assert len(report.kernels) <= NETWORKS[build]
    assert all("executed in full" in row.proof for row in report.kernels)
    assert "proven" in str(report)
    assert re.search(r"\bf32x\d+\b", model.source)
    assert "PC_SHARE(" in model.source


@pytest.mark.parametrize("isa", [thorough("avx2"), "baseline"])
def test_narrower_machines_agree(isa, cache):
    graph = networks.mobilenet()
    options = Options(threads=2, cache_dir=cache, progress=False)
    model = polyc.compile(graph, target=isa, options=options)
    assert "f32x16" not in re.sub(r"/\*.*?\*/", "", model.source, flags=re.DOTALL)
    check(model, graph)


def test_without_optimisation_the_numbers_are_the_same(cache):
    graph = networks.resnet()
    check(compile_network(graph, cache, opt_level=0), graph)


def test_a_normalised_activated_residual_convolution_is_one_kernel(cache):
    w = networks.Weights()
    x, r = ops.input("x", (1, 7, 9, 9)), ops.input("r", (1, 20, 9, 9))
    graph = Graph.of(y=ops.relu(networks.conv_bn(w, x, 20) + r))
    (row,) = compile_network(graph, cache).explain().kernels
    kinds = {node.rpartition("_")[0].partition(".")[0] for node in row.nodes}
    assert {"Conv", "Add", "Relu"} <= kinds


@pytest.mark.parametrize("layers", [4, thorough(20)])
def test_equal_layers_share_a_kernel(layers, cache):
    graph = networks.chain(layers)
    model = compile_network(graph, cache)
    rows = model.explain().kernels
    assert len(rows) == layers
    assert len({row.name for row in rows}) <= 3
    check(model, graph)


def test_without_verification_there_is_no_proof_and_the_same_code(cache):
    graph = networks.chain(2)
    plain, proven = (compile_network(graph, cache, verify=v) for v in (False, True))
    assert plain.source == proven.source
    assert not any(row.proof for row in plain.explain().kernels)


def test_every_stage_is_dumped_where_the_environment_says(tmp_path):
    environment = {
        "POLYC_DUMP": ",".join(STAGES),
        "POLYC_DUMP_DIR": str(tmp_path / "dump"),
        "POLYC_CACHE_DIR": str(tmp_path / "cache"),
    }
    polyc.compile(networks.chain(1), options=options_from_environment(environment))
    files = {f.name: f.read_text() for f in (tmp_path / "dump").iterdir()}
    shown = {stage: [t for n, t in files.items() if n[2:].startswith(stage)] for stage in STAGES}
    assert all(shown.values()), sorted(files)
    assert "Relu" in shown["graph"][0]
    assert "scop" in shown["scop"][0]
    assert shown["schedule"][0].startswith("domain")
    assert "└ " in shown["schedule"][0]
    assert "for c" in shown["loopnest"][0]
    assert any("polyc_run" in text for text in shown["c"])


def test_a_model_without_arithmetic(cache):
    x = ops.input("x", (3, 5))
    model = compile_network(Graph.of(y=ops.reshape(x, (5, 3)), z=ops.transpose(x)), cache)
    value = np.arange(15, dtype=np.float32).reshape(3, 5)
    y, z = model(value)
    np.testing.assert_array_equal(y, value.reshape(5, 3))
    np.testing.assert_array_equal(z, value.T)
