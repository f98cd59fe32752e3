"""Expansion: a local gets an element for each iteration of the loops that it lives in.

    for i: s = b[i]; for j: s -= L[i, j] * x[j]; x[i] = s

    s   ->   s[i]:    for i: s[i] = b[i]; for j: s[i] -= L[i, j] * x[j]; x[i] = s[i]

Then iterations of these loops do not wait for one another because of it. That each read still gets
the value of the same instance is what makes it right (Feautrier 1988, "Array expansion"); it is
asked of isl's dataflow, and proven again of the result. What fits a tile becomes a local array of
the generated loops; what does not needs memory, whose shape must be known in terms of sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.order import LoopNode, OrderNode
from polyc.loops.read.sizes import Signature
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Scop, Statement
from polyc.types.sizes import Extent, Size

IN, OUT, SET, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.param


def expand(
    lowered: Lowered, dependences: Dependences, signature: Signature, kept: Collection[str] = ()
) -> Lowered:
    """The kernel with its locals expanded as far as their values allow; those of `kept` are not."""
    scop = lowered.bare
    around = _loops_around(lowered.order)
    depths = {}
    for name, array in scop.arrays.items():
        if array.kind == "temporary" and name not in kept:
            users = [s for s in scop.statements if name in _arrays_of(s)]
            depth = _depth(name, [around[s.name] for s in users], scop, dependences)
            if depth:
                depths[name] = depth
    if not depths:
        return lowered
    return replace(
        lowered,
        scop=_expanded(lowered.scop, depths, signature),
        bare=_expanded(lowered.bare, depths, signature),
    )


def _arrays_of(statement: Statement) -> set[str]:
    return {statement.array, *(load.array for load in statement.loads)}


def _loops_around(order: Sequence[OrderNode]) -> dict[str, tuple[LoopNode, ...]]:
    """Statement -> the loops around it, outermost first."""
    found: dict[str, tuple[LoopNode, ...]] = {}

    def visit(nodes: Sequence[OrderNode], loops: tuple[LoopNode, ...]) -> None:
        for node in nodes:
            if isinstance(node, LoopNode):
                visit(node.body, (*loops, node))
            else:
                found[node.name] = loops

    visit(order, ())
    return found


def _depth(
    array: str,
    around: Sequence[tuple[LoopNode, ...]],
    scop: Scop,
    dependences: Dependences,
) -> int:
    """The number of outer loops in an iteration of which all values of a local stay."""
    shared = min(map(len, around))
    first = around[0]
    while any(loops[k] is not first[k] for loops in around for k in range(shared)):
        shared -= 1
    written = {s.name: s.array for s in scop.statements}
    for source, _, pairs in maps(dependences.flow):
        if written[source] == array:
            shared = next((k for k in range(shared) if not _stays(pairs, k)), shared)
    return shared


def _stays(pairs: isl.Map, k: int) -> bool:
    return bool(pairs.is_subset(isl.Map.universe(pairs.space).equate(IN, k, OUT, k)))


def _expanded(scop: Scop, depths: Mapping[str, int], signature: Signature) -> Scop:
    statements = tuple(_rewritten(s, depths) for s in scop.statements)
    arrays = dict(scop.arrays)
    for name, depth in depths.items():
        users = [s for s in scop.statements if name in _arrays_of(s)]
        arrays[name] = _shaped(arrays[name], depth, users, signature)
    return replace(scop, statements=statements, arrays=arrays)


def _rewritten(s: Statement, depths: Mapping[str, int]) -> Statement:
    """The statement with what it says of a local said of the element of its iteration."""

    def place(array: str, index: isl.PwMultiAff) -> isl.PwMultiAff:
        space = index.get_domain_space()
        local = isl.LocalSpace.from_space(space)
        target = isl.Space.set_alloc(space.get_ctx(), 0, depths[array]).align_params(space)
        target = target.set_tuple_id(SET, index.get_tuple_id(OUT))
        function = isl.MultiAff.zero(space.map_from_domain_and_range(target))
        for k in range(depths[array]):
            function = function.set_aff(k, isl.Aff.var_on_domain(local, SET, k))
        return isl.PwMultiAff.from_multi_aff(function).intersect_domain(index.domain())

    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array in depths:
            return replace(expr, index=place(expr.array, expr.index))
        return expr

    write = place(s.array, s.write) if s.array in depths else s.write
    return replace(s, write=write, value=rebuild(s.value, leaf))


def _shaped(array: Array, depth: int, users: Sequence[Statement], signature: Signature) -> Array:
    """The array with a dimension for each of the loops; of extent 0 where none can be told."""
    shape: list[Extent] = []
    for k in range(depth):
        bounds = [_extent(s.domain, k, signature) for s in users]
        known = [b for b in bounds if b is not None]
        shape.append(_cover(known) if len(known) == len(bounds) else 0)
    return replace(array, shape=tuple(shape))  # type: ignore[arg-type]


def _cover(extents: Sequence[Extent]) -> Extent:
    """An extent that is no less than any of several: their sum, where they are not the same."""
    distinct = list(dict.fromkeys(map(str, extents)))
    if len(distinct) == 1:
        return extents[0]
    total: Extent = 0
    for extent in {str(e): e for e in extents}.values():
        total = extent + total
    return total


def _extent(domain: isl.Set, k: int, signature: Signature) -> Extent | None:
    """An upper bound of an iterator that is never negative, as a sum of extents of arrays."""
    if not bool(domain.is_subset(_not_negative(domain, k))):
        return None
    extents = {s.name for s in signature.sizes if s.lower >= 0}
    bounds = [_bound(aff, extents) for _, aff in domain.dim_max(k).get_pieces()]
    known = [b for b in bounds if b is not None]
    if len(known) < len(bounds):
        return None
    return _cover(known) if known else 0


def _bound(aff: isl.Aff, extents: Collection[str]) -> Extent | None:
    """One more than an affine function of sizes can be, if that is a sum of extents."""
    if aff.dim(isl.dim_type.div) or not aff.get_denominator_val().is_one():
        return None
    total: Extent = max(0, int(aff.get_constant_val().to_python()) + 1)
    for p in range(aff.dim(PARAM)):
        coefficient = int(aff.get_coefficient_val(PARAM, p).to_python())
        name = aff.get_dim_name(PARAM, p)
        if coefficient and name not in extents:
            return None
        if coefficient > 0:
            total = Size.of(str(name)) * coefficient + total
    return total


def _not_negative(domain: isl.Set, k: int) -> isl.Set:
    return isl.Set.universe(domain.space).lower_bound_val(SET, k, isl.Val(0))
