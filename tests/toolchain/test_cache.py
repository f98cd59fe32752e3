"""Entries that are whole or absent, whatever happens to the disk or to other processes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from polyc.errors import BuildError
from polyc.files.digest import digest
from polyc.files.table import TABLE_FILE
from polyc.toolchain.cache import Cache, open_cache
from tests.programs import options


def writer(text: str, calls: list[str]):
    def make(folder: Path) -> None:
        calls.append(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text(text)

    return make


def test_made_once_then_found(tmp_path):
    cache, calls = Cache(tmp_path), []
    first = cache.fetch("objects", "abc", writer("one", calls))
    second = cache.fetch("objects", "abc", writer("two", calls))
    assert first == second == cache.find("objects", "abc")
    assert (first / "deep" / "file").read_text() == "one"
    assert calls == ["one"]
    assert cache.find("models", "abc") is None


@pytest.mark.parametrize(
    "damage", ["change", "cut", "delete", "checksums", "garbage", "deep", "pipe"]
)
def test_a_damaged_entry_is_made_again(tmp_path, damage):
    cache, calls = Cache(tmp_path), []
    entry = cache.fetch("objects", "abc", writer("whole", calls))
    file, sums = entry / "deep" / "file", entry / TABLE_FILE
    match damage:
        case "change":
            file.write_text("w_ole")
        case "cut":
            file.write_text("who")
        case "delete":
            file.unlink()
        case "checksums":
            sums.unlink()
        case "garbage":
            sums.write_text('["not", "a table"]')
        case "deep":
            sums.write_text("[" * 100_000)
        case "pipe":
            file.unlink()
            os.mkfifo(file)
    assert cache.find("objects", "abc") is None
    again = cache.fetch("objects", "abc", writer("whole", calls))
    assert (again / "deep" / "file").read_text() == "whole"
    assert calls == ["whole", "whole"]


def test_a_failed_make_leaves_nothing(tmp_path):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("no")

    cache = Cache(tmp_path)
    with pytest.raises(ValueError, match="no"):
        cache.fetch("objects", "abc", fail)
    assert cache.find("objects", "abc") is None
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock"] == []


def test_a_process_that_is_ended_inside_isl_leaves_nothing(tmp_path):
    """islpy prints the exception of a function that isl calls, which for SystemExit exits."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import islpy as isl\n"
        "from polyc.toolchain.cache import Cache\n"
        "signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))\n"
        "def make(draft):\n"
        "    (draft / 'half').write_text('made')\n"
        "    end = lambda _: os.kill(os.getpid(), signal.SIGTERM)\n"
        "    isl.Set('{ A[i] }').foreach_basic_set(end)\n"
        "Cache(Path(sys.argv[1])).fetch('objects', 'abcdef', make)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60)
    assert done.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.rglob("draft-*")) == []


def test_a_forked_process_leaves_the_folder_to_its_maker(tmp_path):
    """It ends as one does that isl called: what is registered for the exit is run."""
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from polyc.toolchain.cache import Cache\n"
        "def make(draft):\n"
        "    (draft / 'half').write_text('made')\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        sys.exit(3)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "made = Cache(Path(sys.argv[1])).fetch('objects', 'abcdef', make)\n"
        "print((made / 'half').read_text())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["3", "made"], done.stderr


def test_threads_that_ask_at_once_share_one_make(tmp_path):
    cache, calls = Cache(tmp_path), []
    threads = [
        threading.Thread(target=cache.fetch, args=("objects", "abc", writer("x", calls)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["x"]


def test_who_reads_an_entry_leaves_its_files_alone(tmp_path):
    """Another one who reads it at that time would take it for one that is being written to."""
    cache = Cache(tmp_path)
    entry = cache.fetch("objects", "abc", writer("x", []))

    def changed() -> list[tuple[int, int]]:
        files = sorted(path for path in entry.rglob("*") if path.is_file())
        return [(path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in files]

    before = changed()
    os.utime(entry, (1000, 1000))
    assert cache.find("objects", "abc") == entry
    assert changed() == before
    assert [one.used > 1000 for one in cache.entries()] == [True]


def test_processes_that_ask_at_once_share_one_make(tmp_path):
    program = (
        "import sys, time, pathlib\n"
        "from polyc.toolchain.cache import Cache\n"
        "def make(folder):\n"
        "    with open(sys.argv[1] + '/calls', 'a') as f: f.write('x')\n"
        "    time.sleep(0.2)\n"
        "    (folder / 'file').write_text('whole')\n"
        "entry = Cache(pathlib.Path(sys.argv[1])).fetch('objects', 'abc', make)\n"
        "assert (entry / 'file').read_text() == 'whole'\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [p.wait() for p in running] == [0] * 4
    assert (tmp_path / "calls").read_text() == "x"


def test_pruning_drops_the_least_recently_used(tmp_path):
    cache, calls = Cache(tmp_path), []
    for age, key in enumerate(["a1", "b2", "c3"]):
        entry = cache.fetch("objects", key, writer("x" * 1000, calls))
        os.utime(entry, (1000 + age, 1000 + age))
    assert cache.find("objects", "a1") is not None  # marks it as used
    replace(cache, limit=2500).prune()
    assert [cache.find("objects", k) is not None for k in ("a1", "b2", "c3")] == [True, False, True]
    replace(cache, limit=10**9).prune()
    assert cache.find("objects", "c3") is not None


def test_tidying_removes_what_killed_processes_left(tmp_path):
    cache = Cache(tmp_path)
    kept = cache.fetch("objects", "abc", writer("x", []))
    left, at_work = tmp_path / "objects" / "ab" / "draft-1", tmp_path / "models" / "00" / "draft-2"
    for draft in (left, at_work):
        draft.mkdir(parents=True)
    with cache._lock("models", "00"):  # as another process that is at work there
        cache.tidy()
    assert [d.exists() for d in (kept, left, at_work)] == [True, False, True]


def test_tidying_looks_at_entries_only_when_they_have_come_to_the_limit(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(Cache, "entries", lambda c, all=Cache.entries: looked.append(1) or all(c))
    cache = Cache(tmp_path, limit=100_000)
    cache.tidy()
    assert len(looked) == 1  # nobody knew what was there
    for key in range(9):
        cache.fetch("objects", f"{key:02}", writer("x" * 10_000, []))
        cache.tidy()
    assert len(looked) == 1
    cache.fetch("objects", "last", writer("x" * 10_000, []))
    cache.tidy()
    cache.tidy()
    assert len(looked) == 2
    left = [one.size for one in cache.entries()]
    assert 70_000 < sum(left) < 87_500  # an eighth is free, so that the next ones fit


def test_whoever_makes_an_entry_sweeps_up_first(tmp_path):
    left = tmp_path / "objects" / "ab" / "draft-1"
    left.mkdir(parents=True)
    Cache(tmp_path).fetch("objects", "abc", writer("x", []))
    assert not left.exists()


def test_a_cache_that_cannot_be_written_gives_way_to_a_temporary_one(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    cache = open_cache(options(tmp_path))
    assert cache.folder != tmp_path / "cache"
    assert cache.fetch("objects", "abc", writer("x", [])).is_dir()
    assert open_cache(options(tmp_path)).folder == cache.folder


def test_a_cache_that_is_off_is_temporary(tmp_path):
    cache = open_cache(options(tmp_path, cache=False))
    assert cache.temporary
    assert not (tmp_path / "cache").exists()
    cache.discard()
    assert not cache.folder.exists()


def test_a_full_disk_names_the_way_out(tmp_path):
    def fill(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(BuildError, match="POLYC_CACHE_DIR"):
        Cache(tmp_path).fetch("objects", "abc", fill)


def test_errors_of_other_files_pass_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        Cache(tmp_path).fetch("objects", "abc", lambda _: open("/no/such/file").close())


def test_digest_keeps_parts_apart():
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["ab", b"c"]) == digest([b"ab", "c"])
    assert digest(["\ud800"]) != digest([""])


def test_folders_are_made_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        cache = open_cache(options(tmp_path))
        entry = cache.fetch("objects", "abc", writer("x", []))
    finally:
        os.umask(before)
    assert entry == cache.find("objects", "abc")
    for folder in (cache.folder, entry.parent.parent, entry.parent, entry):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", ["", "objects", "objects/ab", "objects/ab/abc", "file"])
def test_what_others_may_write_is_refused(tmp_path, place):
    cache = open_cache(options(tmp_path))
    entry = cache.fetch("objects", "abc", writer("x", []))
    path = entry / "deep" / "file" if place == "file" else cache.folder / place
    path.chmod(0o777)
    told = f"other users .*mode 777.*chmod -R go-w {path}.*POLYC_CACHE_DIR"
    with pytest.raises(BuildError, match=told):
        open_cache(options(tmp_path)).fetch("objects", "abc", writer("x", []))
    path.chmod(0o755)
    assert open_cache(options(tmp_path)).find("objects", "abc") == entry


@pytest.mark.parametrize("place", ["", "objects/ab/abc", "file"])
def test_what_belongs_to_another_user_is_refused(tmp_path, monkeypatch, place):
    cache = open_cache(options(tmp_path))
    entry = cache.fetch("objects", "abc", writer("x", []))
    path = entry / "deep" / "file" if place == "file" else cache.folder / place
    theirs, mine = path.stat().st_ino, os.fstat

    def fstat(descriptor):
        found = mine(descriptor)
        fields = [4321 if k == 4 and found.st_ino == theirs else x for k, x in enumerate(found)]
        return os.stat_result(fields)

    monkeypatch.setattr("polyc.files.folder.os.fstat", fstat)
    with pytest.raises(BuildError, match=f"{path} .*belongs to the user 4321"):
        open_cache(options(tmp_path)).fetch("objects", "abc", writer("x", []))


@pytest.mark.parametrize(
    "place", ["objects", "objects/ab", "objects/ab/abc", "objects/ab/abc/deep"]
)
def test_links_in_a_cache_lead_nowhere(tmp_path, place):
    cache, calls = Cache(tmp_path / "cache"), []
    cache.fetch("objects", "abc", writer("x", calls))
    moved = tmp_path / "moved"
    (cache.folder / place).rename(moved)
    (cache.folder / place).symlink_to(moved)
    assert cache.find("objects", "abc") is None


def test_entries_of_a_cache_that_cannot_be_written_are_used(tmp_path, monkeypatch):
    calls = []
    entry = open_cache(options(tmp_path)).fetch("objects", "read1", writer("x", calls))

    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("polyc.toolchain.cache.tempfile.TemporaryFile", refuse)
    cache = open_cache(options(tmp_path))
    assert cache.folder != tmp_path / "cache"
    assert cache.fetch("objects", "read1", writer("x", calls)) == entry
    assert cache.fetch("objects", "read2", writer("y", calls)) != entry
    assert calls == ["x", "y"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "file/below"])
def test_caches_that_cannot_be_give_way(tmp_path, name):
    (tmp_path / "file").write_text("in the way")
    chosen = replace(options(tmp_path), cache_dir=tmp_path / name)
    assert open_cache(chosen).fetch("objects", "abc", writer("x", [])).is_dir()


def test_a_file_too_large_for_the_system_is_told(tmp_path):
    def fill(folder: Path) -> None:
        with (folder / "weights").open("wb") as stream:
            stream.truncate(1 << 20)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(BuildError, match="File too large"):
            Cache(tmp_path).fetch("objects", "abc", fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_clearing_takes_what_is_finished_and_what_was_left(tmp_path):
    cache = Cache(tmp_path)
    entry = cache.fetch("objects", "abc", writer("x", []))
    left = tmp_path / "objects" / "ab" / "draft-1"
    left.mkdir()
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "kept.json").write_text("{}")
    (found,) = cache.entries()
    assert (found.kind, found.folder) == ("objects", entry)
    cache.clear()
    assert not entry.exists()
    assert not left.exists()
    assert (tmp_path / "tuned" / "kept.json").is_file()
