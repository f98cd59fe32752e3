"""Products with weights of few bits, which have a scale for each block along k.

    y[i, j]  =  sum over blocks g of  s[j, g] * (sum over k in g of  x[i, k] * (w[j, k] - z[j, g]))

Weights stay packed in memory, and are unpacked in registers. Where they are 4 bits wide, a word of
32 bits holds eight of a column, and lanes are columns. A number becomes a float where it stands: as
the last digits of a power of two, which is taken off again, exactly.

    part[i, j, g]  +=  x[i, (8 q + 4 h + r) of g] * (float of bits(v & 15 << 4 r | 2^(23 - 4 r))
                       - 2^(23 - 4 r) - 8)                   v = w[j, q of g] >> 16 h

What a zero point is off the middle, 8, is taken off the sum of a block:

    y[i, j]        +=  s[j, g] * (part[i, j, g] - (z[j, g] - 8) * (sum of x[i, g]))

As integers, rows of x are rounded to bytes, block by block, and four products are one in each lane.
A byte holds two weights, t and h of it, for which x is stored apart, so that neighbours in memory
meet neighbours:

    part[i, j, g]  +=  i32((w[j, t of g] >> 4 h) & 15) * i32(xq[i, g, h, t])
    y[i, j]        +=  s[j, g] * sx[i, g] * float(part[i, j, g] - z[j, g] * (sum of xq[i, g]))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import Expr, call, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    absolute,
    constant,
    convert,
    div,
    function,
    gt,
    mul,
    saturated,
    select,
    sub,
)
from polyc.scop.lower.space import Ref, Space
from polyc.types.element_types import FLOAT32, INT8, INT32, UINT8, UINT32

LARGEST = 127
"""The largest byte that a number of x is rounded to; the range is symmetric."""

WORD = 32
"""Bits of a lane."""

DIGITS, BIAS, EXPONENT = 23, 127, 1 << 23
"""Of a float: bits behind the first one, what is added to the exponent, and where that begins."""

shift_left, shift_right = function("shl"), function("shr")
bit_and, bit_or, from_bits = function("bitand"), function("bitor"), partial(call, "from_bits")


@dataclass(frozen=True)
class _Blocks:
    """A product with weights w: uint8[n, blocks, bytes], by its node."""

    ctx: Lowering
    node: Node

    @property
    def bits(self) -> int:
        return int(self.node.attributes["bits"])

    @property
    def middle(self) -> int:
        """The zero point where none is given."""
        return 1 << (self.bits - 1)

    @property
    def packed(self) -> np.ndarray:
        """uint8[n, blocks, bytes]"""
        value = self.ctx.graph.value(self.node.inputs[1])
        assert value is not None, "only constant weights stay packed"
        return np.ascontiguousarray(value)

    @property
    def x(self) -> Ref:
        """[…, k]"""
        return self.ctx.ref(self.node.inputs[0])

    @property
    def scales(self) -> Ref:
        return self.ctx.ref(self.node.inputs[2])

    @property
    def zeros(self) -> Ref | None:
        """uint8 or float32[n, blocks], or none."""
        return self.ctx.ref(self.node.inputs[3]) if self.ctx.has(self.node, 3) else None

    @property
    def block(self) -> int:
        """Weights of one column that share a scale."""
        return int(self.packed.shape[2]) * 8 // self.bits

    @property
    def rows(self) -> dict[str, int]:
        """The iterators over rows of x; one that runs once is left out."""
        outer = self.x.shape[:-1]
        names = [*(f"b{d}" for d in range(len(outer) - 1)), "i"][-len(outer) :] if outer else []
        return {i: n for i, n in zip(names, outer, strict=True) if n != 1}

    @property
    def at(self) -> list[str]:
        """Where a row of x is, in all of its dimensions but the last."""
        kept, outer = iter(self.rows), self.x.shape[:-1]
        return ["0" if n == 1 else next(kept) for n in outer]

    @property
    def columns(self) -> dict[str, int]:
        n, blocks, _ = self.packed.shape
        return {"j": n, "g": blocks}

    def zero(self, space: Space, dtype: np.dtype) -> Expr | None:
        """The zero point of column j and block g; bytes stay bytes in memory."""
        return None if self.zeros is None else cast(space.load(self.zeros, "j", "g"), dtype)

    def constant(self, hint: str, value: np.ndarray) -> Ref:
        return self.ctx.constant(f"{self.node.inputs[1]}_{hint}", value)

    def temporary(self, hint: str, dtype: np.dtype, shape: Sequence[int]) -> Ref:
        return self.ctx.array(f"{self.node.outputs[0]}_{hint}", dtype, shape)

    def add_up(self, term: Expr, space: Space) -> None:
        """y = the sum of a term over all that is neither a row nor a column."""
        kept = [*self.rows, "j"]
        self.ctx.accumulate(self.node, space, kept, term, "add", into=[*self.at, "j"])


@lowers("BlockProduct")
def lower_block_product(ctx: Lowering, node: Node) -> None:
    """y[…, j] = sum of x[…, k] * (b[j, k] - zero[j, block of k]) * scale[j, block of k] over k"""
    blocks = _Blocks(ctx, node)
    if not ctx.in_blocks:
        _multiply_restored(blocks)
    elif node.attributes["integers"]:
        _multiply_integers(blocks)
    else:
        _multiply_floats(blocks)


def _multiply_restored(b: _Blocks) -> None:
    """All weights as floats, w[j, k], and a product with these."""
    ctx, node, halves = b.ctx, b.node, 8 // b.bits
    columns, blocks, count = b.packed.shape
    restored = b.temporary("weights", FLOAT32, [columns, blocks * b.block])
    space = ctx.space(node, **b.columns, t=count, h=halves)
    byte: Expr = space.load(b.constant("packed", b.packed), "j", "g", "t")
    if halves > 1:
        down = space.index(f"{b.bits}*h", UINT8)
        byte = bit_and(shift_right(byte, down), constant((1 << b.bits) - 1, UINT8))
    zero = b.zero(space, FLOAT32) or constant(b.middle, FLOAT32)
    weight = mul(sub(cast(byte, FLOAT32), zero), space.load(b.scales, "j", "g"))
    ctx.assign(node, space, restored, ["j", f"{b.block}*g + {halves}*t + h"], weight)
    space = ctx.space(node, **b.rows, j=columns, k=blocks * b.block)
    b.add_up(mul(space.load(b.x, *b.at, "k"), space.load(restored, "j", "k")), space)


def _multiply_floats(b: _Blocks) -> None:
    """Sums of a block as floats of unpacked weights, then the sum of these times their scales."""
    ctx, node, rows = b.ctx, b.node, b.rows
    total = None if b.zeros is None else _add_up_blocks(b)
    per = WORD // b.bits if b.bits < 8 else 1
    inner = {"q": b.block // per, "h": 2, "r": per // 2} if per > 1 else {"q": b.block}
    space = ctx.space(node, **rows, **b.columns, **inner)
    part = b.temporary("of_block", FLOAT32, [*rows.values(), *b.columns.values()])
    at = f"{b.block}*g + {f'{per}*q + {per // 2}*h + r' if per > 1 else 'q'}"
    product = mul(space.load(b.x, *b.at, at), _unpacked(b, space, per))
    ctx.reduce(node, space, part, [*rows, *b.columns], product, "add")
    end = ctx.space(node, **rows, **b.columns)
    value: Expr = end.load(part, *rows, "j", "g")
    zero = b.zero(end, FLOAT32)
    if zero is not None and total is not None:
        off = sub(zero, constant(b.middle, FLOAT32))
        value = sub(value, mul(off, end.load(total, *rows, "g")))
    b.add_up(mul(value, end.load(b.scales, "j", "g")), end)


def _add_up_blocks(b: _Blocks) -> Ref:
    """[rows, g]: the sum of what x has in a block."""
    groups = {"g": b.columns["g"]}
    total = b.temporary("sum", FLOAT32, [*b.rows.values(), *groups.values()])
    space = b.ctx.space(b.node, **b.rows, **groups, t=b.block)
    x = space.load(b.x, *b.at, f"{b.block}*g + t")
    b.ctx.reduce(b.node, space, total, [*b.rows, "g"], x, "add")
    return total


def _unpacked(b: _Blocks, space: Space, per: int) -> Expr:
    """A weight less the middle of its range, as a float."""
    columns = b.packed.shape[0]
    if per == 1:
        signed = (b.packed ^ np.uint8(b.middle)).view(INT8)
        words = b.constant("bytes", signed.reshape(columns, -1))
        return cast(space.load(words, "j", f"{b.block}*g + q"), FLOAT32)
    words = b.constant("words", b.packed.reshape(columns, -1).view("<u4").astype(UINT32))
    word = space.load(words, "j", f"{b.block // per}*g + q")
    half = shift_right(word, space.index(f"{WORD // 2}*h", UINT32))
    place = space.index(f"{b.bits}*r", UINT32)
    # bits of the float 2^(23 - bits r), of which the last digit that counts is bit  bits r
    power = space.index(f"{EXPONENT * (BIAS + DIGITS)} - {EXPONENT * b.bits}*r", UINT32)
    chosen = bit_and(half, shift_left(constant((1 << b.bits) - 1, UINT32), place))
    value = from_bits(bit_or(chosen, power), dtype=FLOAT32)
    moved = bit_or(power, shift_left(constant(b.middle, UINT32), place))
    return sub(value, from_bits(moved, dtype=FLOAT32))


def _multiply_integers(b: _Blocks) -> None:
    """Sums of a block as integers, then the sum of these times the scales of both factors."""
    ctx, node, rows = b.ctx, b.node, b.rows
    halves = 8 // b.bits
    xq, sx, total = _round_to_bytes(b, halves)
    count = b.packed.shape[2] // 4
    space = ctx.space(node, **rows, **b.columns, q=count, h=halves, r=4)
    words = b.constant("bytes", b.packed.reshape(b.packed.shape[0], -1))
    byte: Expr = space.load(words, "j", f"{4 * count}*g + 4*q + r")
    if halves > 1:
        down = space.index(f"{b.bits}*h", UINT8)
        byte = bit_and(shift_right(byte, down), constant((1 << b.bits) - 1, UINT8))
    other = space.load(xq, *rows, "g", "h", "4*q + r")
    part = b.temporary("of_block", INT32, [*rows.values(), *b.columns.values()])
    product = mul(cast(byte, INT32), cast(other, INT32))
    ctx.reduce(node, space, part, [*rows, *b.columns], product, "add")
    end = ctx.space(node, **rows, **b.columns)
    whole, moved = end.load(part, *rows, "j", "g"), end.load(total, *rows, "g")
    if b.zeros is None or b.zeros.dtype == UINT8:
        zero = b.zero(end, INT32) or constant(b.middle, INT32)
        value = cast(sub(whole, mul(moved, zero)), FLOAT32)
    else:
        value = sub(cast(whole, FLOAT32), mul(cast(moved, FLOAT32), end.load(b.zeros, "j", "g")))
    scale = mul(end.load(sx, *rows, "g"), end.load(b.scales, "j", "g"))
    b.add_up(mul(value, scale), end)


def _round_to_bytes(b: _Blocks, halves: int) -> tuple[Ref, Ref, Ref]:
    """x as bytes, [rows, g, h, t] of element halves*t + h of block g; their scale; their sum."""
    ctx, node, rows, groups = b.ctx, b.node, b.rows, {"g": b.columns["g"]}
    shape = [*rows.values(), *groups.values()]
    most = b.temporary("most", FLOAT32, shape)
    space = ctx.space(node, **rows, **groups, t=b.block)
    x = space.load(b.x, *b.at, f"{b.block}*g + t")
    ctx.reduce(node, space, most, [*rows, "g"], absolute(x), "max")
    sx = b.temporary("scale", FLOAT32, shape)
    space = ctx.space(node, **rows, **groups)
    scale = div(space.load(most, *rows, "g"), constant(LARGEST, FLOAT32))
    ctx.assign(node, space, sx, [*rows, "g"], scale)
    xq = b.temporary("rounded", INT8, [*shape, halves, b.block // halves])
    space = ctx.space(node, **rows, **groups, h=halves, t=b.block // halves)
    element = space.load(b.x, *b.at, f"{b.block}*g + {halves}*t + h")
    divisor = space.load(sx, *rows, "g")
    quotient = div(element, select(gt(divisor, 0), divisor, constant(1, FLOAT32)))
    rounded = convert(saturated(function("round")(quotient), INT8), INT8)
    ctx.assign(node, space, xq, [*rows, "g", "h", "t"], rounded)
    total = b.temporary("sum", INT32, shape)
    space = ctx.space(node, **rows, **groups, h=halves, t=b.block // halves)
    whole = cast(space.load(xq, *rows, "g", "h", "t"), INT32)
    ctx.reduce(node, space, total, [*rows, "g"], whole, "add")
    return xq, sx, total
