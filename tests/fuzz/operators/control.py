"""If, Loop and Scan, with bodies that are small graphs and read tensors from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import BOOL, FLOATS, Value

_SMOOTH = ("Tanh", "Sigmoid", "Relu", "Neg", "Abs", "Softsign", "Atan")


def _chain(b: Builder, source: str, other: str, target: str) -> list[NodeProto]:
    """A few operators of one shape from `source`, and sometimes `other`, to `target`."""
    nodes, at = [], source
    for _ in range(b.integer(1, 3)):
        name = b.name("b")
        if b.chance(0.4):
            nodes.append(
                helper.make_node(b.one_of(("Add", "Mul", "Sub", "Max")), [at, other], [name])
            )
        else:
            nodes.append(helper.make_node(b.one_of(_SMOOTH), [at], [name]))
        at = name
    nodes.append(helper.make_node("Identity", [at], [target]))
    return nodes


def _info(name: str, dtype: np.dtype, shape: Sequence[int] | None = None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


@operator("If", weight=0.6)
def if_(b: Builder, op: str) -> object:
    """Either branch, for a condition that is constant, fed or computed."""
    x = b.pick(FLOATS[:2])
    other = b.pick((x.dtype,), shape=x.shape)
    condition = b.pick((BOOL,), lambda s: s == (), (), fresh=0.4)
    branches = {}
    for branch in ("then_branch", "else_branch"):
        target = b.name("b")
        nodes = _chain(b, x.name, other.name, target)
        branches[branch] = helper.make_graph(nodes, branch, [], [_info(target, x.dtype)])
    return b.add(op, [condition], Kind.SUM, captured=(x, other), **branches)


@operator("Loop", weight=0.6, symbolic=False)
def loop(b: Builder, op: str) -> object:
    """A few steps with a state and what each step gives; the number of steps fed or constant."""
    x = b.pick(FLOATS[:2], lambda s: np.prod(s) < 500)
    other = b.pick((x.dtype,), shape=x.shape)
    trips = b.make((), np.int64, low=1, high=4)
    body, scanned = _loop_body(b, x, other)
    go_on = b.constant(np.array(True))  # without it the reference takes no step
    return b.add(op, [trips, go_on, x], Kind.SUM, captured=(other,), outputs=1 + scanned, body=body)


def _loop_body(b: Builder, x: Value, other: Value) -> tuple[GraphProto, int]:
    step, go_on, state, after, next_ = (b.name("b") for _ in range(5))
    nodes = [helper.make_node("Identity", [go_on], [after]), *_chain(b, state, other.name, next_)]
    outputs = [_info(after, BOOL, ()), _info(next_, x.dtype, x.shape)]
    scanned = b.integer(0, 1)
    if scanned:
        each = b.name("b")
        nodes.append(helper.make_node("Tanh", [next_], [each]))
        outputs.append(_info(each, x.dtype, x.shape))
    inputs = [
        _info(step, np.dtype(np.int64), ()),
        _info(go_on, BOOL, ()),
        _info(state, x.dtype, x.shape),
    ]
    return helper.make_graph(nodes, "body", inputs, outputs), scanned


@operator("Scan", weight=0.6, symbolic=False)
def scan(b: Builder, op: str) -> object:
    """Over the rows of a tensor, in either direction."""
    x = b.pick(
        FLOATS[:2],
        lambda s: len(s) > 1 and 0 < s[0] < 8 and 0 not in s,
        (b.integer(1, 5), b.integer(1, 9)),
    )
    start = b.make(x.shape[1:], x.dtype)
    state, row, next_, each = (b.name("b") for _ in range(4))
    nodes = [*_chain(b, state, row, next_), helper.make_node("Mul", [next_, row], [each])]
    kind = lambda name: _info(name, x.dtype, x.shape[1:])  # noqa: E731
    body = helper.make_graph(nodes, "body", [kind(state), kind(row)], [kind(next_), kind(each)])
    return b.add(
        op, [start, x], Kind.SUM, outputs=2, body=body, num_scan_inputs=1,
        scan_input_directions=[int(b.chance(0.1))],
    )  # fmt: skip


@operator("SequenceConstruct", weight=0.4, symbolic=False)
def sequences(b: Builder, op: str) -> object:
    """A sequence that is built, and joined again."""
    x = b.pick(FLOATS, lambda s: len(s) > 0)
    parts = [x, *(b.pick((x.dtype,), shape=x.shape) for _ in range(b.integer(0, 2)))]
    name, out = b.name("s"), b.name("b")
    nodes = [
        helper.make_node("SequenceConstruct", [p.name for p in parts], [name]),
        helper.make_node(
            "ConcatFromSequence", [name], [out], axis=b.integer(-1, 0), new_axis=b.integer(0, 1)
        ),
    ]
    condition = b.constant(np.array(True))
    same = helper.make_graph(nodes, "same", [], [_info(out, x.dtype)])
    return b.add("If", [condition], Kind.EXACT, captured=parts, then_branch=same, else_branch=same)
