"""Names, types and sizes of a model's arrays in exported text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from polyc.element_types import is_narrow
from polyc.spec import TensorSpec

_SCALARS = {"f": "float double", "i": "int8_t int16_t int32_t int64_t"}
_SCALARS |= {"u": "uint8_t uint16_t uint32_t uint64_t", "b": "uint8_t"}


def identifier(name: str) -> str:
    """A name for files and C macros: "torch-jit/export 2" -> "torch_jit_export_2"."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:60]
    return plain if plain and not plain[0].isdigit() else f"model_{plain}".rstrip("_")


def describe(specs: Sequence[TensorSpec], first: int, array: str = "io") -> Iterator[str]:
    """One line an array: io[0]  float [2, 3]  x"""
    for k, spec in enumerate(specs, first):
        shape = ", ".join(map(str, spec.shape))
        element = f"{scalar(spec)} of {spec.dtype.name}" if is_narrow(spec.dtype) else scalar(spec)
        yield f"     {array}[{k}]  {element} [{shape}]  {comment(spec.name)}"


def comment(text: str) -> str:
    """Text that can end neither a comment nor a string."""
    return re.sub(r"[^A-Za-z0-9_./:-]", "_", text)


def scalar(spec: TensorSpec) -> str:
    """The C type of an element; of one that C has no name for, that of its bits."""
    if is_narrow(spec.dtype):
        return f"uint{8 * spec.dtype.itemsize}_t"
    names = _SCALARS[spec.dtype.kind].split()
    smallest = 4 if spec.dtype.kind == "f" else 1
    return names[(spec.dtype.itemsize // smallest).bit_length() - 1]


def size(spec: TensorSpec) -> int:
    """Elements of an array."""
    return int(np.prod([int(n) for n in spec.shape], dtype=np.int64))


def size_bytes(spec: TensorSpec) -> int:
    """Bytes of an array."""
    return size(spec) * spec.dtype.itemsize


def print_sizes(name: str, specs: Sequence[TensorSpec]) -> str:
    """#define NAME_IO_0_BYTES 24, and so on."""
    return "\n".join(
        f"#define {name.upper()}_IO_{k}_BYTES {size_bytes(s)}" for k, s in enumerate(specs)
    )
