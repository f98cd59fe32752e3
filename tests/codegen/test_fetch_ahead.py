"""Panels that are fetched ahead: all of the next one, once, and nothing where nobody waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyc
from polyc import Graph, ops
from polyc.codegen.fetch_ahead import MOST_SHARES, fetch_ahead
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import Affine, substitute, var
from polyc.loopnest.instructions import address
from polyc.loopnest.nodes import Block, For, Local, Node, walk_nodes
from polyc.loopnest.prototype import Param
from polyc.loopnest.substitute import substitute_block
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.printing.scope import LINE
from polyc.scop.expr import call
from polyc.target.machine import Target
from polyc.trace import make_trace
from polyc.types.ranges import SizeRange, assume
from tests.analysis.nests import F32, at, const, loop, read, run
from tests.sampling import thorough

j, i, c, t, v = (var(name) for name in "jictv")
WIDTH = 16


def product(panels: int, tiles: int, channels: int, taps: int) -> tuple[Block, Param]:
    """acc[v] += x[i, c, t] w[j, c, t, v] for each tile i of rows, and panel j of columns."""
    value = call("mul", read("x", i, c, t), read("w", j, c, t, v))
    lanes = loop("v", WIDTH, run("S", [j, i, c, t, v], at("acc", v), value, "add"), kind="vector")
    tile = Block(
        (loop("c", channels, loop("t", taps, lanes)),),
        (Local("acc", F32, (WIDTH,), "acc", in_registers=True),),
    )
    rows = For("i", const(0), const(3 * tiles), 3, tile)
    body = Block((For("j", const(0), const(panels), 1, Block((rows,))),))
    return body, Param("w", F32, (panels, channels, taps, WIDTH), False)


def places(node: Node, shape: tuple[int, ...], values: Mapping[str, Affine]) -> Iterator[int]:
    """The places that loops fetch, in the order in which they do."""
    match node:
        case Block(body=body):
            for child in body:
                yield from places(child, shape, values)
        case For(kind="sequential"):
            for n in range(node.lower.constant, node.upper.constant, node.step):
                here = {**values, node.var: const(n)}
                for element in node.ahead:
                    yield substitute(address(element, shape), here).constant
                yield from places(node.body, shape, here)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(1, 9), st.integers(1, 7), st.integers(1, 4))
def test_all_of_the_next_panel_is_fetched(panels, tiles, channels, taps):
    body, param = product(panels, tiles, channels, taps)
    after = fetch_ahead(body, {"w"}, [param])
    if tiles == 1:
        assert after == body
        return
    size = channels * taps * WIDTH
    line = LINE // 4
    for panel in range(panels):
        rest = after.body[0].body
        fetched = [*places(rest, param.shape, {"j": const(panel)})]
        ahead = {place // line for place in fetched}
        assert set(range((panel + 1) * size // line, (panel + 2) * size // line)) <= ahead
        assert min(fetched) == (panel + 1) * size
        assert fetched == sorted(fetched)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(1, 12), st.integers(1, 7))
def test_a_panel_is_parted_among_tiles_that_there_are_in_most_calls(hint, tiles, channels):
    """As many as at the hint, or a few: a call with fewer rows than that has all of it fetched."""
    body, param = product(2, tiles, channels, 1)
    panels = body.body[0]
    (rows,) = panels.body.body
    opened = replace(rows, upper=var("m") * 3)
    body = Block((replace(panels, body=Block((opened,))),))
    with assume([SizeRange("m", hint=hint)]):
        after = fetch_ahead(body, {"w"}, [param])
    size, line = channels * WIDTH, LINE // 4
    (rows,) = after.body[0].body.body
    known = substitute_block(Block((rows,)), {"m": const(tiles)})
    fetched = [*places(known, param.shape, {"j": const(0)})]
    lines = {place // line for place in fetched}
    wanted = set(range(size // line, 2 * size // line))
    shares = min(hint, MOST_SHARES)
    assert len(lines & wanted) * shares >= len(wanted) * min(tiles, shares)
    share = -(-WIDTH // shares)
    last = size + share * channels * shares
    assert size <= min(fetched)
    assert max(fetched) < last
    if tiles > shares:  # those behind fetch what the last one has
        per_tile = len(fetched) // tiles
        assert fetched[-per_tile:] == fetched[(shares - 1) * per_tile : shares * per_tile]


def test_of_several_loops_in_one_panel_the_fullest_fetches():
    body, param = product(3, 5, 8, 1)
    (panels,) = body.body
    rest = product(3, 2, 8, 1)[0].body[0].body
    both = Block((For("j", const(0), const(3), 1, Block((*panels.body.body, *rest.body))),))
    after = fetch_ahead(both, {"w"}, [param])
    full, other = after.body[0].body.body
    assert [n for n in walk_nodes(full) if isinstance(n, For) and n.ahead]
    assert not [n for n in walk_nodes(other) if isinstance(n, For) and n.ahead]


@pytest.mark.parametrize("apart", [0, 3])
def test_rows_are_fetched_by_the_tile_before_if_they_lie_side_by_side(apart):
    taps, rows = 20, 6
    x = Param("x", F32, (100, taps + apart), False)
    lanes = [
        loop(
            "v", WIDTH, run("S", [i, t, v], at("acc", v), read("x", i + k, t), "add"), kind="vector"
        )
        for k in range(rows)
    ]
    tile = Block(
        (For("t", const(0), const(taps), 1, Block(tuple(lanes))),),
        (Local("acc", F32, (WIDTH,), "acc", in_registers=True),),
    )
    body = Block((For("i", const(0), const(5 * rows), rows, tile),))
    after = fetch_ahead(body, {"x"}, [x])
    if apart:
        assert after == body
        return
    (whole,) = after.body
    fetched = [*places(whole.body, x.shape, {"i": const(rows)})]
    assert fetched == [2 * rows * taps + rows * k for k in range(taps)]


@pytest.mark.parametrize("arrays", [set(), {"x"}])
def test_other_arrays_are_not_fetched(arrays):
    body, param = product(3, 5, 8, 1)
    assert fetch_ahead(body, arrays, [param]) is body


def layers(channels: int, pixels: int) -> Graph:
    w = np.random.default_rng(1).standard_normal((channels, channels, 1, 1)).astype(np.float32)
    x = ops.input("x", (1, channels, pixels, pixels))
    return Graph.of(y=ops.conv(ops.relu(ops.conv(x, w / 16)), w / 16))


def sources(graph: Graph, target: str) -> str:
    chosen = Options()
    made = run_pipeline(graph, Target.named(target), chosen, make_trace(chosen))
    return "".join(made.sources.values())


@pytest.mark.parametrize("target", ["avx512", thorough("avx2")])
def test_weights_of_small_images_are_fetched_and_those_of_large_ones_are_near(target):
    assert "PC_FETCH(&constant" in sources(layers(256, 7), target)
    assert "PC_FETCH" not in sources(layers(16, 112), target)


@pytest.mark.parametrize("target", ["avx512", thorough("avx2")])
def test_rows_from_afar_are_fetched(target):
    w = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)

    def layer(rows: int) -> Graph:
        return Graph.of(y=ops.matmul(ops.input("x", (rows, 64)), w))

    assert "PC_FETCH(&x" in sources(layer(50000), target)
    assert "PC_FETCH" not in sources(layer(200), target)


def test_who_writes_a_schedule_says_what_is_fetched(tmp_path):
    graph = layers(128, 7)
    options = Options(cache_dir=tmp_path)
    model = polyc.compile(graph, options=options)
    name, text = next((n, s) for n, s in model.schedules.items() if "sink" in s)
    without = " | ".join(d for d in text.split(" | ") if not d.startswith("prefetch"))
    weights = next(word for word in text.split() if word.startswith("constant"))
    x = np.random.default_rng(0).standard_normal((1, 128, 7, 7)).astype(np.float32)
    wanted = model(x)
    for asked in (without, f"prefetch {weights} | {without}"):
        other = polyc.compile(graph, options=options, schedule={name: asked})
        assert ("prefetch" in other.schedules[name]) == ("prefetch" in asked)
        np.testing.assert_array_equal(other(x), wanted)
    with pytest.raises(IllegalSchedule, match="there is no array nothing in this kernel"):
        polyc.compile(graph, options=options, schedule={name: f"prefetch nothing | {without}"})


def test_a_gpu_fetches_by_itself():
    with pytest.raises(IllegalSchedule, match="prefetch constant_0: that is for CPUs"):
        polyc.compile(
            layers(128, 7),
            target="cuda:sm_80",
            schedule={"Conv_0": "prefetch constant_0"},
        )


@pytest.mark.parametrize(("rows", "columns"), [(4, 64), (12, 32), (8, 16)])
def test_a_copy_fetches_the_rows_that_it_copies_next(rows, columns):
    """p[j, i, v] = x[i, j + v], four rows i and 16 columns v at a time."""
    copied = [
        loop("v", WIDTH, run("S", [i, j, v], at("p", j, i + r, v), read("x", i + r, j + v)))
        for r in range(4)
    ]
    vectors = Block(tuple(replace(lanes, kind="vector") for lanes in copied))
    panels = For("j", const(0), const(columns), WIDTH, vectors)
    body = Block((For("i", const(0), const(rows), 4, Block((panels,))),))
    param = Param("x", F32, (rows, columns), False)
    after = fetch_ahead(body, {"x"}, [param])
    fetched = [*places(after, param.shape, {})]
    line = LINE // 4
    ahead = range(4 * columns // line, (rows + 4) * columns // line)
    assert sorted(place // line for place in fetched) == [*ahead]
    assert fetch_ahead(body, set(), [param]) == body


def test_a_sum_over_rows_is_no_copy():
    value = call("mul", read("x", i, j + v), read("w", i))
    lanes = loop("v", WIDTH, run("S", [i, j, v], at("y", j + v), value, "add"), kind="vector")
    panels = For("j", const(0), const(64), WIDTH, Block((lanes,)))
    body = Block((For("i", const(0), const(8), 1, Block((panels,))),))
    assert fetch_ahead(body, {"x"}, [Param("x", F32, (8, 64), False)]) == body
