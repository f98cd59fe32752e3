"""What is measured: a model, inputs for it, and the least work that it takes."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from bench.zoo import EXPORTED, LIGHT
from bench.zoo.network import Example


@dataclass(frozen=True)
class Problem:
    """Something to compute, by any engine.

    name, group: what tables call it, and what selects it; make: its model and inputs; numpy: the
    same for NumPy, called as numpy(*inputs, *weights, out=array); without it NumPy evaluates the
    model node by node, if it can; precision: what may be multiplied with on a GPU: "float32",
    "tf32", "bfloat16" or "float16".
    """

    name: str
    group: str
    make: Callable[[], Example]
    numpy: Callable[..., object] | None = None
    precision: str = "float32"


def all_problems() -> dict[str, Problem]:
    """By name, in the order of the table."""
    from bench.micro import micro_problems

    networks = [
        Problem(name, group, make)
        for group, members in (("light", LIGHT), ("exported", EXPORTED))
        for name, make in members.items()
    ]
    return {p.name: p for p in (*micro_problems(), *networks)}


def choose_problems(patterns: Sequence[str]) -> list[Problem]:
    """Those whose name or group matches a pattern ("gemm*", "light"), and ONNX files by path.

    All of them without patterns. Raises ValueError for a pattern that matches nothing.
    """
    known = all_problems()
    if not patterns:
        return list(known.values())
    chosen: dict[str, Problem] = {}
    for pattern in patterns:
        if pattern.endswith(".onnx"):
            found = [from_file(Path(pattern))]
        else:
            found = [
                p
                for p in known.values()
                if fnmatch.fnmatch(p.name, pattern) or fnmatch.fnmatch(p.group, pattern)
            ]
        if not found:
            groups = ", ".join(dict.fromkeys(p.group for p in known.values()))
            raise ValueError(
                f"no problem is called {pattern!r}; `python -m bench list` shows them, the groups "
                f"are {groups}, and a model's file ends in .onnx"
            )
        chosen |= {p.name: p for p in found}
    return list(chosen.values())


def from_file(file: Path) -> Problem:
    """A model of the user's, with random inputs, or those of a .npz file of the same name."""
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    return Problem(file.stem, "files", partial(_read_example, file))


def _read_example(file: Path) -> Example:
    model = onnx.load(file)
    constants = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    beside = file.with_suffix(".npz")
    given: Mapping[str, np.ndarray] = np.load(beside) if beside.is_file() else {}
    generator = np.random.default_rng(0)
    return Example(
        model,
        {i.name: given[i.name] if i.name in given else _random(i, generator) for i in inputs},
    )


def _random(info: onnx.ValueInfoProto, generator: np.random.Generator) -> np.ndarray:
    """Standard normal floats, or zeros and ones: small enough to be valid indices."""
    kind = info.type.tensor_type
    shape = [d.dim_value for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if np.issubdtype(dtype, np.floating):
        return np.asarray(generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
