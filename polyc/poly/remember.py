"""What isl has found of a set is remembered: layers that are alike ask the same again and again.

    S[i] : 0 <= i < n and …    and    T[i] : 0 <= i < n and …    are one question, without names

Keys are compared by `plain_is_equal`, which sees at a glance that two are the same, or does not; so
an answer is only ever given for an equal question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

import islpy as isl

T = TypeVar("T")

SET = isl.dim_type.set

ANSWERS = 2048
"""That are remembered of each function, the latest ones."""


def normalise(value: isl.Set) -> isl.Set:
    """The set, in isl's normal form from now on: without what follows from the rest.

    isl computes it where it compares sets, and forgets it with the copy that it has compared. Left
    in the set itself it serves all that are made from it. To ask for a hash is to ask for it.
    """
    hash(value)
    return value


def without_name(value: isl.Set, change: Callable[[isl.Set], isl.Set]) -> isl.Set:
    """A set after a change that names do not matter to, so that it is one for sets of any name.

    What is remembered may have been changed for a set that calls its iterators otherwise.
    """
    changed = change(value.reset_tuple_id())
    for k in range(value.dim(SET)):
        name = value.get_dim_name(SET, k)
        if name is not None and changed.get_dim_name(SET, k) != name:
            changed = changed.set_dim_name(SET, k, name)
    return changed.set_tuple_id(value.get_tuple_id()) if value.has_tuple_id() else changed


class Plain:
    """A set as a key: equal to those that are plainly equal."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: isl.Set) -> None:
        self.value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plain):
            return NotImplemented
        return self.value is other.value or bool(self.value.plain_is_equal(other.value))


class _Same:
    """A set as a key that is equal to no other, and costs nothing to compare."""

    __slots__ = ("value",)

    def __init__(self, value: isl.Set) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def remember(function: Callable[..., T]) -> Callable[..., T]:
    """Decorates a function of sets alone: it is asked once for those that are plainly equal."""
    answer = _remembering(function)

    @wraps(function)
    def ask(*sets: isl.Set) -> T:
        return answer(*map(Plain, sets))

    return ask


def remember_within(function: Callable[[isl.Set, isl.Set], T]) -> Callable[[isl.Set, isl.Set], T]:
    """The same for a set and what is known: as many ask who know the very same, a large set."""
    answer = _remembering(function)

    @wraps(function)
    def ask(one: isl.Set, known: isl.Set) -> T:
        return answer(Plain(one), _Same(known))

    return ask


def _remembering(function: Callable[..., T]) -> Callable[..., T]:
    @lru_cache(maxsize=ANSWERS)
    def answer(*keys: Plain | _Same) -> T:
        return function(*(key.value for key in keys))

    return answer
