"""Nests of kind "mma" as instructions of a warp: fragments of both factors, and their products.

    for am … for im, an, jn, kk:  # mma          u32 left[4 * A], right[2 * B];
      acc[am][an][im][jn] add=            ->     for am: pc_ldmatrix_x4(&left[4 * am], …);
        mul(a[16 am + 8 im + gm][kk],            for an: pc_ldmatrix_x4(&right[2 * an], …);
            b[kk][8 an + 2 tn + jn])             for am, an: pc_mma_…(&acc[…], &left[…], &right[…]);

Which lane has which element of a fragment is said in polyc_cuda_mma.cuh. It is substituted into
the addresses of the nest: register r of the left fragment, say, is what the nest reads at
im = r mod 2 and kk = tn + 4 floor(r/2). So the instructions read and write what the nest does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyc.codegen.cuda.multiply_add import match_multiply_add
from polyc.loopnest.index import (
    Affine,
    const,
    floordiv,
    modulo,
    stride,
    substitute,
    var,
    variables,
)
from polyc.loopnest.index_text import show_index
from polyc.loopnest.nodes import Element, For, Read, extent_of
from polyc.printing.print_c import INDENT
from polyc.printing.scope import Scope
from polyc.types.element_types import scalar_type

LANE = var("PC_LANE")
ROW = 16
"""Bytes of a row of the 8 x 8 matrices that `ldmatrix` loads."""

TYPES = {"f32": "tf32", "bf16": "bf16", "f16": "f16"}
"""What an instruction calls the type of its factors."""


@dataclass(frozen=True)
class Product:
    """A nest of kind "mma": its loops by what they count, and its assignment.

    A row of a warp's tile is 16 am + 8 im + gm, a column 8 an + 2 tn + jn, a step of the sum kk. gm
    and tn are the loops over the lanes around the nest.
    """

    am: For
    im: For
    an: For
    jn: For
    kk: For
    gm: For
    tn: For
    sums: Element
    left: Read
    right: Read


def match_product(nest: For, gm: For, tn: For) -> Product:
    """The product that a nest is, inside loops over lanes."""
    found = match_multiply_add(nest)
    loops = list(found.loops)
    assert [(loop.apart, extent_of(loop)) for loop in (gm, tn)] == [(4, 8), (1, 4)]
    if len(loops) < 5:  # a warp's tile of 16 rows has no loop over am
        loops.insert(0, replace(nest, var="am", upper=const(1)))
    am, im, an, jn, kk = loops
    return Product(am, im, an, jn, kk, gm, tn, found.sums, found.left, found.right)


def print_product(product: Product, scope: Scope, indent: str) -> Iterator[str]:
    """The lines that load the fragments of a product and multiply them."""
    left, right = _Fragments(product, scope, True), _Fragments(product, scope, False)
    sums = scope.address(product.sums)
    assert [stride(sums, loop.var) for loop in (product.im, product.jn)] == [2, 1]
    yield f"{indent}u32 left[{left.registers}], right[{right.registers}];"
    for part in (left, right):
        yield from (f"{indent}{line}" for line in part.load())
    name = f"pc_mma_m16n8k{extent_of(product.kk)}_{TYPES[left.type]}"
    place = show_index(substitute(sums, {product.im.var: const(0), product.jn.var: const(0)}))
    operands = f"&{product.sums.array}[{place}], {left.place()}, {right.place()}"
    call = f"{2 * INDENT}{name}({operands});"
    lines = (*_loop(product.am), *_loop(product.an, inside=1), call)
    yield from (f"{indent}{line}" for line in lines)


def _loop(loop: For, step: int = 1, inside: int = 0) -> list[str]:
    name = loop.var
    head = f"for (int {name} = 0; {name} < {extent_of(loop)}; {name} += {step})"
    return [INDENT * inside + "PC_UNROLL", INDENT * inside + head]


@dataclass(frozen=True)
class _Fragments:
    """The fragments of one factor, of all instructions' tiles below or beside one another."""

    product: Product
    scope: Scope
    is_left: bool

    @property
    def read(self) -> Read:
        return self.product.left if self.is_left else self.product.right

    @property
    def outer(self) -> For:
        """The loop over instructions' tiles."""
        return self.product.am if self.is_left else self.product.an

    @property
    def each(self) -> int:
        """Registers of a lane for each of these tiles."""
        return 4 if self.is_left else 2

    @property
    def registers(self) -> int:
        return self.each * (extent_of(self.outer) or 0)

    @property
    def type(self) -> str:
        return scalar_type(self.read.dtype)

    def place(self, register: int = 0) -> str:
        name = "left" if self.is_left else "right"
        plus = f" + {register}" if register else ""
        return f"&{name}[{self.each} * {self.outer.var}{plus}]"

    def offset(self, row: Affine, high: Affine, step: Affine) -> Affine:
        """Where the nest reads the element at a step of the sum and at a row, or column.

        It is row + 8 high of an instruction's tile; one of 8 columns is followed by the next.
        """
        p = self.product
        if self.is_left:
            values = {p.gm.var: row, p.im.var: high}
        else:  # the column is 2 tn + jn
            values = {p.tn.var: const(0), p.jn.var: row, p.an.var: var(p.an.var) + high}
        address = self.scope.address(self.read.element)
        others = (p.an, p.jn, p.tn) if self.is_left else (p.am, p.im, p.gm)
        assert not variables(address) & {loop.var for loop in others}
        assert self.is_left or stride(address, p.tn.var) == 2 * (stride(address, p.jn.var) or 0)
        return substitute(address, {**values, p.kk.var: step})

    def load(self) -> Iterator[str]:
        """The lines that load the fragments: by matrices if 16 bytes of a row lie together."""
        row, step = "pc_row", "pc_step"
        offset = self.offset(var(row), const(0), var(step))
        if stride(offset, step) == 1:
            yield from self._load_matrices(transposed=False)
        elif stride(offset, row) == 1 and self.read.dtype.itemsize == 2:
            yield from self._load_matrices(transposed=True)
        else:
            yield from self._load_words()

    def _load_matrices(self, transposed: bool) -> Iterator[str]:
        """Four matrices at once: lane l says where row l mod 8 of matrix floor(l/8) is.

        They are two halves of the steps, for both halves of the rows, or for columns of two tiles.
        """
        lane, even, pair = modulo(LANE, 8), modulo(floordiv(LANE, 8), 2), floordiv(LANE, 16)
        high, half = (even, pair) if self.is_left else (pair, even)
        each = ROW // self.read.dtype.itemsize
        if transposed:
            offset = self.offset(const(0), high, lane + half * each)
        else:
            offset = self.offset(lane, high, half * each)
        array, suffix = self.read.element.array, "_transposed" if transposed else ""
        source = f"&{array}[{self.scope.show_offset(array, offset)}]"
        yield from _loop(self.outer, 1 if self.is_left else 2)
        yield f"{INDENT}pc_ldmatrix_x4{suffix}({self.place()}, {source});"
        if self.type == "f32":
            name = "left" if self.is_left else "right"
            yield "PC_UNROLL"
            yield f"for (int r = 0; r < {self.registers}; r++)"
            yield f"{INDENT}{name}[r] = pc_round_tf32(pc_value_f32({name}[r]));"

    def _load_words(self) -> Iterator[str]:
        """Element by element, of 4 bytes."""
        assert self.type == "f32"
        g, t = var(self.product.gm.var), var(self.product.tn.var)
        array = self.read.element.array
        lines = []
        for r in range(self.each):
            high, half = (r % 2, r // 2) if self.is_left else (0, r)
            place = self.scope.show_offset(array, self.offset(g, const(high), t + 4 * half))
            lines.append(f"{self.place(r)[1:]} = pc_round_tf32({array}[{place}]);")
        head, loop = _loop(self.outer)
        yield from (head, f"{loop} {{", *(INDENT + line for line in lines), "}")
