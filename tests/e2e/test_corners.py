"""Small graphs at which the middle of the compiler once went wrong; most were found at random."""

from __future__ import annotations

import time
from collections.abc import Sequence

import islpy as isl
import numpy as np
import onnx
import pytest
from onnx import helper

import polyc
from polyc.codegen.generate import generate_nest
from polyc.graph.onnx_import import import_onnx
from polyc.memory.storage import row_major
from polyc.schedule.legality import union_domain
from polyc.scop.lower import lower_graph
from tests.e2e.cases import ints
from tests.e2e.compare import find_difference
from tests.e2e.graph_builder import GraphBuilder, Value

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(
    graph: GraphBuilder, outputs: Sequence[Value], targets: Sequence[str] = ("auto", "baseline")
) -> polyc.CompiledModel:
    """Assert that the compiled graph gives what the reference gives; the last compiled model."""
    for target in targets:
        for level in (0, 3):
            model = polyc.compile(graph.model(outputs), threads=2, target=target, opt_level=level)
            results = model.run(graph.feeds)
            for value in outputs:
                found = find_difference(results[value.name], value.array, atol=2e-5)
                assert found is None, f"{target}, level {level}, {value.name}: {found}"
    return model


def test_a_halo_that_only_its_pool_reads_is_kept_in_memory() -> None:
    g = GraphBuilder("halo")
    x = g.input(normal(2, 3, 9, 10, 7))
    flags = {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "pads": [1] * 6}
    check(g, g.node("MaxPool", [x], exact=True, **flags))


def test_a_frame_that_is_cropped_on_the_other_side() -> None:
    g = GraphBuilder("crop")
    x = g.input(normal(5, 9))
    (framed,) = g.node("Pad", [x, ints_(g, -1, 3, 2, -2)], exact=True)
    check(g, [framed, *g.node("Sqrt", g.node("Abs", [framed], exact=True), exact=False)])


def test_a_sum_whose_first_reduced_dimension_is_contiguous() -> None:
    g = GraphBuilder("turned")
    x = g.input(normal(4, 15, 7, 16))
    (turned,) = g.node("Transpose", [x], exact=True, perm=[3, 1, 0, 2])
    (total,) = g.node("ReduceL1", [turned, ints_(g, 0, 3)], exact=False)
    check(g, g.node("ReduceLogSumExp", [total, ints_(g, 1, 2)], exact=False, keepdims=0))


@pytest.mark.thorough
def test_a_triangle_that_is_all_or_nothing() -> None:
    g = GraphBuilder("triangles")
    x, y = g.input(normal(13, 1, 1)), g.input(normal(3, 20, 17))
    outputs = []
    for v in (x, y):
        for k in (-30, -2, 0, 2, 30):
            for upper in (0, 1):
                shift = g.constant(np.array(k))
                outputs += g.node("Trilu", [v, shift], exact=True, upper=upper)
    check(g, outputs)


def test_a_fill_that_is_data_guards_what_it_replaces() -> None:
    """No lane may read outside of the tensor, at a page's end neither."""
    g = GraphBuilder("guard")
    x, fill = g.input(normal(3, 37)), g.input(np.array(7, np.float32))
    (padded,) = g.node("Pad", [x, ints_(g, 0, 21, 2, 5), fill], exact=True)
    model = check(g, [padded])
    assert " ? " in model.source


def test_a_choice_between_choices() -> None:
    """With loads that depend on conditions gcc 12 would vectorise this into wrong code."""
    g = GraphBuilder("choices")
    x, c, fill = g.input(normal(100, 3)), g.input(normal(3)), g.input(np.array(0, np.float32))
    (low,) = g.node("Trilu", [x, g.constant(np.array(-2))], exact=True, upper=0)
    (padded,) = g.node("Pad", [x, ints_(g, 2, 0, 0, 0), fill], exact=True)
    for v in (low, padded):
        (small,) = g.node("LessOrEqual", [v, v], exact=True)
        (chosen,) = g.node("Where", [small, v, c], exact=True)
        parts = g.node("Split", [chosen, ints_(g, 1, 2)], exact=True, n_outputs=2, axis=1)
        check(g, [chosen, *parts], ["auto", "avx2", "baseline"])


def test_sums_of_elements_at_computed_positions() -> None:
    g = GraphBuilder("positions")
    x, index = g.input(normal(7, 40)), g.input(RNG.integers(-7, 7, (1, 40)))
    (row,) = g.node("GatherElements", [x, index], exact=True, axis=0)
    (dot,) = g.node("MatMul", [row, g.constant(normal(40, 1))], exact=False)
    (total,) = g.node("ReduceSum", [row], exact=False)
    check(g, [dot, total])


@pytest.mark.thorough
def test_vectors_that_are_stored_where_no_stride_leads() -> None:
    """Output channels go through a DepthToSpace and a Reshape on their way out of registers."""
    g = GraphBuilder("scattered")
    x = g.input(normal(2, 5, 6, 7))
    (y,) = g.node("Conv", [x, g.constant(normal(24, 5, 1, 1))], exact=False)
    outputs = g.node("DepthToSpace", [y], exact=False, blocksize=2)
    outputs += g.node("Reshape", [y, ints_(g, 2, 3, 8, 42)], exact=False)
    (z,) = g.node("ConvTranspose", [x, g.constant(normal(5, 8, 2, 2))], exact=False, strides=[2, 2])
    check(g, [*outputs, *g.node("Reshape", [z, ints_(g, 2, 4, 2, -1)], exact=False)])


def test_a_computed_position_in_an_array_stored_in_another_order() -> None:
    g = GraphBuilder("order")
    x = g.input(normal(1, 6, 5, 40))
    (turned,) = g.node("Transpose", [x], exact=True, perm=[0, 3, 1, 2])
    (y,) = g.node("Conv", [turned, g.constant(normal(32, 40, 3, 3))], exact=False)
    index = g.input(RNG.integers(-32, 32, (3,)))
    (rows,) = g.node("Gather", [y, index], exact=False, axis=1)
    other = g.input(RNG.integers(0, 3, (1, 32, 4, 3)))
    (elements,) = g.node("GatherElements", [y, other], exact=False, axis=3)
    check(g, [rows, elements])


@pytest.mark.thorough
def test_reshapes_without_a_common_divisor_compile_in_seconds() -> None:
    """What isl would need minutes for is left alone: where a copy could go, how much it touches."""
    g = GraphBuilder("incommensurable")
    x = g.input(normal(32, 2, 32))
    weight = g.constant(normal(3, 2, 2) / 2)
    (y,) = g.node("Conv", [x, weight], exact=False, pads=[1, 1], kernel_shape=[2])
    (counted,) = g.node("Reshape", [y, ints_(g, 3, 6, 22, 8)], exact=False)
    outputs = g.node("SpaceToDepth", [counted], exact=False, blocksize=2)
    outputs += g.node("Softmax", [y], exact=False)
    started = time.process_time()
    check(g, outputs, ["auto"])
    assert time.process_time() - started < 30


HOSTILE = ["c3", "threads", "status", "team", "t_local", "t_local_1", "partial_0_0", "f32", "i64x8",
           "pc_max_f32", "PC_TYPE", "linux", "INT_MAX", "for", "0", "a b", "ü", "*/"]  # fmt: skip


def test_names_that_generated_code_uses_itself() -> None:
    def declare(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 20])

    nodes = [helper.make_node("Softmax", [name], [f"{name}_local"], name=name) for name in HOSTILE]
    outputs = [declare(f"{name}_local") for name in HOSTILE]
    graph = helper.make_graph(nodes, "main", [declare(n) for n in HOSTILE], outputs)
    imports = [helper.make_opsetid("", 22)]
    model = polyc.compile(helper.make_model(graph, opset_imports=imports, ir_version=10))
    feeds = {name: normal(3, 20) for name in HOSTILE}
    results = model.run(feeds)
    for name, x in feeds.items():
        wide = np.exp(x.astype(np.float64))
        expected = wide / wide.sum(-1, keepdims=True)
        np.testing.assert_allclose(results[f"{name}_local"], expected, rtol=1e-5)


def test_an_error_inside_isl_is_an_exception() -> None:
    """Code generation runs inside a callback of isl; what it raises must reach the caller."""
    g = GraphBuilder("error")
    scop = lower_graph(import_onnx(g.model(g.node("Relu", [g.input(normal(4))], exact=True))))
    (statement,) = scop.statements
    tree = isl.Schedule.from_domain(union_domain(scop.statements))
    with pytest.raises(KeyError):
        generate_nest(tree, {statement.name: statement}, {}, {})
    storages = {name: row_major(array) for name, array in scop.arrays.items()}
    assert generate_nest(tree, {statement.name: statement}, storages, {}).body


def ints_(g: GraphBuilder, *values: int) -> Value:
    return g.constant(ints(*values))


def test_a_softmax_of_masked_scores_has_no_subnormal_numbers() -> None:
    """-100 masks the windows of Swin; Intel's cores multiply subnormal numbers slowly."""
    g = GraphBuilder("masked")
    scores = normal(6, 5, 21)
    x, mask = g.input(scores), g.input(np.where(np.arange(21) < 9, 0, -100).astype(np.float32))
    (shares,) = g.node("Softmax", g.node("Add", [x, mask], exact=True), exact=False)
    model = check(g, [shares])
    (found,), tiny = model.run(g.feeds).values(), np.finfo(np.float32).tiny
    assert ((shares.array > 0) & (shares.array < tiny)).any(), "none where the standard has some"
    assert not ((found > 0) & (found < tiny)).any()
