"""The text of schedules: what is printed is read, and what cannot be read is told."""

from __future__ import annotations

import random

import pytest

from polyc.errors import IllegalSchedule
from polyc.schedule.coordinates import Cut, Join, Partial, Side, Stage, Tile
from polyc.schedule.counting import Collapse, Count
from polyc.schedule.directives import (
    Distribute,
    First,
    Fuse,
    Order,
    Reverse,
    Run,
    Shift,
    Sink,
    Skew,
    Split,
)
from polyc.schedule.keeping import Keep, KeepInPlace, Pack, Prefetch
from polyc.schedule.schedule import Schedule
from polyc.schedule.threads import Lay, Pipeline, Swizzled, Threads, Use

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
    "as",
    "by",
    "over",
    "into",
    "shared",
]


def draw_for_gpu(rng: random.Random, some: tuple[str, ...], one: str, other: str):
    """Those that only GPUs have."""
    sizes = tuple(rng.randint(1, 99) for _ in some)
    digits = tuple((name, rng.randint(1, 9)) for name in some)
    batch = rng.choice([(), some])
    return [
        *(Run(kind, some) for kind in ("block", "combine", "copy", "box")),
        Threads(some, rng.choice([False, True])),
        Use("mma.m16n8k8.tf32", some),
        Pipeline(some, rng.randint(1, 8), rng.randint(1, 3)),
        Collapse(some),
        Count(some),
        Lay(one, sizes),
        Swizzled(one, *rng.choices(range(9), k=3)),
        Join(rng.choice([(), some]), one, rng.choice([1, 16])),
        Cut(some, (one, *some), sizes),
        Partial(one),
        Stage(some, one, other),
        Tile(Side(some, digits), Side((one,), digits), Side((other,), digits), some, 64, batch),
        Tile(Side(some, digits), Side((one,), digits), Side((other,), digits), some),
        Keep(some, "shared", one),
        Keep(None, rng.choice(["registers", "stack", "shared"]), other),
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
            First(some),
            Fuse(some, rng.choice([None, 56])),
            Reverse(some),
            Shift(one, rng.randint(-9, 9)),
            Skew(one, other, rng.randint(-9, 9)),
            *(Run(kind, some) for kind in ("parallel", "vector", "unroll", "hold")),
            Keep(some, rng.choice(["registers", "stack"]), at),
            Keep(None, "", at, rng.choice([False, True])),
            KeepInPlace(one, other, at),
            Pack(some),
            Prefetch(some),
            *draw_for_gpu(rng, some, one, other),
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
        ("tile i as a 3 over k as b 4 by j", "by is missing"),
        ("tile i as a by j as b 4 over k as c 2 into a b", "by is not a number"),
        ("tile i as a 2 by j as b 4 over k as c 2", "into is missing"),
        ("cut i by 4", "as is missing"),
        ("cut i as k t by x", "x is not a number"),
        ("join i j", "as is missing"),
        ("join i as e of", "a number is missing"),
        ("partial S.t S.v", "S.v is not expected there"),
        ("stage x", "by is missing"),
        ("use", "an instruction is missing"),
        ("use mma", "a name is missing"),
        ("pipeline S.k", "a number is missing"),
        ("swizzle a 2 3", "a number is missing"),
        ("lay a", "a number is missing"),
        ("thread 32", "32 is not a name"),
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
