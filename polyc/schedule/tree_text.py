"""A whole schedule tree as text: what `explain()` shows of isl's schedule, given back or edited.

    domain  S0[t, i], S1[t, i]
    └ band  t
      └ sequence
        ├ filter  S0
        │ └ mark  parallel
        │   └ band  i
        └ filter  S1
          └ band  i + 1

`poly/show.py` writes this text, here it is read, and `build_tree.py` makes isl's tree of it. A line
is a node, and stands below the last one before it that begins further left; the lines of the
drawing count as blanks. After `domain` stand the statements with names for their iterators, after
`band` its members as functions of these (`i, j` for all statements, or `S0: t; S1: t + 1`), after
`filter` statements, or a set of isl's where not all instances of a statement are meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from polyc.errors import IllegalSchedule
from polyc.names import show_text
from polyc.schedule.schedule import Schedule

_DRAWING = str.maketrans("│├└", "   ")
_OPEN, _CLOSE = "([{", ")]}"

PROPERTIES = frozenset({"permutable", "atomic", "unrolled", "coincident"})
MARKS = frozenset({"parallel", "simd", "vector", "unroll", "scope", "hold"})
"""What a loop of a kernel for a CPU may be."""


@dataclass(frozen=True)
class TreeNode:
    """A line of the text: the kind of a node, what is said of it, and the nodes below."""

    kind: str
    said: str
    below: tuple[TreeNode, ...] = ()


@dataclass(frozen=True)
class TreeText:
    """A schedule tree as it was written; the statements, each with the names of its iterators."""

    root: TreeNode
    statements: tuple[tuple[str, tuple[str, ...]], ...]

    @staticmethod
    def parse(text: str) -> TreeText:
        """The tree that a text shows; IllegalSchedule with the line that cannot be read."""
        lines = [line.translate(_DRAWING) for line in text.splitlines() if line.strip()]
        nodes = [(len(line) - len(line.lstrip()), line.strip()) for line in lines]
        # A text that was cut out of another may have lost the blanks before its first line.
        nodes[:1] = [(-1, nodes[0][1])] if nodes else []
        (root,) = _nodes_below(nodes, -2) or (TreeNode("", ""),)
        if root.kind != "domain":
            refuse(root, "a tree begins with 'domain' and the statements, as in 'domain  S0[i]'")
        found = []
        for part in split(root.said, ","):
            name, _, inside = part.strip().removesuffix("]").partition("[")
            iterators = tuple(n.strip() for n in inside.split(",") if n.strip())
            is_closed = part.strip().endswith("]")
            if not is_closed or not all(n.isidentifier() for n in (name.strip(), *iterators)):
                refuse(root, f"{show_text(repr(part), 80)} is no statement with its iterators")
            found.append((name.strip(), iterators))
        return TreeText(root, tuple(found))

    @property
    def iterators(self) -> Mapping[str, tuple[str, ...]]:
        """The names of each statement's iterators."""
        return dict(self.statements)

    @property
    def marks(self) -> Iterator[tuple[TreeNode, tuple[TreeNode, ...]]]:
        """Each mark, with the nodes around it, outermost first."""

        def visit(
            node: TreeNode, above: tuple[TreeNode, ...]
        ) -> Iterator[tuple[TreeNode, tuple[TreeNode, ...]]]:
            if node.kind == "mark":
                yield node, above
            for below in node.below:
                yield from visit(below, (*above, node))

        return visit(self.root, ())


def read_schedule(text: str) -> Schedule | TreeText:
    """What a user gives for a kernel of loops: directives, or the whole tree."""
    return (
        TreeText.parse(text) if text.split(maxsplit=1)[:1] == ["domain"] else Schedule.parse(text)
    )


def _nodes_below(lines: Sequence[tuple[int, str]], column: int) -> tuple[TreeNode, ...]:
    """The nodes whose lines follow one that begins at a column, and stand directly below it."""
    found: list[TreeNode] = []
    position = 0
    while position < len(lines):
        start, text = lines[position]
        end = position + 1
        while end < len(lines) and lines[end][0] > start:
            end += 1
        kind, _, said = text.partition(" ")
        below = _nodes_below(lines[position + 1 : end], start)
        found.append(TreeNode(kind, said.strip(), below))
        position = end
    return tuple(found)


def properties_of(node: TreeNode) -> str:
    """What stands behind the members of a band:  "  permutable  atomic"."""
    words = node.said.split("  ")
    first = len(words)
    while first > 1 and _is_property(words[first - 1].strip()):
        first -= 1
    return "".join(f"  {word}" for word in words[first:])


def _is_property(word: str) -> bool:
    count, _, rest = word.partition(" ")
    return word in PROPERTIES or (count.isdecimal() and rest == "coincident")


def labelled(entry: str) -> tuple[tuple[str, ...], str]:
    """S0, S1: i, j   ->   (S0, S1) and "i, j";   i, j   ->   no statements, so all."""
    label, *rest = split(entry, ":")
    if not rest:
        return (), entry
    return tuple(name.strip() for name in label.split(",")), ":".join(rest)


def split(text: str, at: str) -> list[str]:
    """The parts of a text between separators that stand in no brackets."""
    parts, depth, begun = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == at and depth == 0:
            parts.append(text[begun:position])
            begun = position + 1
    return [*parts, text[begun:]]


def refuse(node: TreeNode, why: str) -> NoReturn:
    """Raise IllegalSchedule with a line of the text."""
    line = show_text(repr(f"{node.kind}  {node.said}".strip()), 120)
    raise IllegalSchedule(f"the schedule tree has {line}: {why}")
