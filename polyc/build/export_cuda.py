"""A model for a GPU as CUDA: interface, example, Makefile."""

from __future__ import annotations

from string import Template

from polyc.build.bundle import WEIGHTS_FILE
from polyc.build.export_names import (
    describe,
    file_name,
    list_shapes,
    print_sizes,
    print_states,
    scalar,
    size,
)
from polyc.build.manifest import Manifest
from polyc.names import comment
from polyc.toolchain.nvcc import LINKER_FLAGS, NVCC_FLAGS, NVCC_LINK_FLAGS

EXAMPLE_FILE = "example.c"


def print_interface(manifest: Manifest) -> str:
    """The header: what to pass, how large it is, and the functions."""
    name = file_name(manifest.name)
    first = len(manifest.inputs)
    io = [*manifest.inputs, *manifest.outputs]
    return _INTERFACE.substitute(
        NAME=name.upper(),
        model=comment(manifest.name),
        inputs="\n".join(describe(manifest.inputs, 0, "buffers")) or "     none",
        outputs="\n".join(describe(manifest.outputs, first, "buffers")),
        weights_slot=len(io),
        input_count=first,
        output_count=len(manifest.outputs),
        workspace=manifest.workspace_bytes,
        arena=manifest.arena_bytes,
        weights=manifest.weights_bytes,
        sizes=print_sizes(name, manifest),
        states=print_states(manifest, "buffers"),
        kept=", but for states" if manifest.states else "",
    )


def print_example(manifest: Manifest) -> str:
    """A program that runs the model once on zeros and shows the first elements of each output."""
    name, first = file_name(manifest.name), len(manifest.inputs)
    count = first + len(manifest.outputs)
    kept = {first + s.output: s.input for s in manifest.states if s.in_place}
    allocations = [
        f"    buffers[{k}] = buffers[{kept[k]}];"
        if k in kept
        else f"    buffers[{k}] = zeros({name.upper()}_IO_{k}_BYTES);"
        for k in range(count)
    ]
    shows = []
    for k, (spec, shape) in enumerate(list_shapes(manifest)[first:], first):
        shown = min(8, int(size(shape)))
        if not shown:
            continue
        shows += [
            "    {",
            f"        {scalar(spec)} shown[{shown}];",
            f"        check(polyc_copy(shown, buffers[{k}], sizeof shown, NULL));",
            "        check(polyc_synchronise(NULL));",
            f'        printf("{comment(spec.name)}:");',
            f"        for (int i = 0; i < {shown}; i++)",
            '            printf(" %g", (double)shown[i]);',
            '        printf("\\n");',
            "    }",
        ]
    return _EXAMPLE.substitute(
        name=name,
        NAME=name.upper(),
        count=count,
        allocations="\n".join(allocations),
        shows="\n".join(shows),
        file=WEIGHTS_FILE,
    )


def print_makefile(manifest: Manifest) -> str:
    """Rules for a shared library and for the example."""
    return _MAKEFILE.substitute(
        name=file_name(manifest.name),
        flags=" ".join(f for f in NVCC_FLAGS if f != "-Xptxas=-v"),
        link=" ".join((*NVCC_LINK_FLAGS, *LINKER_FLAGS)),
        arch=" ".join(manifest.flags),
        example=EXAMPLE_FILE,
    )


_INTERFACE = Template("""/* $model, compiled by polyc for a GPU.

   Inputs, row-major:
$inputs
   Outputs, row-major:
$outputs
$states   Constants:
     buffers[$weights_slot]  the contents of weights.bin

   buffers    addresses in the device's memory, aligned to 16 bytes, that of the constants to 256;
              no output may overlap another array$kept
   workspace  memory that the model works in, aligned to 256 bytes, zero at first; calls that run
              at the same time need one each. Behind its first ${NAME}_STATUS_OFFSET bytes stands an
              int a launch: not zero, once it has met an index out of range
   stream     a cudaStream_t, or NULL for the default one

   polyc_run puts the model into the stream and returns; it neither allocates nor waits. It returns
   0; a CUDA error, plus 65536 (k + 1) if launch k (see src/) met it; or -(k + 1) when output k
   overlaps an input or another output, and then nothing has been done. polyc_profile waits, and
   writes to seconds[k] how long launch k took.

   polyc_capture makes a CUDA graph of such a call, polyc_replay puts it into a stream. The other
   functions are cudaMalloc and the like for callers that do not have them; a buffer is memory that
   is given back behind everything in its stream. */

#ifndef ${NAME}_MODEL_H
#define ${NAME}_MODEL_H

#include <stddef.h>

#define ${NAME}_INPUTS $input_count
#define ${NAME}_OUTPUTS $output_count
#define ${NAME}_WEIGHTS_BYTES $weights
#define ${NAME}_WORKSPACE_BYTES $workspace
#define ${NAME}_STATUS_OFFSET $arena
$sizes

#ifdef __cplusplus
extern "C" {
#endif

int polyc_run(void *const *buffers, void *workspace, void *stream);
int polyc_profile(void *const *buffers, void *workspace, void *stream, double *seconds);
const char *polyc_describe_error(int error);

int polyc_capture(void *const *buffers, void *workspace, void **graph);
int polyc_replay(void *graph, void *stream);
void polyc_forget(void *graph);

struct pc_buffer;
int polyc_new_buffer(size_t bytes, void *stream, struct pc_buffer **buffer);
void *polyc_buffer_memory(const struct pc_buffer *buffer);
void polyc_drop_buffer(struct pc_buffer *buffer);
int polyc_copy(void *target, const void *source, size_t bytes, void *stream);
int polyc_fill(void *target, int byte, size_t bytes, void *stream);
int polyc_synchronise(void *stream);

#ifdef __cplusplus
}
#endif

#endif
""")

_EXAMPLE = Template("""/* Runs the model once on zeros: ./example [$file] */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "$name.h"

static void check(int error)
{
    if (error) {
        fprintf(stderr, "error %d: %s\\n", error, polyc_describe_error(error % 65536));
        exit(1);
    }
}

/* Zeros in the device's memory. */
static void *zeros(size_t bytes)
{
    struct pc_buffer *buffer;
    check(polyc_new_buffer(bytes, NULL, &buffer));
    check(polyc_fill(polyc_buffer_memory(buffer), 0, bytes, NULL));
    return polyc_buffer_memory(buffer);
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "$file";
    void *workspace = zeros(${NAME}_WORKSPACE_BYTES);
    void *buffers[$count + 1];
$allocations
    buffers[$count] = zeros(${NAME}_WEIGHTS_BYTES);

    if (${NAME}_WEIGHTS_BYTES) {
        const size_t whole = ${NAME}_WEIGHTS_BYTES;
        char *read = malloc(whole);
        FILE *file = fopen(path, "rb");
        if (!read || !file || fread(read, 1, whole, file) != whole) {
            fprintf(stderr, "%s cannot be read\\n", path);
            return 1;
        }
        fclose(file);
        check(polyc_copy(buffers[$count], read, whole, NULL));
        check(polyc_synchronise(NULL));
        free(read);
    }
    check(polyc_run(buffers, workspace, NULL));
    check(polyc_synchronise(NULL));
$shows
    return 0;
}
""")

_MAKEFILE = Template("""# make: a shared library, and a program that runs the model; it needs nvcc.
# ARCH says what GPU it is for; set it to build for this machine's: make ARCH=-arch=native
NVCC = nvcc
ARCH = $arch
FLAGS = $flags
OBJECTS = $$(patsubst src/%.cu,build/%.o,$$(wildcard src/*.cu))

all: lib/$name.so example

build/%.o: src/%.cu $$(wildcard runtime/*)
	@mkdir -p build
	$$(NVCC) $$(FLAGS) $$(ARCH) -Iruntime -c $$< -o $$@

lib/$name.so: $$(OBJECTS)
	@mkdir -p lib
	$$(NVCC) $link $$(ARCH) $$^ -o $$@

example: $example $name.h lib/$name.so
	$$(CC) -O2 $example lib/$name.so -Wl,-rpath,'$$$$ORIGIN' -o $$@

clean:
	rm -rf build lib example

.PHONY: all clean
""")
