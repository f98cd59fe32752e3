"""nvcc takes the runtime: all functions that there are, and kernels without a spill."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from polyc.printing.runtime_table import FLOATS, FUNCTIONS, STORABLE, cuda_preamble, is_cast
from polyc.toolchain.runtime_files import find_runtime
from tests.cuda.emulated import COMPILER
from tests.cuda.mutants import kernel
from tests.printing.test_runtime_table import Uses

pytestmark = pytest.mark.cuda
SM_90A = "-gencode=arch=compute_90a,code=sm_90a"
KERNELS = [
    *((name, f"-arch={sm}") for name in ("tiles", "totals", "bf16") for sm in ("sm_80", "sm_90")),
    *((name, SM_90A) for name in ("hopper", "written")),
]


def everything() -> str:
    """All scalar functions, and casts between all types, each called by a function of its own."""
    functions = {
        (name, element, 1)
        for name, function in FUNCTIONS.items()
        for element in function.types
        if not function.vector_only and not (function.infix and element in FLOATS)
    }
    casts = {(a, b, 1) for a in STORABLE for b in STORABLE if is_cast(a, b)}
    calls = []
    for k, (name, element, _) in enumerate(sorted(functions)):
        operands = ", ".join(["*x"] * FUNCTIONS[name].arity)
        calls.append((k, element, f"pc_{name}_{element}({operands})"))
    for k, (source, target, _) in enumerate(sorted(casts), len(functions)):
        calls.append((k, source, f"pc_cast_{source}_{target}(*x)"))
    text = cuda_preamble(Uses(frozenset(functions), frozenset(casts)))
    for k, element, call in calls:
        text += f"PC_DEVICE void use{k}(const {element} *x) {{ (void){call}; }}\n"
    return text


def check_nvcc(text: str, folder: Path, *flags: str) -> str:
    """What ptxas says about the text."""
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    (folder / "k.cu").write_text(text)
    command = ["nvcc", "-std=c++17", "-Xptxas", "-v", "-Werror", "all-warnings"]
    made = subprocess.run(
        [*command, *flags, f"-I{find_runtime()}", "-c", "k.cu", "-o", "k.o"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stderr


def test_all_functions_compile_by_nvcc(tmp_path: Path):
    check_nvcc(everything(), tmp_path, "-arch=sm_80")


def test_all_functions_compile_for_the_emulator(tmp_path: Path):
    (tmp_path / "k.cu").write_text(everything())
    command = [*COMPILER, "-O2", f"-I{find_runtime()}", "-x", "c++", "-c", "k.cu"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "architecture"), KERNELS)
def test_kernels_compile_without_a_spill(tmp_path: Path, name: str, architecture: str):
    report = check_nvcc(kernel(name), tmp_path, architecture)
    assert re.findall(r"(\d+) bytes spill", report) == ["0", "0"]
