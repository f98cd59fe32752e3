"""How what a model calls things reaches text: as identifiers, in comments, and before people.

A model may call its tensors, nodes and dimensions anything: "add", "int", "x; y", "*/ … /*", an
escape sequence, a megabyte. Three functions stand between such names and text; nothing else lets
them through.

    identifier("conv1/x y")     conv1_x_y           text of C, CUDA and isl; with what is added
    comment("conv*/1\\n")        conv_/1_            comments and string literals of C
    show("x\\x1b[2J")            x\\x1b[2J            errors, reports and terminals

In text of C each kind of name has a form of its own, so that none can meet another, a keyword, a
macro, or a function:

    x_          an array, or a row of registers: what is named by `array_name` ends in _
    x_local     a local array; x_local_0_16 its registers; tile_0, partial_0 likewise
    c0          a loop
    k0_x        a kernel
    size_x      a size known only at run time; step_0 the number of a step
    pc_x, PC_X  the runtime; f32, i64, f32x16 its types

In isl's text tuples may have any identifier, also one of isl's words, as isl reads a word before a
bracket as a name; parameters have the form `size_x`, iterators are named by lowerings.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import count

DERIVED = (
    *("local", "packed", "parts", "part", "tiles", "tile", "left", "right"),
    *("map", "start", "combine", "joint", "earlier", "M"),
)
"""Endings of the names that passes form from those of arrays and statements."""

RUNTIME_PREFIX = "PC_"
"""What all names of `runtime/` but types begin with, in small letters or in capitals."""

_DERIVED = re.compile(rf".+_({'|'.join(DERIVED)})(_?\d+)*|(tile|partial)(_\d+)+")

ISL_WORDS = frozenset(
    (
        *("and", "ceil", "ceild", "exists", "false", "floor", "floord", "implies", "infinity"),
        *("infty", "max", "min", "mod", "nan", "not", "or", "rat", "true"),
    )
)
"""What sets of integers have words for, in small letters."""

LONGEST = 120
"""Characters of a name that people are shown."""


def identifier(name: str, most: int = 60) -> str:
    """Letters, digits and underscores that resemble a name, no underscore at either end.

    It may be empty, and may begin with a digit.
    """
    return re.sub(r"\W+", "_", name[: 4 * most], flags=re.ASCII).strip("_")[:most].rstrip("_")


def fresh(base: str, taken: Container[str]) -> str:
    """base, or base_1, base_2, … if that is taken."""
    if base not in taken:
        return base
    return next(name for k in count(1) if (name := f"{base}_{k}") not in taken)


def is_iterator(name: str) -> bool:
    """Whether an iterator of a set can be called so: letters, digits and _ behind a letter."""
    plain = name.isascii() and name.isidentifier() and not name.startswith("_")
    return plain and name.lower() not in ISL_WORDS


def is_derived(name: str) -> bool:
    """Whether a name looks like one that a pass makes of another: x_local, x_packed, tile_0."""
    return _DERIVED.fullmatch(name) is not None


def array_name(name: str) -> str:
    """The name in C of an array that a kernel is given: x -> x_, which nothing else is called.

    No keyword of C or C++ ends in an underscore, nor does a macro or a function of a library that
    generated code sees; what does of `runtime/` begins with PC_.
    """
    return f"{name}_"


def local_name(name: str) -> str:
    """The name of what a kernel keeps of an array in memory of its own: x -> x_local."""
    return f"{name}_local"


def comment(text: str) -> str:
    """Text that can end neither a comment, nor a string, nor a line.

    "conv*/1\\n" -> "conv_/1_"
    """
    return re.sub(r"[^A-Za-z0-9_./:-]", "_", shorten(text, LONGEST))


def show(name: str, most: int = LONGEST) -> str:
    """A name for people: on one line, what is not printable escaped, and not too long."""
    return "".join(map(_escape, shorten(name, most)))


def show_text(text: str, most: int = 16_000, word: int = 1_000) -> str:
    """A message with names in it: what is not printable escaped but for ends of lines, and cut.

    most: characters of the whole; word: of what stands between two spaces.
    """
    text = shorten(text, most)
    if max(map(len, text.split()), default=0) > word:
        text = re.sub(rf"\S{{{word + 1},}}", lambda found: shorten(found[0], word), text)
    return text if text.isprintable() else "".join(c if c == "\n" else _escape(c) for c in text)


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and its end, with what is left out between them as a number."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]}… {len(text) - most} characters …{text[-end:]}"


def _escape(character: str) -> str:
    """One character: itself if it can be seen, else as Python writes it."""
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
