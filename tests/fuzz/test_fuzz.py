"""The generator, and a handful of random graphs; `python -m tests.fuzz` runs others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.builder import Builder, Traits
from tests.fuzz.compare import check
from tests.fuzz.evaluate import Kind
from tests.fuzz.generate import finish, generate
from tests.fuzz.shrink import shrink
from tests.fuzz.values import Rejected, Run, tolerance

SEEDS = range(24)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graph(seed: int):
    outcome = check(generate(seed))
    assert outcome.kind in ("agrees", "peer"), outcome.detail


def test_a_seed_is_always_the_same_graph():
    one, two = generate(7), generate(7)
    assert one.model.SerializeToString() == two.model.SerializeToString()
    assert all(np.array_equal(one.feeds(0)[k], two.feeds(0)[k]) for k in one.feeds(0))


def test_what_cancels_is_known_less_well():
    builder = Builder(np.random.default_rng(1))
    x = builder.feed([np.array([1.0], np.float32)])
    near = builder.constant(np.array([1.0 + 1e-4], np.float32))
    (sine,) = builder.add("Sin", [x], Kind.POINTWISE)
    (other,) = builder.add("Sin", [near], Kind.POINTWISE)
    (difference,) = builder.add("Sub", [sine, other], Kind.POINTWISE)
    limits = [float(np.max(tolerance(v.runs[0], v.dtype))) for v in (sine, difference)]
    sizes = [abs(v.runs[0].shadows[0][0]) for v in (sine, difference)]
    assert limits[1] / sizes[1] > 100 * limits[0] / sizes[0]


def test_what_is_only_moved_must_be_equal():
    builder = Builder(np.random.default_rng(1))
    x = builder.feed([np.array([[1.0, 2.0]], np.float32)])
    (y,) = builder.add("Transpose", [x], Kind.EXACT)
    assert tolerance(y.runs[0], y.dtype) == 0.0


def test_an_index_that_hangs_on_rounding_is_rejected():
    builder = Builder(np.random.default_rng(1))
    x = builder.feed([np.full(64, 0.3, np.float32)])
    (y,) = builder.add("Sin", [x], Kind.POINTWISE)
    with pytest.raises(Rejected, match="hangs on rounding"):
        builder.add("ArgMax", [y], Kind.EXACT)


def test_shrinking_leaves_one_node_of_a_chain():
    builder = Builder(np.random.default_rng(1), Traits())
    x = builder.feed([np.array([1.0, -2.0], np.float32)])
    for op in ("Relu", "Tanh", "Neg"):
        (x,) = builder.add(op, [x], Kind.POINTWISE)
    case = finish(builder)
    last = case.known[x.name]
    wrong = Run(tuple(s + 1 for s in last.runs[0].shadows), exact=False)
    # Then only the peers agree with polyc.
    broken = {**case.known, x.name: type(last)(last.name, last.dtype, (wrong,))}
    small = shrink(type(case)(case.nodes, broken, case.outputs, case.traits), "peer")
    assert [n.op_type for n in small.nodes] == ["Neg"]
