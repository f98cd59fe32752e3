"""Recurrent layers, which are written out step by step."""

from __future__ import annotations

from polyc.graph.builder import Operand, Value, apply_many


def lstm(
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    initial_c: Operand | None = None,
    direction: str = "forward",
) -> tuple[Value, Value, Value]:
    """x[T, N, I], w[D, 4H, I], r[D, 4H, H], bias[D, 8H] -> y[T, D, N, H], last h and c[D, N, H].

    Gates in the order i, o, f, c; D is 2 for "bidirectional", else 1; lengths[N] of sequences that
    end before T. Hochreiter and Schmidhuber (1997), with forget gates.
    """
    inputs = [x, w, r, bias, lengths, initial_h, initial_c]
    y, h, c = apply_many("LSTM", inputs, 3, direction=direction)
    return y, h, c


def gru(
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    direction: str = "forward",
    linear_before_reset: bool = False,
) -> tuple[Value, Value]:
    """x[T, N, I], w[D, 3H, I], r[D, 3H, H], bias[D, 6H] -> y[T, D, N, H], the last h[D, N, H].

    Gates in the order z, r, h. Cho et al. (2014).
    """
    inputs = [x, w, r, bias, lengths, initial_h]
    flags = {"direction": direction, "linear_before_reset": int(linear_before_reset)}
    y, h = apply_many("GRU", inputs, 2, **flags)
    return y, h


def rnn(
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    direction: str = "forward",
) -> tuple[Value, Value]:
    """h = tanh(x wᵀ + h rᵀ + bias) step by step, with shapes as those of `gru` for one gate."""
    y, h = apply_many("RNN", [x, w, r, bias, lengths, initial_h], 2, direction=direction)
    return y, h
