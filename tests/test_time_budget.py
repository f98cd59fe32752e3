"""The budget of time, and isl's share of it."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import islpy as isl
import pytest
from onnx import TensorProto, helper

from polyc.budget import UNLIMITED, Budget
from polyc.errors import InvalidOption, TooLong
from polyc.graph.onnx_import import import_onnx
from polyc.options import Options, options_from_environment
from polyc.poly.context import isl_within, operation_budget


def burn() -> None:
    """Work for isl that has no end."""
    whole = isl.Set("{ [a, b, c] : exists q : a + 3b + 7c = 11q and 0 <= a, b, c <= 100 }")
    while True:
        whole.subtract(isl.Set("{ [a, b, c] : exists q : a - b + 2c = 5q }")).is_empty()


def test_items_are_given_until_the_time_is_over():
    over = Budget(seconds=5.0, end=time.monotonic() - 1)
    with pytest.raises(TooLong, match=r"more than 5 seconds.*'fuse'.*max_seconds"):
        next(over.over([1, 2], "fuse"))
    assert list(over.over([], "fuse")) == []
    assert list(Budget.start(Options()).over([1, 2], "fuse")) == [1, 2]
    assert list(UNLIMITED.over([1, 2], "fuse")) == [1, 2]


def test_isl_alone_may_not_take_longer():
    with pytest.raises(TooLong, match="'isl'"), isl_within(Budget(seconds=0.01, end=math.inf)):
        burn()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
    with isl_within(UNLIMITED):
        assert not isl.Set("{ [i] : 0 <= i < 2 }").is_empty()


def test_other_errors_of_isl_stay_what_they_are():
    with pytest.raises(isl.Error), isl_within(Budget(seconds=100.0, end=math.inf)):
        isl.Set("{ no set")


def test_budgets_of_isl_nest():
    with operation_budget(10**9):
        with pytest.raises(isl.Error), operation_budget(1000):
            burn()
        assert isl.DEFAULT_CONTEXT.get_max_operations() == 10**9
        assert not isl.Set("{ [i] : 0 <= i < 2 }").is_empty()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_the_environment_says_how_much():
    assert options_from_environment({}).max_seconds == Options().max_seconds
    given = options_from_environment({"POLYC_MAX_SECONDS": "2.5", "POLYC_MAX_NODES": "100000"})
    assert (given.max_seconds, given.max_nodes) == (2.5, 100_000)
    for name in ("POLYC_MAX_SECONDS", "POLYC_MAX_NODES"):
        with pytest.raises(InvalidOption, match=name):
            options_from_environment({name: "-1"})


def functions(levels: int) -> list:
    """Each calls the one before ten times: 10 ** levels nodes when inlined."""
    found = []
    for level in range(levels):
        domain, callee = ("mine", f"F{level - 1}") if level else ("", "Neg")
        names = ["x", *(f"t{k}" for k in range(9)), "y"]
        nodes = [helper.make_node(callee, [a], [b], domain=domain) for a, b in pairwise(names)]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
        found.append(helper.make_function("mine", f"F{level}", ["x"], ["y"], nodes, opsets))
    return found


def test_functions_are_counted_before_they_are_inlined():
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy"]
    node = helper.make_node("F5", ["x"], ["y"], domain="mine")
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions(6), ir_version=8)
    with pytest.raises(TooLong, match=r"inlined \(1000000\), has more than 50000 nodes"):
        import_onnx(model, budget=Budget.start(Options()))
