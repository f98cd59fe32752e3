"""Swizzled addresses are printed in two parts where that gives the same place."""

from __future__ import annotations

import itertools
import re

import pytest

from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Block, For, Local
from polyc.loopnest.swizzle import Swizzle
from polyc.printing.scope import Scope
from polyc.types.element_types import FLOAT32

T, K, STEP = var("t"), var("k"), var("step")


def scope(swizzle: Swizzle, **counts: int) -> Scope:
    local = Local("tile", FLOAT32, (4096,), "tile", space="shared", swizzle=swizzle)
    place = Scope({}, {}, None).with_array(local)
    for name, count in counts.items():
        place = place.with_loop(For(name, const(0), const(count), 1, Block(())))
    return place


def evaluate(text: str, values: dict[str, int]) -> int:
    """The number that the runtime's macros make of a printed offset."""

    def whole(k: int, shift: int, mask: int) -> int:
        return k ^ (k >> shift & mask)

    def parts(k: int, upper: int, shift: int, mask: int) -> int:
        return (k ^ (upper >> shift & mask)) + upper

    assert re.fullmatch(r"[\w ()*+,-]+", text)
    return int(eval(text, {"PC_SWIZZLE": whole, "PC_SWIZZLE_PARTS": parts}, values))


@pytest.mark.parametrize(
    ("swizzle", "address", "counts", "in_parts"),
    [
        (Swizzle(2, 3, 9), T * 4 + K * 128, {"t": 16, "k": 16}, True),
        (Swizzle(2, 3, 9), T * 4 + K * 128 + 64, {"t": 16, "k": 16}, True),
        (Swizzle(2, 3, 9), T + K * 512 + STEP * 2048, {"t": 64, "k": 4, "step": 3}, True),
        (Swizzle(3, 3, 6), T + K * 64, {"t": 64, "k": 9}, True),
        (Swizzle(2, 3, 9), T * 4 + K * 128, {"t": 33, "k": 16}, False),  # reaches the next part
        (Swizzle(2, 3, 9), T * 4 + K * 128 - 4, {"t": 16, "k": 16}, False),
        (Swizzle(2, 3, 9), T * 4 + K * 24, {"t": 16, "k": 16}, False),
    ],
)
def test_both_parts_make_the_place(swizzle, address, counts, in_parts):
    place = scope(swizzle, **counts)
    text = place.show_offset("tile", address)
    assert ("PARTS" in text) == in_parts
    shift = swizzle.source - swizzle.to
    for numbers in itertools.product(*map(range, counts.values())):
        values = dict(zip(counts, numbers, strict=True))
        k = sum(c * values[a.name] for a, c in address.terms) + address.constant
        if k >= 0:
            assert evaluate(text, values) == k ^ (k >> shift & swizzle.mask)


def test_what_nobody_knows_of_a_variable_stays_whole():
    place = scope(Swizzle(2, 3, 9), k=16)
    assert "PARTS" not in place.show_offset("tile", T * 4 + K * 128)
