"""Operators that move elements without computing on them: views, slices, gathers, pads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.builder import Operand, Value, apply, apply_many, as_integers

Ints = Sequence[int]


def reshape(x: Operand, shape: Ints | Value, allowzero: bool = False) -> Value:
    """x in another shape, row by row; one -1 is inferred, a 0 keeps x's extent there."""
    return apply("Reshape", [x, as_integers(shape)], allowzero=int(allowzero))


def flatten(x: Operand, axis: int = 1) -> Value:
    """x[a, b, c] -> y[a, b·c] for axis 1: two dimensions, split before `axis`."""
    return apply("Flatten", [x], axis=axis)


def transpose(x: Operand, perm: Ints | None = None) -> Value:
    """y's dimension i is x's dimension perm[i]; without `perm` the order is reversed."""
    return apply("Transpose", [x], perm=perm)


def squeeze(x: Operand, axes: int | Ints | None = None) -> Value:
    """x[1, 3, 1] -> y[3]: dimensions of extent 1 removed, those in `axes` or all."""
    return apply("Squeeze", [x, as_integers(axes)])


def unsqueeze(x: Operand, axes: int | Ints) -> Value:
    """x[3] -> y[1, 3] for axes 0: dimensions of extent 1 inserted, numbered as in y."""
    return apply("Unsqueeze", [x, as_integers(axes)])


def expand(x: Operand, shape: Ints | Value) -> Value:
    """x broadcast together with `shape`."""
    return apply("Expand", [x, as_integers(shape)])


def concat(tensors: Sequence[Operand], axis: int) -> Value:
    """a[2, 3], b[4, 3] -> y[6, 3] for axis 0."""
    return apply("Concat", tensors, axis=axis)


def split(
    x: Operand, sizes: Ints | None = None, axis: int = 0, parts: int | None = None
) -> tuple[Value, ...]:
    """x[6] -> a[2], b[4] for sizes (2, 4); or `parts` equal ones, the last of which may be less."""
    count = len(sizes) if sizes is not None else parts or 1
    number = count if sizes is None else None
    return apply_many("Split", [x, as_integers(sizes)], count, axis=axis, num_outputs=number)


def slice(
    x: Operand,
    starts: int | Ints,
    ends: int | Ints,
    axes: int | Ints | None = None,
    steps: int | Ints | None = None,
) -> Value:
    """x[start:end:step] along each of `axes`, by default the first ones."""
    return apply("Slice", [x, *map(as_integers, (starts, ends, axes, steps))])


def pad(
    x: Operand,
    pads: Ints,
    value: Operand | None = None,
    axes: Ints | None = None,
    mode: str = "constant",
) -> Value:
    """x with elements added: pads = (begins…, ends…); mode constant, edge, reflect or wrap."""
    return apply("Pad", [x, as_integers(pads), value, as_integers(axes)], mode=mode)


def tile(x: Operand, repeats: Ints) -> Value:
    """x[2, 3] -> y[4, 9] for repeats (2, 3)."""
    return apply("Tile", [x, as_integers(repeats)])


def trilu(x: Operand, k: int = 0, upper: bool = True) -> Value:
    """x[…, i, j] where j ≥ i + k (upper) or j ≤ i + k (lower), and 0 elsewhere."""
    return apply("Trilu", [x, as_integers(k, scalar=True)], upper=int(upper))


def gather(x: Operand, indices: Operand, axis: int = 0) -> Value:
    """y[…, i…, …] = x[…, indices[i…], …] along `axis`."""
    return apply("Gather", [x, indices], axis=axis)


def gather_elements(x: Operand, indices: Operand, axis: int = 0) -> Value:
    """y[i, j] = x[indices[i, j], j] for axis 0."""
    return apply("GatherElements", [x, indices], axis=axis)


def gather_nd(x: Operand, indices: Operand, batch_dims: int = 0) -> Value:
    """y[i…, …] = x[indices[i…, :], …]."""
    return apply("GatherND", [x, indices], batch_dims=batch_dims)


def one_hot(
    indices: Operand, depth: int, values: Operand | Sequence[float] = (0, 1), axis: int = -1
) -> Value:
    """y[i, j] = values[1] where j = indices[i], else values[0], with `depth` columns."""
    off_on = values if isinstance(values, Value | np.ndarray) else np.array(values, np.float32)
    return apply("OneHot", [indices, as_integers(depth, scalar=True), off_on], axis=axis)


def depth_to_space(x: Operand, blocksize: int, mode: str = "DCR") -> Value:
    """x[N, C·b², H, W] -> y[N, C, H·b, W·b]; mode DCR or CRD says how channels are numbered."""
    return apply("DepthToSpace", [x], blocksize=blocksize, mode=mode)


def space_to_depth(x: Operand, blocksize: int) -> Value:
    """x[N, C, H·b, W·b] -> y[N, C·b², H, W]."""
    return apply("SpaceToDepth", [x], blocksize=blocksize)
