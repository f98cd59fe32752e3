"""The blocks of a README, and what it means that a text prints what a block shows.

A block's language says what it is:

    python    run, one after another as a reader would paste them; the block without a language that
              follows is what it prints
    sh        commands
    c, and the stages of POLYC_DUMP    an excerpt of what the compiler writes at this stage
    text      a drawing

In what is shown, `…` stands for anything on its line, and alone on a line for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

ANYTHING = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the heading that it stands under."""

    language: str
    text: str
    heading: str
    line: int


def read_blocks(readme: Path) -> list[Block]:
    """The blocks of a README, in order."""
    blocks, inside, heading = [], False, ""
    for number, line in enumerate(readme.read_text(encoding="utf-8").splitlines(), 1):
        fence = line.startswith("```")
        if fence and not inside:
            inside, language, start, text = True, line[3:].strip(), number, []
        elif fence:
            inside = False
            blocks.append(Block(language, "\n".join(text) + "\n", heading, start))
        elif inside:
            text.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    assert not inside, f"{readme}: the block of line {start} has no end"
    return blocks


def read_commands(readme: Path) -> list[str]:
    """What a README writes as `polyc …` in its text: commands, with MODEL and FOLDER to fill in."""
    prose = re.sub(r"^```.*?^```$", "", readme.read_text(encoding="utf-8"), flags=re.M | re.S)
    written = re.findall(r"`([^`]+)`", prose)
    return [c for c in written if re.match(r"(POLYC_\w+=\S+ )*polyc [a-z]", c)]


def shows(excerpt: str, text: str) -> bool:
    """Whether lines of a text, from one on and indented all alike, are those of an excerpt."""
    first, *rest = excerpt.rstrip("\n").split("\n")
    lines = [rf"^(?P<indent> *){_line(first)}", *(_any_lines(line) for line in rest)]
    return re.search("".join(lines) + "$", text, re.M) is not None


def _any_lines(line: str) -> str:
    """A line of an excerpt behind another, as a pattern."""
    if line.strip() == ANYTHING:
        return r"(?:\n.*)*?"
    return rf"\n(?P=indent){_line(line)}" if line else r"\n"


def _line(line: str) -> str:
    return ".*".join(map(re.escape, line.split(ANYTHING)))


def without_times(text: str) -> str:
    """A report without what differs from run to run: how long each step took."""
    return re.sub(r"^compiled in: .*$", "compiled in: …", text, flags=re.M)


def without_machine(text: str) -> str:
    """A report without what differs from machine to machine: times, the target, sizes of tiles."""
    text = re.sub(r"^target: .*$", "target: …", without_times(text), flags=re.M)
    text = re.sub(r"^predicted for polyc here: .*$", "predicted: …", text, flags=re.M)
    tiles = re.sub(r"\b(split \S+) \d+", r"\1 …", text)
    return re.sub(r" {2,}|─+", "  ", tiles)  # columns are as wide as what they hold
