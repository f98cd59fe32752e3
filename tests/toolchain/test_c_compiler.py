"""Compiling, linking, caching by content, and what is said when it fails."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

import polyc
from polyc.errors import BuildError, TooLong
from polyc.target.machine import Target, missing_features
from polyc.toolchain import c_compiler as toolchain
from polyc.toolchain.c_compiler import (
    COMPILE_FLAGS,
    LibraryBuild,
    build_library,
    c_recipe,
    find_compiler,
)
from polyc.toolchain.cache import Cache
from tests.programs import SCALE_C, options
from tests.sampling import thorough

TARGET = Target.named("baseline")
SOURCES = {
    "one.c": '#include "shared.h"\nint one(void) { return ONE; }\n',
    "two.c": "int one(void);\nint two(void) { return one() + one(); }\n",
    "shared.h": "#define ONE 1\n",
}


def counting(monkeypatch) -> list[list[str]]:
    """Records compiler runs, other than questions about its version."""
    runs: list[list[str]] = []
    execute = toolchain.execute

    def record(arguments, folder, patience):
        if "--version" not in arguments:
            runs.append(list(arguments))
        return execute(arguments, folder, patience)

    monkeypatch.setattr(toolchain, "execute", record)
    return runs


def test_files_are_compiled_and_linked(tmp_path):
    library = build_library(SOURCES, TARGET.flags, options(tmp_path))
    assert ctypes.CDLL(str(library)).two() == 2


def test_equal_files_are_compiled_once(tmp_path, monkeypatch):
    runs = counting(monkeypatch)
    first = build_library(SOURCES, TARGET.flags, options(tmp_path))
    assert len(runs) == 4  # two objects, that of the runtime, one link
    assert build_library(SOURCES, TARGET.flags, options(tmp_path)) == first
    assert len(runs) == 4
    build_library({**SOURCES, "two.c": SOURCES["two.c"] + "\n"}, TARGET.flags, options(tmp_path))
    assert len(runs) == 6
    build_library({**SOURCES, "shared.h": "#define ONE 7\n"}, TARGET.flags, options(tmp_path))
    assert len(runs) == 10
    build_library(SOURCES, ("-O1",), options(tmp_path))
    assert len(runs) == 14


def test_a_file_is_compiled_while_the_next_is_made(tmp_path, monkeypatch):
    runs = counting(monkeypatch)
    recipe = c_recipe(TARGET.flags, options(tmp_path))
    with LibraryBuild(recipe, TARGET.cores, Cache(tmp_path)) as build:
        build.add("one.c", "int one(void) { return 1; }")
        deadline = time.monotonic() + 60
        while len(runs) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(runs) == 2  # with that of the runtime
        build.add("two.c", SOURCES["two.c"])
        assert ctypes.CDLL(str(build.link())).two() == 2


def test_leaving_early_drops_files_that_wait(tmp_path, monkeypatch):
    runs = counting(monkeypatch)
    recipe = c_recipe(TARGET.flags, options(tmp_path))
    with LibraryBuild(recipe, 1, Cache(tmp_path)) as build:
        for k in range(40):
            build.add(f"{k}.c", f"int f{k};")
    assert len(runs) < 40


def test_flags_keep_ieee_semantics(tmp_path, monkeypatch):
    runs = counting(monkeypatch)
    build_library(SOURCES, TARGET.flags, options(tmp_path))
    given = set(runs[0])
    assert set(COMPILE_FLAGS) | set(TARGET.flags) <= given
    assert not given & {"-ffast-math", "-Ofast", "-ffinite-math-only", "-fassociative-math"}


@pytest.mark.skipif(missing_features(("fma",)), reason="this CPU has none")
def test_a_product_and_a_sum_are_one_instruction(tmp_path):
    """All of a network's time goes into these: 1 - e^2 is no double, but what is left of 1 is."""
    text = "double f(double a, double b, double c) { return a * b + c; }"
    library = build_library({"f.c": text}, ("-mfma",), options(tmp_path))
    function = ctypes.CDLL(str(library)).f
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    assert function(1 + 2**-30, 1 - 2**-30, -1.0) == -(2**-60)


def test_a_damaged_object_is_compiled_again(tmp_path):
    library = build_library(SOURCES, TARGET.flags, options(tmp_path))
    for file in (tmp_path / "cache").rglob("*.o"):
        file.write_bytes(b"rubbish")
    library.write_bytes(b"rubbish")
    library = build_library(SOURCES, TARGET.flags, options(tmp_path))
    assert ctypes.CDLL(str(library)).two() == 2


def test_a_refused_file_is_named_with_the_first_errors(tmp_path):
    with pytest.raises(BuildError, match=r"file 'bad\.c' .*polyc doctor") as caught:
        build_library({"bad.c": "int f(void) { return nothing; }"}, TARGET.flags, options(tmp_path))
    assert "'nothing' undeclared" in str(caught.value)


def test_an_undefined_function_is_reported_when_loaded_or_linked(tmp_path):
    sources = {"f.c": "int g(void);\nint f(void) { return g(); }"}
    with pytest.raises(BuildError, match=r"undefined reference to .g'"):
        build_library(sources, TARGET.flags, options(tmp_path))


@pytest.mark.parametrize("cc", ["no-such-compiler", "", "/nowhere/gcc -m64"])
def test_a_missing_compiler_names_the_remedy(tmp_path, cc):
    with pytest.raises(BuildError, match=r"install gcc .* POLYC_CC"):
        build_library(SOURCES, TARGET.flags, options(tmp_path, cc=cc))


def test_a_command_that_is_no_compiler_is_refused():
    with pytest.raises(BuildError, match="set POLYC_CC"):
        find_compiler("false")


@pytest.mark.parametrize(
    ("banner", "kind", "version"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc", "12.2.0"),
        ("gcc-14 (Ubuntu 14.2.0-4ubuntu2) 14.2.0", "gcc", "14.2.0"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang", "18.1.3"),
    ],
)
def test_banners_are_understood(tmp_path, banner, kind, version):
    fake = tmp_path / "cc"
    fake.write_text(f"#!/bin/sh\necho '{banner}'\n")
    fake.chmod(0o755)
    compiler = find_compiler(str(fake))
    assert (compiler.kind, compiler.version) == (kind, version)


def test_processes_that_build_the_same_at_once(tmp_path):
    program = (
        "import sys, pathlib, ctypes\n"
        "from polyc.toolchain.c_compiler import build_library\n"
        "from polyc.options import Options\n"
        "from polyc.target.machine import Target\n"
        "options = Options(cache_dir=pathlib.Path(sys.argv[1]))\n"
        "sources = {f'f{k}.c': f'int f{k}(void) {{ return {k}; }}' for k in range(3)}\n"
        "path = build_library(sources, Target.named('baseline').flags, options)\n"
        "assert ctypes.CDLL(str(path)).f2() == 2\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, env=os.environ) for _ in range(3)]
    assert [p.wait() for p in running] == [0] * 3


def test_kernels_are_not_taken_over_by_functions_of_the_process(tmp_path):
    sources = {
        "abs.c": "int labs_like(int x) { return x; }\nint getpid(void) { return -7; }",
        "use.c": "int getpid(void);\nint use(void) { return getpid(); }",
    }
    library = build_library(sources, TARGET.flags, options(tmp_path))
    assert ctypes.CDLL(str(library)).use() == -7


def test_the_runtime_header_is_found(tmp_path):
    assert build_library({"scale.c": SCALE_C}, TARGET.flags, options(tmp_path)).is_file()


def test_the_team_is_compiled_once_for_all_libraries(tmp_path, monkeypatch):
    runs = counting(monkeypatch)
    build_library({"scale.c": SCALE_C}, TARGET.flags, options(tmp_path))
    assert len(runs) == 3  # two objects, one link
    build_library({"two.c": "int two(void) { return 2; }"}, TARGET.flags, options(tmp_path))
    assert len(runs) == 5


@pytest.mark.parametrize(
    "name", [*map(thorough, ("back\\slash", "it's", 'quo"ted')), "two  words", "\\' \"a\\\\b"]
)
def test_caches_in_folders_of_any_name(tmp_path, name):
    library = build_library(SOURCES, TARGET.flags, options(tmp_path / name))
    assert ctypes.CDLL(str(library)).two() == 2


@pytest.mark.parametrize("cc", ["'gcc", 'gcc "-m64'])
def test_a_command_with_an_open_quote_is_told(tmp_path, cc):
    with pytest.raises(BuildError, match=r"No closing quotation.*POLYC_CC"):
        build_library(SOURCES, TARGET.flags, options(tmp_path, cc=cc))


def hanging(tmp_path, when: str) -> str:
    """A compiler that tells its version, or does not, and then hangs."""
    fake = tmp_path / "cc"
    fake.write_text(f"#!/bin/sh\n{when}\nsleep 1000\n")
    fake.chmod(0o755)
    return str(fake)


@pytest.mark.parametrize(
    "when", ["", thorough('if [ "$1" = --version ]; then echo gcc version 12.2; exit; fi')]
)
def test_a_compiler_that_hangs_is_ended_and_named(tmp_path, when):
    cc = hanging(tmp_path, when)
    start = time.monotonic()
    with pytest.raises(BuildError, match=rf"waited 0\.5 s for compiler {cc} .*POLYC_PATIENCE"):
        build_library(SOURCES, TARGET.flags, options(tmp_path, cc=cc, patience=0.5))
    assert time.monotonic() - start < 60
    assert list((tmp_path / "cache").rglob("draft-*")) == []


def test_a_compiler_ends_with_the_time_of_the_compilation(tmp_path):
    cc = hanging(tmp_path, 'if [ "$1" = --version ]; then echo gcc version 12.2; exit; fi')
    graph = polyc.Graph.of(y=polyc.ops.relu(polyc.ops.input("x", (4,))))
    chosen = options(tmp_path, cc=cc, max_seconds=2.0)
    start = time.monotonic()
    with pytest.raises(TooLong, match=r"more than 2 seconds.*stage 'build'"):
        polyc.compile(graph, target="baseline", options=chosen)
    assert time.monotonic() - start < 60


def test_a_compilation_that_is_ended_leaves_no_drafts(tmp_path):
    cc = hanging(tmp_path, 'if [ "$1" = --version ]; then echo gcc version 12.2; exit; fi')
    program = (
        "import polyc, sys\n"
        "from polyc import cli, ops\n"
        "from polyc.graph.onnx.export import export_onnx\n"
        "graph = polyc.Graph.of(y=ops.relu(ops.input('x', (4,))))\n"
        "open(sys.argv[1], 'wb').write(export_onnx(graph).SerializeToString())\n"
        "sys.argv = ['polyc', 'run', sys.argv[1], '--target', 'baseline']\n"
        "cli.main()\n"
    )
    environment = {**os.environ, "POLYC_CC": cc, "POLYC_CACHE_DIR": str(tmp_path / "cache")}
    running = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "m.onnx")], env=environment
    )

    def drafts():
        return list((tmp_path / "cache").rglob("draft-*/unit.c"))

    deadline = time.monotonic() + 60
    while not drafts() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert drafts()
    running.terminate()
    assert running.wait(60) == 143
    assert list((tmp_path / "cache").rglob("draft-*")) == []


def test_a_compiler_is_ended_with_what_it_starts_meanwhile():
    """As if the driver had been found before it started another process, and was ended after."""
    program = (
        "import os, threading, time\n"
        "from polyc.toolchain import execute as module\n"
        "find = module._list_descendants\n"
        "arguments = ['sh', '-c', 'sleep 1000; true'], None, 1000.0\n"
        "runs = threading.Thread(target=module.execute, args=arguments, daemon=True)\n"
        "runs.start()\n"
        "while len(found := list(find(os.getpid()))) < 2:\n"
        "    time.sleep(0.05)\n"
        "module._list_descendants = lambda process: found[1:]\n"
        "module.end_all()\n"
        "runs.join(30)\n"
        "print(runs.is_alive())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "False\n", done.stderr


def test_what_ends_a_process_ends_compilers_that_begin_later():
    """A thread may have been about to run one when the signal came."""
    program = (
        "import subprocess, sys\n"
        "from polyc.errors import BuildError\n"
        "from polyc.toolchain.execute import end_all, execute\n"
        "running = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "end_all()\n"
        "assert running.wait(60) < 0\n"
        "try:\n"
        "    execute(['sleep', '1000'], None, 60.0)\n"
        "except BuildError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "compiler sleep is not waited for: the process is ending\n", done.stderr


def test_without_threads_files_are_compiled_one_by_one(tmp_path, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    library = build_library(SOURCES, TARGET.flags, options(tmp_path))
    assert ctypes.CDLL(str(library)).two() == 2
