"""`polyc quantise`: a file of floats and a folder of samples -> a smaller file, and the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from polyc.errors import InvalidOption
from polyc.files.regular import writing

Output = Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.")]
Data = Annotated[
    Path | None, typer.Option("--data", help="Folder of .npz or .npy files, one a sample.")
]
Bits = Annotated[int, typer.Option("--bits", help="8, or 4 for the weights of matrices alone.")]
Calibration = Annotated[
    str, typer.Option("--calibration", help="min-max, percentile, mse or entropy.")
]
Activations = Annotated[str, typer.Option("--activations", help="u8 or s8.")]
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
    """Quantise a file; lines of what to tell. `how`: further arguments of `polyc.quantise`.

    Raises what `polyc.quantise` and `polyc.quantise_weights` do, and BuildError.
    """
    from polyc.compression.quantise import quantise
    from polyc.compression.quantise_weights import quantise_weights
    from polyc.compression.report import CompressionReport

    if bits == 8 and data is not None:
        proto = quantise(model, data, keep=keep, threads=threads, **how)
    elif bits == 4:
        proto = quantise_weights(model, data, keep=keep, threads=threads)
    else:
        raise InvalidOption(
            f"--bits is {bits}; give --bits 4 for weights alone, or --bits 8 and a folder of "
            "samples by --data"
        )
    yield str(CompressionReport.of(proto))
    with writing(output, "the quantised model"):
        output.write_bytes(proto.SerializeToString())
    yield f"written: {output}"
