"""Long models: what stages do grows with them, and no faster; or they are refused.

Nothing is timed: what is bounded by design is counted.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc import Graph, ops
from polyc.budget import Budget
from polyc.errors import TooLong
from polyc.graph.onnx_import import import_onnx
from polyc.graph.unroll_steps import unroll_steps
from polyc.mapping.cpu import fuse_tiles
from polyc.options import Options
from polyc.pipeline import cluster_model, run_pipeline
from polyc.poly.parameters import parameters_of
from polyc.printing import driver
from polyc.schedule.cluster import MOST_STATEMENTS, MOST_WEIGHT, find_clusters
from polyc.scop.inline import LARGEST_EXPRESSION, inline_pointwise
from polyc.scop.lower import lower_graph
from polyc.target.machine import Target
from polyc.trace import Trace
from tests import networks
from tests.e2e.compare import find_difference
from tests.sampling import thorough

AVX512 = Target.named("avx512")


def repeat(operators, count, shape=(7, 33)):
    """x -> operators in turn, `count` of them -> y."""
    value = ops.input("add", shape)
    for operator in itertools.islice(itertools.cycle(operators), count):
        value = operator(value)
    return Graph.of(y=value)


def alternate(count):
    """t2 = t1 + t0, t3 = t2 * t1, …: everything is read twice."""
    older, newer = ops.input("x", (7, 33)), ops.input("add", (7, 33))
    for operator in itertools.islice(itertools.cycle((ops.add, ops.mul)), count):
        older, newer = newer, operator(newer, older)
    return Graph.of(y=newer)


def compare(graph, folder):
    """The compiled graph, whose result is that of the reference."""
    model = polyc.compile(graph, threads=2, options=Options(cache_dir=folder))
    got = model.run(networks.feeds(graph))["y"]
    assert find_difference(got, networks.reference(graph), 1e-4, 1e-6) is None
    return model


def multiply(value):
    """What is handed on is large, and the weights are small: products run tile by tile."""
    return ops.relu(ops.matmul(value, np.full((24, 24), 0.1, np.float32)))


LONG = {
    "sines": lambda count: repeat((ops.sin, ops.cos), count),
    "softmaxes": lambda count: repeat((ops.softmax,), count),
    "tall products": lambda count: repeat((multiply,), count, (40_001, 24)),
    "cheap": lambda count: repeat((ops.relu, ops.abs, lambda v: v - 0.5, ops.exp), count),
    "read twice": alternate,
}


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("sines", 150),
        ("softmaxes", 50),
        thorough("tall products", 30),
        thorough("cheap", 400),
        ("read twice", 150),
    ],
)
def test_statements_and_kernels_are_bounded(kind, count):
    front = cluster_model(LONG[kind](count), AVX512, Options(), Trace())
    assert len(front.kernels) > 1
    for kernel in front.kernels:
        assert len(kernel.statements) <= MOST_STATEMENTS
        assert sum(s.weight for s in kernel.statements) <= MOST_WEIGHT
        assert all(s.weight <= LARGEST_EXPRESSION for s in kernel.statements)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["softmaxes", "read twice"])
def test_parts_of_a_long_chain_that_are_equal_are_one_kernel(kind):
    texts = [
        len(run_pipeline(LONG[kind](count), AVX512, Options(), Trace()).program.kernels)
        for count in (100, 160)
    ]
    assert texts[1] <= texts[0] + 1, "what is compiled must not grow with the chain"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["sines", "cheap"])
def test_what_is_cut_computes_the_same(kind, tmp_path):
    graph = LONG[kind](40)
    compare(graph, tmp_path)


@pytest.mark.parametrize("heights", [(1,), (4, 6), (13, 7), (12, 14, 9)])
def test_tiles_of_a_few_sizes_are_as_good_as_of_all(heights, monkeypatch):
    class Kernel:
        parts, loops = heights, ({},)

    monkeypatch.setattr(fuse_tiles, "_tile_along", lambda part, loop: part)
    for most in (*range(1, 200), 1023, 4096):

        def rank(size):
            return fuse_tiles._share_of_heights(Kernel, 0, size), size

        few = [size for size in fuse_tiles._list_multiples(Kernel, 0, most) if 2 * size > most]
        assert max(few, key=rank) == max(range(most // 2 + 1, most + 1), key=rank)


def test_the_largest_tile_is_found_by_halving():
    asked = []

    def fits(size):
        asked.append(size)
        return size <= 123_456_789

    assert fuse_tiles._largest(10**9, fits) == 123_456_789
    assert len(asked) <= 31
    assert fuse_tiles._largest(5, lambda size: True) == 5
    assert fuse_tiles._largest(5, lambda size: False) == 0
    assert fuse_tiles._largest(0, lambda size: True) == 0


def test_a_long_driver_is_cut_into_functions(monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "LAUNCHES_A_FUNCTION", 2)
    graph = networks.chain(5)
    model = compare(graph, tmp_path)
    assert len(model.explain().kernels) == 5
    assert "void launches_1(" in model.source
    assert "void launches_2(" not in model.source


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(2,) * 16, (2, 1, 3) + (1,) * 12 + (5,)])
def test_a_tensor_of_many_dimensions(shape, tmp_path):
    value = ops.input("x", shape)
    turned = ops.transpose(value, list(range(len(shape)))[::-1])
    graph = Graph.of(y=ops.softmax(turned, axis=0) + ops.reduce_sum(turned))
    compare(graph, tmp_path)


def test_a_graph_of_too_many_nodes_is_refused(tmp_path):
    options = Options(cache_dir=tmp_path, max_nodes=99)
    with pytest.raises(TooLong, match=r"has more than 99 nodes.*POLYC_MAX_NODES"):
        polyc.compile(LONG["cheap"](100), options=options)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_steps_that_are_written_out_count_as_nodes(on_gpu):
    """Whether they are written out as they are read, or for a target without loops of kernels."""
    grow = "" if on_gpu else "z = Concat<axis = 0>(s, x)"
    body = "s, row" if on_gpu else "z, row"
    text = f"""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[4] s0, float[60, 4] x) => (float[n] last, float[60, 4] y) {{
          last, y = Scan <num_scan_inputs = 1, body = step (float[k] s, float[4] x) =>
            (float[m] {body.split(", ")[0]}, float[4] row) {{ {grow} row = Exp(x) }}> (s0, x)
        }}"""
    model = onnx.parser.parse_model(text)

    def write_out() -> None:
        budget = Budget(nodes=50)
        unroll_steps(import_onnx(model, budget=budget), everything=True, budget=budget)

    with pytest.raises(TooLong, match=r"written out, has more than 50 nodes.*POLYC_MAX_NODES"):
        write_out()


def test_a_compilation_that_takes_too_long_is_ended(tmp_path):
    options = Options(cache_dir=tmp_path, max_seconds=0.0)
    with pytest.raises(TooLong, match=r"more than 0 seconds.*POLYC_MAX_SECONDS"):
        polyc.compile(LONG["cheap"](3), options=options)


def test_stages_ask_between_their_items(monkeypatch):
    """A clock that ticks at each question: as many as there are nodes, statements and clusters."""
    asked: dict[str, int] = {}

    def check(self, stage):
        asked[stage] = asked.get(stage, 0) + 1

    monkeypatch.setattr("polyc.budget.Budget.check", check)
    run_pipeline(LONG["softmaxes"](30), AVX512, Options(), Trace())
    assert asked["lower"] > 30
    assert asked["fuse"] > 3 * 100
    assert asked["cluster"] > 30
    assert asked["simplify"] > 5
    assert asked["verify"] > 2


def test_clusters_take_no_more_than_their_share():
    scop = inline_pointwise(lower_graph(LONG["softmaxes"](20)))
    clusters, refusals = find_clusters(scop, AVX512)
    assert {r.reason for r in refusals} == {"so large a kernel would take long to compile"}
    assert sum(len(c.statements) for c in clusters) == len(scop.statements)


def halve(value):
    """A convolution with stride 2, whose result has sizes of its own where an image is open."""
    weight = np.ones((3, 3, 3, 3), np.float32)
    return ops.conv(value, weight, strides=(2, 2), pads=(1, 1, 1, 1))


def count_sizes(levels):
    """How many sizes an open network of so many levels has, and its statements' domains at most."""
    value = ops.input("x", ("n", 3, "h", "w"))
    for _ in range(levels):
        value = halve(value)
    front = cluster_model(Graph.of(y=value), AVX512, Options(), Trace())
    domains = [s.domain.drop_unused_params() for s in front.stated.statements]
    return len(front.sizes), max(len(parameters_of(domain)) for domain in domains)


def test_domains_say_nothing_of_the_sizes_of_other_layers():
    few, most = count_sizes(2)
    more, still = count_sizes(6)
    assert more > few
    assert still == most


def crop_or_pad():
    """An image that is cut or framed to sizes that a call says, each of them smaller or larger."""
    info = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [20, 10, 3]),
        helper.make_tensor_value_info("shape", TensorProto.INT64, [3]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", "c"]),
    ]
    node = helper.make_node("CenterCropPad", ["x", "shape"], ["y"])
    graph = helper.make_graph([node], "cut or framed", info[:2], info[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_no_loops_are_made_for_each_case_of_sizes_that_are_the_smaller_of_two(tmp_path):
    compiled = polyc.compile(crop_or_pad(), options=Options(cache_dir=tmp_path))
    # Loops over each case, and conditions for each, were 270,000 characters.
    assert len(compiled.source) < 100_000
    image = np.arange(600, dtype=np.float32).reshape(20, 10, 3)
    for sizes in [(10, 7, 3), (25, 12, 4), (20, 13, 1), (7, 10, 8)]:
        feeds = {"x": image, "shape": np.array(sizes)}
        (want,) = ReferenceEvaluator(crop_or_pad()).run(None, feeds)
        assert np.array_equal(compiled.run(feeds)["y"], want)
