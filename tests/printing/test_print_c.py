"""Kernels in C: shared loops, declarations and names; and a strict compiler accepts the text."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import Compare, const, extremum, var
from polyc.loopnest.nodes import Block, Kernel, Local
from polyc.loopnest.prototype import Param
from polyc.loopnest.registers import find_registers
from polyc.printing.print_c import clean_line, print_kernel
from polyc.threads.team import share_out
from polyc.toolchain.runtime_files import find_runtime
from tests.analysis.nests import F32, ZERO, at, conv, loop, matmul, read, run, softmax, when
from tests.codegen.machines import registers

STRICT = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
i, j, k, v = (var(name) for name in "ijkv")
X, Y = Param("X", F32, (8, 32), False), Param("Y", F32, (8, 32), True)


def printed(kernel: Kernel, folder: Path, simd_bytes: int = 64) -> str:
    """The kernel's C, which a compiler with all warnings as errors has accepted."""
    kernel = share_out(kernel)
    body = find_registers(vectorise(kernel.body, registers(simd_bytes)))
    text = print_kernel(replace(kernel, body=body))
    (folder / "k.c").write_text(text)
    command = [*STRICT, "-mavx512f", "-mfma", "-I", str(find_runtime()), "-c", "k.c", "-o", "k.o"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return text


def body_of(text: str) -> list[str]:
    """The lines of the function, without their indentation."""
    lines = [line.strip() for line in text.splitlines()]
    return lines[lines.index("{") + 1 : -1]


def copy(*index):
    return run("S", list(index), at("Y", *index), read("X", *index))


def test_a_contraction_accumulates_in_named_vectors(tmp_path):
    text = printed(matmul(vector=16).kernel, tmp_path)
    lines = body_of(text)
    assert "f32x16 r_0;" in lines
    assert "r_0 = pc_splat_f32x16(0.0f);" in lines
    product = "pc_splat_f32x16(X_[5 * i + k]) * pc_load_f32x16(&W_["
    assert any(line.startswith(f"r_0 += {product}") for line in lines)
    assert not re.search(r"f32 \w+\[\d+\]", text)


def test_a_convolution_keeps_its_tile_in_registers_at_every_width(tmp_path):
    case = conv(32, 4, 14, 3, 3)
    wide = printed(case.kernel, tmp_path)
    assert len(re.findall(r"f32x16 (a_\w+(?:, a_\w+)*);", wide)[0].split(", ")) == 14
    narrow = printed(case.kernel, tmp_path, 32)
    assert len(re.findall(r"f32x8 (a_\w+(?:, a_\w+)*);", narrow)[0].split(", ")) == 28
    assert "f32x16" not in narrow.partition("{\n")[2]


def test_perfectly_nested_parallel_loops_are_collapsed(tmp_path):
    lines = body_of(printed(conv(32, 4, 14, 3, 3).kernel, tmp_path))
    shared = next(n for n, line in enumerate(lines) if line.startswith("PC_SHARE"))
    assert lines[shared : shared + 4] == [
        "PC_SHARE(8) {",
        "const i64 n = pc_n / 8;",
        "const i64 oo = pc_n / 4 % 2;",
        "const i64 y = pc_n % 4;",
    ]
    assert not any("barrier" in line for line in lines)


def test_bounds_of_an_outer_variable_are_not_collapsed(tmp_path):
    triangle = loop("i", 8, loop("j", i + 1, copy(i, j), kind="parallel"), kind="parallel")
    text = printed(Kernel("k", (X, Y), Block((triangle,))), tmp_path)
    assert text.count("PC_SHARE(8)") == 1
    assert "for (i64 j = 0; j < i + 1; j += 1)" in text


def test_bounds_that_are_known_only_at_run_time_are_counted_there(tmp_path):
    rows = loop("j", extremum("min", (i + 4, const(9))), copy(i, j), lower=i, kind="parallel")
    text = printed(Kernel("k", (X, Y), Block((loop("i", 8, rows),))), tmp_path)
    assert "PC_SHARE(pc_trips(i, pc_min(i + 4, 9), 1)) {" in text
    assert "const i64 j = pc_n + i;" in text


def test_what_is_not_parallel_runs_once_and_is_seen_by_all(tmp_path):
    fill = loop("j", 32, run("Z", [j], at("Y", 0, j), ZERO))
    rows = loop("i", 8, copy(i, 0), kind="parallel")
    lines = body_of(printed(Kernel("k", (X, Y), Block((fill, rows, fill))), tmp_path))
    order = [x for x in lines if x.startswith("PC_SHARE") or "barrier" in x]
    once, shared, barrier = "PC_SHARE(1) {", "PC_SHARE(8) {", "pc_barrier(pc_self);"
    assert order == [once, barrier, shared, barrier, once]


def test_a_concurrent_block_has_no_barriers_inside(tmp_path):
    fill = loop("j", 32, run("Z", [j], at("Y", 0, j), ZERO))
    rows = loop("i", 8, copy(i, 0), kind="parallel")
    body = Block((Block((fill, rows, fill), concurrent=True), rows))
    lines = body_of(printed(Kernel("k", (X, Y), body), tmp_path))
    order = [x for x in lines if x.startswith("PC_SHARE") or "barrier" in x]
    once, shared, barrier = "PC_SHARE(1) {", "PC_SHARE(8) {", "pc_barrier(pc_self);"
    assert order == [once, shared, once, barrier, shared]


def test_steps_of_a_sequential_loop_wait_for_one_another(tmp_path):
    steps = loop("j", 32, loop("i", 8, copy(i, j), kind="parallel"))
    lines = body_of(printed(Kernel("k", (X, Y), Block((steps,))), tmp_path))
    assert lines[-3:] == ["}", "pc_barrier(pc_self);", "}"]


def test_a_row_of_vectors_and_a_total_of_its_lanes(tmp_path):
    text = printed(softmax(columns=40).kernel, tmp_path)
    assert "f32x16 d_0, d_16;" in text
    assert "f32x8 d_32;" in text
    assert "f32 m;" in text
    assert "m = pc_max_f32(m, pc_reduce_max_f32x16(" in text
    assert '#include "polyc_f32_exp.h"' in text


def test_a_local_at_running_indices_is_an_array(tmp_path):
    row = loop(
        "i",
        8,
        loop("j", 32, run("T", [i, j], at("t", j), read("X", i, j))),
        loop("j", 32, run("S", [i, j], at("Y", i, j), read("t", j))),
        kind="parallel",
        locals=[Local("t", F32, (32,), "T")],
    )
    lines = body_of(printed(Kernel("k", (X, Y), Block((row,))), tmp_path))
    assert "f32 t[32] __attribute__((aligned(64)));" in lines
    assert "t[j] = X_[32 * i + j];" in lines


def test_guards(tmp_path):
    odd = when(Compare("eq", j - i), copy(i, j))
    both = replace(odd, otherwise=Block((run("Z", [i, j], at("Y", i, j), ZERO),)))
    lines = body_of(
        printed(Kernel("k", (X, Y), Block((loop("i", 8, loop("j", 32, both)),))), tmp_path)
    )
    assert "if (j == i) {" in lines
    assert "} else {" in lines


def test_signature_and_comment(tmp_path):
    comment = ("Nodes: conv*/1", "Y[i] = f(X)", "a\\")
    kernel = Kernel("conv_1", (X, Y), Block((loop("i", 8, copy(i, 0)),)), comment)
    text = printed(kernel, tmp_path)
    head = "void conv_1(const f32 *restrict X_, f32 *restrict Y_, pc_thread *pc_self, int *status)"
    assert head in text.splitlines()
    assert text.startswith("/*\n * Nodes: conv_/1\n * Y[i] = f(X)\n * a_\n */\n")
    assert text.count("*/") == 1


@pytest.mark.parametrize(
    ("hostile", "safe"),
    [("*/ int x;", "_/ int x;"), ("a\\\nb", "a_ b"), ("plain f(x)", "plain f(x)")],
)
def test_comments_cannot_be_left(hostile, safe):
    assert clean_line(hostile) == safe


def test_an_empty_kernel_is_a_function(tmp_path):
    assert "void k(" in printed(Kernel("k", (), Block((), (Local("r", F32, (4,), "A"),))), tmp_path)


def test_a_loop_that_forgets_says_so_first(tmp_path):
    inner = replace(loop("i", 8, loop("v", 32, copy(i, v), kind="vector")), forgets=True)
    lines = body_of(printed(Kernel("k", (X, Y), Block((inner,))), tmp_path))
    head = next(k for k, line in enumerate(lines) if line.startswith("for (i64 i = 0;"))
    assert lines[head + 1] == "PC_FORGET;"
    assert lines.count("PC_FORGET;") == 1
