"""Expressions that text is matched with: those that end, and those that do not."""

from __future__ import annotations

import time

import numpy as np
import pytest

from polyc.errors import RuntimeFailure
from polyc.graph import matching
from polyc.graph.ir import Node
from polyc.graph.run_time import run_node

TEXTS = np.array([["www.google.com", "add"], ["", "été\n\ud800"]], object)


def run(pattern: str, texts: np.ndarray = TEXTS) -> np.ndarray:
    (result,) = run_node(Node("n", "RegexFullMatch", ("x",), ("y",), {"pattern": pattern}), [texts])
    return result


def test_texts_are_matched_from_end_to_end():
    assert run(r"www\.[\w.-]+\.\bcom\b").tolist() == [[True, False], [False, False]]
    assert run("|add").tolist() == [[False, True], [True, False]]
    assert run("(?s).*").all()
    assert run(".", TEXTS[:0]).shape == (0, 2)
    assert run("a", np.array("a", object)).shape == ()


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(" * 5000])
def test_what_is_no_expression_is_told(pattern):
    with pytest.raises(RuntimeFailure, match=r"RegexFullMatch 'n': the expression .* is refused"):
        run(pattern)


def test_an_expression_without_end_is_ended(monkeypatch):
    monkeypatch.setattr(matching, "LIMIT_SECONDS", 1.0)
    start = time.monotonic()
    with pytest.raises(RuntimeFailure, match=r"'\(a\+\)\+b' takes more than 1 s"):
        run("(a+)+b", np.array(["a" * 60], object))
    assert time.monotonic() - start < 30
