"""README's examples run as they are printed, one after another, and print what is shown."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import onnx
import pytest

import polyc
from polyc.graph.onnx.export import export_onnx
from tests.readme.blocks import (
    ROOT,
    Block,
    read_blocks,
    read_commands,
    shows,
    without_machine,
    without_times,
)
from tests.readme.run import run_block

README = ROOT / "README.md"
BLOCKS = read_blocks(README)


def result_of(block: Block) -> str | None:
    """What README shows that a Python block prints: the block behind it without a language."""
    after = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return after[0].text if after and after[0].language == "" else None


def needs_torch(block: Block) -> bool:
    return "import torch" in block.text


def test_every_block_is_of_a_kind_that_is_checked():
    assert {b.language for b in BLOCKS} == {"python", "", "c", "sh", "text"}
    results = [b for b, before in zip(BLOCKS[1:], BLOCKS, strict=False) if b.language == ""]
    python = [b for b in BLOCKS if b.language == "python" and result_of(b) is not None]
    assert len(results) == len(python)
    assert sum(b.language == "text" for b in BLOCKS) == 1  # a drawing


def test_python_blocks_run_in_order_and_print_what_is_shown(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("POLYC_CUDA", "emulate")
    monkeypatch.setenv("COLUMNS", "160")  # of the terminal that README shows
    monkeypatch.chdir(tmp_path)  # where what they write lies
    names: dict[str, object] = {}
    for block in BLOCKS:
        if block.language != "python" or needs_torch(block):
            continue
        run_block(block, "README.md", names)
        expected, printed = result_of(block), capsys.readouterr().out
        assert without_machine(printed) == without_machine(expected or ""), block.heading


@pytest.mark.parametrize("block", [*filter(needs_torch, BLOCKS)], ids=lambda b: f"line {b.line}")
def test_blocks_with_torch(block, monkeypatch, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the extra polyc[torch]")
    import torch

    if "cuda" in block.text and not torch.cuda.is_available():
        pytest.skip("needs a GPU, and PyTorch for it")
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    names: dict[str, object] = {"np": np, "polyc": polyc}
    for earlier in BLOCKS[: BLOCKS.index(block) + 1]:
        if earlier is block or (earlier.heading == block.heading and not needs_torch(earlier)):
            names["graph"] = small_graph()
            exec(earlier.text, names)
    assert names.keys() > {"np", "polyc", "graph", "torch"}, "the block has run to its end"


def test_the_report_is_the_one_shown(example):
    """As a machine with AVX-512 prints it: without times, character by character."""
    (expected,) = (b.text for b in BLOCKS if b.text.startswith("graph\n#"))
    assert without_times(example.report).strip() == without_times(expected).strip()


def test_the_source_is_the_one_shown(example):
    (block,) = (b for b in BLOCKS if b.language == "c")
    assert shows(block.text, example.source)


def test_shell_blocks_are_what_ci_runs():
    """An environment, the package in it, and a command there."""
    ci = (ROOT / ".ci" / "run").read_text()
    for block in BLOCKS:
        if block.language == "sh":
            *setup, command = block.text.strip().split(" && ")
            assert setup[0] == "python3 -m venv .venv"
            assert re.fullmatch(r"\.venv/bin/pip install ('\.\[test\]'|\.)", setup[1])
            program, *arguments = shlex.split(command)
            assert f'"$bin/{program.removeprefix(".venv/bin/")}" ' in ci, command
            assert "demo" not in arguments or '"$bin/polyc" demo' in ci


def small_graph() -> polyc.Graph:
    x = polyc.ops.input("x", (100, 256))
    w, b = np.ones((256, 64), np.float32), np.ones(64, np.float32)
    return polyc.Graph.of(y=polyc.ops.relu(x @ w + b))


COMMANDS = dict.fromkeys(c for c in read_commands(README) if c != "polyc demo")


@pytest.mark.cuda
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_the_text(command, tmp_path):
    onnx.save(export_onnx(small_graph()), tmp_path / "model.onnx")
    (tmp_path / "samples").mkdir()
    np.save(tmp_path / "samples" / "0.npy", np.ones((100, 256), np.float32))
    filled = command.replace("MODEL", "model.onnx").replace("FOLDER", "folder")
    words = shlex.split(filled.replace("--seconds 60", "--seconds 1"))
    start = words.index("polyc")
    environment = dict(word.split("=", 1) for word in words[:start])
    done = subprocess.run(
        [sys.executable, "-m", "polyc", *words[start + 1 :]],
        cwd=tmp_path,
        env={**os.environ, "POLYC_CUDA": "emulate", "POLYC_CACHE_DIR": "cache", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def table_of(heading: str) -> list[str]:
    """The Python in the right column of the table under a heading that says what to write."""
    text = (
        README.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    )
    rows = [
        row.split("|")[2] for row in text.partition("| to | write |")[2].splitlines() if "|" in row
    ]
    codes = [code for row in rows[1:] for code in re.findall(r"`([^`]+)`", row)]
    return [c for c in codes if "(" in c and is_python(c)]


def is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    ("heading", "target", "count"), [("Use", "cpu", 10), ("On a GPU", "cuda", 9)]
)
def test_what_tables_say_to_write(heading, target, count, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("POLYC_CUDA", "emulate")
    monkeypatch.chdir(tmp_path)
    graph, array = small_graph(), np.ones((100, 256), np.float32)
    names = {"polyc": polyc, "Options": polyc.Options, "x": array, "array": array, "s": 0}
    names |= {"model": polyc.compile(graph, target=target), "MODEL": graph}
    names["y"] = np.empty((100, 64), np.float32)
    if target == "cuda":  # a graph is captured of device arrays
        names["y"] = names["model"].to_device(names["y"])
    codes = table_of(heading)
    assert len(codes) == count, codes
    for code in codes:
        exec(
            code.replace("(model, tune=60)", "(MODEL, tune=1)")
            .replace("(model, ex", "(MODEL, ex")
            .replace("(model, op", "(MODEL, op"),
            names,
        )
