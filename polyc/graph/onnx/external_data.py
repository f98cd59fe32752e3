"""Read the tensors of a model file: bytes that a stranger wrote become arrays, under checks.

A tensor's data lies inside the model file or in a second file that the tensor names. Either way
the declared shape is only a claim: it is checked, in integers that cannot overflow, before any
memory is asked for, and a second file is opened only inside the model's own folder, and only if it
is a regular one (`files/external.py`, `files/regular.py`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, numpy_helper

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.files.external import DataFolder
from polyc.files.regular import LIMIT, fill, identify, opened
from polyc.graph.ir import MAX_RANK

MAX_BYTES = 2**40
"""The largest tensor that is believed: more than any machine that compiles models can hold."""

MAX_SPARSE_BYTES = 2**31
"""The largest sparse tensor that is made dense: what a dense one could be inside a model file."""

_PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def dtype_of(element_type: int, owner: str) -> np.dtype:
    """The NumPy type of an ONNX element type: 1 -> float32, that of strings being object.

    `owner` names the object in errors.
    """
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))
    except (KeyError, TypeError, ValueError):
        raise InvalidModel(
            f"{owner} has the element type {element_type}, which onnx {onnx.__version__} does not "
            "know; export the model again, or install a newer onnx"
        ) from None


def check_extents(extents: Sequence[int], dtype: np.dtype, owner: str) -> int:
    """The number of elements of a shape: (2, 3) -> 6; InvalidModel where it cannot be true."""
    if len(extents) > MAX_RANK:
        raise UnsupportedOp(
            f"{owner} has {len(extents)} dimensions, and the limit is {MAX_RANK}; join some, or "
            "drop those of extent 1"
        )
    if any(d < 0 for d in extents):
        raise InvalidModel(f"{owner} has a negative extent in {_brief(extents)}; export it again")
    # Zero extents count as one, so that an empty tensor cannot hide an absurd extent.
    if math.prod(max(d, 1) for d in extents) * dtype.itemsize > MAX_BYTES:
        raise InvalidModel(
            f"{owner} claims the shape {_brief(extents)}, more than {MAX_BYTES} bytes; "
            "the file is damaged, or the tensor has to be split"
        )
    return math.prod(extents)


def read_tensor(
    proto: TensorProto,
    folder: DataFolder | None,
    owner: str = "",
    data: np.ndarray | None = None,
) -> np.ndarray:
    """TensorProto -> array, reading a second file inside `folder` where the tensor names one.

    data: its raw data as bytes, where they were kept apart; the array is these if it can be.
    Raises InvalidModel where shape, type and data disagree or the file is out of bounds.
    """
    owner = owner or f"tensor {proto.name!r}"
    dtype = dtype_of(proto.data_type, owner)
    count = check_extents(proto.dims, dtype, owner)
    bits = _PACKED_BITS.get(TensorProto.DataType.Name(proto.data_type), 8 * dtype.itemsize)
    size = -(-count * bits // 8)
    if proto.data_location == TensorProto.EXTERNAL:
        inside = TensorProto(data_type=proto.data_type, dims=proto.dims)
        inside.raw_data = _read_external(proto, folder, size, owner)
        proto = inside
    elif data is not None:
        if _is_plain(dtype, bits) and data.nbytes == size:
            array = data.view(dtype).reshape(tuple(proto.dims))
            array.flags.writeable = False
            return array
        proto.raw_data = data.tobytes()
    if proto.HasField("raw_data") and len(proto.raw_data) != size:
        raise InvalidModel(
            f"{owner} holds {len(proto.raw_data)} bytes, but {dtype}{_brief(proto.dims)} takes "
            f"{size}; export the model again"
        )
    try:
        array = np.asarray(numpy_helper.to_array(proto), dtype=dtype)
    except Exception as error:  # protobuf, NumPy and onnx share no base of their errors
        raise InvalidModel(f"{owner} cannot be read ({error}); export the model again") from error
    # A byte other than 0 and 1 is no boolean: C code that reads it would be undefined.
    return np.asarray(array.view(np.uint8) != 0) if dtype == np.bool_ else array


def _is_plain(dtype: np.dtype, bits: int) -> bool:
    """Whether raw data are the elements of an array as this machine has them."""
    return dtype.kind in "fiu" and bits == 8 * dtype.itemsize and sys.byteorder == "little"


def read_sparse(
    proto: onnx.SparseTensorProto, folder: DataFolder | None, owner: str = ""
) -> np.ndarray:
    """SparseTensorProto -> dense array: values [5], indices [2], dims (4,) -> [0, 0, 5, 0].

    Indices are linear, shape (n,), or per dimension, shape (n, rank).
    """
    owner = owner or f"sparse tensor {proto.values.name!r}"
    values = read_tensor(proto.values, folder, f"the values of {owner}")
    indices = read_tensor(proto.indices, folder, f"the indices of {owner}")
    shape = tuple(proto.dims)
    count = check_extents(shape, values.dtype, owner)
    if count * values.dtype.itemsize > MAX_SPARSE_BYTES:
        raise InvalidModel(
            f"{owner} is larger than {MAX_SPARSE_BYTES} bytes when dense; store it as a dense "
            "tensor with external data"
        )
    if indices.dtype != np.int64 or values.ndim != 1:
        raise InvalidModel(f"{owner} needs int64 indices and a vector of values; export it again")
    if indices.shape == (len(values), len(shape)):
        columns = indices
    elif indices.shape == values.shape:
        _check_indices(indices[:, None], (count,), owner)
        columns = np.stack(np.unravel_index(indices, shape), axis=1) if len(values) else indices
    else:
        raise InvalidModel(f"{owner} has indices of shape {indices.shape} for {len(values)} values")
    dense = np.zeros(shape, values.dtype)
    if len(values):
        _check_indices(columns, shape, owner)
        dense[tuple(columns.T)] = values
    return dense


def embed(nodes: Iterable[NodeProto], folder: DataFolder | None) -> None:
    """Put the data of all tensors inside of attributes into these, bodies and theirs included.

    It changes the nodes. What else looks at them, such as onnx's checker, then opens no file.
    """
    total = 0
    waiting = [a for node in nodes for a in node.attribute]
    while waiting:  # not by recursion: graphs inside graphs may be deep
        attribute = waiting.pop()
        bodies = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
        waiting += [a for body in bodies for node in body.node for a in node.attribute]
        for tensor in _tensors_of(attribute, bodies):
            if tensor.data_location != TensorProto.EXTERNAL:
                continue
            array = read_tensor(tensor, folder)
            total += array.nbytes
            if total > LIMIT:
                raise InvalidModel(
                    f"tensor {tensor.name!r}: more than {LIMIT} bytes of data belong to graphs "
                    "inside of nodes; make them initializers of the model's own graph"
                )
            kept = numpy_helper.from_array(array, tensor.name)
            tensor.CopyFrom(kept)


def _tensors_of(
    attribute: onnx.AttributeProto, bodies: Sequence[onnx.GraphProto]
) -> list[TensorProto]:
    """The tensors of an attribute, but for those in nodes of its bodies."""
    dense = [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
    sparse = [*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else [])]
    sparse += attribute.sparse_tensors
    for body in bodies:
        dense += body.initializer
        sparse += body.sparse_initializer
    return [*dense, *(part for s in sparse for part in (s.values, s.indices))]


def _check_indices(columns: np.ndarray, shape: Sequence[int], owner: str) -> None:
    if ((columns < 0) | (columns >= np.array(shape, np.int64))).any():
        raise InvalidModel(f"{owner} has an index outside {_brief(shape)}; export it again")


def _read_external(proto: TensorProto, folder: DataFolder | None, size: int, owner: str) -> bytes:
    """The `size` bytes that the tensor's `external_data` entries point at."""
    if folder is None:
        raise InvalidModel(
            f"{owner} has its data in another file, but a model given as bytes or as a ModelProto "
            "has no folder; give the path of the model, or load the data into it first"
        )
    entries = {entry.key: entry.value for entry in proto.external_data}
    path = folder.locate(entries.get("location", ""), owner)
    offset = _number(entries.get("offset", "0"), "offset", owner)
    length = _number(entries.get("length", str(size)), "length", owner)
    if length != size:
        raise InvalidModel(
            f"{owner} names {length} bytes of {path.name!r}, but its type and shape take {size}; "
            "export the model again"
        )
    with opened(path, f"{owner}: its data in", follow=False) as stream:
        present = identify(stream).size
        if offset + size > present:
            raise InvalidModel(
                f"{owner} needs bytes {offset} to {offset + size} of {path.name!r}, which has "
                f"{present}; the file is cut short: fetch it again"
            )
        stream.seek(offset)
        data = bytearray(size)
        fill(memoryview(data), stream)
        return bytes(data)


def _number(text: str, field: str, owner: str) -> int:
    """The decimal number of an `external_data` entry: "4096" -> 4096."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise InvalidModel(
            f"{owner} has the external {field} {text[:40]!r}, which is not a byte count; "
            "export the model again"
        )
    return int(text)


def _brief(extents: Sequence[int]) -> str:
    shown = ", ".join(map(str, extents[:8]))
    return f"[{shown}, …]" if len(extents) > 8 else f"[{shown}]"
