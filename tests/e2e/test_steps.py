"""Loops over steps: LSTM, GRU and RNN against ONNX Runtime; sizes, proofs, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import polyc
from polyc import Graph, ops
from polyc.analysis.launches.access import verify_program
from polyc.analysis.launches.arena import verify_arena
from polyc.analysis.launches.barriers import verify_barriers
from polyc.analysis.steps import in_any_step
from polyc.errors import IllegalSchedule
from polyc.graph.onnx.export import export_onnx
from polyc.graph.unroll_steps import unroll_steps
from polyc.options import Options
from polyc.program.plan import plan_memory
from polyc.threads.barriers import place_barriers
from tests.damage import prove
from tests.graph.onnx_models import RUNTIME_OPSET
from tests.sampling import thorough

ort = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(7)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(-0.5, 0.5, shape).astype(np.float32)


def layer(op: str, shape: tuple, directions: int = 1, **attributes) -> onnx.ModelProto:
    """One layer with x[steps, batch, inputs] and 6 hidden units."""
    wide = 6 * GATES[op]
    weights = {
        "w": array(directions, wide, shape[2]),
        "r": array(directions, wide, 6),
        "b": array(directions, 2 * wide),
    }
    attributes |= {"direction": "bidirectional"} if directions == 2 else {}
    outputs = ["y", "last", "cell"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(op, ["x", *weights], outputs, hidden_size=6, **attributes)
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    ys = [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs]
    graph = helper.make_graph([node], "layer", [x], ys, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(compiled, model: onnx.ModelProto, x: np.ndarray) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = compiled.run({"x": x})
    for output, want in zip(session.get_outputs(), session.run(None, {"x": x}), strict=True):
        assert got[output.name].shape == want.shape
        np.testing.assert_allclose(got[output.name], want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "directions", "attributes"),
    [
        thorough("LSTM", 2, {}),
        ("LSTM", 1, {"direction": "reverse"}),
        ("GRU", 1, {"linear_before_reset": 1}),
        thorough("GRU", 2, {}),
        ("RNN", 1, {"direction": "reverse"}),
    ],
    ids=str,
)
def test_known_lengths(op, directions, attributes):
    model = layer(op, (9, 3, 5), directions, **attributes)
    check(polyc.compile(model), model, array(9, 3, 5))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_lengths_known_at_run_time(op):
    model = layer(op, ("seq", 2, 5), 1)
    compiled = polyc.compile(model, dims={"seq": (1, 2048)}, options=Options(threads=2))
    for steps in (1, 2, 19):
        check(compiled, model, array(steps, 2, 5))


def decaying_sum(shape: tuple) -> onnx.ModelProto:
    """A Scan over rows: s' = tanh(s w + x[t]), y[t] = s' - s with w from around."""
    declare = helper.make_tensor_value_info
    row = [declare(n, onnx.TensorProto.FLOAT, [1, 4]) for n in ("s", "e", "next", "out")]
    nodes = [
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Add", ["p", "e"], ["q"]),
        helper.make_node("Tanh", ["q"], ["next"]),
        helper.make_node("Sub", ["next", "s"], ["out"]),
    ]
    body = helper.make_graph(nodes, "body", row[:2], row[2:])
    node = helper.make_node(
        "Scan", ["s0", "x"], ["last", "y"], body=body, num_scan_inputs=1,
        scan_input_directions=[1], scan_output_axes=[1],
    )  # fmt: skip
    known = [numpy_helper.from_array(array(4, 4), "w"), numpy_helper.from_array(array(1, 4), "s0")]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    ys = [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in ("last", "y")]
    graph = helper.make_graph([node], "scan", [x], ys, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_scan_is_one_loop_for_all_lengths():
    model = decaying_sum(("n", 1, 4))
    compiled = polyc.compile(model)
    for steps in (1, 3, 40):
        check(compiled, model, array(steps, 1, 4))
    known = decaying_sum((50, 1, 4))
    check(polyc.compile(known), known, array(50, 1, 4))


def running_products(shape: tuple) -> onnx.ModelProto:
    """A Loop over all rows of x: s' = s * 0.5 + x[i], y[i] = s' * i."""
    declare = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["e"]),
        helper.make_node("Mul", ["s", "half"], ["h"]),
        helper.make_node("Add", ["h", "e"], ["next"]),
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Mul", ["next", "f"], ["out"]),
        helper.make_node("Identity", ["going"], ["more"]),
    ]
    body = helper.make_graph(
        nodes, "body",
        [declare("i", 7, []), declare("going", 9, []), declare("s", 1, [3])],
        [declare("more", 9, []), declare("next", 1, [3]), declare("out", 1, [3])],
    )  # fmt: skip
    outer = [
        helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
        helper.make_node("Squeeze", ["rows"], ["n"]),
        helper.make_node("Loop", ["n", "", "s0"], ["last", "y"], body=body),
    ]
    known = [numpy_helper.from_array(array(3), "s0"), numpy_helper.from_array(array(1), "half")]
    x = declare("x", onnx.TensorProto.FLOAT, shape)
    ys = [declare(o, onnx.TensorProto.FLOAT, None) for o in ("last", "y")]
    graph = helper.make_graph(outer, "loop", [x], ys, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_loop_over_all_rows():
    model = running_products(("n", 3))
    compiled = polyc.compile(model)
    for steps in (1, 2, 33):
        check(compiled, model, array(steps, 3))


def test_a_state_that_is_shifted_and_filled():
    """s'[k] = s[k + 1] x[t], with the step's number behind the last: a shift of it, and a fill."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[40, 1] x) => (float[5] last, float[40, 5] y)
        <float[5] s0 = {1, 2, 3, 4, 5}, int64[1] one = {1}, int64[1] end = {5}, int64[5] all =
         {0, 1, 2, 3, 4}, int64[2] pads = {0, 1}, float two = {2}, int64 rows = {40}> {
          last, y = Loop (rows, , s0) <body = step (int64 i, bool c, float[5] s) =>
            (bool more, float[5] next, float[5] out) {
              more = Identity(c)
              e = Gather(x, i)
              tail = Slice(s, one, end)
              scaled = Mul(tail, e)
              next = Pad(scaled, pads, two)
              place = Add(all, i)
              f = Cast<to = 1>(place)
              out = Add(s, f)
            }>
        }""")
    check(polyc.compile(model), model, array(40, 1))


def lstm(steps: int) -> Graph:
    y, last, _ = ops.lstm(ops.input("x", (steps, 2, 5)), array(1, 24, 5), array(1, 24, 6))
    return Graph.of(y=y, last=last)


def test_kernels_do_not_depend_on_the_number_of_steps():
    few, many = (prove(lambda n=n: lstm(n)).compiled for n in (10, 1000))
    assert len(few.program.launches) == len(many.program.launches) <= 8
    repeated = [launch for launch in many.program.launches if launch.step]
    assert {launch.step.steps for launch in repeated} == {1000}


def test_one_step_is_no_loop():
    program = prove(lambda: lstm(1)).compiled.program
    assert not any(launch.step for launch in program.launches)


def bidirectional() -> Graph:
    x = ops.input("x", (7, 2, 5))
    y, _ = ops.gru(x, array(2, 18, 5), array(2, 18, 6), direction="bidirectional")
    return Graph.of(y=y)


def test_launches_in_another_order():
    proven = prove(lambda: lstm(5))
    launches = list(proven.launches)
    inside = [k for k, launch in enumerate(launches) if launch.step]
    first, last = inside[0], inside[-1]
    swapped = list(launches)
    swapped[first], swapped[last] = launches[last], launches[first]
    damaged = [
        swapped,  # within a step
        [
            *launches[:first],
            *launches[last + 1 :],
            *launches[first : last + 1],
        ],  # the loop too late
        launches[first:],  # with no initial state
        [replace(one, step=None) for one in launches],  # one step for all
    ]
    for order in damaged:
        with pytest.raises(IllegalSchedule, match="unwritten"):
            verify_program(order, proven.existing)


def test_states_that_a_later_step_writes_again():
    def damage(one):
        writes = {name: in_any_step(elements, one.step) for name, elements in one.writes.items()}
        return replace(one, writes=writes)

    proven = prove(lambda: lstm(5))
    launches = [damage(one) if one.step else one for one in proven.launches]
    with pytest.raises(IllegalSchedule, match="unwritten"):
        verify_program(launches, proven.existing)


@pytest.mark.parametrize("build", [lambda: lstm(5), thorough(bidirectional)], ids=["lstm", "gru"])
def test_a_missing_barrier_in_a_step_or_between_two(build):
    compiled = prove(build).compiled
    launches, slots = compiled.touched, plan_memory(compiled.program).slots
    placed = place_barriers(launches, slots)
    inside = {k for k, launch in enumerate(launches) if launch.step}
    assert len(placed & inside) >= 2
    verify_barriers(launches, slots, placed)
    for barrier in placed:
        with pytest.raises(IllegalSchedule, match="no barrier stands between them"):
            verify_barriers(launches, slots, placed - {barrier})


def test_arrays_of_a_loop_live_in_all_of_it():
    compiled = prove(bidirectional).compiled
    plan, launches = plan_memory(compiled.program), compiled.touched
    assert verify_arena(plan.slots, plan.arena_bytes, launches) == len(plan.slots)
    loops = {launch.step for launch in launches if launch.step}
    assert len(loops) == 2, "a direction is a loop of its own"
    for loop in loops:
        inside = [k for k, launch in enumerate(launches) if launch.step == loop]
        touched = frozenset[str]().union(*(launches[k].arrays for k in inside))
        for slot in plan.slots:
            if slot.array not in touched:
                continue
            for short in (replace(slot, last=inside[-1] - 1), replace(slot, first=inside[0] + 1)):
                others = [short if s is slot else s for s in plan.slots]
                with pytest.raises(IllegalSchedule, match=r"is not live in launch \d"):
                    verify_arena(others, plan.arena_bytes, launches)


def test_equal_layers_share_kernels():
    h = ops.input("x", (5, 2, 6))
    for _ in range(2):
        h, *_ = ops.lstm(h, array(1, 24, 6), array(1, 24, 6))
        h = ops.squeeze(h, 1)
    graph = Graph.of(y=h)
    program = prove(lambda: graph).compiled.program
    repeated = [launch for launch in program.launches if launch.step]
    assert len({launch.step for launch in repeated}) == 2
    assert len({launch.kernel for launch in repeated}) == len(repeated) // 2
    model = export_onnx(unroll_steps(graph, everything=True), RUNTIME_OPSET)
    check(polyc.compile(graph), model, array(5, 2, 6))


def test_weights_that_are_fed_are_packed_once():
    x, w = ops.input("x", (9, 64, 32)), ops.input("w", (1, 96, 32))
    r = ops.input("r", (1, 96, 32))
    y, _ = ops.gru(x, w, r)
    graph = Graph.of(y=y)
    program = prove(lambda: graph).compiled.program
    packs = [launch for launch in program.launches if launch.copies.startswith("r ")]
    assert packs
    assert not any(launch.step for launch in packs)


def test_states_that_the_next_call_continues():
    w, r = array(1, 24, 5), array(1, 24, 6)
    x = ops.input("x", ("seq", 1, 5))
    h, c = ops.input("h", (1, 1, 6)), ops.input("c", (1, 1, 6))
    y, last, cell = ops.lstm(x, w, r, initial_h=h, initial_c=c)
    stepwise = polyc.compile(
        Graph.of(y=y, last=last, cell=cell), state={"h": "last", "c": "cell"}
    ).start()
    whole, *_ = ops.lstm(ops.input("x", (7, 1, 5)), w, r)
    data = array(7, 1, 5)
    parts = [stepwise(data[:4]), stepwise(data[4:5]), stepwise(data[5:])]
    want = polyc.compile(Graph.of(y=whole))(data)
    np.testing.assert_allclose(np.concatenate(parts), want, rtol=1e-4, atol=1e-6)


def test_steps_are_counted_at_the_hint(tmp_path):
    """Frames of a signal, of which some are cut off: their number is no size that a call says."""
    frames = ops.max_pool(ops.input("x", ("n", 4, "length")), (5,), strides=(2,))
    rows = ops.transpose(ops.slice(frames, 1, -2, 2), (2, 0, 1))
    y, _ = ops.gru(rows, array(1, 3 * 8, 4), array(1, 3 * 8, 8))
    model = polyc.compile(
        Graph.of(y=y),
        hint={"n": 1, "length": 1000},
        options=Options(cache_dir=tmp_path, threads=1),
    )
    steps = (1000 - 5) // 2 + 1 - 3
    (product,) = (k for k in model.explain().kernels if k.steps and "MatMul" in k.name)
    assert product.flops % steps == 0
    assert product.flops // steps >= 2 * 8 * 2 * 8  # of two gates, of four numbers and their sums
