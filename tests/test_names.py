"""Names in text: as identifiers that nothing else has, in comments, and before people."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import polyc
from polyc import Graph, ops
from polyc.errors import InvalidModel, NotFixed, PolycError, ShapeError
from polyc.exact.run import Mismatch
from polyc.graph import ir
from polyc.names import (
    LONGEST,
    RUNTIME_PREFIX,
    array_name,
    comment,
    fresh,
    identifier,
    is_derived,
    show,
    show_text,
)
from polyc.printing.print_c import clean_line
from polyc.run.feeds import random_feeds
from polyc.types.parameters import identify
from polyc.types.ranges import SizeRange
from tests.programs import options
from tests.runtime.native import RUNTIME

TERMINAL = "\x1b[2J\x07\x00\u202e\u2028\x9b31m"
"""Clears a screen, rings, ends a string, turns the direction, ends a line, and colours."""


def is_clean(text: str) -> bool:
    """Whether a terminal shows the text as it is."""
    return all(line.isprintable() for line in text.split("\n"))


# -- identifiers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a/b-c", "a_b_c"), ("_x_", "x"), ("", ""), ("日本", ""), ("a" * 99, "a" * 60), ("7", "7")],
)
def test_identifiers_are_of_one_alphabet(name, plain):
    assert identifier(name) == plain


def test_a_fresh_name_is_one_that_is_not_taken():
    assert [fresh("x", taken) for taken in ((), ("x",), ("x", "x_1"))] == ["x", "x_1", "x_2"]


def test_names_of_passes_are_told():
    derived = ["x_local", "x_local_0_16", "tile_0", "partial_0_1", "x_packed", "x_tile3", "x_M"]
    assert all(map(is_derived, derived))
    assert not any(map(is_derived, ["x", "x_1", "matmul_0_acc", "localx", "tile", "partial", "_M"]))


def test_sizes_are_called_like_no_type():
    names = ["t", "T", "a b", "a_b", "a-b", "é", "", "t_1"]
    found = identify(names)
    assert len(set(found.values())) == len(names)
    assert "size_t" not in found.values()
    assert all(re.fullmatch(r"size_\w+", name, re.ASCII) for name in found.values())


def test_nothing_that_generated_code_sees_is_called_like_an_array(tmp_path: Path):
    """Keywords, macros, functions, types and parameters of the runtime and of libc."""
    model = polyc.compile(_every_kind(), options=options(tmp_path))
    model.export(tmp_path / "c")
    arrays = {array_name(name) for name in ("x", "w", "v", "y", "z")}
    seen: set[str] = set()
    for unit in (tmp_path / "c" / "src").glob("*.c"):
        command = ["gcc", "-E", "-dD", f"-I{RUNTIME}", str(unit)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seen |= set(re.findall(r"\b[A-Za-z]\w*_\b(?!\s*##)", text))
    assert arrays & seen
    own = set(re.findall(r"restrict (\w+)", model.source))
    assert not [name for name in seen - own if not name.upper().startswith(RUNTIME_PREFIX)]


def _every_kind() -> Graph:
    shapes = {"x": (9, 8), "w": (8, 7), "v": (7,)}
    x, w, v = (ops.input(name, shape) for name, shape in shapes.items())
    return Graph.of(y=ops.softmax(ops.tanh(ops.matmul(x, w) + v), 1), z=ops.pow(x, 2.5))


# -- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("evil", ["*/", "/*", "\\", "a\nb", '"', "??/", TERMINAL, "x" * 10**6])
def test_nothing_ends_a_comment(evil):
    for text in (comment(evil), clean_line(f"Nodes: {evil}, y")):
        assert text.isascii()
        assert text.isprintable()
        assert not re.search(r"[*\\]|\?\?", text)
        assert len(text) < 2 * LONGEST


# -- people ---------------------------------------------------------------------------------------


def test_names_are_shown_on_one_line_and_not_too_long():
    assert show("conv 1/été") == "conv 1/été"
    assert show("x\x1b[2J\n") == "x\\x1b[2J\\n"
    assert is_clean(show(TERMINAL))
    assert len(show("x" * 10**6)) < LONGEST + 40
    assert "999880 characters" in show("x" * 10**6)


def test_text_keeps_its_lines():
    assert show_text("a\nb") == "a\nb"
    assert is_clean(show_text(f"a\n{TERMINAL} b"))
    assert len(show_text("x " * 10**6)) < 17_000
    assert len(show_text("x" * 10**6)) < 3_000
    assert len(show_text(f"{'x' * 9_000} y")) < 2_000


@pytest.mark.parametrize("error", [PolycError, InvalidModel, ShapeError])
def test_every_error_can_be_shown(error):
    found = str(error(f"tensor {TERMINAL} has no type; {'y' * 10**6}"))
    assert is_clean(found)
    assert len(found) < 4_000
    assert is_clean(str(NotFixed(TERMINAL, "give it")))


@pytest.mark.parametrize("name", [f"a{TERMINAL}b", "x" * 100_000, "[red]a[/red]", "[/]"])
def test_what_is_said_of_a_model_can_be_shown(name, tmp_path, capsys):
    x, y = (helper.make_tensor_value_info(n + name, 1, [f"d{name}", 3]) for n in "xy")
    nodes = [
        helper.make_node("Exp", [x.name], [f"t{name}"], f"Exp{name}"),
        helper.make_node("Softmax", [f"t{name}"], [y.name], f"Soft{name}"),
    ]
    graph = helper.make_graph(nodes, f"g{name}", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model = polyc.compile(proto, options=options(tmp_path))
    report = model.explain(random_feeds(model.inputs, 0, model.sizes))
    report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (str(report), repr(model), model.source, page):
        assert is_clean(text.expandtabs())
        assert len(text) < 60_000
    with pytest.raises(PolycError) as refused:
        model.run({f"z{name}": model})
    assert is_clean(str(refused.value))
    assert len(str(refused.value)) < 5_000


def test_what_shows_a_model_escapes_its_names():
    """Sizes, values of attributes, and what an exact run says differs."""
    evil = "n\x1b[2J" + "m" * 500
    x = ir.Tensor("x", np.dtype(np.float32), (evil,))
    node = ir.Node("a", "Exp", ("x",), ("y",), {"note": evil})
    whole = ir.Graph("g", (node,), {"x": x, "y": ir.Tensor("y", x.dtype, (evil,))}, ("x",), ("y",))
    found = Mismatch(evil, (evil,), 1, 2, (0,), "one thread", {evil: 3})
    for text in (str(x), str(whole), str(SizeRange(evil)), str(found)):
        assert "\x1b" not in text
        assert "m" * 200 not in text
