"""python -m bench.zoo FOLDER [NAME ...]: write the networks as NAME.onnx and NAME.npz."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bench.zoo import MODELS, write_example


def main(
    folder: Annotated[Path, typer.Argument(help="Where to write.")],
    names: Annotated[list[str] | None, typer.Argument(help="Default: all.")] = None,
) -> None:
    """Write networks with random weights, inputs for them, and ONNX Runtime's first output."""
    for name in names or MODELS:
        if name not in MODELS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(MODELS)}")
        example = MODELS[name]()
        for output, value in write_example(name, example, folder).items():
            sys.stdout.write(
                f"{name}: {len(example.model.graph.node)} nodes, {output} {list(value.shape)}, "
                f"largest {abs(value).max():.3g}, deviation {value.std():.3g}\n"
            )


if __name__ == "__main__":
    typer.run(main)
