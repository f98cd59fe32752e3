"""Sliding windows of convolutions and pools: which input a tap reads, and how many outputs fit.

    output o, tap k  reads input   o * stride + k * dilation - pad_begin      (Conv, pools)
    input i, tap k   adds to output i * stride + k * dilation - pad_begin     (ConvTranspose)

Pure arithmetic, called by shape inference and by the lowering to statements. Rules follow the
standard's texts of Conv, MaxPool and ConvTranspose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from polyc.graph.ir import Dim, Node
from polyc.graph.shapes.checks import attribute_ints, require, require_at_least
from polyc.types.sizes import greatest, least


@dataclass(frozen=True)
class Window:
    """A window resolved in each spatial dimension; all tuples have one entry per dimension.

    pads_begin, pads_end: elements added before and after the input (ConvTranspose: cut off the
        output). With ceil_mode the last window may reach further than pads_end.
    output: the number of output positions.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    output: tuple[int, ...]


def resolve_window(node: Node, input_spatial: Sequence[Dim], kernel: Sequence[int]) -> Window:
    """The window of a Conv or a pool, from its attributes.

        input 8, kernel 3, strides 2, auto_pad SAME_UPPER -> pads (0, 1), output 4

    Raises RuleBroken where attributes do not fit or no window fits, NotFixed for symbolic sizes.
    """
    sizes, strides, dilations = _resolve_common(node, input_spatial, kernel)
    mode = node.get("auto_pad", "NOTSET")
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))
    begin: tuple[int, ...]
    if mode.startswith("SAME"):
        output = tuple(-(-i // s) for i, s in zip(sizes, strides, strict=True))
        total = [
            (o - 1) * s + r - i for o, s, r, i in zip(output, strides, reach, sizes, strict=True)
        ]
        begin, end = _distribute(total, mode)
    else:
        begin, end = _explicit_pads(node, mode, len(sizes))
        ceil = bool(node.get("ceil_mode", 0))
        rows = zip(sizes, reach, strides, begin, end, strict=True)
        output = tuple(_count_windows(*row, ceil) for row in rows)
    _require_outputs(output, sizes, reach)
    return Window(tuple(kernel), strides, dilations, begin, end, output)


def resolve_transposed_window(
    node: Node, input_spatial: Sequence[Dim], kernel: Sequence[int]
) -> Window:
    """The window of a ConvTranspose, from its attributes.

        input 3, kernel 3, strides 2, pads (1, 1), output_padding 1 -> output 6
        input 3, kernel 3, strides 2, output_shape 6 -> pads (1, 0), output 6

    Outputs that no tap reaches hold the bias. Raises as `resolve_window`.
    """
    sizes, strides, dilations = _resolve_common(node, input_spatial, kernel)
    mode = node.get("auto_pad", "NOTSET")
    extra = attribute_ints(node, "output_padding", len(sizes))
    for e, s, d in zip(extra, strides, dilations, strict=True):
        way_out = "make output_padding smaller"
        require(0 <= e < max(s, d), "output_padding", f"0 to {max(s, d) - 1}", e, way_out)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))
    full = [s * (i - 1) + e + r for i, s, e, r in zip(sizes, strides, extra, reach, strict=True)]
    if node.get("output_shape"):
        output = attribute_ints(node, "output_shape", len(sizes))
        begin, end = _distribute([f - o for f, o in zip(full, output, strict=True)], mode)
    elif mode.startswith("SAME"):
        # A kernel smaller than its stride cannot fill input * stride: nothing is cut off then.
        cut = [f - i * s for f, i, s in zip(full, sizes, strides, strict=True)]
        begin, end = _distribute(cut, mode)
        output = tuple(f - b - e for f, b, e in zip(full, begin, end, strict=True))
    else:
        begin, end = _explicit_pads(node, mode, len(sizes))
        output = tuple(f - b - e for f, b, e in zip(full, begin, end, strict=True))
    _require_outputs(output, sizes, reach)
    return Window(tuple(kernel), strides, dilations, begin, end, output)


def _resolve_common(
    node: Node, input_spatial: Sequence[Dim], kernel: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    rank = len(input_spatial)
    way_out = "give one integer per spatial dimension"
    require(len(kernel) == rank, "length of kernel_shape", rank, len(kernel), way_out)
    strides = attribute_ints(node, "strides", rank, default=1)
    dilations = attribute_ints(node, "dilations", rank, default=1)
    # The extents of W may be 0, unlike the attribute.
    positive = all(k >= 1 for k in kernel)
    require(positive, "kernel_shape", "positive integers", kernel, "correct the kernel")
    return tuple(cast("Sequence[int]", input_spatial)), strides, dilations


def _explicit_pads(node: Node, mode: str, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Attribute pads (b0, b1, …, e0, e1, …) -> (b0, b1, …), (e0, e1, …); VALID: zeros."""
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    pads = attribute_ints(node, "pads", 2 * rank)
    return pads[:rank], pads[rank:]


def _distribute(total: Sequence[int], mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split total padding in halves: SAME_UPPER puts the odd element at the end, others first."""
    total = [cast(int, -least(-t, 0)) for t in total]
    small, large = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _count_windows(size: int, reach: int, stride: int, begin: int, end: int, ceil: bool) -> int:
    """floor or ceil of (size + pads - reach) / stride, plus 1."""
    room = size + begin + end - reach
    if not ceil:
        return room // stride + 1
    # A last window that would start in the padding behind the input sees no element: drop it.
    count = -(-room // stride) + 1
    inside = least(count, -(-(size + begin) // stride))
    return cast(int, greatest(count - 1, inside))


def _require_outputs(output: Sequence[int], sizes: Sequence[int], reach: Sequence[int]) -> None:
    way_out = f"the input extents are {sizes}, the window's {reach}: enlarge the input or the pads"
    for extent in output:
        require_at_least(extent, 1, "number of output positions in each dimension", output, way_out)
