"""Building with nvcc: what it says of kernels, and models that meet no driver."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import polyc
from polyc.errors import BuildError, RuntimeFailure
from polyc.target.cuda import ask_driver
from polyc.toolchain import c_compiler as toolchain
from polyc.toolchain.nvcc import Resources, architecture_flags, find_nvcc, parse_resources
from polyc.toolchain.runtime_files import find_runtime
from tests.cuda.programs import SCALE
from tests.cuda.test_model import X, graph
from tests.programs import compiled, install_pipeline, options, scale_program

pytestmark = pytest.mark.cuda

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
needs_no_gpu = pytest.mark.skipif(not ask_driver().missing, reason="there is a GPU")

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k0' for 'sm_80'
ptxas info    : Function properties for k0
    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16384 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'k1' for 'sm_80'
ptxas info    : Function properties for k1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 372 bytes cmem[0]
"""


@pytest.fixture
def pipeline(monkeypatch):
    return install_pipeline(monkeypatch, compiled(scale_program(), SCALE))


def test_what_ptxas_says_of_each_function():
    assert parse_resources(LOG) == {"k0": Resources(255, 16384, 36, 24), "k1": Resources(8)}


@needs_nvcc
def test_no_minimum_or_maximum_of_subscripts_meets_a_fault_of_ptxas(tmp_path):
    """It makes one instruction of max(0, k - 2), and then a wrong number of a known k."""
    text = """#include "polyc_cuda.cuh"
PC_KERNEL(32, 1) void k(int *x) { x[0] = pc_max(0, x[1] - 2) + pc_min(3, x[1] + 1); }
"""
    names = [(element, f) for element in ("i8", "u16", "i32", "u32") for f in ("min", "max")]
    for element in dict.fromkeys(element for element, _ in names):
        text += f'#define PC_TYPE {element}\n#include "polyc_scalar.h"\n'
    for element, function in names:
        text += f"PC_KERNEL(32, 1) void {function}_{element}({element} *x) "
        text += f"{{ x[0] = pc_{function}_{element}(x[1], x[2]); }}\n"
    (tmp_path / "k.cu").write_text(text)
    nvcc, flags = find_nvcc().path, architecture_flags("sm_90a")
    command = [nvcc, "-std=c++17", *flags, "-I", str(find_runtime()), "-ptx", "k.cu", "-o", "k.ptx"]
    subprocess.run(command, cwd=tmp_path, check=True)
    made = (tmp_path / "k.ptx").read_text()
    assert made.count("selp.b32") == 2 + len(names)
    assert not re.search(r"\b(min|max)\.[su]", made)


def test_ptx_goes_along_unless_no_newer_gpu_could_run_it():
    assert architecture_flags("sm_80") == ("-gencode=arch=compute_80,code=[sm_80,compute_80]",)
    assert architecture_flags("sm_90a") == ("-gencode=arch=compute_90a,code=sm_90a",)


def test_without_nvcc_the_remedy_is_told(monkeypatch, pipeline, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda command: None)
    with pytest.raises(BuildError, match="install NVIDIA's CUDA toolkit"):
        polyc.compile(graph(), target="cuda", options=options(tmp_path))
    monkeypatch.undo()
    with pytest.raises(BuildError, match="does not tell its version"):
        find_nvcc("echo")


@pytest.mark.thorough
@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_registers_and_shared_memory_are_explained(pipeline, tmp_path, arch):
    model = polyc.compile(graph(), target=f"cuda:{arch}", options=options(tmp_path))
    first, second = model.explain().kernels
    assert first.functions == second.functions
    (function,) = first.functions
    assert function.grid == "2 blocks of 4"
    assert 0 < function.registers < 64
    assert (function.shared, function.spilled) == (16, 0)
    text = str(model.explain())
    assert f"cuda {arch}" in text
    assert "registers" in text


@pytest.mark.thorough
@needs_nvcc
@needs_no_gpu
def test_without_a_driver_models_load_and_calls_say_what_is_missing(pipeline, tmp_path):
    model = polyc.compile(graph(), target="cuda", options=options(tmp_path))
    model.save(tmp_path / "saved")
    model = polyc.load(tmp_path / "saved")
    for call in (
        lambda: model(X),
        lambda: model.to_device(X),
        lambda: model(X, out=np.empty_like(X)),
        lambda: model.profile({"x": X}),
        model.check,
    ):
        with pytest.raises(RuntimeFailure, match=r"CUDA error .* install NVIDIA's driver"):
            call()


@pytest.mark.thorough
@needs_nvcc
def test_objects_are_cached_by_content(monkeypatch, pipeline, tmp_path):
    runs = []
    execute = toolchain.execute

    def record(arguments, folder, patience):
        runs.append(arguments)
        return execute(arguments, folder, patience)

    monkeypatch.setattr(toolchain, "execute", record)
    polyc.compile(graph("a"), target="cuda:sm_80", options=options(tmp_path))
    assert len(runs) == 3  # kernels, driver, link
    polyc.compile(graph("b"), target="cuda:sm_80", options=options(tmp_path))
    assert len(runs) == 3
    polyc.compile(graph("b"), target="cuda:sm_90", options=options(tmp_path))
    assert len(runs) == 6


def test_a_refused_text_is_a_build_error(monkeypatch, tmp_path):
    from dataclasses import replace

    wrong = replace(SCALE, text=SCALE.text.replace("PC_SYNC()", "PC_SINK()"))
    install_pipeline(monkeypatch, compiled(scale_program(), wrong))
    with pytest.raises(BuildError, match=r"was refused by[\s\S]*PC_SINK"):
        polyc.compile(graph(), target="cuda", options=options(tmp_path, emulated=True))
