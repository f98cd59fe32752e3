"""On which sizes statements depend, of those that are known only at run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import islpy as isl

from polyc.poly.affine import single_aff
from polyc.poly.parameters import assumed_of, parameters_of, without_known
from polyc.scop.expr import Expr, Index, Load, Within, rebuild, walk
from polyc.scop.scop import Scop, Statement
from polyc.types.follows import names_of
from polyc.types.found import found_in
from polyc.types.parameters import named
from polyc.types.sizes import Size, names_in


def list_sizes(s: Statement) -> Iterator[str]:
    """The sizes in the sets and functions of a statement."""
    yield from parameters_of(s.domain)
    yield from parameters_of(s.write)
    for e in walk(s.value):
        match e:
            case Load(index=found) | Index(value=found) | Within(domain=found):
                yield from parameters_of(found)


def among_its_sizes(s: Statement) -> Statement:
    """A statement whose domain says what is assumed of all its sizes, and when its steps end.

    x[i + h] = y[i], for all i < r : S[i] : 0 <= i < r and r >= 1   ->   … and 2r <= h <= 2r + 1
    """
    names = frozenset(list_sizes(s))
    if s.step:
        names |= {s.step.name, *names_of([named(s.step.steps)])}
    if names <= frozenset(parameters_of(s.domain)):
        return s
    return replace(s, domain=s.domain.intersect_params(assumed_of(names)))


def bare_of(s: Statement) -> Statement:
    """A statement without what is assumed of the sizes in any case."""
    known = assumed_of(frozenset(list_sizes(s)))

    def leaf(e: Expr) -> Expr:
        match e:
            case Load(index=index):
                return replace(e, index=_plain(index, known))
            case Index(value=value):
                return replace(e, value=_plain_value(value, s.domain, known))
            case Within(domain=domain):
                return replace(e, domain=domain.gist_params(known).drop_unused_params())
            case _:
                return e

    domain, write = without_known(s.domain), _plain(s.write, known)
    return replace(s, domain=domain, write=write, value=rebuild(s.value, leaf))


def _plain(function: isl.PwMultiAff, known: isl.Set) -> isl.PwMultiAff:
    """A function without what is known; one that is defined everywhere says nothing of it."""
    if not function.isa_multi_aff():
        function = function.gist_params(known)
    return function.drop_unused_params()


def _plain_value(value: isl.PwAff, domain: isl.Set, known: isl.Set) -> isl.PwAff:
    """A value without what is known; what is one formula on a domain is it everywhere."""
    formula = single_aff(value)
    if formula is not None and domain.is_subset(value.domain()):
        return isl.PwAff.from_aff(formula).drop_unused_params()
    return value.gist_params(known).drop_unused_params()


def awaited_by(statements: Iterable[Statement], scop: Scop) -> frozenset[str]:
    """The arrays that must be there before statements begin: they hold sizes that a call finds."""
    if not scop.found:
        return frozenset()
    names: set[str] = set()
    for s in statements:
        names.update(list_sizes(bare_of(s)))
        touched = (s.array, *(load.array for load in s.loads))
        names.update(*(names_in(scop.arrays[array].shape) for array in touched))
    return frozenset(scop.found[name] for name in found_in(map(Size.of, names)))
