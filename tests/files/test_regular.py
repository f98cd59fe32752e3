"""What is opened, and what is refused before a byte of it is read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from polyc.errors import BuildError, InvalidModel
from polyc.files.regular import (
    LIMIT,
    make_folders,
    open_regular,
    opened,
    parse_json,
    read_whole,
    writing,
)


def read_file(path: str | Path, what: str, limit: int = LIMIT) -> bytes:
    with opened(path, what) as stream:
        return read_whole(stream, limit)


@pytest.fixture
def odd(tmp_path):
    """Something of each kind that a path may lead to."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    yield tmp_path
    server.close()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pipe", "it is a pipe"),
        ("folder", "it is a folder"),
        ("link", "it is a device"),
        ("/dev/null", "it is a device"),
        ("socket", "it is a socket"),
        ("loop", "Too many levels"),
        ("gone", "No such file"),
        ("a\0b", "null"),
        ("n" * 300, "name too long"),
        ("x/" * 3000, "name too long"),
    ],
)
def test_what_is_no_regular_file_is_named_and_not_read(odd, name, told):
    with pytest.raises(InvalidModel, match=f"photograph .*{told}") as caught:
        read_file(odd / name, "photograph")
    assert len(str(caught.value)) < 7000


def test_files_of_the_system_that_claim_to_be_empty_are_empty():
    assert read_file("/proc/self/environ", "model") == b""


def test_a_file_is_read_whole_up_to_a_limit(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(file)
    assert read_file(file, "it") == read_file(tmp_path / "link", "it") == b"12345"
    with pytest.raises(InvalidModel, match="it has 5 bytes, and at most 4 are read"):
        read_file(file, "model", limit=4)
    with pytest.raises(OSError, match="a link"):
        open_regular(tmp_path / "link", follow=False)


def test_a_sparse_file_of_any_size_takes_no_memory(tmp_path):
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(2**42)
    with pytest.raises(InvalidModel, match=f"it has {2**42} bytes"):
        read_file(tmp_path / "huge", "model")


def test_deep_json_is_no_json():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_folders_as_deep_as_paths_may_be(tmp_path):
    deep = tmp_path / ("d/" * 1500)
    make_folders(deep, 0o700)
    assert deep.stat().st_mode & 0o777 == 0o700
    while deep != tmp_path:  # what tidies up after tests cannot go so deep
        deep.rmdir()
        deep = deep.parent


@pytest.mark.parametrize("name", ["file", "file/below", "a\0b", "n" * 300])
def test_where_nothing_can_be_written_is_told(tmp_path, name):
    (tmp_path / "file").write_text("in the way")

    def write() -> None:
        with writing(tmp_path / name, "the letter"):
            make_folders(Path(tmp_path / name))

    with pytest.raises(BuildError, match=r"letter cannot be written to .*give another place"):
        write()
