"""Names, types and sizes of a model's arrays in exported text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from polyc.build.manifest import Manifest
from polyc.names import LONGEST, comment, identifier, shorten
from polyc.types.call_sizes import parse_size
from polyc.types.element_types import is_narrow
from polyc.types.sizes import Extent, Size, SizeRange
from polyc.types.spec import TensorSpec

_SCALARS = {"f": "float double", "i": "int8_t int16_t int32_t int64_t"}
_SCALARS |= {"u": "uint8_t uint16_t uint32_t uint64_t", "b": "uint8_t"}


def file_name(name: str) -> str:
    """A name for files and C macros: "torch-jit/export 2" -> "model_torch_jit_export_2".

    All begin so, as no keyword, header, or macro of a system does: a model may be called "stdio".
    """
    plain = identifier(name)
    return plain if f"{plain}_".startswith("model_") else f"model_{plain}".rstrip("_")


def describe(specs: Sequence[TensorSpec], first: int, array: str = "io") -> Iterator[str]:
    """One line an array: io[0]  float [2, 3]  x"""
    for k, spec in enumerate(specs, first):
        shape = ", ".join(map(formula, spec.shape))
        element = f"{scalar(spec)} of {spec.dtype.name}" if is_narrow(spec.dtype) else scalar(spec)
        yield f"     {array}[{k}]  {element} [{shape}]  {comment(spec.name)}"


def formula(size: object) -> str:
    """A sum of products of sizes in a comment: "2*batch + 1"; no division, so that no "*/"."""
    return re.sub(r"[^A-Za-z0-9_ +*-]", "_", shorten(str(size), LONGEST))


def scalar(spec: TensorSpec) -> str:
    """The C type of an element; of one that C has no name for, that of its bits."""
    if is_narrow(spec.dtype):
        return f"uint{8 * spec.dtype.itemsize}_t"
    names = _SCALARS[spec.dtype.kind].split()
    smallest = 4 if spec.dtype.kind == "f" else 1
    return names[(spec.dtype.itemsize // smallest).bit_length() - 1]


def size(shape: Sequence[Extent], told: Sequence[SizeRange] = ()) -> str:
    """Elements of an array, as C; sizes known only at run time are those of an array `sizes`."""
    places: dict[str, Extent] = {s.name: Size.of(f"(sizes)[{k}]") for k, s in enumerate(told)}
    elements = math.prod(n.at(places) if isinstance(n, Size) else n for n in shape)
    return f"({elements})" if isinstance(elements, Size) else str(elements)


def list_shapes(manifest: Manifest) -> list[tuple[TensorSpec, tuple[Extent, ...]]]:
    """Each input and output with its shape; of a state that grows, that of its memory."""
    inputs: list[tuple[Extent, ...]] = [
        tuple(parse_size(d) if isinstance(d, str) else d for d in spec.shape)
        for spec in manifest.inputs
    ]
    for state in manifest.states:
        inputs[state.input] = state.stored(inputs[state.input])
    specs = (*manifest.inputs, *manifest.outputs)
    return list(zip(specs, (*inputs, *manifest.shapes), strict=True))


def print_sizes(name: str, manifest: Manifest) -> str:
    """#define NAME_IO_0_BYTES 24, and so on; with an argument `sizes` where there are such."""
    argument = "(sizes)" if manifest.sizes else ""
    lines = []
    for k, (spec, shape) in enumerate(list_shapes(manifest)):
        elements = size(shape, manifest.sizes)
        count = f"{elements} * {spec.dtype.itemsize}"
        if not manifest.sizes:
            count = str(int(elements) * spec.dtype.itemsize)
        lines.append(f"#define {name.upper()}_IO_{k}_BYTES{argument} {count}")
    return "\n".join(lines)


def print_states(manifest: Manifest, array: str = "io") -> str:
    """What a caller must do from call to call, in the header's comment."""
    if not manifest.states:
        return ""
    lines = ["   States, which a call leaves to the next one:"]
    for state in manifest.states:
        into, out = state.input, len(manifest.inputs) + state.output
        line = f"     {array}[{out}] = {array}[{into}]: one array"
        if not state.in_place:
            line = f"     {array}[{out}] and {array}[{into}] change places after each call"
        if state.axis is not None:
            line += f", with room for {state.capacity} in dimension {state.axis}"
        lines.append(line)
    for told in manifest.sizes:
        if told.next is not None:
            name, after = comment(told.name), formula(told.next)
            lines.append(f"     {name} is {after} in the next call, and at most {told.upper}")
    return "\n".join([*lines, ""])
