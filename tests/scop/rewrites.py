"""Scops for the rewrites: built from isl literals, and compared before and after by execution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyc.scop.scop import Scop, Statement
from tests.scop.interpreter import interpret

Rewrite = Callable[[Scop], Scop]


def check(rewrite: Rewrite, before: Scop) -> Scop:
    """Rewrite a scop; assert that its outputs are the same bits on random inputs."""
    after = rewrite(before)
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.integers(-9, 9, before.arrays[name].shape).astype(before.arrays[name].dtype)
        for name in before.inputs
    }
    expected, result = interpret(before, feeds), interpret(after, feeds)
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    for name in before.outputs:
        np.testing.assert_array_equal(result[name], expected[name], err_msg=f"{before}\n{after}")
    named = {a for s in after.statements for a in (s.array, *(ld.array for ld in s.loads))}
    assert named <= set(after.arrays) == named | {*after.inputs, *after.outputs}
    return after


def names(of: Scop) -> list[str]:
    return [s.name for s in of.statements]


def get(of: Scop, name: str) -> Statement:
    return next(s for s in of.statements if s.name == name)
