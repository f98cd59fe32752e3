"""`polyc prune`: a file of floats -> one with fewer of them, and the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import typer

from polyc.commands.quantise import write_model

Share = Annotated[
    float, typer.Option("--share", help="The part of each layer that goes, from 0 to below 1.")
]
Structured = Annotated[
    bool, typer.Option("--structured", help="Leave out whole channels, and not single weights.")
]
Keep = Annotated[
    list[str] | None, typer.Option("--keep", help="A node that stays whole; may be repeated.")
]


def prune_file(
    model: str,
    share: float,
    data: Path | None,
    output: Path,
    structured: bool,
    keep: Collection[str],
    threads: int | None,
) -> Iterator[str]:
    """Prune a file; lines of what to tell. Raises what `polyc.prune` does, and BuildError."""
    from polyc.compression.prune import prune

    proto = prune(model, share, data, structured=structured, keep=keep, threads=threads)
    yield from write_model(proto, output, "the pruned model")
