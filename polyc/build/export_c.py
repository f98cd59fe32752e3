"""A model for a CPU as C: interface, example, Makefile."""

from __future__ import annotations

from string import Template

from polyc.build.bundle import WEIGHTS_FILE
from polyc.build.export_names import (
    describe,
    describe_sizes,
    file_name,
    formula,
    list_shapes,
    print_found,
    print_needs,
    print_sizes,
    print_states,
    scalar,
    size,
)
from polyc.build.load import DECLARATIONS, DECLARED_CHECK
from polyc.build.manifest import Manifest
from polyc.names import comment
from polyc.toolchain.c_compiler import COMPILE_FLAGS, GCC_FLAGS, LINK_FLAGS
from polyc.types.estimate import estimate
from polyc.types.ranges import assume
from polyc.types.sizes import Size

EXAMPLE_FILE = "example.c"


def print_interface(manifest: Manifest) -> str:
    """The header: what to pass, how large it is, and the function."""
    name = file_name(manifest.name)
    told = ", ".join(describe_sizes(manifest))
    arena, plain = f"_BYTES {manifest.arena_bytes}", manifest.requirements is None
    if manifest.sizes:
        arena = "_BYTES(sizes) (size_t)polyc_arena_bytes(sizes)"
    return _INTERFACE.substitute(
        name=name,
        NAME=name.upper(),
        model=comment(manifest.name),
        inputs="\n".join(describe(manifest.inputs, 0)) or "     none",
        outputs="\n".join(describe(manifest.outputs, len(manifest.inputs))),
        states=print_states(manifest) + print_found(manifest),
        failed=print_failed(manifest),
        kept=", but for states" if manifest.states else "",
        moved=", or is a state that is not\n   where it was" if manifest.states else "",
        input_count=len(manifest.inputs),
        output_count=len(manifest.outputs),
        arena=arena,
        weights=manifest.weights_bytes,
        sizes=print_sizes(name, manifest),
        told=(told or "none: NULL") + print_needs(manifest),
        refused=print_requirements(manifest),
        declarations="\n".join([DECLARATIONS.strip(), *([] if plain else [DECLARED_CHECK])]),
    )


def print_example(manifest: Manifest) -> str:
    """A program that runs the model once on zeros and shows the first elements of each output."""
    name = file_name(manifest.name)
    first, last = len(manifest.inputs), len(manifest.inputs) + len(manifest.outputs)
    found = {s.name: f"*(const int64_t *)io[{k}]" for k, s in enumerate(manifest.found, last)}
    told, plain = "(sizes)" if manifest.sizes else "", manifest.requirements is None
    with assume(manifest.sizes):
        values = [
            # What a library refuses sizes for, its hints keep to.
            str(estimate(Size.of(s.name)) if s.hint is None or plain else s.hint)
            for s in manifest.sizes
        ]
    kept = {first + s.output: s.input for s in manifest.states if s.in_place}
    allocations = [
        f"    io[{k}] = io[{kept[k]}];"
        if k in kept
        else f"    io[{k}] = allocate({name.upper()}_IO_{k}_BYTES{told});"
        for k in range(last + len(manifest.found))
    ]
    shows = []
    for k, (spec, shape) in enumerate(list_shapes(manifest)[first:], first):
        count = size(shape, manifest.sizes, found)
        shows.append(f'    printf("{comment(spec.name)}:");')
        shows.append(f"    for (int i = 0; i < 8 && i < {count}; i++)")
        shows.append(f'        printf(" %g", (double)((const {scalar(spec)} *)io[{k}])[i]);')
        shows.append('    printf("\\n");')
    places = {s.name: f"sizes[{k}]" for k, s in enumerate(manifest.sizes)}
    allocations += [
        f"    (({scalar(spec)} *)io[{k}])[{place}] = "
        f"({scalar(spec)}){value if isinstance(value, int) else places[value]};"
        for k, spec in enumerate(manifest.inputs)
        for place, value in enumerate(spec.values)
    ]
    return _EXAMPLE.substitute(
        name=name,
        NAME=name.upper(),
        count=last + len(manifest.found),
        sizes=f"const int64_t sizes[] = {{{', '.join(values) or 0}}};",
        arena=f"{name.upper()}_ARENA_BYTES{told}",
        allocations="\n".join(allocations),
        shows="\n".join(shows),
        file=WEIGHTS_FILE,
    )


def print_requirements(manifest: Manifest) -> str:
    """What the library refuses sizes for, in the header's comment."""
    if not manifest.requirements:
        return ""
    first = len(manifest.outputs) + 1
    lines = [
        "",
        "   polyc_check returns 0, or what polyc_run does, having done nothing, for these sizes:",
        *(
            f"     {-(first + k)}  {formula(what)}"
            for k, (what, _) in enumerate(manifest.requirements)
        ),
        "",
    ]
    return "\n".join(lines)


def print_makefile(manifest: Manifest) -> str:
    """Rules for a static and a shared library and for the example."""
    return _MAKEFILE.substitute(
        name=file_name(manifest.name),
        flags=" ".join(COMPILE_FLAGS),
        gcc_flags=" ".join(GCC_FLAGS),
        link=" ".join(LINK_FLAGS),
        arch=" ".join(manifest.flags),
        example=EXAMPLE_FILE,
    )


def print_failed(manifest: Manifest) -> str:
    """What the function returns besides for a launch, in the header's comment."""
    first, lines = len(manifest.launches), []
    if manifest.found:
        fits = "is none that it was compiled for"
        lines.append(f"{first} + k + 1 when size k of those that it finds {fits};")
    for number, sides in enumerate(manifest.demands, first + len(manifest.found) + 1):
        lines.append(f"{number} when it was about to take a branch whose needs are negative:")
        lines += (
            f"  {comment(branch)}: {formula(need)}" for branch, needs in sides for need in needs
        )
    return "\n   ".join(["", *lines, "-(k + 1)"]) if lines else " -(k + 1)"


_INTERFACE = Template("""/* $model, compiled by polyc.

   Inputs, row-major:
$inputs
   Outputs, row-major:
$outputs
$states
   io       the inputs, then the outputs; no output may overlap another array$kept
   weights  the contents of weights.bin, aligned to 64 bytes
   arena    memory that the model works in, aligned to 64 bytes; its contents do not matter; calls
            that run at the same time need one each
   sizes    those known only at run time: $told
   threads  how many threads to use, at least 1; those besides the caller's are made once and kept

   polyc_run returns 0; k + 1 when launch k (see src/driver.c) met an index out of range;$failed
   when output k overlaps an input or another output$moved, and then nothing has been done;
   INT32_MIN when it was ended early: polyc_watch names a function that calls on the process's first
   thread then ask, between launches and four times a second, and that ends them by any value but 0.
   polyc_profile is the same, and writes to seconds[k] how long launch k took: all threads meet
   before and after each launch, so that its time is its own.$refused */

#ifndef ${NAME}_MODEL_H
#define ${NAME}_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define ${NAME}_INPUTS $input_count
#define ${NAME}_OUTPUTS $output_count
#define ${NAME}_WEIGHTS_BYTES $weights
#define ${NAME}_ARENA$arena
$sizes

#ifdef __cplusplus
extern "C" {
#endif

$declarations

#ifdef __cplusplus
}
#endif

#endif
""")

_EXAMPLE = Template("""/* Runs the model once on zeros: ./example [$file] [threads] */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "$name.h"

/* Zeros, aligned to a cache line. */
static void *allocate(size_t bytes)
{
    const size_t whole = (bytes + 64) / 64 * 64;
    void *memory = aligned_alloc(64, whole);
    if (!memory) {
        fprintf(stderr, "out of memory\\n");
        exit(1);
    }
    return memset(memory, 0, whole);
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "$file";
    const int threads = count > 2 ? atoi(arguments[2]) : 1;
    $sizes
    void *weights = allocate(${NAME}_WEIGHTS_BYTES);
    void *arena = allocate($arena);
    void *io[$count];
$allocations

    if (${NAME}_WEIGHTS_BYTES) {
        FILE *file = fopen(path, "rb");
        const size_t whole = ${NAME}_WEIGHTS_BYTES;
        if (!file || fread(weights, 1, whole, file) != whole) {
            fprintf(stderr, "%s cannot be read\\n", path);
            return 1;
        }
        fclose(file);
    }
    const int status = polyc_run(io, weights, arena, sizes, threads < 1 ? 1 : threads);
    if (status) {
        fprintf(stderr, "polyc_run returned %d; $name.h says what that means\\n", status);
        return 1;
    }
$shows
    return 0;
}
""")

_MAKEFILE = Template("""# make: a static and a shared library, and a program that runs the model.
# ARCH says what CPU it is for; set it to build for another one: make ARCH=-march=native
ifeq ($$(origin CC),default)
CC = gcc
endif
ARCH = $arch
CFLAGS = $flags $$(if $$(findstring clang,$$(shell $$(CC) --version)),,$gcc_flags)
OBJECTS = $$(patsubst %.c,build/%.o,$$(notdir $$(wildcard src/*.c runtime/*.c)))
vpath %.c src runtime

all: lib/$name.a lib/$name.so example

build/%.o: %.c $$(wildcard runtime/*.h)
	@mkdir -p build
	$$(CC) $$(CFLAGS) $$(ARCH) -Iruntime -c $$< -o $$@

lib/$name.a: $$(OBJECTS)
	@mkdir -p lib
	rm -f $$@
	$$(AR) rcs $$@ $$^

lib/$name.so: $$(OBJECTS)
	@mkdir -p lib
	$$(CC) $link $$^ -lm -o $$@

example: $example $name.h lib/$name.a
	$$(CC) $$(CFLAGS) $example lib/$name.a -lm -o $$@

clean:
	rm -rf build lib example

.PHONY: all clean
""")
