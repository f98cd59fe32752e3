"""Work counted from a model, and the least time for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench import micro
from bench.roofline import Work, count_work, floor_seconds
from bench.zoo.bert import Bert, bert
from polyc.target.machine import Target
from polyc.target.rates import Rates

RATES = Rates(100e9, 8e9, 4e9, 2e9, 1e9, 1.5e9, 2e9, 2.5e9, 1e-6, 1e-9, measured=True)
TARGET = replace(Target.named("avx2"), cores=4, l1d=1000, l2=10_000, l3=100_000, rates=RATES)


def test_a_matrix_product_and_a_convolution():
    assert count_work(micro.gemm(10, 10, 10).model) == Work(2000, 800, 400)
    shape = micro.ConvShape("c", 6, 4, 9, 3, 2, group=2)
    weights = 4 * 3 * 9 + 4
    outputs = 4 * 5 * 5
    reads = 4 * (6 * 81 + weights)
    assert count_work(micro.conv(shape).model) == Work(2 * outputs * 27, reads, 4 * outputs)


def test_attention_counts_both_products():
    assert count_work(micro.attention(2, 5, 3).model).flops == 2 * 2 * 2 * 5 * 5 * 3


def test_gemm_with_either_operand_transposed():
    def work(**attributes):
        infos = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("a", [3, 5] if not attributes else [5, 3]), ("y", [3, 7]))
        ]
        w = numpy_helper.from_array(np.ones((5, 7), np.float32), "w")
        node = helper.make_node("Gemm", ["a", "w"], ["y"], **attributes)
        graph = helper.make_graph([node], "g", infos[:1], infos[1:], [w])
        return count_work(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

    assert work() == work(transA=1) == Work(2 * 3 * 7 * 5, 4 * (15 + 35), 4 * 21)


def test_of_a_table_only_what_is_looked_up_is_read():
    small, large = (count_work(bert(Bert(5, 1, 1, 8, 8, v)).model) for v in (50, 5000))
    assert small == large


def test_a_shape_that_is_not_known_is_an_error():
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "aby"]
    nodes = [
        helper.make_node("NoSuchOperator", ["a"], ["t"], domain="elsewhere"),
        helper.make_node("MatMul", ["t", "b"], ["y"]),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("elsewhere", 1)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", infos[:2], infos[2:]), opset_imports=opsets
    )
    with pytest.raises(ValueError, match="the shape of 't' is not known"):
        count_work(model)


@pytest.mark.parametrize(
    ("work", "threads", "seconds"),
    [
        (Work(10**9, 0, 0), 1, 0.01),
        (Work(10**9, 0, 0), 2, 0.005),
        (Work(0, 300, 200), 1, 500 / 8e9),
        (Work(0, 3000, 2000), 1, 5000 / 4e9),
        (Work(0, 30_000, 20_000), 2, 50_000 / 4e9),
        (Work(0, 10**9, 0), 1, 1.0),
        (Work(0, 10**9, 0), 4, 1 / 1.5),
        (Work(0, 10**9, 10**9), 1, 1.0),
        (Work(0, 3 * 10**9, 10**9), 1, 1.0 + 2.0),
        (Work(0, 10**9, 3 * 10**9), 1, 2.0),
        (Work(10**9, 10**9, 0), 1, 1.0),
    ],
)
def test_the_least_time_is_that_of_the_scarcest(work, threads, seconds):
    assert floor_seconds(TARGET, work, threads) == pytest.approx(seconds)
