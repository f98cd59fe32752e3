"""Names, types and sizes of a model's arrays in exported text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from polyc.build.manifest import Manifest
from polyc.names import LONGEST, comment, identifier, shorten
from polyc.types.call_sizes import parse_size
from polyc.types.derived import Derived
from polyc.types.element_types import is_narrow
from polyc.types.found import at_most
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Extent, Size
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
    """An extent in a comment, which it does not end: "2*batch + 1", "floor((h + 1)/2)"."""
    plain = re.sub(r"[^A-Za-z0-9_ +*(),/-]", "_", shorten(str(size), LONGEST))
    return re.sub(r"\*(?=/)|/(?=\*)", "_", plain)


def scalar(spec: TensorSpec) -> str:
    """The C type of an element; of one that C has no name for, that of its bits."""
    if is_narrow(spec.dtype):
        return f"uint{8 * spec.dtype.itemsize}_t"
    names = _SCALARS[spec.dtype.kind].split()
    smallest = 4 if spec.dtype.kind == "f" else 1
    return names[(spec.dtype.itemsize // smallest).bit_length() - 1]


def size(
    shape: Sequence[Extent], told: Sequence[SizeRange] = (), found: Mapping[str, str] | None = None
) -> str:
    """Elements of an array, as C; sizes known only at run time are those of an array `sizes`.

    found: where those are that a call finds; by default it is the most elements that there may be.
    """
    places = {s.name: f"(sizes)[{k}]" for k, s in enumerate(told)} | dict(found or {})
    elements = math.prod(shape) if found is not None else at_most(math.prod(shape))
    spelled = _spell(elements, places)
    return f"({spelled})" if isinstance(elements, Size) else spelled


def _spell(extent: Extent, places: Mapping[str, str]) -> str:
    """An extent as C; dividends are never negative."""
    if not isinstance(extent, Size):
        return str(extent)
    terms = []
    for product, coefficient in extent.terms:
        factors = [_spell_name(name, places) for name in product]
        plain = coefficient == 1 and factors
        terms.append("*".join(factors if plain else [str(coefficient), *factors]))
    return " + ".join(terms)


def _spell_name(name: str, places: Mapping[str, str]) -> str:
    if not isinstance(name, Derived):
        return places[name]
    first, second = (_spell(operand, places) for operand in name.operands)
    if name.operation == "floor":
        return f"(({first}) / {second})"
    if name.operation == "sum":
        return f"({first} + {second})"
    return f"(({first}) < ({second}) ? ({first}) : ({second}))"


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


def describe_sizes(manifest: Manifest) -> Iterator[str]:
    """Each size with its range, and with the input whose value it is."""
    holds = {str(value): spec.name for spec in manifest.inputs for value in spec.values}
    for told in manifest.sizes:
        of = f"; the value of {comment(holds[told.name])}" if told.name in holds else ""
        yield f"{comment(told.name)} ({told.lower} to {told.upper or 'any'}{of})"


def print_sizes(name: str, manifest: Manifest) -> str:
    """#define NAME_IO_0_BYTES 24, and so on; with an argument `sizes` where there are such."""
    argument = "(sizes)" if manifest.sizes else ""
    lines = []
    with assume((*manifest.sizes, *manifest.found)):
        for k, (spec, shape) in enumerate(list_shapes(manifest)):
            elements = size(shape, manifest.sizes)
            count = f"{elements} * {spec.dtype.itemsize}"
            if not manifest.sizes:
                count = str(int(elements) * spec.dtype.itemsize)
            lines.append(f"#define {name.upper()}_IO_{k}_BYTES{argument} {count}")
    first = len(manifest.inputs) + len(manifest.outputs)
    if manifest.found:
        lines.insert(0, f"#define {name.upper()}_FOUND {len(manifest.found)}")
    for k in range(first, first + len(manifest.found)):
        lines.append(f"#define {name.upper()}_IO_{k}_BYTES{argument} 8")
    return "\n".join(lines)


def print_found(manifest: Manifest) -> str:
    """Where a call writes the sizes that it finds, in the header's comment."""
    if not manifest.found:
        return ""
    first = len(manifest.inputs) + len(manifest.outputs)
    lines = [
        f"     io[{k}]  int64_t  {comment(found.name)} (0 to {formula(found.most)})"
        for k, found in enumerate(manifest.found, first)
    ]
    told = "   Sizes that a call finds, behind the outputs; these are row-major by what it found:"
    return "\n".join([told, *lines, ""])


def print_needs(manifest: Manifest) -> str:
    """What sizes must keep to besides their ranges, in the header's comment."""
    needs = dict.fromkeys(need for told in manifest.sizes for need in told.needs)
    if not needs:
        return ""
    kept = "".join(f"\n              {formula(need)}" for need in needs)
    return f";\n            none of these may be negative, which a caller sees to:{kept}"


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
