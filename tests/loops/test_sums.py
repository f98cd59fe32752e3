"""Declared reductions add up in the order that suits the machine, one after another."""

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc.analysis.conflicts import order_but_sums
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.verify import verify_kernel
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import var
from polyc.loopnest.nodes import For, rewrite_nodes, walk_nodes
from polyc.loopnest.substitute import substitute_block
from polyc.loops.lower.lower import lower
from polyc.loops.read.sizes import Signature
from polyc.loops.run.compile import compile_loops
from polyc.memory.storage import row_major
from polyc.options import Options
from polyc.target.machine import Target
from polyc.types.ranges import assume
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(11)


@polyc.kernel
def convolve(out, w, x):
    filters, height, width = out.shape
    channels, size = w.shape[1], w.shape[2]
    for f in range(filters):
        for y in range(height):
            for z in range(width):
                out[f, y, z] = 0
                for c in range(channels):
                    for i in range(size):
                        for j in range(size):
                            out[f, y, z] += w[f, c, i, j] * x[c, y + i, z + j]


def arguments(filters: int, channels: int, height: int, width: int, size: int = 3) -> tuple:
    def made(*shape: int) -> np.ndarray:
        return RNG.standard_normal(shape).astype(np.float32)

    return (
        made(filters, height, width),
        made(filters, channels, size, size),
        made(channels, height + size - 1, width + size - 1),
    )


@pytest.mark.parametrize("threads", [thorough(1), 2])
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1, 1), (9, 2, 1, 48), (10, 3, 2, 50), (2, 1, 3, 5, 1), (0, 1, 2, 3), (11, 5, 4, 17)],
)
def test_a_convolution_is_right_at_its_borders(shape, threads):
    check(replace(convolve, threads=threads), *arguments(*shape), tolerance=1e-4)


def test_a_convolution_keeps_boxes_of_results_in_registers():
    convolve(*arguments(9, 2, 3, 50))
    assert "boxes in registers: S1" in convolve.explain()


@polyc.kernel
def smooth(y, h, x):
    for i in range(len(y)):
        for j in range(len(h)):
            y[i] += h[j] * x[i + j]


def test_lanes_along_results_need_no_sum_at_the_end():
    for n, m in [(1, 1), (70, 3), (5, 40), (300, 9)]:
        check(smooth, RNG.random(n), RNG.random(m), RNG.random(n + m - 1))
    assert "reduction" not in smooth.source


SIGNATURE = Signature(
    {
        "out": polyc.f32[None, None, None],
        "w": polyc.f32["f", "c", "k", "k"],
        "x": polyc.f32[None, None, None],
    }
)


def verify(kernel, *, any_order):
    scop = lower(convolve.function, SIGNATURE).scop
    storages = {name: row_major(array) for name, array in scop.arrays.items()}
    names = {name: name for name in scop.arrays}
    with assume(SIGNATURE.sizes):
        verify_kernel(kernel, scop, storages, names, team=True, any_order=any_order)


def test_only_sums_may_run_backwards_and_only_where_that_is_said():
    target = Target.named("avx2")
    compiled = compile_loops(convolve.function, SIGNATURE, target, Options(), usual=False)
    kernel = compiled.kernel
    verify(kernel, any_order=False)
    sums = [n for n in walk_nodes(kernel.body) if isinstance(n, For)][-1]

    def backwards(node):
        if not (isinstance(node, For) and node.var == sums.var):
            return node
        mirrored = node.lower + node.upper - 1 - var(node.var)
        return replace(
            node, kind="sequential", body=substitute_block(node.body, {node.var: mirrored})
        )

    turned = replace(kernel, body=rewrite_nodes(kernel.body, backwards))
    verify(turned, any_order=True)
    with pytest.raises(IllegalSchedule, match="backwards"):
        verify(turned, any_order=False)


def test_sums_in_any_order_are_still_one_after_another():
    target = Target.named("avx2")
    compiled = compile_loops(convolve.function, SIGNATURE, target, Options(), usual=False)
    loops = [n for n in walk_nodes(compiled.kernel.body) if isinstance(n, For)]
    for carrying in loops[-3:]:

        def share(node, name=carrying.var):
            same = isinstance(node, For) and node.var == name
            return replace(node, kind="parallel") if same else node

        shared = replace(compiled.kernel, body=rewrite_nodes(compiled.kernel.body, share))
        with pytest.raises(IllegalSchedule, match="carries a dependence"):
            verify(shared, any_order=True)


def test_who_touches_a_sum_before_or_after_waits_for_all_of_it():
    scop = lower(convolve.function, SIGNATURE).bare
    dependences = compute_dependences(scop)
    order = order_but_sums(scop, dependences)
    start = isl.UnionMap("{ S0[f, y, z] -> S1[f, y, z, c, i, j] }")
    assert dependences.reductions.intersect(order).is_empty()
    assert order.is_subset(start)
    points = scop.statements[1].domain
    assert order.range().is_equal(isl.UnionSet.from_set(points).intersect(order.range()))
    assert (
        order.intersect(isl.UnionMap("{ S0[f, y, z] -> S1[f, y, z, 1, 1, 1] }")).is_empty() is False
    )


@polyc.kernel
def sum_of_products(y, z):
    n = len(z)
    for i in range(1, n - 1):
        for j in range(1, i):
            for k in range(1, n - 1):
                z[i] += 0.25 * (y[k] * z[j])


def test_tiles_of_one_wavefront_share_no_sum():
    """Between two tiles of it the loop over j goes on, and that over k goes back."""
    for n in (3, 5, 70):
        for threads in (1, 2):
            check(replace(sum_of_products, threads=threads), RNG.random(n), RNG.random(n))


@polyc.kernel
def two_sums(A, x):
    n = len(x)
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            x[j] -= 0.25 * (A[i, j] * A[j - 1, i])
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            x[j] += 0.25 * A[j - 1, i - 1]


def test_a_sum_over_a_loop_that_does_not_run_is_nothing():
    """In most tiles the second sum has no iterations: its bounds there are far apart, backwards."""
    for n in (1, 3, 40, 100):
        check(two_sums, RNG.random((n, n)), RNG.random(n))


def test_a_condition_on_one_sum_is_asked_where_it_is_added():
    @polyc.kernel
    def add(x, index, s):
        for i in range(len(x)):
            if x[i] > 0.5:
                s[0] += x[i]
        for i in range(len(x)):
            if index[i] >= 0:
                s[1] += 1
                if x[index[i]] > 0.2:
                    s[1] += x[i]
        for i in range(len(x)):
            if s[2] < 3:
                s[2] += x[i]
        for i in range(len(x)):
            if index[i]:
                s[3] *= 1 + x[i] / 99

    rng = np.random.default_rng(3)
    for n in (0, 1, 9, 400):
        check(add, rng.random(n), rng.integers(-n - 1, max(n, 1), n), np.array([0.0, 0, 0, 1]))
    assert add.explain().count("= gt(") + add.explain().count("= ge(") == 1
