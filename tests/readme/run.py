"""Running a README's blocks of Python as a file would run, so that functions know their text."""

from __future__ import annotations

import linecache

from tests.readme.blocks import Block


def run_block(block: Block, file: str, names: dict[str, object]) -> None:
    """Execute a block; what it defines is added to the names."""
    name = f"{file}, line {block.line}"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    exec(compile(block.text, name, "exec"), names)
