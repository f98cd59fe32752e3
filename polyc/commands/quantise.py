"""`polyc quantise`: a file of floats and a folder of samples -> a smaller file, and the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyc.errors import InvalidOption
from polyc.files.regular import writing

if TYPE_CHECKING:
    from onnx import ModelProto

Output = Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.")]
Data = Annotated[
    Path | None, typer.Option("--data", help="Folder of .npz or .npy files, one a sample.")
]
Bits = Annotated[int, typer.Option("--bits", help="8, or 4 for the weights of matrices alone.")]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration", help="min-max (as it is by default), percentile, mse or entropy."
    ),
]
Activations = Annotated[
    str | None, typer.Option("--activations", help="u8 (as it is by default) or s8.")
]
Keep = Annotated[
    list[str] | None, typer.Option("--keep", help="A node that stays float; may be repeated.")
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Part of the outputs that may be off.")
]


def quantise_file(
    model: str,
    data: Path | None,
    output: Path,
    bits: int,
    keep: Collection[str],
    threads: int | None,
    how: Mapping[str, Any],
) -> Iterator[str]:
    """Quantise a file; lines of what to tell.

    how: further arguments of `polyc.quantise`, None where nothing is said; 4 bits take none.
    Raises what `polyc.quantise` and `polyc.quantise_weights` do, and BuildError.
    """
    from polyc.compression.quantise import quantise
    from polyc.compression.quantise_weights import quantise_weights

    said = {name: value for name, value in how.items() if value is not None}
    if bits == 8 and data is not None:
        proto = quantise(model, data, keep=keep, threads=threads, **said)
    elif bits == 4:
        if said:
            options = ", ".join(f"--{name}" for name in said)
            raise InvalidOption(f"--bits 4 leaves activations floats, and has no use for {options}")
        proto = quantise_weights(model, data, keep=keep, threads=threads)
    else:
        raise InvalidOption(
            f"--bits is {bits}; give --bits 4 for weights alone, or --bits 8 and a folder of "
            "samples by --data"
        )
    yield from write_model(proto, output, "the quantised model")


def write_model(proto: ModelProto, output: Path, what: str) -> Iterator[str]:
    """Write a compressed model; its report, and where it is."""
    from polyc.compression.report import CompressionReport

    yield str(CompressionReport.of(proto))
    with writing(output, what):
        output.write_bytes(proto.SerializeToString())
    yield f"written: {output}"
