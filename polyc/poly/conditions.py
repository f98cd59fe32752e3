"""What sets are told of sizes: conditions in the text of isl, and which of them some sizes need.

h: 3 to 2048, r = floor(h/2)   ->   3 <= h, h <= 2048, 2*r <= h, h <= 2*r + 1
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TypeGuard

from polyc.errors import NotFixed
from polyc.types.derived import Derived
from polyc.types.estimate import hinted
from polyc.types.follows import below, names_of
from polyc.types.found import found_in
from polyc.types.groups import group_by_shared
from polyc.types.parameters import expand, named
from polyc.types.ranges import SizeRange, Step, assumed_ranges, concluded, stated_range
from polyc.types.sizes import Extent, Size, assumed_range, bounds, lower_bound

FAR = 1 << 24
"""From here on isl is not told how large a size is, on either side of 0: it makes no loop simpler,
while products of sizes that are at most 10^9 make sets large, and their numbers long."""

FEW_TIMES = 16
"""Of two sums of many sizes, so many times as much may be taken for the same."""


def spell(extent: Extent) -> str:
    """An extent in the text of a set; NotFixed for a product of sizes, which no set can say."""
    extent = named(extent)
    if isinstance(extent, Size) and not extent.is_affine:
        raise NotFixed(
            f"the size {extent} multiplies sizes known only at run time",
            "give all of them but one in dims",
        )
    return str(extent)


def conditions(sizes: Collection[SizeRange]) -> list[str]:
    """What holds for sizes of the model: "1 <= size_n <= 2048", and so in the next call."""
    found = []
    names = frozenset(size.name for size in sizes)
    for size in sizes:
        found += box(size)
        if isinstance(size, Step) and not isinstance(size.steps, int):
            found.append(f"{size.name} < {spell(size.steps)}")
        if size.next is not None:
            found.append(f"{spell(size.next)} <= {size.upper}")
        found += [f"{spell(need)} >= 0" for need in size.needs if not _is_far(need)]
        if _summands(size):
            found += _facts_of_sum(size, names)
        elif isinstance(size.same, Size):
            # Which of two is the smaller one doubles the cases of a set, and all that is found of
            # something, up to some number, is little work in any case.
            found += _facts(size.name, size.same, exact=not found_in([size.same]))
    return found


def box(size: SizeRange) -> list[str]:
    """What a size may be by itself, but for bounds that are far; of a long sum, its sign."""
    if _summands(size):
        return [f"0 <= {size.name}"] if size.lower >= 0 else []
    least = [f"{size.lower} <= {size.name}"] if size.lower > -FAR else []
    return [*least, *([f"{size.name} <= {size.upper}"] if _says_something(size.upper) else [])]


def _is_far(need: Size) -> bool:
    """Whether all that is needed is that sizes are not larger than that."""
    counts = dict(need.terms)
    return counts.pop((), 0) >= FAR and all(count < 0 for count in counts.values())


def _says_something(upper: int | None) -> TypeGuard[int]:
    return upper is not None and upper < FAR


def _facts(name: str, same: Size, exact: bool) -> list[str]:
    """What sets can say of a size that follows from others.

    exact: whether they say which of two is the smaller one.

    q = floor(a/3)   ->   3*q <= a, a <= 3*q + 2
    q = min(a, b)    ->   q <= a, q <= b, and q is one of them
    q = -(a/3), cut off   ->   -floor(a/3) - 1 <= q <= -floor(a/3)
    q = a*b          ->   q >= a*B + A*b - A*B, where a >= A and b >= B; likewise for the ends
    """
    product = same.terms[0][0]
    if len(product) == 1 and isinstance(derived := product[0], Derived):
        first, second = derived.operands
        if derived.operation == "min":
            a, b = spell(first), spell(second)
            for down, other in ((first, second), (second, first)):
                if _is_cut_off(down, other):
                    return [f"{name} <= {spell(down)}", f"{name} >= {spell(down)} - 1"]
            if not exact:
                return [f"{name} <= {a}", f"{name} <= {b}"]
            # The two do not overlap: else loops over both would be generated.
            which = f"({name} = {a} or ({name} = {b} and {b} <= {a} - 1))"
            return [f"{name} <= {a}", f"{name} <= {b}", which]
        assert isinstance(second, int)
        whole = spell(first)
        return [f"{second}*{name} <= {whole}", f"{whole} <= {second}*{name} + {second - 1}"]
    if len(product) != 2:
        return [f"{name} >= {factor}" for factor in set(product) if _at_least_one(product, factor)]
    left, right = product
    (low, high), (other_low, other_high) = (assumed_range(p).ends(math.inf) for p in product)
    corners = (
        (">=", low, other_low), (">=", high, other_high),
        ("<=", low, other_high), ("<=", high, other_low),
    )  # fmt: skip
    return [
        f"{name} {relation} {b}*{left} + {a}*{right} - {a * b}"
        for relation, a, b in corners
        if max(abs(a), abs(b)) < FAR
    ]


def _summands(size: SizeRange | None) -> tuple[Extent, ...]:
    """What a size adds up that is a name for the sum of many; nothing of others."""
    names = names_of(() if size is None or size.same is None else (size.same,))
    sums = (name for name in names if isinstance(name, Derived) and name.operation == "sum")
    return tuple(part for name in sums for part in name.operands)


def _facts_of_sum(size: SizeRange, names: frozenset[str]) -> list[str]:
    """What holds of a sum and of sizes of some names.

    t = s + c, s = a + b   ->   t = a + b + c     among t, a, b and c
                                t >= a + c        among t, a and c

    How long it may be at most is left out, and how much more it is than the parts that are named:
    that differs from part to part, and makes no loop simpler.
    """
    kept, least = _telescope(size, names)
    if least is None:
        return [f"{size.name} = {spell(kept)}"]
    return [f"{size.name} >= {spell(kept)}"] if least >= 0 else []


def _telescope(size: SizeRange, names: frozenset[str]) -> tuple[Extent, float | None]:
    """A sum by what it adds up that is of some names, and a bound of what else there is, if any."""
    kept: Extent = 0
    least: float | None = None
    waiting = list(_summands(size))
    while waiting:
        extent = waiting.pop()
        for product, count in extent.terms if isinstance(extent, Size) else [((), extent)]:
            (name,) = product or ("",)
            inside = _summands(stated_range(name))
            if not name or name in names:
                kept = kept + (Size.of(name) * count if name else count)
            elif inside:
                waiting += [part * count for part in inside]
            else:
                ends = (count * end for end in assumed_range(name).ends(math.inf))
                least = (least or 0) + min(ends)
    return kept, least


def _is_cut_off(down: Extent, other: Extent) -> bool:
    """Whether the smaller of two is less a quotient that is cut off, as that of integers is.

        (n - 8)/4, cut off   =   max(floor(n/4) - 2, min(floor((n + 3)/4) - 2, 0))

    Three cases would be three loops over frames; that they are one more at most is all that loops
    need of it.
    """
    chosen = expand(-other)
    name = chosen.terms[0][0][0] if isinstance(chosen, Size) else None
    if chosen != name or not isinstance(name, Derived) or name.operation != "min":
        return False
    if 0 not in name.operands:
        return False
    up = name.operands[0] + name.operands[1]
    low, high = bounds(up + expand(down))
    return low >= 0 and high <= 1


def _at_least_one(product: tuple[str, ...], factor: str) -> bool:
    """Whether all factors but one are at least 1, and that one is not negative."""
    others = list(product)
    others.remove(factor)
    return assumed_range(factor).lower >= 0 and all(assumed_range(o).lower >= 1 for o in others)


def sizes_about(names: frozenset[str]) -> list[frozenset[str]]:
    """The sizes that say all there is to say of some, in groups that say nothing of each other.

    [h, r = floor(h/2), n, m = min(n, 9), q = floor(h/3)]   of r and m   ->   h, r and n, m

    A size that follows from others, as q does, says nothing of them, but where a bound or a need of
    its own is more than follows. What detectors find of each of 90 classes are hundreds of sizes.
    """
    reached = _with_below(names)
    reached = reached.union(*(group for group in _bound_groups() if group & reached))
    sizes = (size for size in assumed_ranges() if size.name in reached)
    named = ((size.name, reached & {size.name, *_named_among(size, reached)}) for size in sizes)
    return [frozenset(group) for group, _ in group_by_shared(named)]


@concluded
def related_ranges(names: frozenset[str]) -> tuple[SizeRange, ...]:
    """What is said of some sizes, of those that have to do with them, and of what follows from all.

        [h, r = floor(h/2), w, q = floor(h/3), a = h*w]   of r              ->   h, r, q
        [m, n, … 90 more, s = the sum of all]             of s, m and n     ->   s >= m + n, m, n

    The rest says nothing of these, or no more than that there is more.
    """
    related, known = frozenset[str](), names
    while known - related:
        related = known.union(*sizes_about(known))
        parts = (_named_by(size) for size in assumed_ranges() if size.name in related)
        known = related.union(*parts)
        follow = (s for s in assumed_ranges() if s.same is not None and s.name not in known)
        known |= {s.name for s in follow if below(s.name) | _named_by(s) <= known}
    return tuple(_among(size, related) for size in assumed_ranges() if size.name in related)


def _among(size: SizeRange, names: frozenset[str]) -> SizeRange:
    """What is said of a size in terms of some; of a sum of more than these, what it is at least."""
    needs = tuple(need for need in size.needs if need.names <= names)
    if not _summands(size) or below(size.name) <= names:
        return size if needs == size.needs else replace(size, needs=needs)
    kept, least = _telescope(size, names)
    signs = (1, -1) if least is None else (1,) if least >= 0 else ()
    facts = ((Size.of(size.name) - kept) * sign for sign in signs)
    needs += tuple(fact for fact in facts if isinstance(fact, Size))
    # One kernel does for sums of about as many: of how many is a matter of speed.
    about = 0 if size.same is None else hinted(size.same)
    hint = FEW_TIMES ** round(math.log(max(about, 1), FEW_TIMES))
    return replace(size, upper=None, same=None, hint=hint, needs=needs)


@concluded
def _bound_groups() -> tuple[frozenset[str], ...]:
    """The sizes that others are bound by, with what they come from: in groups that share none."""
    bound = (size for size in assumed_ranges() if _says_more(size))
    reached = (_with_below({size.name, *_named_beside(size)}) for size in bound)
    return tuple(names for _, names in group_by_shared((own, own) for own in reached))


def _named_beside(size: SizeRange) -> frozenset[str]:
    """The sizes that are named by what is said of one, and not by what it follows from."""
    steps = size.steps if isinstance(size, Step) else 0
    needs = (need for need in size.needs if not _is_far(need) and need != _up_to_most(size))
    return names_of([*needs, size.next or 0, steps])


def _up_to_most(size: SizeRange) -> Extent | None:
    """What is needed of a size that a call finds: that it is no larger than some number."""
    return None if size.most is None else size.most - Size.of(size.name)


def _says_more(size: SizeRange) -> bool:
    """Whether more is said of a size than follows from what it comes from."""
    whole = size.most if size.same is None else size.same
    if whole is None or _named_beside(size):
        return True
    if _summands(size):  # of which only the sign is told
        least = _telescope(size, frozenset())[1]
        return size.lower >= 0 and (least is None or least < 0)
    low, high = lower_bound(whole), -lower_bound(-whole)
    return size.lower > max(low, -FAR) or (_says_something(size.upper) and size.upper < high)


def _named_by(size: SizeRange) -> frozenset[str]:
    """The other sizes that are named by what is said of one; of a sum, that can do without any."""
    most = frozenset() if size.most is None else names_of([size.most])
    parts = frozenset() if _summands(size) else below(size.name)
    return parts | most | _named_beside(size)


def _named_among(size: SizeRange, names: frozenset[str]) -> frozenset[str]:
    """The other sizes that are named by what is said of one among some."""
    return _named_by(size) | (names_of([_telescope(size, names)[0]]) if _summands(size) else set())


def _with_below(names: Collection[str]) -> frozenset[str]:
    """Sizes, and all that they follow from and have a name."""
    reached, found = frozenset[str](), frozenset(names)
    while found:
        reached |= found
        sizes = (size for size in map(stated_range, found) if size is not None)
        found = frozenset().union(*map(_named_by, sizes)) - reached
    return frozenset(name for name in reached if stated_range(name) is not None)
