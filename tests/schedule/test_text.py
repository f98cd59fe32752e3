"""The text of schedules: what is printed is read, and what cannot be read is told."""

from __future__ import annotations

import random

import pytest

from polyc.errors import IllegalSchedule
from polyc.schedule.directives import (
    Distribute,
    Fuse,
    Order,
    Reverse,
    Run,
    Shift,
    Sink,
    Skew,
    Split,
)
from polyc.schedule.keeping import Keep, KeepInPlace, Pack
from polyc.schedule.schedule import Schedule

NAMES = [
    "i",
    "j'",
    "conv1.i''",
    "in",
    "at",
    "of",
    "all",
    "place",
    "7",
    "order",
    "keep",
    "add",
    "7.i",
]


def draw(rng: random.Random):
    """Some directive over adversarial names."""
    some = tuple(rng.choices(NAMES, k=rng.randint(1, 3)))
    one, other = rng.choice(NAMES), rng.choice(NAMES)
    at = rng.choice(["", one])
    return rng.choice(
        [
            Order(some),
            Split(some, rng.randint(1, 99)),
            Sink(some),
            Distribute(some),
            Fuse(some, rng.choice([None, 56])),
            Reverse(some),
            Shift(one, rng.randint(-9, 9)),
            Skew(one, other, rng.randint(-9, 9)),
            *(Run(kind, some) for kind in ("parallel", "vector", "unroll")),
            Keep(some, rng.choice(["registers", "stack"]), at),
            Keep(None, "", at, rng.choice([False, True])),
            KeepInPlace(one, other, at),
            Pack(some),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_what_is_printed_is_read(seed):
    rng = random.Random(seed)
    schedule = Schedule(tuple(draw(rng) for _ in range(rng.randint(0, 9))))
    assert Schedule.parse(str(schedule)) == schedule


def test_white_space_is_free():
    text = "order j i\n  |split i 13\t|   sink i'"
    assert str(Schedule.parse(text)) == "order j i | split i 13 | sink i'"
    assert Schedule.parse("  ") == Schedule()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiles i 3", "tiles is no directive; the directives are order, split"),
        ("tile i 3", "as is missing"),
        ("order", "a name is missing"),
        ("split i", "a number is missing"),
        ("split 3", "3 is not a name"),
        ("split i 3 4", "4 is not expected there"),
        ("split i x3", "a number is missing"),
        ("split i 3 |", "a directive is missing"),
        ("| split i 3", "a directive is missing"),
        ("fuse i 3 j", "j is not expected there"),
        ("vector i;", "i; is not a name"),
        ("vector 'i", "is not a name"),
        ("keep acc", "where to keep is missing"),
        ("keep acc in heap", "where to keep is missing"),
        ("keep a b in place of y", "one array at a time"),
        ("keep all in heap", "in is not expected there"),
        ("keep a in stack at", "a name is missing"),
        ("shift i", "a number is missing"),
        ('order "i', "a quote that is not closed"),
        ("order i\x00j", "is not a name"),
        ("x" * 100_000, "is no directive"),
    ],
)
def test_what_cannot_be_read_is_told(text, said):
    with pytest.raises(IllegalSchedule, match=said) as refused:
        Schedule.parse(text)
    assert len(str(refused.value)) < 2000
