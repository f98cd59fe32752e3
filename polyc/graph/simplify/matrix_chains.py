"""Multiply chains of matrices in the order that costs the fewest operations.

A product of matrices may be taken in any order: (A B) v costs m k n + m n operations, A (B v) only
k n + m k. The classic dynamic programme (Godbole 1973; Cormen et al., "Introduction to Algorithms",
section 15.2) finds the best order of n matrices from the best orders of all their spans.

Two things are added. A product of constants costs nothing, as it is folded at compile time. And a
matrix may carry batch dimensions: a product costs once per batch if either side is batched.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from polyc.graph.ir import Dim, Graph, Node, Shape, Tensor
from polyc.graph.simplify.constant_folding import is_worth_storing
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.sizes import Size

MAX_CHAIN = 128
"""Longest chain ordered as one; the programme is cubic. A longer chain is cut into parts of this
length, each ordered by itself."""

_NOMINAL_EXTENT = 64
"""What a symbolic extent counts for while an order is looked for; whether that order is taken is
then decided for all extents."""

Order: TypeAlias = "int | tuple[Order, Order]"
"""A parenthesisation: the position of a matrix, or a pair of orders that are multiplied."""

Cost: TypeAlias = "Counter[tuple[str, ...]]"
"""Multiply-adds as a polynomial in the symbolic extents: sorted names -> coefficient."""


@dataclass(frozen=True)
class Chain:
    """A product of matrices M_i of shape [extents[i], extents[i + 1]].

    batch: the batch dimensions of the whole; batched[i]: whether M_i has them.
    free: spans (i, n) such that the product of the n matrices from M_i on costs nothing.
    """

    extents: tuple[Dim, ...]
    batched: tuple[bool, ...]
    batch: Shape = ()
    free: frozenset[tuple[int, int]] = frozenset()


def reorder_matrix_chains(graph: Graph) -> Rewritten:
    """Reorder each chain of MatMuls whose intermediate results nobody else reads, if it is cheaper.

    y = MatMul(MatMul(A, B), v)   ->   y = MatMul(A, MatMul(B, v))

    With symbolic extents, an order is taken only where it is no worse for any extent. Sums are
    reassociated, so that results differ by rounding.
    """
    chains = _find_chains(graph)

    def rule(scope: Scope, node: Node) -> Change | None:
        inner = chains.get(node.outputs[0]) if node.outputs else None
        return _reorder(scope, node, inner) if inner else None

    return apply_rule(graph, "matrix_chains", rule)


def find_cheapest_order(chain: Chain) -> Order:
    """The cheapest order of a chain, by Godbole's recurrence over spans (i, n) cut at s.

    cost(i, n) = min over 0 < s < n of cost(i, s) + cost(i + s, n - s) + product(i, s, n)
    """
    count = len(chain.batched)
    sizes = np.array([_nominal(d) for d in chain.extents], np.float64)
    batch = math.prod(_nominal(d) for d in chain.batch)
    before = np.concatenate([[0], np.cumsum(chain.batched)])
    free = np.zeros((count, count + 1), bool)
    for span in chain.free:
        free[span] = True
    cost = np.zeros((count, count + 1))
    best = np.zeros((count, count + 1), np.int64)
    for n in range(2, count + 1):
        i = np.arange(count - n + 1)[:, None]
        s = np.arange(1, n)[None, :]
        repeats = np.where(before[i + n] > before[i], batch, 1)
        product = sizes[i] * sizes[i + s] * sizes[i + n] * repeats
        total = cost[i, s] + cost[i + s, n - s] + product
        best[i[:, 0], n] = 1 + total.argmin(axis=1)
        cost[i[:, 0], n] = np.where(free[i[:, 0], n], 0, total.min(axis=1))

    def build(first: int, length: int) -> Order:
        if length == 1:
            return first
        split = int(best[first, length])
        return build(first, split), build(first + split, length - split)

    return build(0, count)


def compute_cost(chain: Chain, order: Order) -> Cost:
    """The multiply-adds of an order, e.g. 64 N + 4096 as {("N",): 64, (): 4096}."""
    cost: Cost = Counter()

    def add(part: Order) -> tuple[int, int]:
        if isinstance(part, int):
            return part, 1
        (first, left), (_, right) = add(part[0]), add(part[1])
        n = left + right
        if (first, n) not in chain.free:
            repeats = chain.batch if any(chain.batched[first : first + n]) else ()
            dims = (*repeats, *(chain.extents[first + k] for k in (0, left, n)))
            names = sorted(str(d) for d in dims if isinstance(d, Size))
            cost[tuple(names)] += math.prod(d for d in dims if isinstance(d, int))
        return first, n

    add(order)
    return cost


def _nominal(dim: Dim) -> int:
    return dim if isinstance(dim, int) else _NOMINAL_EXTENT


def _find_chains(graph: Graph) -> dict[str, frozenset[str]]:
    """Last result of each chain -> its intermediate results; no result is part of two chains."""
    chains: dict[str, frozenset[str]] = {}
    absorbed: set[str] = set()
    reads = Counter([*graph.outputs, *(i for n in graph.nodes for i in n.inputs)])
    for node in reversed(graph.nodes):
        if _is_product(graph, node) and node.outputs[0] not in absorbed:
            inner = _find_inner_products(graph, node, reads)
            absorbed |= inner
            chains[node.outputs[0]] = inner
    return chains


def _find_inner_products(graph: Graph, root: Node, reads: Counter[str]) -> frozenset[str]:
    """Products above a product that nobody but the chain reads, for up to MAX_CHAIN matrices."""
    inner: set[str] = set()
    pending = list(root.inputs[::-1])
    while pending and len(inner) + 2 < MAX_CHAIN:
        name = pending.pop()
        node = graph.producers.get(name)
        if node is not None and _is_product(graph, node) and reads[name] == 1:
            inner.add(name)
            pending += node.inputs[::-1]
    return frozenset(inner)


def _is_product(graph: Graph, node: Node) -> bool:
    """Whether a node multiplies matrices whose batch dimensions are equal, or absent on a side."""
    if node.op != "MatMul" or node.domain:
        return False
    left, right = (graph.tensor(i).shape for i in node.inputs)
    if len(left) < 2 or len(right) < 2:
        return False
    return left[:-2] == right[:-2] or not left[:-2] or not right[:-2]


def _reorder(scope: Scope, root: Node, inner: frozenset[str]) -> Change | None:
    names: list[str] = []

    def current(name: str) -> Order:
        producer = scope.producer(name)
        if name not in inner or producer is None:
            names.append(name)
            return len(names) - 1
        return current(producer.inputs[0]), current(producer.inputs[1])

    old = (current(root.inputs[0]), current(root.inputs[1]))
    chain = _describe([scope.tensor(n) for n in names])
    new = find_cheapest_order(chain)
    before, after = compute_cost(chain, old), compute_cost(chain, new)
    if not _is_cheaper(after, before):
        return None
    nodes, results = _multiply(scope, root, chain, names, new)
    text = f"{len(names)} matrices of MatMul '{root.name}' multiplied in another order, "
    return Change(text + f"{_show(before)} -> {_show(after)} multiply-adds", nodes, results)


def _is_cheaper(new: Cost, old: Cost) -> bool:
    """Whether a cost is nowhere higher, and not the same, for symbolic extents from 1 on.

    With N = 1 + n, n >= 0, it is enough that no coefficient is higher: 9 N + 90 against 100 N
    is 9 n + 99 against 100 n + 100.
    """
    shifted_new, shifted_old = _shift(new), _shift(old)
    return new != old and all(shifted_new[term] <= shifted_old[term] for term in shifted_new)


def _shift(cost: Cost) -> Cost:
    """The polynomial in n, where each extent N is 1 + n."""
    shifted: Cost = Counter()
    for names, coefficient in cost.items():
        for degree in range(len(names) + 1):
            for kept in itertools.combinations(names, degree):
                shifted[kept] += coefficient
    return shifted


def _describe(factors: list[Tensor]) -> Chain:
    extents = (*(t.shape[-2] for t in factors), factors[-1].shape[-1])
    batch = max((t.shape[:-2] for t in factors), key=len)
    batched = tuple(t.rank > 2 for t in factors)
    starts = {i for i, t in enumerate(factors) if t.is_constant}
    free = {(i, 1) for i in starts}
    n = 1
    while starts:
        n += 1
        # Both shorter spans are free, so that whatever order makes this one is folded all the way.
        longer = {i for i in starts if i + 1 in starts}
        starts = {i for i in longer if _is_foldable(factors, i, n, batch)}
        free |= {(i, n) for i in starts}
    return Chain(extents, batched, batch, frozenset(free))


def _is_foldable(factors: list[Tensor], first: int, n: int, batch: Shape) -> bool:
    """Whether constant folding would store the product of these n constants."""
    span = factors[first : first + n]
    repeats = batch if any(t.rank > 2 for t in span) else ()
    itemsize = span[0].dtype.itemsize
    result = math.prod(map(_nominal, (*repeats, span[0].shape[-2], span[-1].shape[-1])))
    return is_worth_storing(itemsize * result, itemsize * sum(t.size for t in span))


def _multiply(
    scope: Scope, root: Node, chain: Chain, names: list[str], order: Order
) -> tuple[tuple[Node, ...], tuple[Tensor, ...]]:
    """The nodes that multiply in this order; the last one writes what `root` wrote."""
    nodes: list[Node] = []
    results: list[Tensor] = []
    dtype = scope.tensor(root.outputs[0]).dtype

    def emit(part: Order) -> tuple[str, int, int]:
        if isinstance(part, int):
            return names[part], part, 1
        (left, first, before), (right, _, after) = emit(part[0]), emit(part[1])
        n = before + after
        batch = chain.batch if any(chain.batched[first : first + n]) else ()
        shape = (*batch, chain.extents[first], chain.extents[first + n])
        result = scope.result(f"{root.outputs[0]}_part", dtype, shape)
        nodes.append(Node(result.name, "MatMul", (left, right), (result.name,)))
        results.append(result)
        return result.name, first, n

    emit(order)
    nodes[-1] = replace(nodes[-1], name=root.name, outputs=root.outputs)
    return tuple(nodes), tuple(results[:-1])


def _show(cost: Cost) -> str:
    """{("N",): 64, (): 8} as "64*N + 8"."""
    terms = ["*".join([f"{n:,}", *names]) for names, n in sorted(cost.items(), reverse=True) if n]
    return " + ".join(terms) or "0"
