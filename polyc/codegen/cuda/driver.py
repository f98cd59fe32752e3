"""The text around CUDA kernels: units that hold them, and the driver that launches them.

    kernels_0.cu   some kernels, and for each   extern "C" int launch_k0(x, y, status, stream)
    driver.cu      a call for each launch, and what a caller needs besides (polyc_cuda_host.cuh)

The emulator, whose blocks share what is static, takes all of that as one file.

    extern "C" int polyc_run(void *const *buffers, void *workspace, void *stream)

buffers holds the inputs, the outputs, and the constants, all in the memory of the device. workspace
is the arena of temporaries and, behind it, one int a launch, all zero at first: a launch that meets
an index out of range sets its own, and so it stays until the caller has read it. polyc_run puts
the launches into the stream and returns; it neither allocates nor waits, so graphs can capture it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from polyc.codegen.cuda.grid import DeviceText
from polyc.codegen.cuda.launches import print_host
from polyc.loopnest.prototype import Prototype
from polyc.names import array_name, comment
from polyc.printing.host_text import (
    checked_name,
    pointer_type,
    print_address,
    print_arguments,
    print_extent,
    print_overlap,
)
from polyc.printing.runtime_table import cuda_preamble
from polyc.printing.scope import Uses
from polyc.program.driver_nest import Call, CopyOut, DriverNode, Wait
from polyc.program.plan import Plan
from polyc.program.program import Program

DRIVER_FILE = "driver.cu"
MODEL_FILE = "model.cu"

HOST_HEADER = "polyc_cuda_host.cuh"

DEVICE_ALIGNMENT = 256
"""Bytes: what cudaMalloc aligns to, and two of the lines that warps read."""

KERNELS_A_UNIT = 8
"""nvcc takes 0.6 s for an empty file and 0.1 to 0.3 s more for a kernel."""

_SIGNATURE = "void *const *buffers, void *workspace, void *stream"


def status_offset(plan: Plan) -> int:
    """Where the ints that tell which launches failed begin in the workspace."""
    return plan.arena_bytes


def workspace_bytes(program: Program, plan: Plan) -> int:
    """Bytes of the workspace of a call."""
    return plan.arena_bytes + 4 * len(program.launches)


class UnitWriter:
    """Kernels as they come, in files of a few; each file is handed on once it is full."""

    def __init__(self, add: Callable[[str, str], None]) -> None:
        """`add` is given the name and the text of each file."""
        self._add = add
        self._waiting: list[tuple[Prototype, DeviceText]] = []
        self._files = 0

    def take(self, kernel: Prototype, device: DeviceText) -> None:
        self._waiting.append((kernel, device))
        if len(self._waiting) == KERNELS_A_UNIT:
            self.finish()

    def finish(self) -> None:
        """Hand on what is left."""
        if self._waiting:
            texts = {kernel.name: device for kernel, device in self._waiting}
            unit = print_unit([kernel for kernel, _ in self._waiting], texts)
            self._add(f"kernels_{self._files}.cu", unit)
            self._files += 1
            self._waiting = []


def print_unit(kernels: Sequence[Prototype], texts: Mapping[str, DeviceText]) -> str:
    """Kernels, and the functions that launch them."""
    parts = [cuda_preamble(_add_up(texts[kernel.name].uses for kernel in kernels))]
    for kernel in kernels:
        parts += [texts[kernel.name].text, _launcher(kernel, texts[kernel.name])]
    return "\n".join(parts)


def print_driver(program: Program, plan: Plan, nest: Sequence[DriverNode]) -> str:
    """The driver's text; `nest` is what it does, node by node, in one stream.

    polyc_run returns 0; the number of a CUDA error, plus 65536 (k + 1) if launch k met it; or
    -(k + 1), having done nothing, when output k overlaps an input or an earlier output.
    polyc_profile waits until all is done, and writes to seconds[k] how long launch k took.
    """
    kernels = {k.name: k for k in program.kernels}
    count, slots = len(program.launches), len(program.inputs) + len(program.outputs)
    lines = [
        f"/* {comment(program.name)}: {count} launches of {len(program.kernels)} kernels. */",
        f'#include "{HOST_HEADER}"',
        "",
        *(f"{_head(kernel)};" for kernel in program.kernels),
        "",
        *print_overlap(program).splitlines(),
        "",
        "static int launches(const struct pc_call *call)",
        "{",
        "    void *const *const io = call->io;",
        "    const char *const weights = call->weights;",
        "    char *const arena = call->arena;",
        "    int *const failed = call->failed;",
        "    (void)io, (void)weights, (void)arena, (void)failed;",
        "",
    ]
    for node in nest:
        lines += _print_node(node, program, kernels)
    lines += ["    return 0;", "}", ""]
    text = _ENTRIES.replace("SIGNATURE", _SIGNATURE)
    for name, value in (
        ("SLOTS", slots),
        ("COUNT", count),
        ("STATUS_OFFSET", status_offset(plan)),
    ):
        text = text.replace(name, str(value))
    return "\n".join([*lines, text])


def _add_up(uses: Iterable[Uses]) -> Uses:
    total = Uses()
    for one in uses:
        total.functions |= one.functions
        total.casts |= one.casts
        total.headers |= one.headers
    return total


def _head(kernel: Prototype) -> str:
    """The function that launches a kernel; with the name of each array, as its text has it."""
    arguments = [f"{pointer_type(p.dtype, p.writes)}{array_name(p.name)}" for p in kernel.params]
    inside = ", ".join([*arguments, "int *status", "void *stream"])
    return f'extern "C" int launch_{checked_name(kernel.name)}({inside})'


def _launcher(kernel: Prototype, device: DeviceText) -> str:
    """The function that launches a kernel; what the grids are told of arrays is made each time."""
    lines = [_head(kernel), "{", "    int error = 0;"]
    lines += print_host(device.launched, device.grids, kernel, "    ")
    return "\n".join([*lines, "    return error;", "}", ""])


def _print_node(
    node: DriverNode, program: Program, kernels: Mapping[str, Prototype]
) -> Iterator[str]:
    """Launches and copies; the stream keeps their order, so that none has to wait."""
    match node:
        case Call(position, kernel):
            origin = program.launches[position].origin
            if origin:
                yield f"    /* {', '.join(map(comment, origin))} */"
            arguments = print_arguments(node, kernels[kernel])
            inside = ", ".join([*arguments, f"failed + {position}", "call->stream"])
            yield f"    PC_STEP({position}, launch_{kernel}({inside}));"
        case CopyOut(position, source, size):
            copied = f"{print_address(source)}, {print_extent(size)}"
            yield f"    if (const int error = polyc_copy(io[{position}], {copied}, call->stream))"
            yield "        return error;"
        case _:
            assert node == Wait(), "loops over steps are written out for GPUs"


_ENTRIES = """\
static int run(SIGNATURE, void **events)
{
    for (int k = 0; k < OUTPUTS; k++)
        if (overlaps(buffers, INPUTS + k, NULL))
            return -(k + 1);
    struct pc_call call;
    call.io = buffers;
    call.weights = (const char *)buffers[SLOTS];
    call.arena = (char *)workspace;
    call.failed = (int *)((char *)workspace + STATUS_OFFSET);
    call.stream = stream;
    call.events = events;
    pc_begin_call();
    if (events)
        pc_record(events[0], stream);
    const int error = launches(&call);
    pc_end_call();
    return error;
}

extern "C" int polyc_buffer_count(void) { return SLOTS + 1; }

extern "C" int polyc_run(SIGNATURE)
{
    return run(buffers, workspace, stream, NULL);
}

extern "C" int polyc_profile(SIGNATURE, double *seconds)
{
    void *events[COUNT + 1];
    int made = 0, error = 0;
    while (!error && made <= COUNT) {
        error = pc_new_event(&events[made]);
        made += !error;
    }
    if (!error)
        error = run(buffers, workspace, stream, events);
    if (!error)
        error = polyc_synchronise(stream);
    for (int k = 0; !error && k < COUNT; k++)
        seconds[k] = pc_seconds(events[k], events[k + 1]);
    while (made)
        pc_drop_event(events[--made]);
    return error;
}
"""
