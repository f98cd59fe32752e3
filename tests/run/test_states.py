"""States kept across calls: in place, in turn, and growing; sessions and their errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import onnx
import onnx.parser
import pytest

import polyc
from polyc import cli, ops
from polyc.errors import RuntimeFailure, ShapeError, UnsupportedOp
from polyc.graph.ir import Graph
from polyc.graph.onnx.export import export_onnx
from tests.programs import options

WIDTH, HEADS = 8, 2


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


WEIGHTS = {name: random(WIDTH, WIDTH) * 0.3 for name in "qkvo"}


def decoder(layers=2):
    """Attention of new rows to all rows so far, as a decoder has it."""
    x = rows = ops.input("x", ("rows", WIDTH))
    results, state = {}, {}
    for k in range(layers):
        q, new_keys, new_values = (ops.matmul(rows, WEIGHTS[w]) for w in "qkv")
        keys = ops.concat([ops.input(f"keys.{k}", ("past", WIDTH)), new_keys], axis=0)
        values = ops.concat([ops.input(f"values.{k}", ("past", WIDTH)), new_values], axis=0)
        weights = ops.softmax(ops.matmul(q, ops.transpose(keys)))
        rows = rows + ops.matmul(ops.matmul(weights, values), WEIGHTS["o"])
        results |= {f"new_keys.{k}": keys, f"new_values.{k}": values}
        state |= {f"keys.{k}": f"new_keys.{k}", f"values.{k}": f"new_values.{k}"}
    return Graph.of(y=rows, **results), state, x


def attend(rows, caches):
    """The reference: the decoder's rows, after it has put new ones into the caches."""
    for cache in caches:
        q, k, v = (rows @ WEIGHTS[w] for w in "qkv")
        cache["k"], cache["v"] = np.concatenate([cache["k"], k]), np.concatenate([cache["v"], v])
        scores = q @ cache["k"].T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        rows = rows + weights / weights.sum(1, keepdims=True) @ cache["v"] @ WEIGHTS["o"]
    return rows


def empty_caches(layers=2):
    return [{n: np.zeros((0, WIDTH), np.float32) for n in "kv"} for _ in range(layers)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    graph, state, _ = decoder()
    return polyc.compile(
        graph, options=options(tmp_path_factory.mktemp("cache")), target="baseline", state=state,
        dims={"past": (0, 20), "rows": (1, 20)},
    )  # fmt: skip


def test_a_growing_state_stays_where_it_is(model):
    caches, session = empty_caches(), model.start()
    assert all(s.in_place for s in model.states)
    assert all("keys" not in copy and "values" not in copy for copy in copies(model))
    for step, count in enumerate((5, 1, 1, 3, 1)):
        rows = random(count, WIDTH) + step
        np.testing.assert_allclose(session(rows), attend(rows, caches), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.state["keys.1"], caches[1]["k"], rtol=1e-4, atol=1e-5)
        if step == 0:
            homes = addresses(session)
    assert addresses(session) == homes
    assert session.sizes == {"past": 11}


@pytest.mark.thorough
@pytest.mark.parametrize("capacity", [65, 67, 100, 129])
def test_a_capacity_that_is_no_multiple_of_a_vector(capacity, tmp_path):
    """Rows that are as wide as a quarter of a page are packed: into panels, of rows all along."""
    wide = 256
    past, new = ops.input("past", ("rows", wide)), ops.input("add", ("n", wide))
    rows = ops.concat([past, new], axis=0)
    model = polyc.compile(
        Graph.of(y=ops.softmax(new @ ops.transpose(rows)) @ rows, present=rows),
        options=options(tmp_path), state={"past": "present"},
        dims={"rows": (0, capacity), "n": (1, capacity)},
    )  # fmt: skip
    session, kept = model.start(), np.zeros((0, wide), np.float32)
    for count in (5, 1, 26, 33):
        x = random(count, wide) / 8
        kept = np.concatenate([kept, x])
        scores = x @ kept.T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        expected = weights / weights.sum(1, keepdims=True) @ kept
        np.testing.assert_allclose(session(x), expected, rtol=1e-4, atol=1e-5)
    assert session.sizes == {"rows": 65}
    if capacity > 65:  # what the test is about: a panel that the end of the rows cuts
        assert any("packed" in row.name for row in model.explain().kernels)


def copies(model):
    """What launches move that compute nothing, from one array that the caller sees."""
    return [row.copies for row in model.explain().kernels if row.copies.startswith(("keys", "val"))]


def addresses(session):
    memory = session._memory.buffers
    return {name: [b.ctypes.data for b in buffers] for name, buffers in memory.items()}


def test_sessions_are_apart_and_begin_anew(model):
    one, two = model.start(), model.start()
    rows, other = random(4, WIDTH), random(3, WIDTH)
    first = one(rows)
    two(other)
    assert (one.sizes, two.sizes) == ({"past": 4}, {"past": 3})
    one(other)
    one.reset()
    np.testing.assert_array_equal(one(rows), first)
    given = {**{n: np.zeros((2, WIDTH), np.float32) for n in two.state}, "keys.0": random(2, WIDTH)}
    three = model.start(given)
    assert three.sizes == {"past": 2}
    np.testing.assert_array_equal(three.state["keys.0"], random(2, WIDTH))
    # A call without a session takes states and returns them.
    alone = model.run({"x": rows, **given})
    np.testing.assert_array_equal(three(rows), alone["y"])
    np.testing.assert_array_equal(three.state["values.1"], alone["new_values.1"])
    assert alone["new_keys.0"].shape == (6, WIDTH)


def test_calls_of_a_session_from_several_threads_follow_one_another(model):
    session = model.start()
    threads = [threading.Thread(target=session, args=(random(1, WIDTH),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.sizes == {"past": 8}


def test_a_model_for_other_sizes_goes_on(model, tmp_path):
    graph, state, _ = decoder()
    single = polyc.compile(
        graph, options=options(tmp_path), target="baseline", state=state,
        dims={"past": (0, 20), "rows": 1},
    )  # fmt: skip
    caches, prompt, token = empty_caches(), random(6, WIDTH), random(1, WIDTH)
    session = model.start()
    session(prompt)
    attend(prompt, caches)
    token_by_token = single.start(session)
    for _ in range(3):
        expected = attend(token, caches)
        np.testing.assert_allclose(token_by_token(token), expected, rtol=1e-4, atol=1e-5)
    assert session.sizes == {"past": 9}
    small = polyc.compile(
        graph, options=options(tmp_path), target="baseline", state=state,
        dims={"past": (0, 8), "rows": 1},
    )  # fmt: skip
    with pytest.raises(ShapeError, match="different states"):
        small.start(session)


def test_a_mask_is_as_long_as_the_state_becomes(tmp_path):
    x, mask = ops.input("x", ("n", 4)), ops.input("mask", ("past + n",))
    rows = ops.concat([ops.input("past", ("past", 4)), x], axis=0)
    graph = Graph.of(y=ops.matmul(ops.reshape(mask, (1, -1)), rows), present=rows)
    model = polyc.compile(
        graph, options=options(tmp_path), target="baseline", state={"past": "present"},
        dims={"past": (0, 9), "n": (1, 9)},
    )  # fmt: skip
    assert [str(spec) for spec in model.inputs[:2]] == [
        "x: float32[n, 4]",
        "mask: float32[n + past]",
    ]
    session, seen = model.start(), np.zeros((0, 4), np.float32)
    for count in (2, 3, 1):
        seen = np.concatenate([seen, random(count, 4)])
        given = random(len(seen))
        np.testing.assert_allclose(
            session(x=random(count, 4), mask=given), [given @ seen], rtol=1e-4, atol=1e-5
        )
    with pytest.raises(ShapeError, match=r"n \+ past = 5, where n = 1, past = 6"):
        session(x=random(1, 4), mask=random(5))


def test_after_an_error_a_state_goes_on_as_it_was(tmp_path):
    table = random(5, 3)
    ids, past = ops.input("ids", ("n",), np.int64), ops.input("past", ("past", 3))
    rows = ops.concat([past, ops.gather(table, ids)], axis=0)
    graph = Graph.of(sums=ops.reduce_sum(rows, axes=(0,), keepdims=False), present=rows)
    model = polyc.compile(
        graph, options=options(tmp_path), target="baseline", state={"past": "present"},
        dims={"past": (0, 9), "n": (1, 9)},
    )  # fmt: skip
    session = model.start()
    session([1, 2])
    with pytest.raises(RuntimeFailure, match="out of range"):
        session([3, 7])
    assert session.sizes == {"past": 2}
    np.testing.assert_allclose(session([4]), table[[1, 2, 4]].sum(0), rtol=1e-5)
    np.testing.assert_array_equal(session.state["past"], table[[1, 2, 4]])
    assert list(session.state) == ["past"]
    with pytest.raises(KeyError, match="present"):
        session.state["present"]


def test_what_does_not_fit_is_told(model):
    session = model.start()
    session(random(18, WIDTH))
    with pytest.raises(ShapeError, match=r"past would be 21, but .* past 0 to 20"):
        session(random(3, WIDTH))
    session(random(2, WIDTH))  # nothing has happened, and these fit
    with pytest.raises(ShapeError, match="has no state 'key'"):
        model.start({"key": 1})
    with pytest.raises(ShapeError, match="grows with others"):
        model.start({"keys.0": random(2, WIDTH)})
    with pytest.raises(ShapeError, match="has type float64"):
        model.start({"keys.0": np.zeros((0, WIDTH))})
    with pytest.raises(ShapeError, match=r"has no input 'keys\.0'"):
        session.run({"x": random(1, WIDTH), "keys.0": random(0, WIDTH)})


def refused(graph, state, error, match, tmp_path, **dims):
    with pytest.raises(error, match=match):
        polyc.compile(graph, options=options(tmp_path), target="baseline", state=state, dims=dims)


def test_a_model_that_a_call_completes_keeps_no_states(tmp_path):
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>g (string[2] x) => (bool[2] y) { y = Equal(x, x) }'
    )
    model = polyc.compile(found, options=options(tmp_path), target="baseline")
    assert model.states == ()
    with pytest.raises(UnsupportedOp, match="compiled once"):
        model.start()


def test_what_can_be_no_state_is_refused(tmp_path):
    graph, state, x = decoder(1)
    past = ops.input("past", ("past", WIDTH))
    room = {"past": (0, 9)}
    refused(graph, {"keys": "y"}, ShapeError, "'keys' is no input", tmp_path, **room)
    refused(graph, {"keys.0": "z"}, ShapeError, "'z' is no output", tmp_path, **room)
    refused(graph, {"keys.0": "y", "x": "y"}, ShapeError, "two states", tmp_path, **room)
    refused(graph, state, ShapeError, "how large 'past' may get", tmp_path)
    refused(graph, state, ShapeError, "no size that may change", tmp_path, past=4)
    other = Graph.of(y=ops.cast(ops.concat([past, x], axis=0), np.float64))
    refused(other, {"past": "y"}, ShapeError, "types must be equal", tmp_path, **room)
    behind = Graph.of(y=ops.concat([x, past], axis=0))
    refused(behind, {"past": "y"}, UnsupportedOp, "overwrites what", tmp_path, **room)
    scaled = Graph.of(y=ops.concat([past * 2.0, x], axis=0))
    in_place = polyc.compile(
        scaled, options=options(tmp_path), target="baseline", state={"past": "y"}, dims=room
    )
    session = in_place.start()
    assert session(random(1, WIDTH)) == ()
    session(random(2, WIDTH))
    expected = np.concatenate([random(1, WIDTH) * 2, random(2, WIDTH)])
    np.testing.assert_array_equal(session.state["past"], expected)


def test_a_recurrence_has_two_buffers_that_change_places(tmp_path):
    """h' = tanh(x W + h U): all of h is read for each element of h'."""
    x, h = ops.input("x", (3, WIDTH)), ops.input("h", (3, WIDTH))
    new = ops.tanh(ops.matmul(x, WEIGHTS["q"]) + ops.matmul(h, WEIGHTS["k"]))
    graph = Graph.of(y=new * 2.0, h1=new)
    model = polyc.compile(graph, options=options(tmp_path), target="baseline", state={"h": "h1"})
    assert [s.in_place for s in model.states] == [False]
    session, want = model.start({"h": random(3, WIDTH)}), random(3, WIDTH)
    seen = set()
    for step in range(3):
        given = random(3, WIDTH) + step
        want = np.tanh(given @ WEIGHTS["q"] + want @ WEIGHTS["k"])
        np.testing.assert_allclose(session(given), want * 2, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.state["h"], want, rtol=1e-4, atol=1e-5)
        seen.add(addresses(session)["h"][0])
    assert len(seen) == 2
    assert not copies(model)


def test_sums_and_caches_of_fixed_size_are_updated_in_place(tmp_path):
    x, total = ops.input("x", (2, 5)), ops.input("total", (5,))
    cache, at = ops.input("cache", (6, 5)), ops.input("at", (2, 5), np.int64)
    filled = ops.scatter_elements(cache, at, x)
    graph = Graph.of(
        mean=ops.reduce_sum(filled, axes=(0,), keepdims=False), new_total=total + ops.reduce_sum(
            x, axes=(0,), keepdims=False), new_cache=filled,
    )  # fmt: skip
    state = {"total": "new_total", "cache": "new_cache"}
    model = polyc.compile(graph, options=options(tmp_path), target="baseline", state=state)
    assert [s.in_place for s in model.states] == [True, True]
    session, want, whole = model.start(), np.zeros((6, 5), np.float32), np.zeros(5, np.float32)
    for step in range(3):
        rows, places = random(2, 5) + step, np.array([[2 * step] * 5, [2 * step + 1] * 5])
        want[2 * step : 2 * step + 2] = rows
        whole += rows.sum(0)
        np.testing.assert_allclose(session(rows, places), want.sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(session.state["cache"], want)
        np.testing.assert_allclose(session.state["total"], whole, rtol=1e-5, atol=1e-5)


def test_an_old_value_that_is_returned_has_an_array_of_its_own(tmp_path):
    x, h = ops.input("x", (4,)), ops.input("h", (4,))
    graph = Graph.of(
        before=h * 1.0,
        shifted=ops.concat([ops.slice(h, [1], [4]), ops.slice(x, [0], [1])], axis=0),
        after=h + x,
    )
    for output, in_place in (("after", False), ("shifted", False)):
        model = polyc.compile(
            graph, options=options(tmp_path), target="baseline", state={"h": output}
        )
        assert [s.in_place for s in model.states] == [in_place]
        session = model.start()
        session(np.arange(4, dtype=np.float32))
        before, *_ = session(np.ones(4, np.float32))
        expected = [0, 1, 2, 3] if output == "after" else [0, 0, 0, 0]
        np.testing.assert_array_equal(before, expected)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_saved_and_exported(model, tmp_path):
    model.save(tmp_path / "saved")
    loaded = polyc.load(tmp_path / "saved")
    rows = random(4, WIDTH)
    one, two = model.start(), loaded.start()
    np.testing.assert_array_equal(one(rows), two(rows))
    np.testing.assert_array_equal(one(rows), two(rows))
    model.export(tmp_path / "c")
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    made = subprocess.run(["make", "-C", str(tmp_path / "c")], capture_output=True, text=True,
                          env=environment, check=False)  # fmt: skip
    assert made.returncode == 0, made.stderr
    done = subprocess.run(["./example"], cwd=tmp_path / "c", capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    header = next((tmp_path / "c").glob("*.h")).read_text()
    assert "io[6] = io[1]" in header


def test_the_command_line_compiles_states(monkeypatch, tmp_path):
    graph, state, _ = decoder(1)
    onnx.save(export_onnx(graph), tmp_path / "decoder.onnx")
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))
    words = [f"--state={given}={result}" for given, result in state.items()]
    folder = tmp_path / "saved"
    command = ["polyc", "compile", str(tmp_path / "decoder.onnx"), "-o", str(folder),
               "--target=baseline", "--size=past=0:20", "--size=rows=1:20", *words]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 0
    session = polyc.load(folder).start()
    rows = random(3, WIDTH)
    np.testing.assert_allclose(session(rows), attend(rows, empty_caches(1)), rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(sys, "argv", [*command[:-1], "--state=keys.0"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 1
