"""Recurrent layers, step by step: LSTM, GRU and RNN as products, sums and activations.

    g[t]  =  x[t] Wᵀ + b + h[t-1] Rᵀ            h[t]  =  a few activations of g[t]

The products with x do not wait for h: they are one, over all steps. Each step is a product with R
and a chain of pointwise operators, which becomes one kernel behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_choice, require_rank, require_shape
from polyc.graph.shapes.dims import fixed_all

Operands = Sequence[Tensor | None]
Activation = Callable[[str], str]

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}

_WITH_ALPHA = {"Affine": 1.0, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0,
               "HardSigmoid": 0.2, "Elu": 1.0}  # fmt: skip
_WITH_BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}
_PLAIN = ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus")


@dataclass(frozen=True)
class Layer:
    """The names of a layer's tensors, "" where absent, and its sizes; X is [steps, batch, inputs].

    state: initial_h of [directions, batch, hidden]; cell: initial_c, for LSTM.
    """

    node: Node
    dtype: np.dtype
    steps: int
    batch: int
    hidden: int
    x: str
    weights: str
    recurrence: str
    bias: str
    lengths: str
    state: str
    cell: str
    peepholes: str


def expand_recurrent(node: Node, inputs: Operands) -> Body:
    """All steps of LSTM, GRU or RNN, in one direction or both.

    Raises RuleBroken for shapes and attributes that do not fit, NotFixed for symbolic sizes.
    """
    c = Composer()
    layer = _read_layer(c, node, inputs)
    direction = require_choice(
        node, "direction", "forward", ("forward", "reverse", "bidirectional")
    )
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    require_shape(inputs[1], "W", (len(backwards), *given(inputs[1]).shape[1:]))
    results = [_run_direction(c, layer, d, back) for d, back in enumerate(backwards)]
    axis = c.integers(1)
    rows = [
        c("Concat", *(c("Unsqueeze", ys[t], axis) for ys, *_ in results), axis=1)
        for t in range(layer.steps)
    ]  # each [batch, directions, hidden]
    batch_first = bool(node.get("layout", 0))
    step = c.integers(1 if batch_first else 0)
    y = c("Concat", *(c("Unsqueeze", row, step) for row in rows), axis=1 if batch_first else 0)
    outputs = [y if batch_first else c("Transpose", y, perm=(0, 2, 1, 3))]
    for states in list(zip(*results, strict=True))[1:]:
        place = 1 if batch_first else 0
        where = c.integers(place)
        outputs.append(c("Concat", *(c("Unsqueeze", s, where) for s in states), axis=place))
    return c.body(node.inputs, outputs)


def _read_layer(c: Composer, node: Node, inputs: Operands) -> Layer:
    x = given(inputs[0])
    require_rank(x, "X", 3, 3)
    names = (*node.inputs, *[""] * (8 - len(node.inputs)))
    batch_first = bool(node.get("layout", 0))
    data, state, cell = names[0], names[5], names[6]
    steps, batch, _ = fixed_all(x.shape, "a dimension of X")
    if batch_first:
        steps, batch = batch, steps
        data = c("Transpose", data, perm=(1, 0, 2))
        state = c("Transpose", state, perm=(1, 0, 2)) if state else ""
        cell = c("Transpose", cell, perm=(1, 0, 2)) if cell else ""
    require(steps >= 1, "number of steps", "at least 1", steps, "an empty sequence has no state")
    recurrence = given(inputs[2])
    require_rank(recurrence, "R", 3, 3)
    _, rows, hidden = fixed_all(recurrence.shape, "a dimension of R")
    require(
        rows == GATES[node.op] * hidden, "rows of R", GATES[node.op] * hidden, rows, "correct R"
    )
    stated = node.get("hidden_size", hidden)
    require(stated == hidden, "hidden_size", hidden, stated, "correct the attribute")
    _, w, r, bias, lengths, *_ = names
    return Layer(
        node, x.dtype, steps, batch, hidden, data, w, r, bias, lengths, state, cell, names[7]
    )


def _run_direction(
    c: Composer, layer: Layer, direction: int, backwards: bool
) -> tuple[list[str], str, str]:
    """y of each step, in the order of the input; the last h and the last c."""
    number = c.constant(np.int64(direction))

    def own(name: str) -> str:
        return c("Gather", name, number, axis=0)

    def start(name: str) -> str:
        return own(name) if name else zeros

    zeros = c.constant(np.zeros((layer.batch, layer.hidden), layer.dtype))
    w = c("Transpose", own(layer.weights), perm=(1, 0))
    r = c("Transpose", own(layer.recurrence), perm=(1, 0))
    wide = layer.hidden * GATES[layer.node.op]
    biases: tuple[str, ...] = ("", "")
    if layer.bias:
        sizes = c.integers(wide, wide)
        biases = c.several("Split", 2, own(layer.bias), sizes, axis=0)
    cell = CELLS[layer.node.op](c, layer, _activations(c, layer, direction), r, biases, own)
    projected = c("MatMul", layer.x, w)
    projected = c("Add", projected, biases[0]) if layer.bias else projected
    h, state = start(layer.state), start(layer.cell)
    ys = [""] * layer.steps
    for t in reversed(range(layer.steps)) if backwards else range(layer.steps):
        x = c("Gather", projected, c.constant(np.int64(t)), axis=0)
        y, fresh = cell(x, h, state)
        if layer.lengths:  # beyond its end a sequence gives zeros and keeps its state
            lengths = c("Cast", c("Unsqueeze", layer.lengths, c.integers(1)), to=7)
            runs = c("Less", c.constant(np.int64(t)), lengths)
            ys[t] = c("Where", runs, y, zeros)
            h, state = c("Where", runs, y, h), c("Where", runs, fresh, state)
        else:
            ys[t], h, state = y, y, fresh
    return ys, h, state


Step = Callable[[str, str, str], tuple[str, str]]
"""(projected x, h, c) -> (h, c); c stays what it is in all but LSTM."""

Cell = Callable[
    [Composer, Layer, Sequence[Activation], str, Sequence[str], Callable[[str], str]], Step
]


def _lstm(
    c: Composer, layer: Layer, activations: Sequence[Activation], r: str,
    biases: Sequence[str], own: Callable[[str], str],
) -> Step:  # fmt: skip
    """i, o, f, c = gates; C = f * C + i * g(c); H = o * h(C), with peepholes at C."""
    f, g, h = activations
    size = layer.hidden
    quarters = c.integers(size, size, size, size)
    peep: tuple[str, ...] = ("", "", "")
    if layer.peepholes:
        peep = c.several("Split", 3, own(layer.peepholes), c.integers(size, size, size), axis=0)

    def seen(gate: str, weight: str, state: str) -> str:
        return c("Add", gate, c("Mul", weight, state)) if weight else gate

    def step(x: str, hidden: str, state: str) -> tuple[str, str]:
        gates = _sum(c, x, c("MatMul", hidden, r), biases[1])
        into, out, forget, new = c.several("Split", 4, gates, quarters, axis=1)
        into = f(seen(into, peep[0], state))
        if layer.node.get("input_forget", 0):
            kept = c("Sub", c.constant(1, layer.dtype), into)
        else:
            kept = f(seen(forget, peep[2], state))
        fresh = c("Add", c("Mul", kept, state), c("Mul", into, g(new)))
        return c("Mul", f(seen(out, peep[1], fresh)), h(fresh)), fresh

    return step


def _gru(
    c: Composer, layer: Layer, activations: Sequence[Activation], r: str,
    biases: Sequence[str], own: Callable[[str], str],
) -> Step:  # fmt: skip
    """z, r, h = gates; H = (1 - z) * g(h) + z * H, where r resets H before or after its product."""
    f, g = activations
    size = layer.hidden
    parts = c.integers(2 * size, size)
    halves = c.integers(size, size)
    gates_r, new_r = c.several("Split", 2, r, parts, axis=1)
    gates_b, new_b = ("", "")
    if layer.bias:
        gates_b, new_b = c.several("Split", 2, biases[1], parts, axis=0)

    def step(x: str, hidden: str, state: str) -> tuple[str, str]:
        gates_x, new_x = c.several("Split", 2, x, parts, axis=1)
        gates = f(_sum(c, gates_x, c("MatMul", hidden, gates_r), gates_b))
        update, reset = c.several("Split", 2, gates, halves, axis=1)
        if layer.node.get("linear_before_reset", 0):
            product = _sum(c, c("MatMul", hidden, new_r), new_b)
            new = g(c("Add", new_x, c("Mul", reset, product)))
        else:
            new = g(_sum(c, new_x, c("MatMul", c("Mul", reset, hidden), new_r), new_b))
        rest = c("Sub", c.constant(1, layer.dtype), update)
        return c("Add", c("Mul", rest, new), c("Mul", update, hidden)), state

    return step


def _rnn(
    c: Composer, layer: Layer, activations: Sequence[Activation], r: str,
    biases: Sequence[str], own: Callable[[str], str],
) -> Step:  # fmt: skip
    """H = f(gate)"""
    (f,) = activations

    def step(x: str, hidden: str, state: str) -> tuple[str, str]:
        return f(_sum(c, x, c("MatMul", hidden, r), biases[1])), state

    return step


CELLS: dict[str, Cell] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}


def _sum(c: Composer, first: str, *others: str) -> str:
    """The sum of those that are there."""
    for other in filter(None, others):
        first = c("Add", first, other)
    return first


def _activations(c: Composer, layer: Layer, direction: int) -> list[Activation]:
    """The functions of one direction; numbers are taken by those that have parameters, in turn."""
    node = layer.node
    own = DEFAULTS[node.op]
    names = tuple(node.get("activations", ())) or own * 2
    alphas, betas = list(node.get("activation_alpha", ())), list(node.get("activation_beta", ()))
    chosen: list[Activation] = []
    for name in names[: (direction + 1) * len(own)]:
        if name not in (*_PLAIN, *_WITH_ALPHA):
            raise UnsupportedOp(
                f"{node.op} {node.name!r}: the activation {name!r} is none of the standard's; "
                f"use one of {', '.join((*_PLAIN, *_WITH_ALPHA))}"
            )
        alpha = (alphas.pop(0) if alphas else _WITH_ALPHA[name]) if name in _WITH_ALPHA else 0.0
        beta = (betas.pop(0) if betas else _WITH_BETA[name]) if name in _WITH_BETA else 0.0
        bound = node.get("clip") if len(chosen) % len(own) < 2 else None  # not for h of the cell
        chosen.append(partial(_activate, c, layer.dtype, bound, name, alpha, beta))
    return chosen[direction * len(own) :]


def _activate(
    c: Composer, dtype: np.dtype, bound: float | None, name: str, alpha: float, beta: float, x: str
) -> str:
    """The activation `name` of x, which is first held between -bound and bound."""
    if bound is not None:
        x = c("Clip", x, c.constant(-bound, dtype), c.constant(bound, dtype))
    match name:
        case "Affine":
            return c("Add", c("Mul", x, c.constant(alpha, dtype)), c.constant(beta, dtype))
        case "ScaledTanh":
            curve = c("Tanh", c("Mul", x, c.constant(beta, dtype)))
            return c("Mul", curve, c.constant(alpha, dtype))
        case "HardSigmoid":
            return c(name, x, alpha=alpha, beta=beta)
        case "LeakyRelu" | "ThresholdedRelu" | "Elu":
            return c(name, x, alpha=alpha)
    return c(name, x)
