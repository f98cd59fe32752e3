"""The driver: the one C function a model is run by, a straight line of kernel calls.

    int polyc_run(io, weights, arena, threads)
    {
        #pragma omp parallel num_threads(threads)
        {
            conv(io[0], weights + 0, arena + 0, &team, &failed[0]);     /* conv1, relu1 */
            ...
        }
    }

io holds the inputs, then the outputs, in the graph's order. Every offset is a literal from the
memory plan, so the driver has neither tables nor allocation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from polyc.build.runtime_files import HEADER
from polyc.codegen.loopnest import Kernel
from polyc.codegen.program import Launch, Program
from polyc.errors import ShapeError
from polyc.memory.plan import Plan, byte_size

DRIVER_FILE = "driver.c"

_SIGNATURE = "void *const *io, const void *weights_, void *arena_, int threads"


def print_driver(program: Program, plan: Plan) -> str:
    """The driver's C text.

    One team of threads runs all launches; a kernel shares its loops out among them and ends with a
    barrier. polyc_run returns 0, or k + 1 when launch k met an index out of range; polyc_profile is
    the same and writes the seconds of launch k to seconds[k].
    """
    places = _places(program, plan)
    kernels = {k.name: k for k in program.kernels}
    count = len(program.launches)
    lines = [
        f"/* {clean(program.name)}: {count} launches of {len(program.kernels)} kernels. */",
        "#include <omp.h>",
        "#include <stddef.h>",
        "#include <string.h>",
        f'#include "{HEADER}"',
        "",
        *map(_prototype, program.kernels),
        "",
        "#define LAUNCH(k, call)                                     \\",
        "    do {                                                    \\",
        "        const double start = seconds ? omp_get_wtime() : 0; \\",
        "        call;                                               \\",
        "        if (seconds && omp_get_thread_num() == 0)           \\",
        "            seconds[k] = omp_get_wtime() - start;           \\",
        "    } while (0)",
        "",
        f"static int run({_SIGNATURE}, double *seconds)",
        "{",
        "    const char *const weights = weights_;",
        "    char *const arena = arena_;",
        f"    int failed[{count + 1}] = {{0}};",
        "    (void)io, (void)weights, (void)arena, (void)seconds;",
        "",
        "    pc_team team = {0};",
        "    #pragma omp parallel num_threads(threads)",
        "    {",
        "        #pragma omp single",
        "        team.size = omp_get_num_threads();",
    ]
    for position, launch in enumerate(program.launches):
        lines += _call(position, launch, kernels[launch.kernel], places)
    lines += [
        *_copies(program, places),
        "    }",
        f"    for (int k = 0; k < {count}; k++)",
        "        if (failed[k])",
        "            return k + 1;",
        "    return 0;",
        "}",
        "",
        f"int polyc_run({_SIGNATURE})",
        "{",
        "    return run(io, weights_, arena_, threads, NULL);",
        "}",
        "",
        f"int polyc_profile({_SIGNATURE}, double *seconds)",
        "{",
        "    return run(io, weights_, arena_, threads, seconds);",
        "}",
        "",
    ]
    return "\n".join(lines)


def clean(text: str) -> str:
    """Text that cannot end a C comment or leave its line: letters, digits and ._-/ only.

    "conv*/1\\n" -> "conv_/1_"
    """
    return re.sub(r"[^A-Za-z0-9_./-]", "_", text)


def scalar_type(dtype: np.dtype) -> str:
    """The runtime's name of an element type: float32 -> f32, bool -> b8."""
    return f"{dtype.kind}{8 * dtype.itemsize}"


def _prototype(kernel: Kernel) -> str:
    arguments = [_pointer(p.dtype, p.writes) + "restrict" for p in kernel.params]
    return f"void {_identifier(kernel.name)}({', '.join([*arguments, 'pc_team *', 'int *'])});"


def _pointer(dtype: np.dtype, writes: bool) -> str:
    return f"{'' if writes else 'const '}{scalar_type(dtype)} *"


def _identifier(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"kernel name {name!r} is not a C identifier")
    return name


def _places(program: Program, plan: Plan) -> dict[str, str]:
    """Array -> the C expression of its address."""
    places = {n: f"arena + {offset}" for n, offset in plan.offsets.items()}
    places |= {n: f"weights + {offset}" for n, offset in plan.constants.items()}
    bound = [name for _, name in (*program.inputs, *program.outputs)]
    for position, name in enumerate(bound):
        # An output that is also an input, a constant or an earlier output keeps its first place.
        places.setdefault(name, f"io[{position}]")
    return places


def _call(position: int, launch: Launch, kernel: Kernel, places: dict[str, str]) -> Iterator[str]:
    if len(launch.arguments) != len(kernel.params):
        raise ValueError(
            f"launch {position} gives {len(launch.arguments)} arguments to {kernel.name}, "
            f"which takes {len(kernel.params)}"
        )
    if launch.origin:
        yield f"        /* {', '.join(map(clean, launch.origin))} */"
    arguments = [
        f"({_pointer(p.dtype, p.writes)})({places[a]})"
        for p, a in zip(kernel.params, launch.arguments, strict=True)
    ]
    inside = ", ".join([*arguments, "&team", f"&failed[{position}]"])
    yield f"        LAUNCH({position}, {kernel.name}({inside}));"


def _copies(program: Program, places: dict[str, str]) -> Iterator[str]:
    """Outputs whose array lives elsewhere: the graph returns an input, a constant, or one twice."""
    first = len(program.inputs)
    for position, (spec, name) in enumerate(program.outputs, first):
        array = program.arrays[name]
        if not array.storage.is_row_major or tuple(array.storage.shape) != spec.shape:
            raise ShapeError(
                f"output {spec.name!r} of shape {list(spec.shape)} is stored as "
                f"{list(array.storage.shape)}; outputs must be stored row-major"
            )
        if places[name] != f"io[{position}]":
            yield "        #pragma omp single"
            yield f"        memcpy(io[{position}], {places[name]}, {byte_size(array)});"
