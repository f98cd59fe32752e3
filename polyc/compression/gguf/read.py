"""`polyc.gguf_weights`: the tensors of a GGUF file, each when it is asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping

import ml_dtypes  # noqa: F401 - gives NumPy the type bfloat16
import numpy as np

from polyc.compression.gguf.block_weights import BlockWeights
from polyc.compression.gguf.container import Entry, malformed, read_entries
from polyc.compression.gguf.formats import FORMATS, OTHERS, PLAIN
from polyc.errors import InvalidModel, UnsupportedOp
from polyc.files.regular import Identity, fill, identify, opened
from polyc.names import show


def gguf_weights(path: str | os.PathLike[str]) -> Mapping[str, np.ndarray | BlockWeights]:
    """The tensors of a GGUF file by name: {"blk.0.ffn_up.weight": …}, read when they are asked for.

    Matrices lie as ggml has them, [n, k] for x @ wᵀ. Those of Q4_0, Q4_1, Q8_0, Q4_K and Q6_K are
    `BlockWeights`, which graphs multiply by as they are; those of F32, F16, BF16, F64 and integers
    are arrays.

    Raises InvalidModel for a file that cannot be read, is malformed or ends too early; looking up
    a tensor of another type raises UnsupportedOp.
    """
    with opened(path, "GGUF file") as stream:
        known = identify(stream)
        entries = read_entries(io.BufferedReader(stream), known.size)
        for entry in entries.values():
            if entry.start + _size(entry) > known.size:
                raise malformed(f"it ends before the data of {show(repr(entry.name))} does")
    return _Weights(os.fspath(path), known, entries)


class _Weights(Mapping[str, "np.ndarray | BlockWeights"]):
    """The tensors of a file, by what its header says, as long as nobody changes it."""

    def __init__(self, path: str, known: Identity, entries: Mapping[str, Entry]) -> None:
        self._path, self._known, self._entries = path, known, entries

    def __getitem__(self, name: str) -> np.ndarray | BlockWeights:
        entry = self._entries[name]
        if entry.kind not in PLAIN and entry.kind not in FORMATS:
            kind = OTHERS.get(entry.kind, f"of number {entry.kind}")
            known = ", ".join(f.name for f in FORMATS.values())
            raise UnsupportedOp(
                f"tensor {name!r} of {self._path} has the type {kind}, and read are {known} and "
                "plain numbers; quantise the model to one of these"
            )
        data = np.empty(_size(entry), np.uint8)
        with opened(self._path, "GGUF file") as stream:
            if identify(stream) != self._known:
                raise InvalidModel(f"GGUF file {self._path} has changed; open it again")
            stream.seek(entry.start)
            fill(data.data, stream)
        if entry.kind in PLAIN:
            return data.view(np.dtype(PLAIN[entry.kind])).reshape(entry.shape)
        form = FORMATS[entry.kind]
        return form.read(data.reshape(*entry.shape[:-1], -1, form.size))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"<{len(self)} tensors of {self._path}>"


def _size(entry: Entry) -> int:
    """The bytes of a tensor's data, which its header must give whole blocks; 0 if not known."""
    if entry.kind in PLAIN:
        return entry.count * np.dtype(PLAIN[entry.kind]).itemsize
    if entry.kind not in FORMATS:
        return 0
    form, row = FORMATS[entry.kind], entry.shape[-1] if entry.shape else 1
    if row % form.weights:
        named = show(repr(entry.name))
        raise malformed(f"rows of {named} are {row} long, which are no blocks of {form.weights}")
    return entry.count // form.weights * form.size
