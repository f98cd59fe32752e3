"""Generated C under AddressSanitizer and UndefinedBehaviorSanitizer, as a program of its own.

Arrays of the caller are allocated to the byte. In the arena and among the weights, arrays keep a
distance and what lies between them is poisoned, so that no access may miss its array.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from polyc import Graph
from polyc.build.load import DECLARATIONS
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.printing.driver import DRIVER_FILE, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import ALIGNMENT, Plan, byte_size, plan_memory
from polyc.program.program import Program
from polyc.target.machine import Target
from polyc.threads.barriers import place_barriers
from polyc.toolchain.runtime_files import TEAM_FILE, find_runtime
from polyc.trace import Trace
from polyc.types.found import at_most
from polyc.types.ranges import assume

COMMON = (
    "-O1 -g1 -std=gnu11 -pthread -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi"
)
FLAGS = f"{COMMON} -fsanitize=address,undefined -fno-sanitize-recover=all"
THREAD_FLAGS = f"{COMMON} -fsanitize=thread"
GUARD = 2 * ALIGNMENT
"""Bytes between neighbours, all poisoned."""

Edit = Callable[[str], str]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: status of the driver (-1 if it did not return), results, and reports."""

    status: int
    outputs: Mapping[str, np.ndarray]
    report: str


def build(
    graph: Graph, target: Target, folder: Path, edit: Edit = str, flags: str = FLAGS
) -> Program:
    """Compile a graph to `folder`/run; `edit` may change the text of its kernels."""
    compiled = run_pipeline(graph, target, Options(), Trace())
    program = compiled.program
    files = {name: edit(text) for name, text in compiled.sources.items()}
    with assume(program.sizes):
        plan = spread(plan_memory(program), program)
        barriers = place_barriers(compiled.touched, plan.slots)
        files |= {
            DRIVER_FILE: print_driver(program, plan, make_driver(program, plan, barriers)),
            "main.c": print_main(program, plan),
        }
    for name, text in files.items():
        (folder / name).write_text(text)
    weights = np.zeros(max(plan.weights_bytes, 1), np.uint8)
    for name, offset in plan.constants.items():
        value = program.arrays[name].value
        assert value is not None
        data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        weights[offset : offset + data.size] = data
    (folder / "weights.bin").write_bytes(weights.tobytes())
    command = ["gcc", *flags.split(), *target.flags, "-I", str(find_runtime()), *files]
    command.append(str(find_runtime() / TEAM_FILE))
    result = subprocess.run(
        [*command, "-lm", "-o", "run"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return program


def run(program: Program, folder: Path, feeds: Mapping[str, np.ndarray], threads: int) -> Outcome:
    """Run what `build` made."""
    data = [np.ascontiguousarray(feeds[s.name], s.dtype).tobytes() for s, _ in program.inputs]
    (folder / "in.bin").write_bytes(b"".join(data))
    environment = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    environment["PATH"] = os.environ["PATH"]
    # gcc 12's ThreadSanitizer is lost among addresses as random as those of newer kernels.
    command = [*(["setarch", "-R"] if shutil.which("setarch") else []), "./run", str(threads)]
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if result.returncode:
        return Outcome(-1, {}, result.stderr)
    left = (folder / "out.bin").read_bytes()
    outputs = {}
    for spec, name in program.outputs:
        size = byte_size(program.arrays[name])
        outputs[spec.name] = np.frombuffer(left[:size], spec.dtype).reshape(
            program.arrays[name].storage.shape
        )
        left = left[size:]
    return Outcome(int(result.stdout), outputs, result.stderr)


def spread(plan: Plan, program: Program) -> Plan:
    """The plan with every array at a place of its own, and a gap after it."""
    end, slots = GUARD, []
    for slot in plan.slots:
        slots.append(replace(slot, offset=end))
        end += slot.bytes + GUARD
    arena, end, constants = end, GUARD, {}
    for name in plan.constants:
        constants[name] = end
        end += -(-byte_size(program.arrays[name]) // ALIGNMENT) * ALIGNMENT + GUARD
    return replace(
        plan, slots=tuple(slots), arena_bytes=arena, constants=constants, weights_bytes=end
    )


def print_main(program: Program, plan: Plan) -> str:
    """A main that reads in.bin and weights.bin, calls the driver, and writes out.bin."""
    inputs = [byte_size(program.arrays[n]) for _, n in program.inputs]
    outputs = [byte_size(program.arrays[n]) for _, n in program.outputs]
    in_use = [(s.offset, at_most(byte_size(program.arrays[s.array]))) for s in plan.slots]
    held = [(o, byte_size(program.arrays[n])) for n, o in plan.constants.items()]
    return "\n".join(
        [
            "#include <sanitizer/asan_interface.h>",
            "#include <stdint.h>",
            "#include <stdio.h>",
            "#include <stdlib.h>",
            *DECLARATIONS.strip().splitlines(),
            "static void *get(FILE *f, size_t n, size_t align)",
            "{",
            "    void *p;",
            "    if (posix_memalign(&p, align, n ? n : 1) || fread(p, 1, n, f) != n)",
            "        exit(3);",
            "    return p;",
            "}",
            "int main(int count, char **arguments)",
            "{",
            "    (void)count;",
            '    FILE *f = fopen("in.bin", "rb"), *w = fopen("weights.bin", "rb");',
            f"    void *io[{len(inputs) + len(outputs) + 1}];",
            *(f"    io[{k}] = get(f, {n}, 8);" for k, n in enumerate(inputs)),
            *(
                f"    io[{k}] = malloc({n or 1});"
                for k, n in enumerate(outputs, len(inputs))
            ),
            f"    char *weights = get(w, {max(plan.weights_bytes, 1)}, 64);",
            f"    char *arena = aligned_alloc(64, {max(plan.arena_bytes, 64)});",
            f"    ASAN_POISON_MEMORY_REGION(weights, {max(plan.weights_bytes, 1)});",
            f"    ASAN_POISON_MEMORY_REGION(arena, {max(plan.arena_bytes, 64)});",
            *(f"    ASAN_UNPOISON_MEMORY_REGION(arena + {o}, {n});" for o, n in in_use),
            *(f"    ASAN_UNPOISON_MEMORY_REGION(weights + {o}, {n});" for o, n in held),
            "    int status = 0;",
            "    for (int k = 0; k < 5; k++) /* who comes late to the first is there then */",
            "        status |= polyc_run(io, weights, arena, NULL, atoi(arguments[1]));",
            '    printf("%d\\n", status);',
            '    FILE *out = fopen("out.bin", "wb");',
            *(
                f"    fwrite(io[{k}], 1, {n}, out);"
                for k, n in enumerate(outputs, len(inputs))
            ),
            "    return fclose(out);",
            "}",
            "",
        ]
    )  # fmt: skip
