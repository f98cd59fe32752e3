"""The architecture: folders form layers, files are short, and what polyc/README.md names exists."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "polyc"

LAYERS = """
names
errors
types files
options
budget
graph poly toolchain trace
target ops
arguments scop
loopnest memory
program
analysis predict printing
schedule threads report
promote
codegen
mapping
backends
pipeline
build
run
loops
exact tuning
api
compression
commands pytorch backend
cli
__main__
"""
"""What is in `polyc/`, from the bottom to the top: each line uses only what stands above it."""

LONGEST_FILE = 400
"""Lines of a file, as the design has it."""

Name = tuple[str, ...]


def _name(file: Path) -> Name:
    return file.relative_to(PACKAGE).with_suffix("").parts


@cache
def _files() -> dict[Name, Path]:
    return {_name(f): f for f in sorted(PACKAGE.rglob("*.py"))}


@cache
def _imports() -> dict[Name, tuple[Name, ...]]:
    """{a file: the files of polyc that it imports}"""
    return {
        name: tuple(_imported(ast.parse(file.read_text("utf-8"))))
        for name, file in _files().items()
    }


def _imported(tree: ast.Module) -> Iterator[Name]:
    """Modules of polyc that a file imports, at the top, in functions, or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in dotted:
            first, *parts = name.split(".")
            while first == "polyc" and parts and tuple(parts) not in _files():
                if (*parts, "__init__") in _files():
                    parts.append("__init__")
                else:
                    parts.pop()
            if first == "polyc" and parts:
                yield tuple(parts)


@cache
def _uses(folder: Name) -> dict[str, dict[str, str]]:
    """{what is in a folder: {what it uses of its neighbours: an import that does}}"""
    uses: dict[str, dict[str, str]] = defaultdict(dict)
    n = len(folder)
    for name, imports in _imports().items():
        for used in imports:
            if name[:n] == used[:n] == folder and len(name) > n and len(used) > n:
                user, neighbour = name[n], used[n]
                if user != neighbour:
                    told = f"{'/'.join(name)}.py imports {'.'.join(used)}"
                    uses[user].setdefault(neighbour, told)
    return uses


def _folders() -> list[Name]:
    return sorted({name[:k] for name in _files() for k in range(len(name))})


def test_each_layer_uses_only_those_below_it():
    level = {name: k for k, line in enumerate(LAYERS.split("\n")) for name in line.split()}
    assert {name[0] for name in _files()} - {"__init__"} == set(level)
    wrong = [
        told
        for user, used in _uses(()).items()
        for neighbour, told in used.items()
        if user != "__init__" and level[neighbour] >= level[user]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", _folders(), ids="/".join)
def test_no_folder_and_its_neighbours_import_each_other(folder):
    """In each folder, a folder counts as one, with all that is in it; nor may there be a circle."""
    uses = _uses(folder)
    inside = {name[len(folder) :] for name in _files() if name[: len(folder)] == folder}
    for room in {name[0] for name in inside if len(name) > 1}:
        reached, frontier = {}, [room]
        while frontier:
            user = frontier.pop()
            for neighbour, told in uses.get(user, {}).items():
                if neighbour not in reached:
                    reached[neighbour] = told
                    frontier.append(neighbour)
        assert room not in reached, f"{room}: {reached[room]}"


def test_no_file_is_too_long():
    lines = {f: len(f.read_text("utf-8").splitlines()) for f in PACKAGE.rglob("*.py")}
    assert not {str(f): n for f, n in lines.items() if n > LONGEST_FILE}


def test_what_the_chapter_on_architecture_names_is_there():
    """Files by their path in `polyc/`, and in its first table functions by their dotted names."""
    text = (PACKAGE / "README.md").read_text("utf-8")
    files = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*/[a-z_0-9]+\.py)`", text))
    assert len(files) > 20
    missing = {f for f in files if not (PACKAGE / f).exists() and not (ROOT / f).exists()}
    assert not missing
    table = text.partition("| stage | function")[2].partition("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:]]
    functions = [f for row in rows for f in re.findall(r"`([a-z_0-9.]+\.[A-Za-z_0-9.]+)`", row[2])]
    assert len(functions) > 25
    for name in functions:
        assert _is_there(name), name


def _is_there(dotted: str) -> bool:
    parts = dotted.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(["polyc", *parts[:k]]))
        except ImportError:
            continue
        for part in parts[k:]:
            found = getattr(found, part, None)
        return found is not None
    return False
