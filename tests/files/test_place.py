"""Folders that are put at a place, and whose files may go for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from polyc.errors import BuildError, InvalidModel
from polyc.files import place
from polyc.files.folder import Folder
from polyc.files.place import place_folder
from polyc.files.table import TABLE_FILE, read_table, write_table


def put(where: Path, text: str = "new", holds: str = "toy") -> None:
    def fill(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text(text)

    place_folder(where, holds, fill, 10, "choose another place")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_a_folder_appears_and_replaces_its_own_kind(tmp_path):
    where = tmp_path / "a" / "add"
    put(where, "one")
    put(where, "two")
    assert (where / "deep" / "file").read_text() == "two"
    assert sorted(p.name for p in where.parent.iterdir()) == ["add"]


def test_without_exchange_in_one_step_it_is_done_in_two(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "_EXCHANGE", 1 << 30)  # an option that no Linux knows
    put(tmp_path / "a", "one")
    put(tmp_path / "a", "two")
    assert (tmp_path / "a" / "deep" / "file").read_text() == "two"


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (f / "notes.txt").write_text("mine"),
        lambda f: (f / "deep" / "notes.txt").write_text("mine"),
        lambda f: (f / "deep" / "file").write_text("edited"),
        lambda f: (f / "deep" / "file").unlink(),
        lambda f: (f / "empty").mkdir(),
        lambda f: (f / "link").symlink_to("/etc"),
        lambda f: (f / "deep" / "link").symlink_to("file"),
        lambda f: os.mkfifo(f / "pipe"),
        lambda f: (f / TABLE_FILE).unlink(),
        lambda f: (f / TABLE_FILE).write_text("[" * 100_000),
        lambda f: (f / TABLE_FILE).write_text('{"holds": "toy", "files": {"../x": [0, ""]}}'),
    ],
)
def test_what_was_changed_or_added_stays(tmp_path, change):
    where = tmp_path / "a"
    put(where, "one")
    change(where)
    before = sorted(os.walk(where))
    with pytest.raises(InvalidModel, match="choose another place"):
        put(where, "two")
    assert sorted(os.walk(where)) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]


@pytest.mark.parametrize(
    "files",
    [
        {"manifest.json": "{}", "index.html": "<p>"},
        {"Makefile": "all:", "example.c": "", "src/main.c": "", "runtime/x.h": ""},
        {"CHECKSUMS": "0123  file", "file": ""},
    ],
)
def test_projects_of_others_stay(tmp_path, files):
    for name, text in files.items():
        (tmp_path / "web" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / name).write_text(text)
    before = contents(tmp_path)
    with pytest.raises(InvalidModel, match="is no toy that polyc wrote"):
        put(tmp_path / "web")
    assert contents(tmp_path) == before


def test_files_that_come_while_it_is_exchanged_stay(tmp_path, monkeypatch):
    where = tmp_path / "a"
    put(where, "one")
    exchange = place._exchange

    def meanwhile(new: Path, at: Path, old: Path) -> None:
        (at / "mine").write_text("just written")
        monkeypatch.setattr(place, "_exchange", exchange)
        exchange(new, at, old)

    monkeypatch.setattr(place, "_exchange", meanwhile)
    with pytest.raises(InvalidModel, match="'mine'"):
        put(where, "two")
    assert (where / "mine").read_text() == "just written"
    assert (where / "deep" / "file").read_text() == "one"


def test_another_kind_a_file_and_a_link(tmp_path):
    put(tmp_path / "a", holds="toy")
    with pytest.raises(InvalidModel, match="it holds a 'toy'"):
        put(tmp_path / "a", holds="tool")
    (tmp_path / "file").write_text("text")
    with pytest.raises(InvalidModel, match="it is a file"):
        put(tmp_path / "file")
    with pytest.raises(BuildError, match="cannot be written"):
        put(tmp_path / "file" / "below")
    (tmp_path / "link").symlink_to("a")
    put(tmp_path / "link", "through")  # as if the folder had been named
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a" / "deep" / "file").read_text() == "through"


def test_a_digest_is_that_of_the_contents(tmp_path):
    digests = set()
    for name, text in {"a": "one", "b": "one", "c": "two"}.items():
        put(tmp_path / name, text)
        with Folder(tmp_path / name, private=False) as folder:
            digests.add(read_table(folder).digest)
    assert len(digests) == 2
    shutil.copytree(tmp_path / "a", tmp_path / "d")
    assert write_table(tmp_path / "d", "toy").digest in digests
