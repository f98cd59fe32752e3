"""What is left out of ordinary runs has something that stands for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import REPRESENTED

HOME = REPRESENTED.parent.parent


def test_each_line_names_a_case_of_a_test_that_is_there():
    lines = REPRESENTED.read_text("utf-8").splitlines()
    assert lines == sorted(set(lines))
    defined: dict[str, set[str]] = {}
    for line in lines:
        file, _, case = line.partition("::")
        if file not in defined:
            tree = ast.parse(Path(HOME, file).read_text("utf-8"))
            functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
            defined[file] = {f.name for f in functions}
        name, bracket, _ = case.partition("[")
        assert bracket, f"{line}: is no case of a family"
        assert name in defined[file], f"{line}: no such family"


def test_a_case_of_each_family_is_left(request):
    """In a run of all tests of their files."""
    if request.config.option.keyword or request.config.option.markexpr:
        pytest.skip("tests were chosen by what they are called, or by a mark")
    families = {line.partition("[")[0] for line in REPRESENTED.read_text("utf-8").splitlines()}
    collected = {item.nodeid.partition("[")[0] for item in request.session.items}
    present = {item.nodeid.partition("::")[0] for item in request.session.items}
    missing = {f for f in families if f.partition("::")[0] in present} - collected
    assert not missing
