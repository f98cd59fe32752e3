"""Sizes known only at run time as parameters of isl's sets and maps.

    x: float32[n, 3]   ->   [size_n] -> { x[i, j] : 0 <= i < size_n and 0 <= j < 3 }

A statement's domain holds what is assumed of the sizes that the statement depends on. A network has
dozens, each computed from others, and isl's effort grows with every one. Who compares sets of
different sizes adds what is assumed of both (`among_own_sizes`), or of all that these have to do
with (`among_sizes`); who does not, asks about more calls than there are, and what is concluded
holds for these as well.
Inside of `about`, where a kernel is compiled, it is what is assumed of its own sizes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, reduce
from typing import Any, TypeVar

import islpy as isl

from polyc.poly.cases import in_few_cases, project_onto
from polyc.poly.conditions import box, conditions, sizes_about, spell
from polyc.poly.remember import normalise, remember, remember_within, without_name
from polyc.types.equal_sizes import find_equal
from polyc.types.parameters import has_name
from polyc.types.ranges import assumed_ranges, concluded
from polyc.types.sizes import Extent, Size

Parsed = TypeVar("Parsed", isl.Set, isl.Map, isl.PwMultiAff, isl.PwAff)
Renamed = TypeVar("Renamed", isl.Set, isl.Map, isl.MultiAff)

PARAM, SET = isl.dim_type.param, isl.dim_type.set

_ABOUT: ContextVar[isl.Set | None] = ContextVar("_ABOUT", default=None)


def read(kind: Callable[[str], Parsed], text: str) -> Parsed:
    """A set, map or function of isl from a text that may name sizes of the model.

    read(isl.Set, "{ S[i] : i < size_n }")   ->   [size_n] -> { S[i] : i < size_n }
    """
    names = ", ".join(size.name for size in assumed_ranges() if size.name in text)
    parsed: Parsed = _parse(kind, f"[{names}] -> {text}" if names else text)
    return parsed.drop_unused_params() if names else parsed


@lru_cache(maxsize=4096)
def _parse(kind: Callable[[str], Any], text: str) -> Any:
    """What isl reads; layers that are alike say the same of their spaces again and again."""
    return kind(text)


def assumptions() -> isl.Set:
    """What holds of the sizes of the model, or of those that a kernel depends on: of parameters."""
    known = _ABOUT.get()
    return all_assumptions() if known is None else known


@concluded
def all_assumptions() -> isl.Set:
    """What holds of the sizes of the model, also inside of `about`."""
    return _assumptions_about(frozenset(size.name for size in assumed_ranges()))


@concluded
def _assumptions_about(names: frozenset[str]) -> isl.Set:
    sizes = [size for size in assumed_ranges() if size.name in names]
    known = read(isl.Set, f"{{ : {' and '.join(conditions(sizes)) or 'true'} }}")
    # What launches touch is intersected with it, set by set. A third follows from the rest: what a
    # size is at least, from the size that it is computed from.
    return known.remove_redundancies()


@contextmanager
def about(known: isl.Set) -> Iterator[None]:
    """Inside, this is all that is assumed in sets: less than holds, of fewer sizes."""
    token = _ABOUT.set(known)
    try:
        yield
    finally:
        _ABOUT.reset(token)


def assumed_of(names: frozenset[str]) -> isl.Set:
    """What follows for some sizes alone from what is assumed of all of them.

    [h, r] -> { : h >= 3 and 2r <= h <= 2r + 1 }   for r   ->   [r] -> { : r >= 1 }

    Sizes are eliminated as rational numbers, so that it may say less than follows, and never more.
    """
    known = _ABOUT.get()
    return _all_assumed_of(names) if known is None else _project(known, names)


@concluded
def told_of(names: frozenset[str]) -> isl.Set:
    """All that is told of some sizes and of those that they have to do with, none eliminated.

    [h, r, n] -> { : h >= 3 and 2r <= h <= 2r + 1 and n >= 1 }   of r   ->   all but n >= 1
    """
    return _together(_assumptions_about(group) for group in sizes_about(names))


def follows_from_told(need: Size) -> bool:
    """Whether a sum of sizes is never negative, by what sets are told of these.

    m = min(n, 9)   ->   n - m, and not m - 1
    """
    if not has_name(need):
        return False  # of a product without a name they are told nothing
    return bool(told_of(need.names).is_subset(read(isl.Set, f"{{ : {spell(need)} >= 0 }}")))


@concluded
def _all_assumed_of(names: frozenset[str]) -> isl.Set:
    return in_few_cases(every_case(names), names)


def every_case(names: frozenset[str]) -> isl.Set:
    """What follows for some sizes alone, in as many cases as there are, not in one for loops.

    m = min(h, 3) and k = min(w, 7)   ->   h <= 3 and m = h and w <= 7 and k = w, or h >= 4 and …
    """
    return _together(_follows(group, group & names) for group in sizes_about(names)).coalesce()


def _together(parts: Iterable[isl.Set]) -> isl.Set:
    """What parts say that are about different sizes; those of the first part are listed first."""
    return reduce(lambda known, part: part.intersect(known), parts, isl.Set("{ : }"))


@concluded
def _follows(group: frozenset[str], names: frozenset[str]) -> isl.Set:
    return _project_all(_assumptions_about(group), names)


def _project(known: isl.Set, names: frozenset[str]) -> isl.Set:
    return in_few_cases(_project_all(known, names), names)


def _project_all(known: isl.Set, names: frozenset[str]) -> isl.Set:
    known = project_onto(known, names)
    # What is left of those that are gone is no number of others, and makes sets large. But for it
    # what each size may be by itself may have been left out.
    return known.remove_unknown_divs().intersect(_box(names)).coalesce()


def _box(names: frozenset[str]) -> isl.Set:
    """What each of some sizes may be, by itself."""
    known = [said for size in assumed_ranges() if size.name in names for said in box(size)]
    return read(isl.Set, f"{{ : {' and '.join(known) or 'true'} }}")


def among_sizes(elements: isl.Set, *others: isl.Set | isl.PwMultiAff) -> isl.Set:
    """The set, with all that is told of the sizes that it and the others depend on.

    S[i] : 0 <= i < r   ->   S[i] : 0 <= i < r and h >= 3 and 2r <= h <= 2r + 1
    """
    known = _told_about(elements, *others)
    if known.plain_is_universe():
        return elements
    return without_name(elements, lambda plain: _among(plain, known))


def _told_about(*sets: isl.Set | isl.PwMultiAff) -> isl.Set:
    known = _ABOUT.get()
    names = (name for one in sets for name in parameters_of(one))
    return told_of(frozenset(names)) if known is None else known


@remember_within
def _among(elements: isl.Set, known: isl.Set) -> isl.Set:
    return normalise(elements.intersect_params(known))


def among_own_sizes(elements: isl.Set, *others: isl.Set | isl.PwMultiAff) -> isl.Set:
    """The set, with what is assumed of the sizes that it and the others depend on.

    S[i] : 0 <= i < r, and a function of h   ->   S[i] : 0 <= i < r and 2r <= h <= 2r + 1
    """
    names = {name for one in (elements, *others) for name in parameters_of(one)}
    return elements.intersect_params(assumed_of(frozenset(names))) if names else elements


def is_part(one: isl.Set, other: isl.Set) -> bool:
    """Whether a set is part of another, in the calls that there are."""
    return bool(among_own_sizes(one, other).is_subset(other))


def without_known(domain: isl.Set) -> isl.Set:
    """The set without what is assumed of the sizes in any case.

    S[i] : 0 <= i < r and h >= 3 and 2r <= h <= 2r + 1   ->   S[i] : 0 <= i < r
    """
    known = _told_about(domain)
    if known.plain_is_universe():
        return domain
    return without_name(normalise(domain), lambda plain: _without(plain, known))


def _by_fewest(domain: isl.Set, known: isl.Set) -> tuple[isl.Set, isl.Set]:
    """Both without sizes that others are equal to, as isl writes a set in terms of any of them.

    2i <= h - 2, known: h = 2r   ->   i <= r - 1
    """
    if _ABOUT.get() is not None or not _equal_sizes():
        return domain, known
    return _replace_equal(domain), _all_by_fewest()


@concluded
def _equal_sizes() -> tuple[tuple[str, isl.Set], ...]:
    """Sizes that follow from others, and that calls must have equal to a sum of some."""
    ranges = assumed_ranges()
    follows = {size.name for size in ranges if size.same is not None}
    needs = (need for size in ranges for need in size.needs)
    equal = find_equal(needs, follows.__contains__)
    return tuple((k, read(isl.Set, f"{{ : {k} = {spell(same)} }}")) for k, same in equal.items())


def _replace_equal(domain: isl.Set) -> isl.Set:
    """The same for the sizes that calls may have: nothing is lost with a size that others give."""
    for name, equality in _equal_sizes():
        if domain.find_dim_by_name(PARAM, name) >= 0:
            domain = domain.intersect_params(equality)
            domain = domain.project_out(PARAM, domain.find_dim_by_name(PARAM, name), 1)
    return domain


@concluded
def _all_by_fewest() -> isl.Set:
    return _replace_equal(all_assumptions())


@remember_within
def _without(domain: isl.Set, known: isl.Set) -> isl.Set:
    domain, known = _by_fewest(domain, known)
    # Most sets say no more of sizes than follows for these alone, which is less to compare.
    own = assumed_of(frozenset(parameters_of(domain)))
    bare = domain.drop_constraints_not_involving_dims(SET, 0, domain.dim(SET))
    if bare.n_basic_set() > 1:
        bare = _as_one(domain, own)
    if not any(bare.intersect_params(some).is_subset(domain) for some in (own, known)):
        bare = _gist(domain, own)  # for what holds of sizes here, and not in any case
    return bare.drop_unused_params()


def _as_one(domain: isl.Set, known: isl.Set) -> isl.Set:
    """The inequalities that hold in all parts of the set: enough where only sizes part it.

    i < n and (m = 9 <= n and j <= 17 or m = n <= 8 and j < 2n)   ->   i < n and j < 2m
    """
    hull = isl.Set.from_basic_set(domain.unshifted_simple_hull())
    bare = hull.gist_params(_hull(known))
    return bare.drop_constraints_not_involving_dims(SET, 0, domain.dim(SET))


@remember
def _hull(known: isl.Set) -> isl.Set:
    return isl.Set.from_basic_set(known.unshifted_simple_hull())


def _gist(domain: isl.Set, known: isl.Set) -> isl.Set:
    """The set without what is known, in as few sizes as can say it.

    1 <= n and (m = 5 <= k or m = k <= 4)   known: 0 <= k <= 3n and (m = 5 <= k or m = k <= 4)
        ->   1 <= n, where isl says: m = 5 or (m = k <= 4 and 1 <= n)
    """
    bare = domain.gist_params(known).drop_unused_params()
    names, least = parameters_of(bare), domain
    for name in names if len(names) > 1 else ():
        smaller = _eliminate(least, name)
        if smaller.intersect_params(known).is_equal(domain):
            least = smaller
    kept = frozenset(names).intersection(parameters_of(least))
    if len(kept) == len(names):
        return bare
    for name in parameters_of(least):
        least = least if name in kept else _eliminate(least, name)
    smaller = least.gist_params(_project(known, kept))
    return smaller if smaller.intersect_params(known).is_equal(domain) else bare


def _eliminate(domain: isl.Set, name: str) -> isl.Set:
    """The set for any value of a size for which there is an element."""
    position = domain.find_dim_by_name(PARAM, name)
    return domain.eliminate(PARAM, position, 1).drop_unused_params()


def in_own_sizes(domain: isl.Set) -> isl.Set:
    """The set, with what is assumed of the sizes alone that it depends on."""
    bare = without_known(domain)
    names = parameters_of(bare)
    return bare.intersect_params(assumed_of(frozenset(names))) if names else bare


def parameters_of(
    relation: isl.Set
    | isl.Map
    | isl.UnionSet
    | isl.UnionMap
    | isl.MultiAff
    | isl.PwMultiAff
    | isl.PwAff,
) -> list[str]:
    space = relation.get_space()
    return [str(space.get_dim_name(PARAM, k)) for k in range(space.dim(PARAM))]


def rename_parameters(relation: Renamed, names: Mapping[str, str]) -> Renamed:
    """The same with other names for some sizes, all at once: two may take each other's.

    Raises ValueError where two would have one name.
    """
    found = parameters_of(relation)
    wanted: list[str] = [names.get(name, name) for name in found]
    if wanted == found:
        return relation
    if len({*wanted}) < len(wanted):
        raise ValueError(f"two sizes of {', '.join(found)} would have one name")
    for k in range(len(found)):
        relation = relation.set_dim_name(PARAM, k, f"renamed_{k}")
    for k, name in enumerate(wanted):
        relation = relation.set_dim_name(PARAM, k, name)
    return relation


def at_sizes(domain: isl.Set, value: Callable[[Extent], int]) -> isl.Set:
    """The set for some `value` of each size, the estimate or the hint: one without parameters."""
    domain = domain.drop_unused_params()
    for name in parameters_of(domain):
        domain = domain.fix_val(PARAM, 0, isl.Val(value(Size.of(name))))
        domain = domain.project_out(PARAM, 0, 1)
    return domain
