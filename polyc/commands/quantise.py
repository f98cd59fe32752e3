"""`polyc quantise`: a file of floats and a folder of samples -> a file of bytes, and the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from polyc.compression.quantise import quantise
from polyc.compression.report import QuantisationReport
from polyc.files.regular import writing


def quantise_file(
    model: str,
    data: Path,
    output: Path,
    calibration: Any,
    activations: Any,
    keep: Collection[str] | None,
    budget: float | None,
    threads: int | None,
) -> Iterator[str]:
    """Quantise a file; lines of what to tell. Raises what `polyc.quantise` does, and BuildError."""
    proto = quantise(
        model,
        data,
        calibration=calibration,
        activations=activations,
        keep=keep or (),
        budget=budget,
        threads=threads,
    )
    yield str(QuantisationReport.of(proto))
    with writing(output, "the quantised model"):
        output.write_bytes(proto.SerializeToString())
    yield f"written: {output}"
