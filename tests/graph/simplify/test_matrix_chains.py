"""Matrix chains: the best of all orders, the same numbers, and only where the cost drops."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.graph.ir import Node
from polyc.graph.simplify import simplify
from polyc.graph.simplify.matrix_chains import (
    MAX_CHAIN,
    Chain,
    compute_cost,
    find_cheapest_order,
    reorder_matrix_chains,
)


def all_orders(first, last):
    if first == last:
        yield first
    for cut in range(first, last):
        yield from itertools.product(all_orders(first, cut), all_orders(cut + 1, last))


def count_operations(order, extents, batched, batch, constant):
    """(rows, columns, is batched, is constant, multiply-adds), straight from the definition."""
    if isinstance(order, int):
        return extents[order], extents[order + 1], batched[order], constant[order], 0
    m, k, left_batched, left_constant, left = count_operations(
        order[0], extents, batched, batch, constant
    )
    _, n, right_batched, right_constant, right = count_operations(
        order[1], extents, batched, batch, constant
    )
    is_batched, is_constant = left_batched or right_batched, left_constant and right_constant
    own = 0 if is_constant else m * k * n * (batch if is_batched else 1)
    return m, n, is_batched, is_constant, left + right + own


chains = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 9), min_size=n + 1, max_size=n + 1),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.integers(1, 5),
    )
)


@settings(max_examples=150)
@given(chains)
def test_no_parenthesisation_is_cheaper(case):
    extents, batched, constant, batch = case
    count = len(batched)
    free = frozenset(
        (i, n) for i in range(count) for n in range(1, count - i + 1) if all(constant[i : i + n])
    )
    chain = Chain(tuple(extents), tuple(batched), (batch,), free)
    costs = {
        order: count_operations(order, extents, batched, batch, constant)[-1]
        for order in all_orders(0, count - 1)
    }
    order = find_cheapest_order(chain)
    assert costs[order] == min(costs.values())
    assert compute_cost(chain, order).total() == costs[order]


def product(build, shapes, constants=(), order="left"):
    """A graph that multiplies matrices m0, m1, ... from the left or from the right."""
    names = [f"m{k}" for k in range(len(shapes))]
    nodes, pending = [], list(names)
    while len(pending) > 1:
        at = 0 if order == "left" else len(pending) - 2
        name = f"t{len(nodes)}" if len(pending) > 2 else "y"
        nodes.append(Node(f"mm{len(nodes)}", "MatMul", tuple(pending[at : at + 2]), (name,)))
        pending[at : at + 2] = [name]
    rng = np.random.default_rng(4)
    values = {
        n: rng.standard_normal(s).astype(np.float32)
        for k, (n, s) in enumerate(zip(names, shapes, strict=True))
        if k in constants
    }
    types = {n: ("float32", s) for n, s in zip(names, shapes, strict=True) if n not in values}
    return build(types, nodes, ["y"], **values)


def shown(graph):
    """The expression of the output, in terms of inputs and constants."""

    def show(name):
        node = graph.producers.get(name)
        return name if node is None else f"({' '.join(map(show, node.inputs))})"

    return show("y")


def test_a_vector_is_multiplied_first(build, assert_same):
    graph = product(build, [(8, 9), (9, 10), (10, 1)])
    rewritten = reorder_matrix_chains(graph)
    assert shown(rewritten.graph) == "(m0 (m1 m2))"
    assert rewritten.notes[0].text == (
        "3 matrices of MatMul 'mm1' multiplied in another order, 800 -> 162 multiply-adds"
    )
    assert_same(graph, rewritten.graph, rtol=1e-4)


def test_the_textbook_example(build, assert_same):
    extents = [30, 35, 15, 5, 10, 20, 25]
    graph = product(build, list(itertools.pairwise(extents)))
    rewritten = reorder_matrix_chains(graph)
    assert shown(rewritten.graph) == "((m0 (m1 m2)) ((m3 m4) m5))"
    assert "-> 15,125 multiply-adds" in rewritten.notes[0].text
    assert_same(graph, rewritten.graph, rtol=1e-3)


def test_batched_chains_and_a_shared_matrix(build, assert_same):
    graph = product(build, [(5, 8, 9), (9, 10), (5, 10, 1)])
    after = reorder_matrix_chains(graph).graph
    assert shown(after) == "(m0 (m1 m2))"
    assert_same(graph, after, rtol=1e-4)


def test_batch_dimensions_that_broadcast_end_a_chain(build):
    graph = product(build, [(5, 8, 9), (1, 9, 10), (5, 10, 1)])
    assert reorder_matrix_chains(graph).graph is graph


def test_a_product_of_constants_costs_nothing(build, assert_same):
    # 8*8*8 twice from the left, as it stands; once if the constants are folded
    graph = product(build, [(8, 8), (8, 8), (8, 8)], constants=(1, 2))
    after, notes = simplify(graph)
    assert [n.op for n in after.nodes] == ["MatMul"]
    assert [n.rewrite for n in notes] == ["matrix_chains", "constant_folding"]
    assert_same(graph, after, rtol=1e-4)


def test_a_narrow_waist_is_kept_in_spite_of_constants(build):
    graph = product(build, [(8, 64), (64, 1), (1, 64)], constants=(1, 2))
    assert reorder_matrix_chains(graph).graph is graph


@pytest.mark.parametrize("rows", [1, 7])
def test_symbolic_extents_change_only_what_is_better_for_all(rows, build, assert_same):
    better = product(build, [("N", 9), (9, 10), (10, 1)])
    after = reorder_matrix_chains(better).graph
    assert shown(after) == "(m0 (m1 m2))"
    feeds = {
        f"m{k}": np.random.default_rng(k).standard_normal(s).astype(np.float32)
        for k, s in enumerate([(rows, 9), (9, 10), (10, 1)])
    }
    assert_same(better, after, feeds, rtol=1e-4)
    # 100 N + 100 N against 1000 + 100 N: which is better depends on N
    unclear = product(build, [("N", 10), (10, 10), (10, 10)])
    assert reorder_matrix_chains(unclear).graph is unclear


def test_intermediate_results_that_others_read_stay(build):
    graph = product(build, [(8, 9), (9, 10), (10, 1)])
    nodes = (*graph.nodes, Node("r", "Relu", ("t0",), ("z",)))
    tensors = {**graph.tensors, "z": build({"z": ("float32", (8, 10))}, [], []).tensor("z")}
    shared = graph.rewrite(nodes, tensors, ["y", "z"])
    assert reorder_matrix_chains(shared).graph is shared
    exposed = graph.rewrite(graph.nodes, outputs=["y", "t0"])
    assert reorder_matrix_chains(exposed).graph is exposed


def test_long_chains_are_cut(build):
    length = 2 * MAX_CHAIN + 10
    graph = product(build, [(4, 4)] * length + [(4, 1)])
    after, _ = simplify(graph)
    ops = Counter(n.op for n in after.nodes)
    assert ops == {"MatMul": length}
    columns = [after.tensor(n.outputs[0]).shape[-1] for n in after.nodes]
    assert columns.count(1) > MAX_CHAIN
