"""Operators that write at positions that are data, or choose elements by their order."""

from __future__ import annotations

from polyc.graph.builder import Operand, Value, apply, apply_many, as_integers


def top_k(x: Operand, k: int, axis: int = -1, largest: bool = True) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along `axis`, in order, and their indices, int64.

    Of equal elements the first comes first; a NaN is larger than all numbers.
    """
    inputs = [x, as_integers(k)]
    values, indices = apply_many("TopK", inputs, 2, axis=axis, largest=int(largest))
    return values, indices


def scatter_elements(
    x: Operand, indices: Operand, updates: Operand, axis: int = 0, reduction: str = "none"
) -> Value:
    """x with y[indices[i, j], j] = updates[i, j] for axis 0.

    reduction: "add", "mul", "max" or "min" of old and new; with "none" no element is written twice.
    """
    return apply("ScatterElements", [x, indices, updates], axis=axis, reduction=reduction)


def scatter_nd(x: Operand, indices: Operand, updates: Operand, reduction: str = "none") -> Value:
    """x with y[indices[i…, :], …] = updates[i…, …]; `reduction` as in `scatter_elements`."""
    return apply("ScatterND", [x, indices, updates], reduction=reduction)


def tensor_scatter(
    past: Operand,
    update: Operand,
    write_indices: Operand | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """A cache with update[b, …, s, …] written at its position write_indices[b] + s of `axis`.

    mode: "circular" goes on at the beginning where the cache ends; "linear" must not reach there.
    """
    return apply("TensorScatter", [past, update, write_indices], axis=axis, mode=mode)


def reverse_sequence(
    x: Operand, lengths: Operand, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    """x[t, b, …] with the first lengths[b] steps of each sequence in reverse."""
    axes = {"batch_axis": batch_axis, "time_axis": time_axis}
    return apply("ReverseSequence", [x, lengths], **axes)
