"""What the drivers for CPUs and for GPUs have in common: names, types, addresses, and one check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from polyc.loopnest.index import of_extent
from polyc.loopnest.index_text import show_index
from polyc.loopnest.prototype import Prototype
from polyc.program.driver_nest import Address, Call
from polyc.program.plan import ALIGNMENT, Plan, byte_size
from polyc.program.program import Program
from polyc.types.derived import Derived
from polyc.types.element_types import scalar_type
from polyc.types.found import at_most, found_in
from polyc.types.parameters import expand_products
from polyc.types.sizes import Extent, Size, bounds


def pointer_type(dtype: np.dtype, writes: bool) -> str:
    """A parameter's type: "const f32 *", without const where the kernel writes."""
    return f"{'' if writes else 'const '}{scalar_type(dtype)} *"


def checked_name(name: str) -> str:
    """The name; ValueError if it is no C identifier."""
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"kernel name {name!r} is not a C identifier")
    return name


def print_address(address: Address) -> str:
    """The C expression of an address, in terms of io, weights and arena."""
    match address.base:
        case "io":
            return f"io[{address.number}]"
        case "region":
            return f"arena + region_{address.number}"  # which `print_regions` declares
        case base:
            return f"{base} + {address.number}"


def print_regions(plan: Plan, indent: str) -> Iterator[str]:
    """Where the regions of the arena begin that depend on sizes, and where the last one ends."""
    start = str(plan.arena_bytes)
    for k, sizes in enumerate(plan.regions, 1):
        yield f"{indent}const i64 region_{k} = {start};"
        # In calls that do not take a branch, what it works in may have extents below 0.
        largest = print_extent(sizes[0] if bounds(sizes[0])[0] >= 0 else 0)
        for size in sizes if bounds(sizes[0])[0] < 0 else sizes[1:]:
            largest = f"pc_max({largest}, {print_extent(size)})"
        start = f"region_{k} + ({largest} + {ALIGNMENT - 1}) / {ALIGNMENT} * {ALIGNMENT}"
    yield f"{indent}const i64 arena_end = {start};"


def print_sizes(program: Program, told: str, indent: str) -> Iterator[str]:
    """The sizes that a call is told, by name, and those that follow from them alone."""
    for k, size in enumerate(program.sizes):
        if size.is_told or not found_in([Size.of(size.name)]):
            value = f"{told}[{k}]" if size.same is None else print_extent(size.same)
            yield f"{indent}const i64 {size.name} = {value};"


def print_found(program: Program, found: Mapping[str, str], indent: str) -> Iterator[str]:
    """The sizes that a call finds, whose values are said, and those that follow from them."""
    for size in program.sizes:
        if size.name in found:
            yield f"{indent}i64 {size.name} = {found[size.name]};"
        elif isinstance(size.same, Size) and found_in([Size.of(size.name)]):
            yield f"{indent}i64 {size.name} = {print_extent(size.same)};"


def print_measure(size: Size) -> str:
    """A size as a double, without products that were made before."""
    whole = expand_products(size)
    terms = (" * ".join([f"{n}.0", *map(_print_factor, names)]) for names, n in whole.terms)
    return " + ".join(terms)


def _print_factor(name: str) -> str:
    return f"({print_extent(Size.of(name))})" if isinstance(name, Derived) else name


def print_extent(extent: Extent) -> str:
    return show_index(of_extent(extent))


def print_arguments(call: Call, kernel: Prototype) -> list[str]:
    """The addresses that a call gives to its kernel, as the types that it takes."""
    if len(call.arguments) != len(kernel.params):
        raise ValueError(
            f"launch {call.position} gives {len(call.arguments)} arguments to {kernel.name}, "
            f"which takes {len(kernel.params)}"
        )
    return [
        f"({pointer_type(p.dtype, p.writes)})({print_address(a)})"
        for p, a in zip(kernel.params, call.arguments, strict=True)
    ]


def print_overlap(program: Program) -> str:
    """A function: does an output of the caller lie where an earlier array does?

    Inputs may share memory. A state in place must lie where its input does. Where a call finds how
    large an output is, it has room for the most.
    """
    told = "".join(f"{line}\n" for line in print_sizes(program, "sizes", "    "))
    names = [name for _, name in (*program.inputs, *program.outputs)]
    sizes = ", ".join(print_extent(at_most(byte_size(program.arrays[name]))) for name in names)
    home, elsewhere = "", ""
    if program.in_place:
        homes = ", ".join(str(program.in_place.get(k, -1)) for k in range(len(names)))
        home = f"""\
    static const int homes[] = {{{homes}}}; /* where a state is kept */
    if (homes[k] >= 0 && io[homes[k]] != io[k])
        return 1;
"""
        elsewhere = "j != homes[k] && "
    return f"""\
enum {{ INPUTS = {len(program.inputs)}, OUTPUTS = {len(program.outputs)} }};

static int overlaps(void *const *io, int k, const i64 *sizes)
{{
    (void)sizes;
{told}    const size_t io_bytes[] = {{{sizes or 0}}};
    const char *const first = (const char *)io[k], *const last = first + io_bytes[k];
{home}    for (int j = 0; j < k; j++) {{
        const char *const other = (const char *)io[j];
        if ({elsewhere}io_bytes[j] && io_bytes[k] && other < last && first < other + io_bytes[j])
            return 1;
    }}
    return 0;
}}"""
