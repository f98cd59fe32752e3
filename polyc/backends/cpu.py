"""The back end for CPUs: a kernel as C, from its dependences on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from polyc.analysis.counts import count_bytes, count_flops
from polyc.analysis.dependences import Dependences, compute_dependences
from polyc.analysis.instructions import check_instructions
from polyc.analysis.joined_rows import check_joined_rows, check_products
from polyc.analysis.launches.verify import Judged
from polyc.analysis.proof import Proof
from polyc.analysis.same_values import check_granted, check_own_sizes, check_same_values
from polyc.backends.common import (
    CompiledKernel,
    check_tree,
    comment_on,
    find_boundary,
    kernel_scop,
    list_params,
    list_sizes,
    prove,
)
from polyc.codegen.bound_by_data import bound_by_data
from polyc.codegen.fetch_ahead import fetch_ahead
from polyc.codegen.forget import forget_between_tiles
from polyc.codegen.generate import generate_nest
from polyc.codegen.hold import hold
from polyc.codegen.multiply_tiles import multiply_tiles
from polyc.codegen.peel import peel
from polyc.codegen.side_by_side import add_side_by_side
from polyc.codegen.unswitch import unswitch
from polyc.codegen.vectorise import vectorise
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Block, Kernel, Products, walk_nodes
from polyc.loopnest.registers import find_registers
from polyc.mapping.join_rows import join_rows
from polyc.mapping.own_sizes import by_own_sizes
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.options import Options
from polyc.poly.parameters import about, assumptions, every_case, parameters_of
from polyc.predict.kernel import measure_work
from polyc.printing.template import make_template
from polyc.promote.keep import Places, keep_arrays
from polyc.schedule.canonical import to_positions
from polyc.schedule.initial import initial_tree
from polyc.schedule.keeping import Prefetch
from polyc.schedule.legality import (
    check_cpu_directives,
    check_cpu_kinds,
    check_given,
    check_held_loops,
)
from polyc.schedule.loops import LoopTree, lower_tree
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from polyc.threads.barriers import join_pieces
from polyc.threads.team import share_out
from polyc.trace import Trace
from polyc.types.ranges import assume, assumed_ranges
from polyc.types.sizes import names_in


def compile_for_cpu(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    target: Target,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """One kernel, from its dependences to its C text."""
    joined = join_rows(stored, scop.arrays)
    if joined is None:
        return _by_own_sizes(name, stored, scop, (), target, options, trace)
    rows, stated = joined.rows, kernel_scop(name, stored, scop)
    inside = replace(scop, arrays=joined.arrays)
    with assume([joined.size]):
        if options.verify:
            with trace.step("verify"):
                seen = kernel_scop(name, joined.kernel, inside)
                storages = stored.storages, joined.kernel.storages
                check_joined_rows(name, stated, storages[0], seen, storages[1], rows)
        products = ((rows.size, joined.count),)
        compiled = _by_own_sizes(name, joined.kernel, inside, products, target, options, trace)
    if options.verify:
        check_products(name, products, rows)
    return _as_stated(compiled, stated, stored)


def _by_own_sizes(
    name: str,
    stored: StoredKernel,
    scop: Scop,
    products: Products,
    target: Target,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """A kernel in terms of the sizes that it depends on, and of `products`."""
    own, known = by_own_sizes(stored, scop.arrays)
    stated = kernel_scop(name, stored, scop)
    if options.verify:
        with trace.step("verify"):
            check_own_sizes(name, stated, own.statements, known)
    with about(known):
        return _compile(name, own, stated, scop, products, target, options, trace)


def _as_stated(compiled: CompiledKernel, stated: Scop, stored: StoredKernel) -> CompiledKernel:
    """A kernel that counts rows of several loops as one, as its launches see it."""
    params = tuple(replace(p, shape=stored.storages[p.name].shape) for p in compiled.kernel.params)
    kernel = replace(compiled.kernel, params=params)
    return replace(
        compiled,
        kernel=kernel,
        boundary=find_boundary(kernel, stored, stated, compute_dependences(stated)),
        judged=Judged(kernel, stated, stated, stored.storages, assumed_ranges()),
    )


def _compile(
    name: str,
    stored: StoredKernel,
    stated: Scop,
    scop: Scop,
    products: Products,
    target: Target,
    options: Options,
    trace: Trace,
) -> CompiledKernel:
    """The same for a kernel by its own sizes; `stated` is what it computes by all of them."""
    part = own = kernel_scop(name, stored, scop)
    domains = {s.name: s.domain for s in part.statements}

    # 1. dependences, and the schedule's loops, which must respect them
    with trace.step("schedule"):
        dependences = compute_dependences(part)
        start = initial_tree([one.cluster for one in stored.parts])
        if stored.given:
            _check_given(stored, start, domains, dependences, target)
        loops = stored.schedule.apply(start)
        tree = lower_tree(loops, domains)
        check_tree(tree, dependences, name, trace, proven=options.verify)

    # 2. arrays that live inside one tile need no memory of their own
    with trace.step("promote"):
        private, storages = stored.private, stored.storages
        places = keep_arrays(
            stored.schedule, loops, tree, part, dependences, private, storages, target
        )
        part, dependences, schedule = places.part, places.dependences, places.schedule

    # 3. loops, with partial tiles split off
    with trace.step("generate"):
        kernel = _generate(name, stored, places, tree, products, target)

    # 4. which of the loops threads may run at the same time, and where they wait
    with trace.step("schedule"):
        kernel = share_out(join_pieces(kernel, part, dependences))
        trace.dump("loopnest", kernel, name)

    # 5. the proof, on these loops: after it they are only unrolled and cut into vectors, and
    #    results of loops that hold them are in registers meanwhile
    with trace.step("verify"):
        check_instructions(kernel, target.vectors)
        if options.verify:
            check_same_values(name, own, part)
        proof = _prove(kernel, part, stored.storages) if options.verify else None

    # 6. C
    with trace.step("print"):
        held = hold(kernel.body)
        tiled = multiply_tiles(held, kernel.params, target.vectors)
        spread = add_side_by_side(tiled, kernel.known, target.vectors)
        shapes = {p.name: p.shape for p in kernel.params}
        final = find_registers(vectorise(bound_by_data(spread), target.vectors, shapes))
        fetched = {a for d in schedule.directives if isinstance(d, Prefetch) for a in d.arrays}
        final = fetch_ahead(final, fetched, kernel.params)
        final = forget_between_tiles(final, kernel.known, target.vectors)
        template = make_template(replace(kernel, body=final), stored.arrays)
        source = template.spell(name, stored.arrays, kernel.comment)
        trace.dump("c", source, name)

    return CompiledKernel(
        kernel,
        source,
        str(schedule),
        proof,
        count_flops(part) or 0,
        count_bytes(part),
        find_boundary(kernel, stored, part, dependences),
        Judged(kernel, stated, part, stored.storages, assumed_ranges()),
        to_positions(schedule, stored.named, stored.scheduled),
        template=template,
        work=measure_work(replace(kernel, body=bound_by_data(held)), target),
    )


def _check_given(
    stored: StoredKernel,
    start: LoopTree,
    domains: Mapping[str, isl.Set],
    dependences: Dependences,
    target: Target,
) -> None:
    """Raise IllegalSchedule if the schedule that is given breaks a dependence, or is a GPU's."""
    name, schedule = stored.given, stored.schedule
    check_cpu_directives(schedule, name, target.vectors)
    check_given(schedule, start, domains, dependences, name, check_cpu_kinds)
    check_held_loops(schedule.apply(start), stored.body, name)


def _prove(kernel: Kernel, part: Scop, storages: Mapping[str, Storage]) -> Proof:
    """The proof for all sizes that loops were made for, or else for those that calls may have.

    known, in few cases:   m <= h and m <= 3 and k <= w and k <= 7
    every case:            m is h or 3, and k is w or 7: elements h - m + … lie in h for these alone
    """
    try:
        return prove(kernel, part, storages, team=True)
    except IllegalSchedule:
        every = every_case(frozenset(parameters_of(assumptions())))
        if every.is_equal(assumptions()):
            raise
        check_granted(kernel.name, every)
        inside = (replace(s, domain=s.domain.intersect_params(every)) for s in part.statements)
        with about(every):
            return prove(kernel, replace(part, statements=tuple(inside)), storages, team=True)


def _generate(
    name: str,
    stored: StoredKernel,
    places: Places,
    tree: isl.Schedule,
    products: Products,
    target: Target,
) -> Kernel:
    """The loops of a tree, and what they are given."""
    part = places.part
    statements = {s.name: s for s in part.statements}
    sizes = list_sizes(part, stored.storages)
    loops = generate_nest(tree, statements, stored.storages, places.local, near=places.near)
    far = {n for n, a in part.arrays.items() if a.kind == "constant" and a.bytes > target.l2}
    nest = peel(unswitch(loops, frozenset(sizes)), sizes, target.vectors.bytes, far)
    kept = [a for a in stored.arrays if a in part.arrays and a not in places.local]
    inside = {x.first.array for n in walk_nodes(nest) if isinstance(n, Block) for x in n.near}
    params = list_params(kept, part, stored.storages, inside)
    own = {size for size, _ in products}
    given = names_in(meaning for _, meaning in products).union(sizes) - own
    comment = comment_on(stored, str(places.schedule))
    return Kernel(name, params, nest, comment, products, sizes=tuple(sorted(given)))
