"""The text form of schedules: the language in which people write directives, and its parser.

    order NAME…                 sink NAME…            parallel NAME…     reverse NAME…
    split NAME… SIZE            distribute NAME…      vector NAME…       shift S.NAME BY
    fuse NAME… [SIZE]           pack ARRAY…           unroll NAME…       skew NAME BY-NAME FACTOR
    keep ARRAY… in registers|stack [at NAME]
    keep ARRAY in place of ARRAY [at NAME]
    keep all [in place] [at NAME]

Directives are separated by `|`; white space is free. A name that is a number, or one of
`in`, `at`, `of`, `all` and `place`, stands in double quotes.

This is the only place where text is read that decides about loops: what users write, what tuning
has stored, and what `explain()` has printed. From here on a schedule is a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, cast

from polyc.errors import IllegalSchedule
from polyc.names import show, show_text
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
from polyc.schedule.loops import LoopKind

AnyDirective = (
    Order
    | Split
    | Sink
    | Distribute
    | Fuse
    | Reverse
    | Shift
    | Skew
    | Run
    | Keep
    | KeepInPlace
    | Pack
)

WORDS = frozenset({"in", "at", "of", "all", "place"})
SPACES = ("registers", "stack")

_TOKEN = re.compile(r'"(?P<quoted>[^"|]+)"|(?P<plain>[^\s|"]+)|(?P<bar>\|)')
_NAME = re.compile(r"(\w+\.)?\w+'*")
_NUMBER = re.compile(r"-?\d{1,12}")


def spell(directive: AnyDirective) -> str:
    """The text of a directive, which `parse` reads."""
    match directive:
        case Run(kind, loops):
            return f"{kind} {_names(loops)}"
        case Order(loops) | Sink(loops) | Distribute(loops) | Reverse(loops):
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
        case Pack(arrays):
            return f"pack {_names(arrays)}"
        case KeepInPlace(array, home, at):
            return f"keep {_names([array])} in place of {_names([home])}{_at(at)}"
        case Keep(None, _, at, in_place):
            return f"keep all{' in place' * in_place}{_at(at)}"
        case Keep(arrays, space, at):
            return f"keep {_names(arrays or ())} in {space}{_at(at)}"


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
            return Keep(None, "", self.at(), in_place)
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


def _is_name(word: _Word) -> bool:
    return word.quoted or not (_NUMBER.fullmatch(word.text) or word.text in WORDS)


def _running(kind: str) -> Callable[[_Reader], AnyDirective]:
    return lambda reader: Run(cast(LoopKind, kind), reader.names())


_READERS: dict[str, Callable[[_Reader], AnyDirective]] = {
    "order": lambda r: Order(r.names()),
    "split": _Reader.split,
    "sink": lambda r: Sink(r.names()),
    "distribute": lambda r: Distribute(r.names()),
    "fuse": _Reader.fuse,
    "reverse": lambda r: Reverse(r.names()),
    "shift": _Reader.shift,
    "skew": _Reader.skew,
    "parallel": _running("parallel"),
    "vector": _running("vector"),
    "unroll": _running("unroll"),
    "keep": _Reader.keep,
    "pack": lambda r: Pack(r.names()),
}
