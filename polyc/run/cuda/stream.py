"""CUDA streams, whoever made them."""

from __future__ import annotations

from typing import Any

from polyc.errors import ShapeError

DEFAULT = 0
"""The legacy default stream, as CUDA numbers it."""


def stream_handle(stream: Any) -> int:
    """The cudaStream_t of a stream as a number; None is the default stream.

    Takes an int, or what has `__cuda_stream__` (NVIDIA's Python libraries), `cuda_stream` (torch)
    or `ptr` (CuPy). Raises ShapeError for anything else.
    """
    if stream is None:
        return DEFAULT
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise ShapeError(
        f"a {type(stream).__name__} is no CUDA stream; give an int, or a stream of torch, CuPy or "
        "cuda.core"
    )


def to_dlpack(handle: int) -> int:
    """A stream as DLPack numbers it: 1 is the legacy default stream."""
    return handle or 1


def from_protocol(number: int | None) -> int | None:
    """A stream as DLPack and `__cuda_array_interface__` number it; None: nothing to wait for.

    0 is not allowed there, since it is ambiguous; -1 says that nobody shall wait.
    """
    if number is None or number == -1:
        return None
    if number == 0:
        raise ShapeError("stream 0 is ambiguous; give 1 for the default stream, or 2")
    return DEFAULT if number == 1 else number
