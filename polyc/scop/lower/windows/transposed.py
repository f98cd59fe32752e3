"""ConvTranspose, one dense convolution for each residue of the output position modulo the stride.

Along one dimension, output  p = stride*u + dilation*r - begin  receives weight[r] * input[u]. For
the outputs  p = stride*v + offset  of one phase, only the taps r with the right residue have
such a u; they are equally spaced, and so are their inputs:

    y[stride*v + offset]  =  sum over m of  weight[last - step*m] * x[v + start + advance*m]

No zeros are inserted, and a stride of 1 is a single phase. Where phases differ by what moves with
their number alone, they are one statement that iterates over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from polyc.graph.ir import Node
from polyc.graph.shapes.window import Window, resolve_transposed_window
from polyc.scop.expr import Expr
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import constant, mul
from polyc.scop.lower.movement.padding import Padding, most_of, pads_input
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import accumulate_into
from polyc.scop.lower.windows.window import (
    add_bias,
    channel_index,
    grouped_channels,
    positions,
    read_padded,
    tap_indices,
    taps,
)
from polyc.types.sizes import Size


@dataclass(frozen=True)
class Phase:
    """The outputs  stride*v + offset  of one dimension, v < count, and what they read."""

    offset: int
    count: int
    taps: int
    last: int
    step: int
    start: int
    advance: int


def compute_phases(
    output: int, kernel: int, stride: int, dilation: int, begin: int
) -> tuple[Phase, ...]:
    """The phases of one dimension that have an output.

    kernel 3, stride 2, begin 0: even outputs read taps 2 and 0, odd outputs tap 1.
    """
    phases = []
    for offset in range(stride if isinstance(output, Size) else min(stride, output)):
        taps = [r for r in range(kernel) if (offset + begin - dilation * r) % stride == 0]
        last = taps[-1] if taps else 0
        step = taps[1] - taps[0] if len(taps) > 1 else 0
        phases.append(
            Phase(
                offset=offset,
                count=-((offset - output) // stride),
                taps=len(taps),
                last=last,
                step=step,
                start=(offset + begin - dilation * last) // stride,
                advance=dilation * step // stride,
            )
        )
    return tuple(phases)


def _transposed_window(ctx: Lowering, node: Node) -> Window:
    spatial, kernel = (ctx.type(name).extents[2:] for name in node.inputs[:2])
    return resolve_transposed_window(node, spatial, kernel)


def _phases_of(window: Window) -> list[tuple[Phase, ...]]:
    columns = (window.output, window.kernel, window.strides, window.dilations, window.pads_begin)
    return [compute_phases(*values) for values in zip(*columns, strict=True)]


@pads_input("ConvTranspose")
def pad_conv_transpose(ctx: Lowering, node: Node) -> Padding:
    """Zeros, as far as the phases reach beside the input."""
    spatial = ctx.type(node.inputs[0]).extents[2:]
    begin, end = [0, 0], [0, 0]
    for phases, extent in zip(_phases_of(_transposed_window(ctx, node)), spatial, strict=True):
        reading = [p for p in phases if p.taps]
        reach = [p.start + p.advance * (p.taps - 1) + p.count for p in reading]
        begin.append(max((0, *(-p.start for p in reading))))
        end.append(max((0, *(most_of(r - extent) for r in reach))))
    return Padding(tuple(begin), tuple(end), 0)


@lowers("ConvTranspose")
def lower_conv_transpose(ctx: Lowering, node: Node) -> None:
    """y[n, o, p…] = bias[o] + sum of x[n, c, u…] * w[c, o, r…] where p = stride*u + dilation*r"""
    padding = pad_conv_transpose(ctx, node)
    source, target = read_padded(ctx, node, padding), ctx.result(node)
    window = _transposed_window(ctx, node)
    united = [found for phases in _phases_of(window) if (found := unite_phases(phases))]
    if len(united) == len(window.output):
        _lower_united(ctx, node, source, target, united, padding.begin[2:])
        return
    for phases in product(*_phases_of(window)):
        slices = [f"{s}*{{}} + {p.offset}" for s, p in zip(window.strides, phases, strict=True)]
        _lower_phases(ctx, node, source, target, slices, phases, padding.begin[2:])


@dataclass(frozen=True)
class United:
    """All phases of one dimension, of which the k-th starts at start + advance*k, and whose last
    tap is last + further*k."""

    first: Phase
    number: int
    starts: int
    further: int


def unite_phases(phases: Sequence[Phase]) -> United | None:
    """The phases as one that moves with a number; None if they differ in more than that.

    So it is if each has as many outputs and taps, for any kernel of twice a stride of 2, and for a
    kernel of a multiple of the stride of which nothing is cut off in front.
    """
    if not phases or not phases[0].taps:
        return None
    first, *others = phases
    starts = others[0].start - first.start if others else 0
    further = others[0].last - first.last if others else 0
    moved = [
        replace(first, offset=k, start=first.start + starts * k, last=first.last + further * k)
        for k in range(len(phases))
    ]
    return United(first, len(phases), starts, further) if [*phases] == moved else None


def _lower_united(
    ctx: Lowering,
    node: Node,
    source: Ref,
    target: Ref,
    united: Sequence[United],
    begin: Sequence[int],
) -> None:
    """All phases in one statement, which iterates over their numbers (yp, xp) as well:

    y[stride*v + k] = sum over m of  weight[last + further*k - step*m] * x[v + start + starts*k + m]
    """
    weight = ctx.ref(node.inputs[1])
    groups, filters = node.get("group", 1), weight.shape[1]
    channels = source.shape[1] // groups
    channel, filter_ = channel_index(groups, channels, "c"), channel_index(groups, filters, "o")
    spatial = positions([u.first.count for u in united])
    kept = {"n": source.shape[0]} | grouped_channels(groups, filters)
    into, at, tap = ["n", filter_], ["n", channel], [channel, "o" if "o" in kept else "0"]
    kernel = [u.first.taps for u in united]
    named = zip(spatial.items(), tap_indices(kernel), united, begin, strict=True)
    for (v, count), m, u, b in named:
        k, p = (f"{v}p" if u.number > 1 else "0"), u.first
        kept |= {v: count} | ({k: u.number} if u.number > 1 else {})
        into.append(f"{u.number}*{v} + {k}")
        at.append(f"{v} + {p.advance}*{m} + {u.starts}*{k} + {p.start + b}")
        tap.append(f"{p.last} + {u.further}*{k} - {p.step}*{m}")
    space = ctx.space(node, **kept, **({"c": channels} if channels != 1 else {}), **taps(kernel))
    value = mul(space.load(source, *at), space.load(weight, *tap))

    def finish(end: Space, total: Expr) -> Expr:
        return add_bias(ctx, node, end, filter_, total)

    accumulate_into(ctx, node, target, space, list(kept), value, "add", finish, into)


def _lower_phases(
    ctx: Lowering,
    node: Node,
    source: Ref,
    target: Ref,
    slices: Sequence[str],
    phases: Sequence[Phase],
    begin: Sequence[int],
) -> None:
    """The outputs of one phase in each dimension; `slices` say where the position {} is written."""
    weight = ctx.ref(node.inputs[1])
    groups, filters = node.get("group", 1), weight.shape[1]
    channels = source.shape[1] // groups
    channel, filter_ = channel_index(groups, channels, "c"), channel_index(groups, filters, "o")
    outer = {"n": source.shape[0]} | grouped_channels(groups, filters)
    spatial = positions([p.count for p in phases])
    kept, kernel = outer | spatial, [p.taps for p in phases]
    into = ["n", filter_, *(s.format(v) for s, v in zip(slices, spatial, strict=True))]

    def finish(end: Space, total: Expr) -> Expr:
        return add_bias(ctx, node, end, filter_, total)

    if 0 in kernel:  # a stride beyond the kernel: nothing reaches these outputs
        space = ctx.space(node, **kept)
        ctx.assign(node, space, target, into, finish(space, constant(0, target.dtype)))
        return
    space = ctx.space(node, **kept, **({"c": channels} if channels != 1 else {}), **taps(kernel))
    named = list(zip(spatial, tap_indices(kernel), phases, begin, strict=True))
    at = [f"{v} + {p.advance}*{m} + {p.start + b}" for v, m, p, b in named]
    tap = [f"{p.last} - {p.step}*{m}" for _, m, p, _ in named]
    value = mul(
        space.load(source, "n", channel, *at),
        space.load(weight, channel, "o" if "o" in kept else "0", *tap),
    )
    accumulate_into(ctx, node, target, space, list(kept), value, "add", finish, into)
