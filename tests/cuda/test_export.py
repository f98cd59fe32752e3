"""Exported CUDA: it builds with make and nvcc, and runs."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import polyc
from polyc.target.cuda import ask_driver
from tests.cuda.programs import GATHER, SCALE
from tests.cuda.test_model import graph
from tests.programs import compiled, gather_program, install_pipeline, options, scale_program

pytestmark = pytest.mark.cuda

needs_tools = pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("make") is None, reason="no nvcc, or no make"
)


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@needs_tools
def test_make_builds_it_with_nvcc(monkeypatch, tmp_path):
    install_pipeline(monkeypatch, compiled(scale_program(), SCALE))
    model = polyc.compile(graph(), target="cuda:sm_80", options=options(tmp_path))
    folder = tmp_path / "c"
    model.export(folder)
    made = run(folder, "make")
    assert made.returncode == 0, made.stderr
    assert "warning" not in made.stderr
    assert (folder / "lib" / "model_scales.so").is_file()
    done = run(folder, "./example")
    if ask_driver().missing:
        assert done.returncode == 1
        assert "CUDA driver" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, "y: 0 0 0 0 0 0\n")
    header = (folder / "model_scales.h").read_text()
    assert "buffers[0]  float [2, 3]  x" in header
    assert "#define MODEL_SCALES_WORKSPACE_BYTES 264" in header
    assert run(folder, "make", "clean").returncode == 0
    model.export(folder)  # an earlier export is replaced


def test_its_text_runs_on_the_emulator(monkeypatch, tmp_path):
    install_pipeline(monkeypatch, compiled(gather_program(), GATHER))
    chosen = options(tmp_path, emulated=True)
    polyc.compile(graph(), target="cuda", options=chosen).export(tmp_path / "c")
    sources = [str(f) for f in (tmp_path / "c" / "src").iterdir()]
    flags = ["-std=gnu++17", "-Iruntime", "-I.", "-pthread", "-lm", "-o", "run"]
    made = run(
        tmp_path / "c", "g++", "-x", "c++", *sources, "-fpermissive", "-w", "example.c", *flags
    )
    assert made.returncode == 0, made.stderr
    done = run(tmp_path / "c", "./run")
    assert (done.returncode, done.stdout) == (0, "y: 0\nsame: 0 0 0 0 0 0\nfixed: 5 7\n")
    done = run(tmp_path / "c", "./run", "gone.bin")
    assert (done.returncode, done.stderr) == (1, "gone.bin cannot be read\n")
