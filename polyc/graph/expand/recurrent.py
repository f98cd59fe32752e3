"""Recurrent layers as loops over steps: LSTM, GRU and RNN as products, sums and activations.

    g[t]  =  x[t] Wᵀ + b + h[t-1] Rᵀ            h[t]  =  a few activations of g[t]

The products with x do not wait for h: they are one, over all steps. Each step is a product with R
and a chain of pointwise operators. Each direction of a layer is a loop of its own: so R, which all
steps read, stays in the second-level cache, where the other one's would take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed_all
from polyc.graph.steps import Loop
from polyc.types.sizes import Extent

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
    steps: Extent
    batch: Extent
    hidden: int
    x: str
    weights: str
    recurrence: str
    bias: str
    lengths: str
    state: str
    cell: str
    peepholes: str


Own = Callable[[str], str]
"""What belongs to one direction, of a tensor that has it for each."""

Product = Callable[[Composer, Own, str], Callable[[str], str]]
"""(…, the name of W or R)  ->  x -> x Wᵀ, with all that it needs besides x computed before."""


def plain_product(c: Composer, own: Own, matrix: str) -> Callable[[str], str]:
    turned = c("Transpose", own(matrix), perm=(1, 0))
    return lambda x: c("MatMul", x, turned)


def expand_recurrent(node: Node, inputs: Operands) -> Body:
    """LSTM, GRU or RNN, in one direction or both.

    Raises RuleBroken for shapes and attributes that do not fit.
    """
    c = Composer()
    return c.body(node.inputs, compose_layer(c, node, inputs, plain_product))


def compose_layer(c: Composer, node: Node, inputs: Operands, product: Product) -> list[str]:
    """The outputs of a layer, whose products are computed as `product` says."""
    layer = _read_layer(c, node, inputs)
    direction = node.get("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    _require_shapes(layer, inputs, len(backwards))
    directions = [_prepare(c, layer, d, product) for d in range(len(backwards))]
    steps = c("Squeeze", c("Shape", layer.x, start=0, end=1), c.integers(0))
    last, ys = [], []
    for one, back in zip(directions, backwards, strict=True):
        loop = Loop(c, steps, one.initial)
        y, *states = _run_step(c, layer, one, loop, back)
        after, (all_y,) = loop.finish(states, [y], [back])
        last.append(after)
        ys.append(all_y)
    batch_first = bool(node.get("layout", 0))
    y = c("Concat", *(c("Unsqueeze", y, c.integers(1)) for y in ys), axis=1)
    outputs = [c("Transpose", y, perm=(2, 0, 1, 3)) if batch_first else y]
    where = c.integers(1 if batch_first else 0)
    for each in zip(*last, strict=True):
        of_directions = [c("Unsqueeze", state, where) for state in each]
        outputs.append(c("Concat", *of_directions, axis=1 if batch_first else 0))
    return outputs[: max(len(node.outputs), 1)]


def _read_layer(c: Composer, node: Node, inputs: Operands) -> Layer:
    x = given(inputs[0])
    require_rank(x, "X", 3, 3)
    names = (*node.inputs, *[""] * (8 - len(node.inputs)))
    batch_first = bool(node.get("layout", 0))
    data, state, cell = names[0], names[5], names[6]
    steps, batch, _ = x.shape
    if batch_first:
        steps, batch = batch, steps
        data = c("Transpose", data, perm=(1, 0, 2))
        state = c("Transpose", state, perm=(1, 0, 2)) if state else ""
        cell = c("Transpose", cell, perm=(1, 0, 2)) if cell else ""
    require(steps != 0, "number of steps", "at least 1", steps, "an empty sequence has no state")
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


def _require_shapes(layer: Layer, inputs: Operands, directions: int) -> None:
    """Raise RuleBroken for weights and states that do not fit; NotFixed as `require_shape`."""
    w, _, bias, lengths, state, cell, peepholes = [*inputs, *[None] * (8 - len(inputs))][1:]
    wide = layer.hidden * GATES[layer.node.op]
    require_shape(w, "W", (directions, wide, given(inputs[0]).shape[2]))
    require_shape(bias, "B", (directions, 2 * wide))
    require_shape(lengths, "sequence_lens", (layer.batch,))
    batch_first = bool(layer.node.get("layout", 0))
    each = (layer.batch, directions) if batch_first else (directions, layer.batch)
    require_shape(state, "initial_h", (*each, layer.hidden))
    require_shape(cell, "initial_c", (*each, layer.hidden))
    require_shape(peepholes, "P", (directions, 3 * layer.hidden))


@dataclass(frozen=True)
class Direction:
    """What one direction reads in each step: its inputs' products, its states before the first one,
    zeros like them, and how a step is computed."""

    projected: str
    initial: tuple[str, ...]
    zeros: str
    cell: Step


def _prepare(c: Composer, layer: Layer, direction: int, product: Product) -> Direction:
    """All that does not wait for the states."""
    number = c.constant(np.int64(direction))

    def own(name: str) -> str:
        return c("Gather", name, number, axis=0)

    sizes = c("Concat", c("Shape", layer.x, start=1, end=2), c.integers(layer.hidden), axis=0)
    zeros = c("ConstantOfShape", sizes, value=np.zeros(1, layer.dtype))
    initial = [layer.state, layer.cell][: 2 if layer.node.op == "LSTM" else 1]
    wide = layer.hidden * GATES[layer.node.op]
    biases: tuple[str, ...] = ("", "")
    if layer.bias:
        biases = c.several("Split", 2, own(layer.bias), c.integers(wide, wide), axis=0)
        if layer.node.op != "GRU":  # where each gate is a plain sum, one bias is enough
            biases = (c("Add", *biases), "")
    activations = _activations(c, layer, direction)
    cell = CELLS[layer.node.op](c, layer, activations, product, biases, own)
    projected = _sum(c, product(c, own, layer.weights)(layer.x), biases[0])
    states = tuple(own(name) if name else zeros for name in initial)
    return Direction(projected, states, zeros, cell)


def _run_step(c: Composer, layer: Layer, one: Direction, loop: Loop, back: bool) -> tuple[str, ...]:
    """y of a step, and the states after it."""
    position = loop.position(back)
    x = c("Gather", one.projected, position, axis=0)
    y, *fresh = one.cell(x, loop.states)
    if not layer.lengths:
        return (y, y, *fresh)
    # beyond its end a sequence gives zeros and keeps its state
    lengths = c("Cast", c("Unsqueeze", layer.lengths, c.integers(1)), to=7)
    runs = c("Less", position, lengths)
    pairs = zip((y, *fresh), loop.states, strict=True)
    return (c("Where", runs, y, one.zeros), *(c("Where", runs, new, old) for new, old in pairs))


Step = Callable[[str, Sequence[str]], tuple[str, ...]]
"""(projected x, states) -> states: h, and the cell of LSTM."""

Cell = Callable[[Composer, Layer, Sequence[Activation], Product, Sequence[str], Own], Step]


def _lstm(
    c: Composer, layer: Layer, activations: Sequence[Activation], product: Product,
    biases: Sequence[str], own: Own,
) -> Step:  # fmt: skip
    """i, o, f, c = gates; C = f * C + i * g(c); H = o * h(C), with peepholes at C."""
    f, g, h = activations
    size, recur = layer.hidden, product(c, own, layer.recurrence)
    quarters = c.integers(size, size, size, size)
    peep: tuple[str, ...] = ("", "", "")
    if layer.peepholes:
        peep = c.several("Split", 3, own(layer.peepholes), c.integers(size, size, size), axis=0)

    def seen(gate: str, weight: str, state: str) -> str:
        return c("Add", gate, c("Mul", weight, state)) if weight else gate

    def step(x: str, states: Sequence[str]) -> tuple[str, ...]:
        hidden, state = states
        gates = c("Add", x, recur(hidden))
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
    c: Composer, layer: Layer, activations: Sequence[Activation], product: Product,
    biases: Sequence[str], own: Own,
) -> Step:  # fmt: skip
    """z, r, h = gates; H = (1 - z) * g(h) + z * H, where r resets H before or after its product."""
    f, g = activations
    size = layer.hidden
    parts = c.integers(2 * size, size)
    halves = c.integers(size, size)
    gates_r, new_r = (
        product(c, lambda part: part, part)
        for part in c.several("Split", 2, own(layer.recurrence), parts, axis=0)
    )
    gates_b, new_b = ("", "")
    if layer.bias:
        gates_b, new_b = c.several("Split", 2, biases[1], parts, axis=0)

    def step(x: str, states: Sequence[str]) -> tuple[str, ...]:
        (hidden,) = states
        gates_x, new_x = c.several("Split", 2, x, parts, axis=1)
        gates = f(_sum(c, gates_x, gates_r(hidden), gates_b))
        update, reset = c.several("Split", 2, gates, halves, axis=1)
        if layer.node.get("linear_before_reset", 0):
            product = _sum(c, new_r(hidden), new_b)
            new = g(c("Add", new_x, c("Mul", reset, product)))
        else:
            new = g(_sum(c, new_x, new_r(c("Mul", reset, hidden)), new_b))
        rest = c("Sub", c.constant(1, layer.dtype), update)
        return (c("Add", c("Mul", rest, new), c("Mul", update, hidden)),)

    return step


def _rnn(
    c: Composer, layer: Layer, activations: Sequence[Activation], product: Product,
    biases: Sequence[str], own: Own,
) -> Step:  # fmt: skip
    """H = f(gate)"""
    (f,) = activations
    recur = product(c, own, layer.recurrence)

    def step(x: str, states: Sequence[str]) -> tuple[str, ...]:
        (hidden,) = states
        return (f(c("Add", x, recur(hidden))),)

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
