"""Builds CUDA text for the emulator, as a program of its own, and runs it on arrays.

A program of its own, because the sanitizers want to be there from the beginning of a process.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyc.toolchain.runtime_files import find_runtime

KERNELS = Path(__file__).parent / "kernels"
# What one condition sets and the same one reads later, gcc takes for uninitialised.
WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-misleading-indentation",
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
)
COMPILER = ("g++", "-std=c++17", *WARNINGS, "-pthread", "-g1")
PLAIN = ("-O2",)
ADDRESS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
RACES = ("-O1", "-fsanitize=thread")
COUNTS = ("-O1", "-fsanitize=thread", "-DPC_COUNT")
"""gcc calls a function at each access; it is the emulator's, as the sanitizer is not linked."""

_MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
extern "C" int polyc_run(void **buffers, void *workspace, void *stream);
extern "C" void polyc_emulator_set(uint64_t seed, int processors);
extern "C" const char *polyc_emulator_message(void);
extern "C" unsigned long polyc_emulator_barriers(void);
#ifdef PC_COUNT
extern "C" const char *polyc_emulator_counts(void);
#else
static const char *polyc_emulator_counts(void) { return ""; }
#endif

/* seed, processors, bytes of workspace, a file and its size for each buffer */
int main(int count, char **arguments)
{
    const int buffers = (count - 4) / 2;
    void **data = (void **)calloc(buffers + 1, sizeof(void *));
    for (int k = 0; k < buffers; k++) {
        const size_t size = strtoul(arguments[5 + 2 * k], NULL, 10);
        FILE *file = fopen(arguments[4 + 2 * k], "rb");
        if (posix_memalign(&data[k], 256, size) || fread(data[k], 1, size, file) != size)
            return 3;
        fclose(file);
    }
    polyc_emulator_set(strtoul(arguments[1], NULL, 10), atoi(arguments[2]));
    const int error = polyc_run(data, malloc(strtoul(arguments[3], NULL, 10)), NULL);
    printf("%d %lu %s\n", error, polyc_emulator_barriers(), polyc_emulator_message());
    printf("%s", polyc_emulator_counts());
    for (int k = 0; k < buffers; k++) {
        FILE *file = fopen(arguments[4 + 2 * k], "wb");
        fwrite(data[k], 1, strtoul(arguments[5 + 2 * k], NULL, 10), file);
        fclose(file);
    }
    return 0;
}
"""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    error: what polyc_run returned; -1 where the process did not get so far.
    message: what the emulator says about an error.
    barriers: passed, in all blocks.
    report: what sanitizers wrote.
    counts: built with COUNTS: (kernel, array or "global") -> accesses of warps, parts, least parts.
    buffers: after the run.
    """

    error: int
    message: str
    barriers: int
    report: str
    counts: dict[tuple[str, str], tuple[int, int, int]]
    buffers: tuple[np.ndarray, ...]

    @property
    def found(self) -> bool:
        """Whether something was wrong, apart from the numbers."""
        return bool(self.error or self.report)


@functools.cache
def _main_object(flags: tuple[str, ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="polyc-emulated-"))
    (folder / "main.cpp").write_text(_MAIN)
    command = [*COMPILER, *flags, "-c", "main.cpp", "-o", "main.o"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main.o"


@functools.cache
def has_sanitizers(flags: tuple[str, ...]) -> bool:
    """Whether programs with these flags can be made and run here."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.cpp").write_text("int main() { return 0; }\n")
        made = subprocess.run(
            [*COMPILER, *flags, "a.cpp", "-o", "a"], cwd=folder, capture_output=True, check=False
        )
        return made.returncode == 0


def build(text: str, folder: Path, flags: tuple[str, ...] = PLAIN) -> Path:
    """The program that runs the text's polyc_run."""
    (folder / "model.cu").write_text(text)
    compiling = [*COMPILER, *flags, f"-I{find_runtime()}", "-x", "c++", "-c", "model.cu"]
    _do([*compiling, "-o", "model.o"], folder)
    linking = PLAIN if flags == COUNTS else flags
    _do([*COMPILER, *linking, "model.o", str(_main_object(flags)), "-o", "model"], folder)
    return folder / "model"


def _do(command: Sequence[str], folder: Path) -> None:
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def run(
    program: Path,
    buffers: Sequence[np.ndarray],
    seed: int = 0,
    processors: int = 1,
    workspace: int = 0,
) -> Outcome:
    """Calls polyc_run with copies of the buffers, each allocated to the byte."""
    files = []
    for k, buffer in enumerate(buffers):
        path = program.parent / f"buffer{k}"
        path.write_bytes(np.ascontiguousarray(buffer).tobytes())
        files += [str(path), str(buffer.nbytes)]
    # gcc 12's ThreadSanitizer is lost among addresses as random as those of newer kernels.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    environment = {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"}
    result = subprocess.run(
        [*fixed, str(program), str(seed), str(processors), str(workspace), *files],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    after = tuple(
        np.frombuffer(Path(f).read_bytes(), b.dtype).reshape(b.shape)
        for f, b in zip(files[::2], buffers, strict=True)
    )
    head = re.match(r"(-?\d+) (\d+) (.*)\n", result.stdout)
    if head is None:
        report = result.stderr or f"exit status {result.returncode}"
        return Outcome(-1, "", 0, report, {}, after)
    counts = {
        (kernel, array): (int(accesses), int(parts), int(least))
        for kernel, array, accesses, parts, least in map(
            str.split, result.stdout[head.end() :].splitlines()
        )
    }
    return Outcome(int(head[1]), head[3], int(head[2]), result.stderr, counts, after)
