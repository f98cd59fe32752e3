"""Nests of kind "wgmma" as products of a warpgroup, whose factors are read from shared memory.

    for ks, am, im, nr, an, jn, kk:  # wgmma          pc_wgmma_fence();
      acc[am][nr][an][im][jn] add= mul(…)      ->     for ks: for am:
                                                        pc_wgmma_m64n256k16_bf16<0, 1>(&acc[…], …);
                                                      pc_wgmma_commit();

The layouts of factors and sums stand in polyc_cuda_hopper.cuh. Steps between elements are read off
the addresses of the nest, so the instructions read and write what the nest does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyc.codegen.cuda.multiply_add import match_multiply_add
from polyc.loopnest.index import Affine, const, stride, substitute, variables
from polyc.loopnest.index_text import show_index
from polyc.loopnest.nodes import Element, For, Read, extent_of
from polyc.printing.print_c import INDENT
from polyc.printing.scope import Scope
from polyc.types.element_types import scalar_type

RUN, ROW, GROUP = 64, 128, 1024
"""Elements in a swizzled row; its bytes; bytes of eight rows, after which the swizzle repeats."""


@dataclass(frozen=True)
class GroupProduct:
    """A nest: its loops by digit, those over threads, and its assignment."""

    loops: dict[str, For]
    lanes: dict[str, For]
    sums: Element
    left: Read
    right: Read

    def count(self, digit: str) -> int:
        return (extent_of(self.loops[digit]) or 1) if digit in self.loops else 1


DIGITS = ("ks", "am", "im", "nr", "an", "jn", "kk")


def match_group_product(nest: For, over: tuple[For, ...]) -> GroupProduct:
    """The product that a nest is, inside loops over the threads of warpgroups."""
    found = match_multiply_add(nest)
    loops = found.loops
    # A loop of one iteration is left out: am where a warpgroup has 64 rows, nr for 64 columns.
    moving = frozenset().union(*map(variables, found.left.element.index))
    down = [loop for loop in loops[1:-3] if loop.var in moving]
    across = [loop for loop in loops[1:-3] if loop.var not in moving]
    present = {"am"} if len(down) > 1 else set()
    present |= {"nr"} if across else set()
    digits = [d for d in DIGITS if d in present or d not in ("am", "nr")]
    lanes = dict(zip(("ww", "gm", "tn"), over[-3:], strict=True))
    assert [(x.apart, extent_of(x)) for x in lanes.values()] == [(32, 4), (4, 8), (1, 4)]
    named = dict(zip(digits, loops, strict=True))
    return GroupProduct(named, lanes, found.sums, found.left, found.right)


def print_group_product(product: GroupProduct, scope: Scope, indent: str) -> Iterator[str]:
    """The lines that begin to multiply all of a tile."""
    sums = scope.address(product.sums)
    inner = ("nr", "an", "im", "jn")
    assert [stride(sums, product.loops[d].var) for d in inner[1:]] == [4, 2, 1]
    columns = 8 * product.count("nr") * product.count("an")
    kind = scalar_type(product.left.dtype)
    left = _operand(product, scope, product.left, ("ww", "im", "gm"), (16, 8, 1), "am")
    right = _operand(product, scope, product.right, ("an", "tn", "jn"), (8, 2, 1), "nr")
    zeros = {product.loops[d].var: const(0) for d in inner if d in product.loops}
    place = show_index(substitute(sums, zeros))
    yield f"{indent}pc_wgmma_fence();"
    for digit in ("ks", "am"):
        if digit in product.loops:
            name = product.loops[digit].var
            yield f"{indent}PC_UNROLL"
            yield f"{indent}for (int {name} = 0; {name} < {product.count(digit)}; {name}++)"
            indent += INDENT
    name = f"pc_wgmma_m64n{columns}k16_{kind}<{left[0]}, {right[0]}>"
    yield f"{indent}{name}(&{product.sums.array}[{place}], {left[1]}, {right[1]}, 1);"
    outer = indent[: len(indent) - len(INDENT) * sum(d in product.loops for d in ("ks", "am"))]
    yield f"{outer}pc_wgmma_commit();"


def _operand(
    product: GroupProduct,
    scope: Scope,
    read: Read,
    digits: tuple[str, ...],
    weights: tuple[int, ...],
    run: str,
) -> tuple[int, str]:
    """(1 if rows, or columns, lie together, or 0 if the steps of the sum; the descriptor).

    digits: those of a place among 64 rows or columns, and what they weigh; run: which 64.
    """
    address = scope.address(read.element)
    variables_ = {**product.loops, **product.lanes}
    step = stride(address, product.loops["kk"].var)
    steps = [stride(address, variables_[d].var) for d in digits]
    size = read.dtype.itemsize
    along_sum = step == 1
    assert steps == [w * (RUN if along_sum else 1) for w in weights]
    assert along_sum or step == RUN
    assert size * RUN == ROW
    far = stride(address, product.loops[run].var) if run in product.loops else 0
    first: dict[str, Affine] = {variables_[d].var: const(0) for d in digits}
    first[product.loops["kk"].var] = const(0)
    leading = ROW // 8
    if run == "nr" and run in product.loops:
        first[product.loops[run].var] = const(0)
        if along_sum:
            assert far == RUN * RUN
        else:
            leading = (far or 0) * size
    assert scope.locals[read.element.array].swizzle is not None
    start = f"&{read.element.array}[{show_index(substitute(address, first))}]"
    return int(not along_sum), f"pc_wgmma_operand({start}, {leading}, {GROUP})"
