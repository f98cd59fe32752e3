"""What polyc/README.md shows of each stage is what the compiler writes there."""

from __future__ import annotations

import numpy as np

import polyc
from polyc.options import STAGES
from tests.readme.blocks import ROOT, read_blocks, shows

BLOCKS = read_blocks(ROOT / "polyc" / "README.md")


def test_every_block_is_of_a_kind_that_is_checked():
    assert {b.language for b in BLOCKS} == {"python", "scop", "schedule", "loopnest", "c", "text"}
    assert sum(b.language == "text" for b in BLOCKS) == 1  # a drawing


def test_what_is_shown_of_each_stage(example, show):
    """Of README's example, and then of the graph that the last Python block makes."""
    names = {"polyc": polyc, "np": np}
    shown, checked = example, 0
    for block in BLOCKS:
        if block.language == "python":
            exec(block.text, names)
            shown = show(names["graph"])
        elif block.language in STAGES:
            checked += 1
            where = f"the {block.language} in line {block.line}"
            assert shows(block.text, shown.dumps[block.language]), where
    assert checked == 6
