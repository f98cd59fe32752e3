"""Recurrent layers."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOATS, Value

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@operator("RNN", "GRU", "LSTM", weight=0.6)
def recurrent(b: Builder, op: str) -> object:
    """In each direction, with and without biases and initial states."""
    steps, batch = b.integer(1, 5), b.integer(1, 3)
    width, hidden = b.integer(1, 8), b.one_of((1, 3, 4, 8))
    direction = b.one_of(("forward", "forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    gates = _GATES[op]
    dtype = b.one_of((FLOATS[0], FLOATS[0], FLOATS[1]))
    x = b.pick((dtype,), lambda s: len(s) == 3 and s[0] < 7 and s[2] < 40, (steps, batch, width))
    steps, batch, width = x.shape
    inputs: list[Value | None] = [
        x,
        b.make((ways, gates * hidden, width), dtype, high=0.5),
        b.make((ways, gates * hidden, hidden), dtype, high=0.5),
        b.make((ways, 2 * gates * hidden), dtype, high=0.5) if b.chance(0.6) else None,
        None,
        b.make((ways, batch, hidden), dtype) if b.chance(0.5) else None,
    ]
    # Lengths are passed over by the reference, and float64 by ONNX Runtime.
    if b.chance(0.2) and not b.traits.symbolic and dtype == FLOATS[0]:
        inputs[4] = b.make((batch,), np.int32, low=1, high=steps)
    attributes: dict[str, object] = {"direction": direction, "hidden_size": hidden}
    if op == "LSTM":
        inputs += [
            b.make((ways, batch, hidden), dtype) if b.chance(0.5) else None,
            b.make((ways, 3 * hidden), dtype) if b.chance(0.3) else None,
        ]
    if op == "GRU":
        attributes["linear_before_reset"] = b.integer(0, 1)
    outputs = 3 if op == "LSTM" else 2
    return b.add(op, inputs, Kind.SUM, outputs=b.integer(1, outputs), **attributes)
