"""Kernels in terms of the sizes that they depend on."""

from dataclasses import replace
from itertools import combinations

import islpy as isl
import numpy as np
import pytest

from polyc import Graph, ops
from polyc.analysis.same_values import check_own_sizes
from polyc.backends.common import kernel_scop
from polyc.errors import IllegalSchedule
from polyc.graph.builder import apply
from polyc.mapping.own_sizes import by_own_sizes
from polyc.options import Options
from polyc.pipeline import cluster_model
from polyc.poly.parameters import assumed_of, parameters_of
from polyc.target.machine import Target
from polyc.trace import make_trace
from polyc.types.parameters import Parameter, Renaming, derive, find_derived, identify
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size

SEVERAL = isl.Set("[size_batch] -> { : size_batch > 1 }")


@pytest.fixture
def model():
    """Two poolings and a softmax over channels: the rows halve, and halve again."""
    y = ops.input("x", ("batch", 12, "height", "width"))
    for _ in range(2):
        y = ops.max_pool(y, (2, 2), strides=(2, 2))
    graph = Graph.of(y=ops.softmax(y, axis=1))
    options = Options()
    return cluster_model(graph, Target.named("avx2"), options, make_trace(options))


def test_each_kernel_has_the_sizes_that_its_loops_and_addresses_depend_on(model):
    with assume(model.sizes):
        found = [by_own_sizes(kernel, model.scop.arrays) for kernel in model.kernels]
    first, last = (set(parameters_of(known)) for _, known in found)
    assert last == {"size_batch", "size_floor_height_4", "size_floor_width_4"}
    assert first == last | {
        "size_height",
        "size_width",
        "size_floor_height_2",
        "size_floor_width_2",
    }
    for kernel, known in found:
        assert all(set(parameters_of(s.domain)) <= set(parameters_of(known)) for s in kernel.body)


def test_the_smaller_of_two_parts_no_loops():
    """It is 9 or n; but a loop ends at it, or at n, and not once at one and once at the other."""
    x, weights = ops.input("x", ("n", 8)), np.ones((8, 8), np.float32)
    rows = apply("Gather", [ops.shape_of(x), np.array([0], np.int64)])
    ends = [np.array([0], np.int64), rows, np.array([0], np.int64)]
    part = apply("Slice", [np.ones((9, 8), np.float32), *ends])
    graph = Graph.of(y=x @ weights, z=ops.concat([part, part], axis=0) @ weights)
    options = Options()
    model = cluster_model(graph, Target.named("avx2"), options, make_trace(options))
    with assume(model.sizes):
        found = [by_own_sizes(kernel, model.scop.arrays) for kernel in model.kernels]
    domains = [s.domain for kernel, known in found for s in kernel.body]
    assert any("size_min_9_n" in parameters_of(domain) for domain in domains)
    for domain in domains:
        assert domain.n_basic_set() == 1
        assert len(parameters_of(domain)) <= 1


def test_without_sizes_a_kernel_stays_what_it_is():
    graph = Graph.of(y=ops.relu(ops.input("x", (3, 4))))
    options = Options()
    fixed = cluster_model(graph, Target.named("avx2"), options, make_trace(options))
    (kernel,) = fixed.kernels
    assert by_own_sizes(kernel, fixed.scop.arrays)[0] is kernel


def test_what_follows_for_some_sizes_holds_in_every_call():
    h, r = Size.of("h"), Size.of("r")
    sizes = [SizeRange("h", 3, 100, needs=(h - r * 2, r * 2 + 1 - h)), SizeRange("r")]
    with assume(sizes):
        found = assumed_of(frozenset({"r"}))
    assert found.is_equal(isl.Set("[r] -> { : 1 <= r <= 50 }"))


def test_what_a_size_may_be_by_itself_is_kept():
    """Bounds of loops are simplified by it: the proof shall know no less."""
    h, w = Size.of("h"), Size.of("w")
    tiles, blocks = (h + 31) // 32, (h + 63) // 64
    areas = [tiles * ((w + 31) // 32), blocks * ((w + 63) // 64)]
    sizes = [SizeRange("h", 0, 128, needs=(tiles - 1, blocks - 1)), SizeRange("w", 1, 128)]
    with assume(sizes):
        derived, products = find_derived(areas)
        known = Renaming({"h": "h", "w": "w", **identify(derived)}, products)
        parameters = [*(Parameter.of(size, known) for size in sizes), *derive(derived, known)]
    ends = {
        p.name: isl.Set(f"[{p.name}] -> {{ : {p.lower} <= {p.name} <= {p.upper} }}")
        for p in parameters
    }
    with assume(parameters):
        for pair in combinations(ends, 2):
            found = assumed_of(frozenset(pair))
            assert all(found.is_subset(ends[name]) for name in pair)


def last_writes_one_row(own, known):
    *others, last = own
    zero = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(last.domain.get_space()))
    return (*others, replace(last, write=last.write.set_pw_aff(0, zero))), known


def last_starts_later(own, known):
    *others, last = own
    first = last.domain.lexmin()
    return (*others, replace(last, domain=last.domain.subtract(first))), known


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own, known: (own[:-1], known), "does not execute the statements"),
        (lambda own, known: (own[::-1], known), "differs from"),
        (
            lambda own, known: (own, known.intersect(SEVERAL)),
            "does not hold in every call, e.g. size_batch = 1",
        ),
        (last_starts_later, "in its domain"),
        (last_writes_one_row, "in the elements that it writes"),
    ],
)
def test_a_kernel_that_is_another_by_its_own_sizes_is_refused(model, change, said):
    stored = model.kernels[-1]
    with assume(model.sizes):
        own, known = by_own_sizes(stored, model.scop.arrays)
        stated = kernel_scop("k", stored, model.scop)
        check_own_sizes("k", stated, own.statements, known)
        with pytest.raises(IllegalSchedule, match=said):
            check_own_sizes("k", stated, *change(own.statements, known))
