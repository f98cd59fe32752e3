"""Contractions: MatMul, Gemm and Einsum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from polyc.graph.ir import Dim, Node, Shape
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import (
    broadcast_dims,
    broadcast_shapes,
    require_broadcast_to,
    require_same,
)
from polyc.graph.shapes.rules import Inputs, shape_rule


@shape_rule("MatMul")
def infer_matmul(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(…, m, k), (…, k, n) -> (…, m, n); a vector gets its missing dimension 1, then loses it"""
    a, b = given(inputs[0]), given(inputs[1])
    require_rank(a, "A", least=1)
    require_rank(b, "B", least=1)
    left = a.shape if a.rank > 1 else (1, *a.shape)
    right = b.shape if b.rank > 1 else (*b.shape, 1)
    rule = "last dimension of A must equal the next-to-last of B"
    require_same(left[-1], right[-2], rule, "transpose or reshape one of them")
    batch = broadcast_shapes(left[:-2], right[:-2])
    rows = left[-2:-1] if a.rank > 1 else ()
    columns = right[-1:] if b.rank > 1 else ()
    return ((*batch, *rows, *columns),)


@shape_rule("Gemm")
def infer_gemm(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(m, k), (k, n), C that broadcasts to (m, n) -> (m, n); transA and transB swap an operand"""
    a, b, c = given(inputs[0]), given(inputs[1]), inputs[2]
    require_rank(a, "A", 2, 2)
    require_rank(b, "B", 2, 2)
    rows, depth = reversed(a.shape) if node.get("transA", 0) else a.shape
    height, columns = reversed(b.shape) if node.get("transB", 0) else b.shape
    rule = "columns of A (after transA) must equal rows of B (after transB)"
    require_same(depth, height, rule, "check transA and transB")
    if c is not None:
        require_broadcast_to(c.shape, (rows, columns), "C")
    return ((rows, columns),)


def parse_einsum(
    equation: str, ranks: Sequence[int]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The label of each dimension of each operand, and of the result.

        "b...i,ij->b...j", ranks (4, 2) -> (b ...1 ...0 i, i j), (b ...1 ...0 j)

    The dimensions of an ellipsis are labelled `...0`, `...1` from the right, as they broadcast.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    require(
        len(terms) == len(ranks),
        "operands in the equation",
        len(ranks),
        len(terms),
        "write one term for each input",
    )
    operands = tuple(_expand_term(t, r) for t, r in zip(terms, ranks, strict=True))
    ellipsis = max((_ellipsis_of(o) for o in operands), key=len)
    if arrow:
        stretched = len(ellipsis) if "..." in right else 0
        result = _expand_term(right, len(right.replace("...", "")) + stretched)
    else:
        counts = Counter(label for operand in operands for label in operand)
        result = (*ellipsis, *sorted(s for s, n in counts.items() if n == 1 and len(s) == 1))
    unknown = sorted(set(result) - {label for operand in operands for label in operand})
    require(
        not unknown,
        "labels of the result",
        "labels of the operands",
        unknown,
        "use each result label in an operand",
    )
    require(
        len(set(result)) == len(result),
        "labels of the result",
        "each once",
        right,
        "remove the repeated label",
    )
    return operands, result


@shape_rule("Einsum")
def infer_einsum(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """The extent of each label is what its dimensions broadcast to."""
    tensors = [given(t) for t in inputs]
    operands, result = parse_einsum(node.attributes["equation"], [t.rank for t in tensors])
    extents: dict[str, Dim] = {}
    for tensor, labels in zip(tensors, operands, strict=True):
        for label, dim in zip(labels, tensor.shape, strict=True):
            extents[label] = broadcast_dims(extents.get(label, 1), dim)
    return (tuple(extents[label] for label in result),)


def _expand_term(term: str, rank: int) -> tuple[str, ...]:
    before, ellipsis, after = term.partition("...")
    letters = before + after
    proper = not letters or (letters.isascii() and letters.isalpha())
    require(proper, "a term of the equation", "letters and at most one ...", term, "rewrite it")
    rest = rank - len(letters)
    fits = rest >= 0 if ellipsis else rest == 0
    require(fits, f"labels of the term {term!r}", rank, len(letters), "label each dimension once")
    return (*before, *(f"...{i}" for i in reversed(range(rest))), *after)


def _ellipsis_of(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(label for label in labels if label.startswith("..."))
