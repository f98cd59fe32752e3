"""What begins a sum is in one band with it."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc.loops.schedule.attach import attach_beginnings
from tests.loops.against_python import check

RNG = np.random.default_rng(5)


@polyc.kernel
def windows(x, w, b, y):
    channels, n = y.shape
    for o in range(channels):
        for i in range(n):
            s = b[o]
            for c in range(w.shape[1]):
                for k in range(3):
                    s += w[o, c, k] * x[c, i + k]
            y[o, i] = max(s, 0.0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_convolution_is_one_band(threads):
    kernel = replace(windows, threads=threads)
    for channels, inputs, n in ((1, 1, 1), (10, 3, 31), (19, 2, 70), (3, 0, 5)):
        x, w = RNG.random((inputs, n + 2)), RNG.random((channels, inputs, 3)) - 0.5
        check(kernel, x, w, RNG.random(channels) - 0.5, np.zeros((channels, n)))
    (kind, *_) = [
        line.strip(" │├└─") for line in kernel.explain().split("domain ")[1].splitlines()[1:]
    ]
    assert kind == "mark  parallel"  # and no sequence of one nest after another


def tree_of(text: str) -> isl.Schedule:
    return isl.Schedule(text)


FILLED = """
{ domain: "[n, m] -> { S[i] : 0 <= i < n; T[i, k] : 0 <= i < n and 0 <= k < m }", child:
  { sequence: [
    { filter: "{ S[i] }", child: { schedule: "[{ S[i] -> [(i)] }]" } },
    { filter: "{ T[i, k] }",
      child: { schedule: "[{ T[i, k] -> [(i)] }, { T[i, k] -> [(k + 3)] }]", permutable: 1 } } ] } }
"""


def _bands(tree: isl.Schedule) -> list[int]:
    found: list[int] = []

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if node.get_type() == isl.schedule_node_type.band:
            found.append(node.band_n_member())
        return node

    tree.get_root().map_descendant_bottom_up(visit)
    return found


def test_what_begins_a_sum_is_at_its_first_iteration():
    sums = "T[i, k] -> T[i, k + 1] : 0 <= i < n and 0 <= k < m - 1"
    order = isl.UnionMap(f"[n, m] -> {{ S[i] -> T[i, k] : 0 <= i < n and 0 <= k < m; {sums} }}")
    tree = attach_beginnings(tree_of(FILLED), order)
    assert _bands(tree) == [2]
    times = tree.get_map().intersect_domain(tree.get_domain())
    assert isl.UnionMap("[n, m] -> { S[i] -> [i, 3, 0] : 0 <= i < n }").is_subset(times)
    assert isl.UnionMap(
        "[n, m] -> { T[i, k] -> [i, k + 3, 1] : 0 <= i < n and 0 <= k < m }"
    ).is_subset(times)


def test_what_many_read_at_the_same_time_stays_before_them():
    order = isl.UnionMap("[n, m] -> { S[i] -> T[i, k] : 0 <= i < n and 0 <= k < m }")
    assert _bands(attach_beginnings(tree_of(FILLED), order)) == [1, 2]


def test_what_is_read_elsewhere_stays_apart():
    sums = "T[i, k] -> T[i, k + 1] : 0 <= i < n and 0 <= k < m - 1"
    others = "S[i] -> T[j, k] : 0 <= i < n and 0 <= j < n and 0 <= k < m"
    order = isl.UnionMap(f"[n, m] -> {{ {others}; {sums} }}")
    assert _bands(attach_beginnings(tree_of(FILLED), order)) == [1, 2]
