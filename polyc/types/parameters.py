"""Sizes under identifiers, as integer sets and C name them.

x[h, w], y[floor(h/2), h*w]     h, w, floor(h/2) and h*w have one each, and shapes are sums
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyc.names import fresh, identifier
from polyc.types.derived import Derived
from polyc.types.follows import names_of
from polyc.types.ranges import (
    LEAST,
    PREFIX,
    STEP,
    SizeRange,
    assume,
    assumed_ranges,
    concluded,
    stated_range,
)
from polyc.types.sizes import Extent, Size, assumed_range, bounds, divide, evaluate


def identify(names: Iterable[str], others: Collection[str] = ()) -> dict[str, str]:
    """An identifier for each name of a size: "batch size" -> "size_batch_size".

    `others` are identifiers that there are already.
    """
    taken = {"size_t", *others}  # the first is a type of C's
    found: dict[str, str] = {}
    for name in names:
        found[name] = fresh(PREFIX + (identifier(name) or "d"), taken)
        taken.add(found[name])
    return found


@dataclass(frozen=True)
class Parameter(SizeRange):
    """A size by its identifier, `name`; `shown` is what the model calls it.

    One that follows from others, by `same`, is computed, and not told by a call.
    """

    shown: str = field(default="", compare=False)

    @staticmethod
    def of(size: SizeRange, known: Renaming) -> Parameter:
        """The size under its identifier, as are those in what is said of it."""
        after = None if size.next is None else known.extent(size.next)
        same = known.meaning(size.same) if isinstance(size.same, Size) else None
        needs = (known.extent(need) for need in size.needs)
        return Parameter(
            known.names[size.name],
            size.lower,
            size.upper,
            size.hint,
            after,
            same,
            tuple(need for need in needs if isinstance(need, Size)),
            None if size.most is None else known.extent(size.most),
            size.name,
        )


def with_needs(ranges: Iterable[SizeRange], needs: Sequence[Size]) -> Iterator[SizeRange]:
    """The ranges of all sizes; what is needed of several sizes is said of the first of them."""
    for size in ranges:
        first = (need for need in needs if min(need.names) == size.name)
        yield replace(size, needs=tuple(dict.fromkeys((*size.needs, *first))))


def needed_ranges(needs: Sequence[Size]) -> Iterator[SizeRange]:
    """What is assumed of sizes, where besides something is needed of them."""
    return with_needs(map(assumed_range, sorted({min(need.names) for need in needs})), needs)


def tightened(name: str) -> SizeRange:
    """What is assumed of a size, between the bounds that follow from what is needed.

    floor(n/64) - 1 and 1 - floor(n/64) are not negative   ->   n: 64 to 127
    """
    size, (low, high) = assumed_range(name), bounds(Size.of(name))
    if size.most is not None or not max(size.lower, low) <= high:
        return size
    lower = size.lower if math.isinf(low) else max(size.lower, int(low))
    return replace(size, lower=lower, upper=size.upper if math.isinf(high) else int(high))


def show_sizes(sizes: Iterable[Parameter]) -> dict[str, Extent]:
    """By identifier: what a model calls a size, and what follows from such names."""
    shown: dict[str, Extent] = {}
    for size in sizes:
        plain = size.same is None
        shown[size.name] = Size.of(size.shown) if plain else _at(size.same, shown)
    return shown


def complete(sizes: Iterable[SizeRange], values: Mapping[str, int]) -> dict[str, int]:
    """The values of all sizes, of which some are given, and of those before them in order."""
    found = dict(values)
    for size in sizes:
        if size.same is not None:
            found[size.name] = evaluate(size.same, found)
    return found


def _at(extent: Extent | None, values: Mapping[str, Extent]) -> Extent:
    assert isinstance(extent, Size)
    return extent.at(values)


@dataclass(frozen=True)
class Renaming:
    """Other names for sizes, for those derived from them, and for products, which are one name.

    products: the name of each product of names; names: the other name of each of all these.
    """

    names: Mapping[str, str]
    products: Mapping[tuple[str, ...], str]

    def extent(self, extent: Extent) -> Extent:
        """An extent in other names; of what has none, what it follows from has."""
        if not isinstance(extent, Size):
            return extent
        values = {old: Size.of(new) for old, new in self.names.items()}
        total: Extent = 0
        for product, coefficient in extent.terms:
            name = self.products.get(product)
            part = Size(((product, 1),)).at(values) if name is None else Size.of(self.names[name])
            total = total + part * coefficient
        return total

    def meaning(self, same: Size) -> Size:
        """What a size is, in other names of what it follows from."""
        (product, _), *_ = same.terms
        if len(product) == 1 and isinstance(name := product[0], Derived):
            first, second = map(self.extent, name.operands)
            return Size.of(Derived(name.operation, first, second))
        return Size(((tuple(sorted(self.names[name] for name in product)), 1),))


def find_derived(extents: Iterable[Extent]) -> tuple[dict[str, Size], dict[tuple[str, ...], str]]:
    """All products of sizes in extents, and all that is derived: what each is, by name.

        2*h*w + 1, floor(h/2)   ->   "h*w": h*w, "floor(h/2)": floor(h/2)

    What follows from others of them stands behind them. Nothing that depends on a step is listed.
    Also the names of products.
    """
    found: dict[str, Size] = {}
    products: dict[tuple[str, ...], str] = {}

    def visit(extent: Extent) -> None:
        for product, _ in extent.terms if isinstance(extent, Size) else ():
            for name in product:
                if isinstance(name, Derived) and name not in found:
                    for operand in name.operands:
                        visit(operand)
                    enter(name, Size.of(name))
            if len(product) > 1 and product not in products:
                products[product] = name = "*".join(product)
                enter(name, Size(((product, 1),)))

    def enter(name: str, meaning: Size) -> None:
        if not any(leaf.startswith(STEP) for leaf in meaning.names):
            found[name] = meaning

    for extent in extents:
        visit(extent)
    return found, {product: name for product, name in products.items() if name in found}


def order_derived(derived: Mapping[str, Size]) -> dict[str, Size]:
    """By what each is, with the nearest sizes that it follows from, and these in front of it."""
    nearest = {name: find_nearest(name, derived) for name in derived}
    ordered: dict[str, Size] = {}

    def enter(name: str) -> None:
        if name in ordered or name not in nearest:
            return
        below = nearest[name].factors
        operands = [o for f in below if isinstance(f, Derived) for o in f.operands]
        for other in sorted(names_of(operands) | {f for f in below if f != name}):
            enter(other)
        for product in (p for e in operands if isinstance(e, Size) for p, _ in e.terms):
            enter("*".join(product))
        ordered[name] = nearest[name]

    for name in nearest:
        enter(name)
    return ordered


def derive(derived: Mapping[str, Size], known: Renaming) -> Iterator[Parameter]:
    """The sizes that follow from others, each behind those that it follows from."""
    for name, meaning in order_derived(derived).items():
        low, high = _ends(name, derived[name])
        lower = LEAST if math.isinf(low) else int(low)
        upper = None if math.isinf(high) else int(high)
        yield Parameter.of(SizeRange(name, lower, upper, same=meaning), known)


def _ends(name: str, size: Size) -> tuple[float, float]:
    """Bounds of a size that follows from others; the smaller of two is at least one of them."""
    low, high = bounds(size)
    if isinstance(name, Derived) and name.operation == "min":
        ends = [bounds(operand) for operand in name.operands]
        low = max(low, min(low for low, _ in ends))
    return low, high


def with_extents(
    sizes: Sequence[Parameter], extents: Iterable[tuple[Extent, tuple[Size, ...]]]
) -> tuple[Parameter, ...]:
    """Sizes and those that extents over them divide and multiply besides.

        size_h, size_w;  (size_h + 3)//4 * size_w
            ->  size_h, size_w, size_floor_size_h_3_4, size_floor_size_h_3_4_size_w

    That such an extent is not negative, as none is, is needed where it cannot be seen otherwise,
    also from what not all calls need and what stands beside it. To be called where the sizes are
    assumed.
    """
    lacking = [
        (_by_names(e), needs) for e, needs in extents if isinstance(e, Size) and not has_name(e)
    ]
    if not lacking:
        return tuple(sizes)
    derived, products = find_derived([extent for extent, _ in lacking])
    own = {size.name: size.name for size in sizes}
    known = Renaming({**own, **identify(derived, own)}, products)
    # Sets know h*w, h and w one by one: that (h - 1)*(w - 1) is not negative does not follow.
    counts = [known.extent(e) for e, where in lacking if _least(e, where) < 0]
    needs = dict.fromkeys(count for count in counts if isinstance(count, Size))
    first, *others = sizes
    return (replace(first, needs=(*first.needs, *needs)), *others, *derive(derived, known))


def _least(extent: Extent, needs: tuple[Size, ...]) -> int | float:
    with assume(needed_ranges(needs)):
        return bounds(extent)[0]


def has_name(extent: Extent) -> bool:
    """Whether an extent is a sum of numbers and of sizes that have names."""
    return not isinstance(extent, Size) or _is_plain(named(extent))


def _is_plain(extent: Extent) -> bool:
    if not isinstance(extent, Size):
        return True
    return extent.is_affine and not any(isinstance(name, Derived) for name in extent.factors)


def _by_names(extent: Size) -> Extent:
    """An extent with the names of what is derived in it, as far as there are any."""
    whole = {f: named(Size.of(f)) for f in extent.factors if isinstance(f, Derived)}
    return extent.at({factor: size for factor, size in whole.items() if _is_plain(size)})


def find_nearest(name: str, derived: Mapping[str, Size]) -> Size:
    """What a derived size is, by the nearest one that it follows from.

    floor((h + 3)/4)   ->   floor((floor((h + 1)/2) + 1)/2), where there is floor((h + 1)/2)
    """
    if not isinstance(name, Derived) or name.operation != "floor":
        return derived[name]
    dividend, divisor = name.operands
    best, found = 1, derived[name]
    for other in derived:
        if not isinstance(other, Derived) or other.operation != "floor":
            continue
        rest, by = dividend - other.operands[0], other.operands[1]
        assert isinstance(by, int)
        assert isinstance(divisor, int)
        if isinstance(rest, int) and best < by < divisor and not (divisor % by or rest % by):
            nearer = Size.of(other) + rest // by
            best, found = by, Size.of(Derived("floor", nearer, divisor // by))
    return found


@concluded
def expand(extent: Extent) -> Extent:
    """An extent by the sizes that calls say, without those that follow from others."""
    if not isinstance(extent, Size):
        return extent
    ranges = {name: stated_range(name) for name in extent.names}
    meanings = {
        name: expand(r.same) for name, r in ranges.items() if r is not None and r.same is not None
    }
    return extent.at(meanings) if meanings else extent


def settled(extent: Extent) -> Extent:
    """An extent by the sizes that calls say, and these by what they must be equal to.

    h*w   ->   4*floor(h/4)*w, where h must be 4*floor(h/4)
    """
    whole = expand(extent)
    needs = {expand(need) for size in assumed_ranges() for need in size.needs}
    for need in needs:
        if not (isinstance(whole, Size) and isinstance(need, Size) and -need in needs):
            continue
        for product, coefficient in need.terms:
            (name, *others), whole_names = product or ("",), whole.factors
            nothing = divide(need, coefficient)  # 2*n - 100, and so n - 50
            # Of n*m - n, which is to be 0, n would be n*m, and come back in it.
            once = sum(name in one for one, _ in need.terms) == 1
            plain = once and not others and product and not isinstance(name, Derived)
            if plain and nothing is not None:
                said: dict[str, Extent] = {name: Size.of(name) - nothing}
                same = {f: _divided(f, said) for f in whole_names if isinstance(f, Derived)}
                whole = whole.at(same | said)
                break
    return whole


def _divided(derived: Derived, said: Mapping[str, Extent]) -> Extent:
    """What is derived, where a size is another one; inside of it that stays if it does not divide.

    floor(h/4) and floor((h + 3)/4)   ->   floor(h/4), where h is 4*floor(h/4)
    """
    dividend, divisor = derived.operands
    if derived.operation == "floor" and isinstance(dividend, Size) and isinstance(divisor, int):
        whole = dividend.at({f: Size.of(f) for f in dividend.factors} | dict(said))
        rest = dict(whole.terms).get((), 0) if isinstance(whole, Size) else whole
        quotient = divide(whole - rest, divisor)
        if quotient is not None:
            return quotient + rest // divisor
    return Size.of(derived)


def must_be_equal(one: Extent, other: Extent) -> bool:
    """Whether two extents are equal in every call: always, or because a network needs it.

    64*b*h   and   1280*b, where a call is refused unless h is 20
    """
    # What is needed may speak of the sizes as they are, and not by what they must be equal to.
    for difference in (expand(one) - expand(other), settled(one) - settled(other)):
        if _is_never_negative(difference) and _is_never_negative(-difference):
            return True
    return False


def _is_never_negative(extent: Extent) -> bool:
    """Whether it is so for all sizes, or is a multiple of what is needed to be so."""
    if bounds(extent)[0] >= 0:
        return True
    needs = (expand(need) for size in assumed_ranges() for need in size.needs)
    multiples = (divide(extent, need) for need in needs)
    return any(m is not None and bounds(m)[0] >= 0 for m in multiples)


def expand_products(size: Size) -> Size:
    """A size by factors, where it is in terms of their products."""
    meanings: dict[str, Extent] = {}
    for name in size.factors:
        known = stated_range(name)
        if known and isinstance(same := known.same, Size) and len(same.terms[0][0]) > 1:
            meanings[name] = same
    whole = size.at(meanings)
    assert isinstance(whole, Size)
    return whole


@concluded
def named(extent: Extent) -> Extent:
    """An extent as a sum of sizes that have names, as far as they have.

    floor((size_h + 1)/2) + size_h*size_w   ->   size_rows + size_area
    """
    if not isinstance(extent, Size):
        return extent
    if _is_plain(extent):
        return extent
    products, names = {}, {}
    for size in assumed_ranges():
        whole = None if size.same is None else expand(size.same)
        if isinstance(whole, Size) and len(whole.terms) == 1 and whole.terms[0][1] == 1:
            product = whole.terms[0][0]
            products[product] = key = "*".join(product)
            names[key] = size.name
    return Renaming(names, products).extent(expand(extent))
