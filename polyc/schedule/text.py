"""The text form of schedules: the language in which people write directives, and its parser.

    order NAME…                 sink NAME…            parallel NAME…     reverse NAME…
    split NAME… SIZE            distribute NAME…      vector NAME…       shift S.NAME BY
    collapse NAME…              count NAME…           prefetch ARRAY…
    fuse NAME… [SIZE]           pack ARRAY…           unroll NAME…       skew NAME BY-NAME FACTOR
    first NAME…                 hold NAME…
    keep ARRAY… in registers|stack [at NAME]
    keep ARRAY in place of ARRAY [at NAME]
    keep all [in place | in registers|stack|shared] [at NAME]

and of GPUs, for which `keep` knows `shared` as well:

    block NAME…    warp NAME…    thread NAME…    combine NAME…    copy NAME…    box NAME…
    use INSTRUCTION NAME…               lay ARRAY NUMBER…
    pipeline S.NAME… STAGES [USED]      swizzle ARRAY BITS TO SOURCE
    join [NAME…] as NAME [of NUMBER]    cut NAME… as NAME… by SIZE…
    partial S.NAME                      stage ARRAY… by NAME NAME
    tile NAME… as {NAME SIZE}… by NAME… as {NAME SIZE}… over NAME… as {NAME SIZE}… into NAME…
         [of RUN] [at NAME…]

Directives are separated by `|`; white space is free. A name that is a number, or one of
`in`, `at`, `of`, `all`, `place`, `as`, `by`, `over` and `into`, stands in double quotes.

This is the only place where text is read that decides about loops: what users write, what tuning
has stored, and what `explain()` has printed. From here on a schedule is a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, cast

from polyc.errors import IllegalSchedule
from polyc.names import show, show_text
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
from polyc.schedule.loops import LoopKind
from polyc.schedule.threads import Lay, Pipeline, Swizzled, Threads, Use

AnyDirective = (
    Order
    | Split
    | Sink
    | Distribute
    | First
    | Collapse
    | Count
    | Fuse
    | Reverse
    | Shift
    | Skew
    | Run
    | Keep
    | KeepInPlace
    | Pack
    | Prefetch
    | Threads
    | Use
    | Pipeline
    | Lay
    | Swizzled
    | Join
    | Cut
    | Partial
    | Stage
    | Tile
)

WORDS = frozenset({"in", "at", "of", "all", "place", "as", "by", "over", "into"})
SPACES = ("registers", "stack", "shared")

_TOKEN = re.compile(r'"(?P<quoted>[^"|]+)"|(?P<plain>[^\s|"]+)|(?P<bar>\|)')
_NAME = re.compile(r"(\w+\.)?\w+'*")
_NUMBER = re.compile(r"-?\d{1,12}")


def spell(directive: AnyDirective) -> str:
    """The text of a directive, which `parse` reads."""
    match directive:
        case Run(kind, loops):
            return f"{kind} {_names(loops)}"
        case (
            Order(loops)
            | Sink(loops)
            | Distribute(loops)
            | First(loops)
            | Collapse(loops)
            | Count(loops)
        ):
            return f"{type(directive).__name__.lower()} {_names(loops)}"
        case Reverse(loops):
            return f"{type(directive).__name__.lower()} {_names(loops)}"
        case Split(loops, size):
            return f"split {_names(loops)} {size}"
        case Fuse(loops, None):
            return f"fuse {_names(loops)}"
        case Fuse(loops, width):
            return f"fuse {_names(loops)} {width}"
        case Shift(loop, amount):
            return f"shift {_names([loop])} {amount}"
        case Skew(loop, by, factor):
            return f"skew {_names([loop, by])} {factor}"
        case Pack(arrays) | Prefetch(arrays):
            return f"{type(directive).__name__.lower()} {_names(arrays)}"
        case KeepInPlace(array, home, at):
            return f"keep {_names([array])} in place of {_names([home])}{_at(at)}"
        case Keep(None, space, at, in_place):
            where = " in place" if in_place else f" in {space}" if space else ""
            return f"keep all{where}{_at(at)}"
        case Keep(arrays, space, at):
            return f"keep {_names(arrays or ())} in {space}{_at(at)}"
        case Threads(loops, warps):
            return f"{'warp' if warps else 'thread'} {_names(loops)}"
        case Use(instruction, loops):
            return f"use {instruction} {_names(loops)}"
        case Pipeline(loops, stages, used):
            return f"pipeline {_names(loops)} {stages}{f' {used}' if used > 1 else ''}"
        case Lay(array, order):
            return f"lay {_names([array])} {_numbers(order)}"
        case Swizzled(array, bits, to, source):
            return f"swizzle {_names([array])} {bits} {to} {source}"
        case _:
            return _spell_coordinates(directive)


def _spell_coordinates(directive: Join | Cut | Partial | Stage | Tile) -> str:
    """The text of a directive that rewrites statements."""
    match directive:
        case Join(loops, name, multiple):
            of = f" of {multiple}" if multiple > 1 else ""
            return f"join {_names(loops)}{' ' if loops else ''}as {_names([name])}{of}"
        case Cut(loops, names, sizes):
            return f"cut {_names(loops)} as {_names(names)} by {_numbers(sizes)}"
        case Partial(loop):
            return f"partial {_names([loop])}"
        case Stage(arrays, rows, columns):
            return f"stage {_names(arrays)} by {_names([rows, columns])}"
        case Tile(rows, columns, sums, results, run, batch):
            sides = f"{_side(rows)} by {_side(columns)} over {_side(sums)}"
            of = f" of {run}" if run else ""
            at = f" at {_names(batch)}" if batch else ""
            return f"tile {sides} into {_names(results)}{of}{at}"


def _side(side: Side) -> str:
    digits = " ".join(f"{_names([name])} {size}" for name, size in side.digits)
    return f"{_names(side.loops)} as {digits}"


def _numbers(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def _names(names: tuple[str, ...] | list[str]) -> str:
    return " ".join(f'"{n}"' if n in WORDS or _NUMBER.fullmatch(n) else n for n in names)


def _at(loop: str) -> str:
    return f" at {_names([loop])}" if loop else ""


def parse(text: str) -> tuple[AnyDirective, ...]:
    """The directives of a text; IllegalSchedule with the place of what cannot be read."""
    if not text.strip():
        return ()
    found: list[AnyDirective] = []
    words: list[_Word] = []
    position = 0
    for token in _TOKEN.finditer(text):
        if text[position : token.start()].strip():
            _refuse(text[position : token.start()], "it has a quote that is not closed")
        position = token.end()
        if token["bar"]:
            found.append(_Reader(words).directive())
            words = []
        else:
            words.append(_Word(token["quoted"] or token["plain"], token["quoted"] is not None))
    if text[position:].strip():
        _refuse(text[position:], "it has a quote that is not closed")
    return (*found, _Reader(words).directive())


class _Word(NamedTuple):
    """A word of the text, and whether it stood in quotes: then it is a name."""

    text: str
    quoted: bool = False


def _refuse(text: str, why: str) -> NoReturn:
    raise IllegalSchedule(
        f"the schedule has {show_text(repr(text.strip()), 200)}: {why}; the directives are "
        f"{', '.join(_READERS)}, as in 'order j i | split i 13 | vector j', with a | between them"
    )


class _Reader:
    """Reads one directive, word by word."""

    def __init__(self, words: list[_Word]) -> None:
        self.words, self.position = words, 0

    def directive(self) -> AnyDirective:
        verb = self.next("a directive")
        if verb.quoted or verb.text not in _READERS:
            self.fail(f"{show(verb.text)} is no directive")
        directive = _READERS[verb.text](self)
        if self.position < len(self.words):
            self.fail(f"{show(self.words[self.position].text)} is not expected there")
        return directive

    def fail(self, why: str) -> NoReturn:
        _refuse(" ".join(word.text for word in self.words), why)

    def next(self, wanted: str) -> _Word:
        if self.position == len(self.words):
            self.fail(f"{wanted} is missing")
        self.position += 1
        return self.words[self.position - 1]

    def follows(self, *words: str) -> bool:
        """Takes these words if they come next."""
        end = self.position + len(words)
        if self.words[self.position : end] != [_Word(word) for word in words]:
            return False
        self.position = end
        return True

    def name(self) -> str:
        word = self.next("a name")
        if not _NAME.fullmatch(word.text) or not _is_name(word):
            self.fail(f"{show(word.text)} is not a name")
        return word.text

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.position < len(self.words) and _is_name(self.words[self.position]):
            found.append(self.name())
        return tuple(found)

    def number(self) -> int:
        word = self.next("a number")
        if word.quoted or not _NUMBER.fullmatch(word.text):
            self.fail(f"{show(word.text)} is not a number")
        return int(word.text)

    def split(self) -> Split:
        return Split(self.names(), self.number())

    def fuse(self) -> Fuse:
        names = self.names()
        return Fuse(names, self.number() if self.position < len(self.words) else None)

    def shift(self) -> Shift:
        return Shift(self.name(), self.number())

    def skew(self) -> Skew:
        return Skew(self.name(), self.name(), self.number())

    def keep(self) -> Keep | KeepInPlace:
        if self.follows("all"):
            in_place = self.follows("in", "place")
            space = "" if in_place else next((s for s in SPACES if self.follows("in", s)), "")
            return Keep(None, space, self.at(), in_place)
        arrays = self.names()
        if self.follows("in", "place", "of"):
            if len(arrays) > 1:
                self.fail("one array at a time is kept in place of another")
            return KeepInPlace(arrays[0], self.name(), self.at())
        for space in SPACES:
            if self.follows("in", space):
                return Keep(arrays, space, self.at())
        self.fail(f"where to keep is missing: in {', in '.join(SPACES)}, or in place of an array")

    def at(self) -> str:
        return self.name() if self.follows("at") else ""

    def word(self, word: str) -> None:
        if not self.follows(word):
            self.fail(f"{word} is missing")

    def numbers(self) -> tuple[int, ...]:
        found = [self.number()]
        while self.position < len(self.words):
            found.append(self.number())
        return tuple(found)

    def use(self) -> Use:
        return Use(self.next("an instruction").text, self.names())

    def pipeline(self) -> Pipeline:
        names, stages = self.names(), self.number()
        return Pipeline(names, stages, self.number() if self.position < len(self.words) else 1)

    def lay(self) -> Lay:
        return Lay(self.name(), self.numbers())

    def swizzle(self) -> Swizzled:
        return Swizzled(self.name(), self.number(), self.number(), self.number())

    def join(self) -> Join:
        loops = () if self.follows("as") else self.names()
        if loops:
            self.word("as")
        return Join(loops, self.name(), self.number() if self.follows("of") else 1)

    def cut(self) -> Cut:
        loops = self.names()
        self.word("as")
        names = self.names()
        self.word("by")
        return Cut(loops, names, self.numbers())

    def stage(self) -> Stage:
        arrays = self.names()
        self.word("by")
        return Stage(arrays, self.name(), self.name())

    def tile(self) -> Tile:
        rows = self.side()
        self.word("by")
        columns = self.side()
        self.word("over")
        sums = self.side()
        self.word("into")
        results, run = self.names(), self.number() if self.follows("of") else 0
        return Tile(rows, columns, sums, results, run, self.names() if self.follows("at") else ())

    def side(self) -> Side:
        loops = self.names()
        self.word("as")
        digits = [(self.name(), self.number())]
        while self.position < len(self.words) and _is_name(self.words[self.position]):
            digits.append((self.name(), self.number()))
        return Side(loops, tuple(digits))


def _is_name(word: _Word) -> bool:
    return word.quoted or not (_NUMBER.fullmatch(word.text) or word.text in WORDS)


def _running(kind: str) -> Callable[[_Reader], AnyDirective]:
    return lambda reader: Run(cast(LoopKind, kind), reader.names())


_READERS: dict[str, Callable[[_Reader], AnyDirective]] = {
    "order": lambda r: Order(r.names()),
    "split": _Reader.split,
    "sink": lambda r: Sink(r.names()),
    "distribute": lambda r: Distribute(r.names()),
    "first": lambda r: First(r.names()),
    "collapse": lambda r: Collapse(r.names()),
    "count": lambda r: Count(r.names()),
    "fuse": _Reader.fuse,
    "reverse": lambda r: Reverse(r.names()),
    "shift": _Reader.shift,
    "skew": _Reader.skew,
    "parallel": _running("parallel"),
    "vector": _running("vector"),
    "unroll": _running("unroll"),
    "hold": _running("hold"),
    "keep": _Reader.keep,
    "pack": lambda r: Pack(r.names()),
    "prefetch": lambda r: Prefetch(r.names()),
    "block": _running("block"),
    "warp": lambda r: Threads(r.names(), warps=True),
    "thread": lambda r: Threads(r.names()),
    "combine": _running("combine"),
    "copy": _running("copy"),
    "box": _running("box"),
    "use": _Reader.use,
    "pipeline": _Reader.pipeline,
    "lay": _Reader.lay,
    "swizzle": _Reader.swizzle,
    "join": _Reader.join,
    "cut": _Reader.cut,
    "partial": lambda r: Partial(r.name()),
    "stage": _Reader.stage,
    "tile": _Reader.tile,
}
