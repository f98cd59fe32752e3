"""Index expressions and conditions of generated loops: plain integers, no isl.

An index is kept as a linear combination  constant + sum coefficient * atom,  where an atom is a
variable (of a loop, or a size known only at run time) or a non-linear term (floor division, modulo,
minimum, maximum, choice, a product with sizes). The linear form makes substitution (unrolling),
strides (vectorising) and equality straightforward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

from polyc.types.derived import Derived
from polyc.types.sizes import Extent, Size


@dataclass(frozen=True)
class Var:
    """A loop variable, or a size known only at run time."""

    name: str


@dataclass(frozen=True)
class FloorDiv:
    """floor(argument / divisor), divisor > 0."""

    argument: Affine
    divisor: int


@dataclass(frozen=True)
class Mod:
    """argument - divisor * floor(argument / divisor), divisor > 0: never negative."""

    argument: Affine
    divisor: int


@dataclass(frozen=True)
class Extremum:
    """The minimum or maximum of several indices."""

    which: Literal["min", "max"]
    arguments: tuple[Affine, ...]


@dataclass(frozen=True)
class Choice:
    """then if condition else otherwise."""

    condition: Condition
    then: Affine
    otherwise: Affine


@dataclass(frozen=True)
class Scaled:
    """sizes multiplied with one another and with one other atom (or with 1): part of an address."""

    sizes: tuple[str, ...]
    argument: Affine


Atom = Var | FloorDiv | Mod | Extremum | Choice | Scaled


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * atom; terms are sorted, and no coefficient is zero."""

    constant: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        if not (self.terms and other.terms):
            return Affine(self.constant + other.constant, self.terms or other.terms)
        total = dict(self.terms)
        for atom, coefficient in other.terms:
            total[atom] = total.get(atom, 0) + coefficient
        return linear(self.constant + other.constant, total)

    def __mul__(self, factor: int) -> Affine:
        scaled = tuple((a, c * factor) for a, c in self.terms) if factor else ()
        return Affine(self.constant * factor, scaled)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other * -1)

    def __str__(self) -> str:
        # How an index is shown depends on what it is, and not this module on that.
        from polyc.loopnest.index_text import show_index

        return show_index(self)


@dataclass(frozen=True)
class Compare:
    """left >= 0, or left == 0."""

    operator: Literal["ge", "eq"]
    left: Affine


@dataclass(frozen=True)
class Logic:
    """A conjunction or disjunction; the empty conjunction is true."""

    operator: Literal["and", "or"]
    arguments: tuple[Condition, ...]


Condition = Compare | Logic
TRUE = Logic("and", ())


def linear(constant: int, terms: Mapping[Atom, int]) -> Affine:
    """The canonical form of a linear combination, in which no number is in its digits."""
    kept = [(a, c) for a, c in terms.items() if c]
    if len(kept) > 1:
        joined = _join_digits(constant, dict(kept))
        if joined is not None:
            return joined
        kept.sort(key=lambda term: _rank(term[0]))
    return Affine(constant, tuple(kept))


def _join_digits(constant: int, terms: Mapping[Atom, int]) -> Affine | None:
    """A number from its two digits, None if there are no such two.

    64 floor(k/64) + k mod 64         ->  k
    64 floor(k/64) - (63 - k) mod 64  ->  k - 63,  where the lower digit is counted from its end

    isl writes either digit with any k that differs by multiples of 64.
    """
    lows = [atom for atom in terms if isinstance(atom, Mod)]
    for low, high in product(lows, terms) if lows else ():
        if not isinstance(high, FloorDiv) or high.divisor != low.divisor:
            continue
        d, weight = high.divisor, terms[high] // high.divisor
        if terms[high] != weight * d or abs(terms[low]) != abs(weight):
            continue
        from_end = d - 1 if terms[low] != weight else 0
        digit = const(from_end) - low.argument if from_end else low.argument
        apart = high.argument - digit
        if not any(n % d for n in (apart.constant, *(c for _, c in apart.terms))):
            rest = tuple((a, c) for a, c in terms.items() if a not in (low, high))
            parts = [(Affine(0, rest), 1), (high.argument, weight)]
            return weighted_sum(parts, constant - weight * from_end)
    return None


@lru_cache(maxsize=4096)
def _rank(atom: Atom) -> tuple[str, str]:
    """The place of an atom among others: by its kind, then by what it says."""
    return type(atom).__name__, atom.name if isinstance(atom, Var) else repr(atom)


def weighted_sum(parts: Iterable[tuple[Affine, int]], constant: int = 0) -> Affine:
    """constant + sum of part * weight."""
    total: dict[Atom, int] = {}
    for part, weight in parts:
        constant += part.constant * weight
        for atom, coefficient in part.terms:
            total[atom] = total.get(atom, 0) + coefficient * weight
    return linear(constant, total)


def times(index: Affine, extent: Extent) -> Affine:
    """index * extent, in linear form."""
    if not isinstance(extent, Size):
        return index * extent
    parts = []
    for sizes, weight in extent.terms:
        terms = [(Affine(0, ((atom, 1),)), c) for atom, c in index.terms]
        if len(sizes) == 1 and isinstance(derived := sizes[0], Derived):
            parts.append((_derived(derived) * index.constant, weight))
        elif index.constant:
            terms.append((Affine(1), index.constant))
        parts += [(_scaled(sizes, argument), c * weight) for argument, c in terms]
    return weighted_sum(parts)


def _derived(size: Derived) -> Affine:
    """A size that follows from others."""
    first, second = size.operands
    if size.operation == "min":
        return extremum("min", (of_extent(first), of_extent(second)))
    if size.operation == "sum":
        return weighted_sum(((of_extent(first), 1), (of_extent(second), 1)))
    assert isinstance(second, int)
    return floordiv(of_extent(first), second)


def _scaled(sizes: tuple[str, ...], argument: Affine) -> Affine:
    """The product of sizes with an atom, or with 1."""
    if not sizes:
        return argument
    ((atom, _),) = argument.terms or ((None, 1),)
    if isinstance(atom, Scaled):
        sizes, argument = tuple(sorted(sizes + atom.sizes)), atom.argument
    elif len(sizes) == 1 and atom is None:
        return var(sizes[0])
    return Affine(0, ((Scaled(sizes, argument), 1),))


def of_extent(extent: Extent) -> Affine:
    """An extent as an index."""
    return times(const(1), extent)


def var(name: str) -> Affine:
    return Affine(0, ((Var(name), 1),))


def const(value: int) -> Affine:
    return Affine(value)


def floordiv(argument: Affine, divisor: int) -> Affine:
    """floor(argument / divisor), with what divides evenly taken out of the floor."""
    if divisor == 1:
        return argument
    inside = {a: c for a, c in argument.terms if c % divisor}
    outside = {a: c // divisor for a, c in argument.terms if not c % divisor}
    whole, rest = divmod(argument.constant, divisor)
    if not inside:
        return linear(whole, outside)
    return linear(whole, outside) + Affine(0, ((FloorDiv(linear(rest, inside), divisor), 1),))


def modulo(argument: Affine, divisor: int) -> Affine:
    """argument mod divisor, with multiples of the divisor dropped."""
    inside = {a: c for a, c in argument.terms if c % divisor}
    reduced = linear(argument.constant % divisor, inside)
    if not inside:
        return reduced
    return Affine(0, ((Mod(reduced, divisor), 1),))


def extremum(which: Literal["min", "max"], arguments: tuple[Affine, ...]) -> Affine:
    """min or max; constants are folded, duplicates dropped."""
    unique = tuple(dict.fromkeys(arguments))
    if all(a.is_constant for a in unique):
        return const((min if which == "min" else max)(a.constant for a in unique))
    if len(unique) == 1:
        return unique[0]
    return Affine(0, ((Extremum(which, unique), 1),))


def choice(condition: Condition, then: Affine, otherwise: Affine) -> Affine:
    decided = decide(condition)
    if decided is not None:
        return then if decided else otherwise
    return Affine(0, ((Choice(condition, then, otherwise), 1),))


def decide(condition: Condition) -> bool | None:
    """The truth of a condition, or None while it depends on a loop variable."""
    match condition:
        case Compare(operator, left):
            if not left.is_constant:
                return None
            return left.constant >= 0 if operator == "ge" else left.constant == 0
        case Logic(operator, arguments):
            known = [decide(a) for a in arguments]
            settling = operator == "or"
            if settling in known:
                return settling
            return None if None in known else not settling


def compared(condition: Condition) -> Iterator[Affine]:
    """The indices whose signs decide a condition."""
    match condition:
        case Compare("ge", left):
            yield left
        case Compare("eq", left):
            yield from (left, left * -1)
        case Logic(_, arguments):
            for argument in arguments:
                yield from compared(argument)


def substitute(index: Affine, values: Mapping[str, Affine]) -> Affine:
    """index with loop variables replaced."""
    total: dict[Atom, int] = {}
    constant, is_changed = index.constant, False
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            value = values.get(atom.name)
        else:
            value = _transform_atom(atom, lambda v: values.get(v.name, Affine(0, ((v, 1),))))
        if value is None:
            total[atom] = total.get(atom, 0) + coefficient
            continue
        is_changed = True
        constant += value.constant * coefficient
        for inner, weight in value.terms:
            total[inner] = total.get(inner, 0) + weight * coefficient
    return linear(constant, total) if is_changed else index


def variables(index: Affine) -> frozenset[str]:
    """The loop variables that an index mentions."""
    return frozenset[str]().union(*(_mentioned(atom) for atom, _ in index.terms))


@lru_cache(maxsize=4096)
def _mentioned(atom: Atom) -> frozenset[str]:
    seen: set[str] = set()

    def visit(v: Var) -> Affine:
        seen.add(v.name)
        return Affine(0, ((v, 1),))

    _transform_atom(atom, visit)
    return frozenset(seen)


def stride(index: Affine, name: str) -> int | None:
    """By how much the index grows when `name` grows by one; None if that is not constant."""
    total = 0
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            total += coefficient if atom.name == name else 0
        elif name in variables(Affine(0, ((atom, 1),))):
            return None
    return total


def _transform(index: Affine, leaf: Callable[[Var], Affine]) -> Affine:
    """index with `leaf(v)` in place of each variable v."""
    if not index.terms:
        return index
    return weighted_sum(
        ((_transform_atom(atom, leaf), coefficient) for atom, coefficient in index.terms),
        index.constant,
    )


def _transform_atom(atom: Atom, leaf: Callable[[Var], Affine]) -> Affine:
    match atom:
        case Var():
            return leaf(atom)
        case FloorDiv(argument, divisor):
            return floordiv(_transform(argument, leaf), divisor)
        case Mod(argument, divisor):
            return modulo(_transform(argument, leaf), divisor)
        case Extremum(which, arguments):
            return extremum(which, tuple(_transform(a, leaf) for a in arguments))
        case Scaled(sizes, argument):
            return times(_transform(argument, leaf), Size(((sizes, 1),)))
        case Choice(condition, then, otherwise):
            return choice(
                _transform_condition(condition, leaf),
                _transform(then, leaf),
                _transform(otherwise, leaf),
            )


def _transform_condition(condition: Condition, leaf: Callable[[Var], Affine]) -> Condition:
    match condition:
        case Compare(operator, left):
            return Compare(operator, _transform(left, leaf))
        case Logic(operator, arguments):
            return Logic(operator, tuple(_transform_condition(a, leaf) for a in arguments))
