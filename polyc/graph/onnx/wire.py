"""A serialised model, read in one pass: what it says as a message, its large data as arrays.

    graph { initializer { dims: 1024, dims: 1024, raw_data: <4 MB> } … }
      ->  graph { initializer { dims: 1024, dims: 1024 } … }  and  {0: <4 MB> of their own}

protobuf copies all that it parses, and Python once more what it takes out of a message: for weights
of 440 MB that is a second in which memory is got and written. Only the way down to the initialisers
is followed here, all else is passed on as it is. A warm start walks to other fields of the same
format, in a model that is in memory (`files/external.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from polyc.files.external import FIXED, LENGTH, MOST_DIGITS, VARINT
from polyc.files.reader import Reader

LARGE = 1 << 12
"""Bytes from which on data are kept apart; less is no work for protobuf."""

_GRAPH = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

Enter = Callable[[int], bytes]
"""Reads a field's content of so many bytes, and gives what stands for it in the message."""


LargeData = Mapping[int, np.ndarray]
"""Bytes that were kept apart, by the position of their initialiser."""


def split_model(reader: Reader) -> tuple[bytes, LargeData]:
    """The message without large data, and these; ValueError or EOFError if it is no message."""
    split = _Split(reader)
    return split.message(reader.left, {_GRAPH: split.graph}), split.data


@dataclass
class _Split:
    """A model on its way, and how many initialisers have begun."""

    reader: Reader
    data: dict[int, np.ndarray] = field(default_factory=dict)
    begun: int = 0

    def graph(self, size: int) -> bytes:
        return self.message(size, {_INITIALIZER: self.initializer})

    def initializer(self, size: int) -> bytes:
        self.begun += 1
        return self.message(size, {_RAW_DATA: None})

    def message(self, size: int, inside: Mapping[int, Enter | None]) -> bytes:
        """A message of so many bytes; fields of `inside` are entered, or kept apart for None."""
        out = bytearray()
        end = self.reader.left - size
        while self.reader.left > end:
            key = self._varint()
            number, kind = key >> 3, key & 7
            if kind == VARINT:
                out += _varint(key) + _varint(self._varint())
            elif kind in FIXED:
                out += _varint(key) + self.reader.take(FIXED[kind])
            elif kind == LENGTH:
                length = self._varint()
                if length > self.reader.left - end:
                    raise ValueError(f"a field of {length} bytes does not fit its message")
                if number not in inside:
                    content = self.reader.take(length)
                elif enter := inside[number]:
                    content = enter(length)
                elif (kept := self._keep(length)) is None:
                    continue
                else:
                    content = kept
                out += _varint(key) + _varint(len(content)) + content
            else:
                raise ValueError(f"a field is of kind {kind}, which no model has")
        if self.reader.left != end:
            raise ValueError("a field does not fit its message")
        return bytes(out)

    def _keep(self, size: int) -> bytes | None:
        """Data of the present initialiser, if they are few; None if they were kept apart.

        Where a field is there twice the last one counts, as in protobuf.
        """
        self.data.pop(self.begun - 1, None)
        if size < LARGE:
            return self.reader.take(size)
        memory = np.empty(size, np.uint8)
        self.reader.fill(memory.data)
        self.data[self.begun - 1] = memory
        return None

    def _varint(self) -> int:
        value = 0
        for k in range(MOST_DIGITS):
            digit = self.reader.byte()
            value |= (digit & 0x7F) << 7 * k
            if digit < 0x80:
                return value
        raise ValueError("an integer has no end")


def _varint(value: int) -> bytes:
    """An integer as it is encoded: 300 -> AC 02."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
