"""Images of any size: a network compiled once, beside the same compiled for each size.

    python -m bench.open_sizes squeezenet mobilenetv2 net.onnx --size 1x224x224 --size 2x320x256

A network is a name of `bench.zoo` or a file, and has one image as its input. Its batch, height and
width become open; kernels are chosen for the first size. Models take turns in one process, on one
thread, and times are of the processor unless `--clock`. The last columns are what the first call
takes more than those behind it: after the model is compiled, and at a size that is new.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import polyc
from bench.zoo import MODELS
from polyc.errors import PolycError

Size = tuple[int, int, int]
NAMES = ("batch", "height", "width")


@dataclass(frozen=True)
class Row:
    """Seconds a call of one network at one size: the open model's, the fixed one's, both medians.

    first: seconds of the open model's first call at this size.
    """

    network: str
    size: Size
    open: float
    fixed: float
    first: float
    difference: float

    def cells(self) -> list[str]:
        ratio, extra = self.open / self.fixed, self.first - self.open
        shown = [self.fixed * 1e3, self.open * 1e3]
        return [
            self.network, "x".join(map(str, self.size)), *(f"{ms:.2f}" for ms in shown),
            f"{ratio:.2f}", f"{extra * 1e3:+.2f}", f"{self.difference:.0e}",
        ]  # fmt: skip


HEADER = ["network", "size", "fixed ms", "open ms", "open/fixed", "first call ms", "difference"]


def with_image(model: onnx.ModelProto, sizes: Sequence[int | str]) -> tuple[onnx.ModelProto, str]:
    """The model with an image of this batch, height and width as its input, and the input's name.

    What it says of the shapes of other tensors, which follow, is dropped. ValueError if it has
    other inputs.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    constants = {t.name for t in changed.graph.initializer}
    fed = [i for i in changed.graph.input if i.name not in constants]
    if len(fed) != 1 or len(fed[0].type.tensor_type.shape.dim) != 4:
        raise ValueError(f"{model.graph.name}: not one image is its input")
    dims = fed[0].type.tensor_type.shape.dim
    for place, size in zip((0, 2, 3), sizes, strict=True):
        dims[place].Clear()
        if isinstance(size, int):
            dims[place].dim_value = size
        else:
            dims[place].dim_param = size
    del changed.graph.value_info[:]
    for output in changed.graph.output:
        output.type.tensor_type.ClearField("shape")
    return changed, fed[0].name


def race(
    name: str, model: onnx.ModelProto, sizes: Sequence[Size], rounds: int, now: Callable[[], float]
) -> list[Row]:
    """A row for each size; the kernels of the open model are chosen for the first one."""
    opened, image = with_image(model, NAMES)
    hint = dict(zip(NAMES, sizes[0], strict=True))
    once = polyc.compile(opened, threads=1, hint=hint)
    (spec,) = (s for s in once.inputs if s.name == image)
    channels = spec.shape[1]
    assert isinstance(channels, int)
    rows = []
    for size in sizes:
        x = np.random.default_rng(0).standard_normal((size[0], channels, *size[1:]))
        feed = x.astype(spec.dtype)
        first, result = _timed(once, feed, now)
        fixed = polyc.compile(with_image(model, size)[0], threads=1)
        wanted = _timed(fixed, feed, now)[1]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for one, found in zip((once, fixed), times, strict=True):
                _timed(one, feed, now)  # the caches are the other's
                found.append(_timed(one, feed, now)[0])
        difference = float(np.abs(result - wanted).max() / np.abs(wanted).max())
        open_, fixed_ = map(statistics.median, times)
        rows.append(Row(name, size, open_, fixed_, first, difference))
    return rows


def _timed(model: Any, feed: np.ndarray, now: Callable[[], float]) -> tuple[float, np.ndarray]:
    start = now()
    results = model(feed)
    seconds = now() - start
    return seconds, results[0] if isinstance(results, tuple) else results


def read_size(text: str) -> Size:
    """1x224x224 -> (1, 224, 224)"""
    batch, height, width = map(int, text.split("x"))
    return batch, height, width


def main(arguments: Sequence[str] | None = None) -> int:
    """The table; the exit code is 1 if a network could not be compiled or results differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.open_sizes", description=__doc__)
    parser.add_argument("networks", nargs="+", help="names of bench.zoo, or files")
    parser.add_argument("--size", type=read_size, action="append", help="BATCHxHEIGHTxWIDTH")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", action="store_true", help="wall-clock time")
    chosen = parser.parse_args(arguments)
    sizes = chosen.size or [(1, 224, 224), (2, 320, 256)]
    now = time.perf_counter if chosen.clock else time.process_time
    print("| " + " | ".join(HEADER) + " |\n|---|---|" + "--:|" * (len(HEADER) - 2))
    failed = False
    for name in chosen.networks:
        try:
            model = MODELS[name]().model if name in MODELS else onnx.load(Path(name))
            for row in race(name, model, sizes, chosen.rounds, now):
                print("| " + " | ".join(row.cells()) + " |", flush=True)
                failed |= row.difference > 1e-3
        except (PolycError, ValueError) as error:
            print(f"| {name} | {error} |", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
