"""Loops that instructions run: spelled in vectors, unrolled elsewhere, and the same sums."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Assign, Block, Element, For, Read, lanes_of, walk_nodes
from polyc.scop.expr import Call, Cast
from polyc.target.instructions.rows import Spelled
from polyc.types.element_types import INT8, INT32, UINT8
from tests.codegen.machines import registers
from tests.loopnest.execute import assert_same

j, u, r = var("j"), var("u"), var("r")


def dots(columns: int, terms: int, name: str = "dot4.u8s8") -> Block:
    """y[u, j] add= sum of a[u, r] * b[j, r], of three rows that are written out."""
    factors = (Read(Element("a", (u, r)), UINT8), Read(Element("b", (j, r)), INT8))
    value = Call("mul", tuple(Cast(f, INT32) for f in factors), INT32)
    update = Assign("S", (u, j, r), Element("y", (u, j)), value, INT32, "add")
    inner = For("r", const(0), const(terms), 1, Block((update,)), "instruction", instruction=name)
    rows = For("u", const(0), const(3), 1, Block((inner,)), "unroll")
    return Block((For("j", const(0), const(columns), 1, Block((rows,)), "vector"),))


def arrays(columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(columns)
    return {
        "a": rng.integers(0, 256, (3, 4)).astype(np.uint8),
        "b": rng.integers(-128, 128, (columns, 4)).astype(np.int8),
        "y": rng.integers(-9, 9, (3, columns)).astype(np.int32),
    }


def spelled(block: Block) -> list[int]:
    """The lanes of each instruction that is left."""
    found = []
    for node in walk_nodes(block):
        if isinstance(node, For) and node.kind == "vector":
            kept = [n for n in node.body.body if isinstance(n, For)]
            assert all(isinstance(n.instruction, Spelled) for n in kept)
            found += [lanes_of(node)] * len(kept)
    uses = [n for n in walk_nodes(block) if isinstance(n, For) and n.kind == "instruction"]
    assert len(uses) == len(found)  # none stands outside of lanes
    return found


@pytest.mark.parametrize(
    ("columns", "simd_bytes", "expected"),
    [
        (32, 64, [16] * 6),
        (21, 64, [16] * 6),
        (13, 32, [8, 4] * 3),
        (5, 16, [4] * 3),
        (1, 64, []),
    ],
)
def test_each_vector_is_an_instruction(columns, simd_bytes, expected):
    before = dots(columns, 4)
    after = vectorise(before, registers(simd_bytes))
    assert spelled(after) == expected
    assert_same(before, after, arrays(columns))


@pytest.mark.parametrize("simd_bytes", [16, 32, 64])
@pytest.mark.parametrize("terms", [1, 3])
def test_what_is_left_of_a_sum_is_written_out(terms, simd_bytes):
    before = dots(21, terms)
    after = vectorise(before, registers(simd_bytes))
    assert spelled(after) == []
    assert_same(before, after, arrays(21))


def test_what_the_table_does_not_have_is_written_out():
    before = dots(21, 4, "dot4.of.another.cpu")
    assert spelled(vectorise(before, registers(64))) == []
