"""The standard's own backend tests, as onnx's package has them: cases, and how results compare."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, SequenceProto, TensorProto, numpy_helper

DATA = Path(onnx.__file__).parent / "backend/test/data"
STORED = ("simple", "pytorch-operator", "pytorch-converted")
KNOWN = Path(__file__).parent / "known.tsv"
"""Lines of case, "fails" or "falls back", and reason, separated by tabs."""

OUTCOMES = pytest.StashKey[dict[str, tuple[str, str]]]()
"""What cases did, where the list is written anew."""

RTOL, ATOL = 1e-3, 1e-5
"""What every case is granted; some ask for more."""


@dataclass(frozen=True)
class Case:
    """A model, and pairs of inputs and outputs."""

    kind: str
    name: str
    model: ModelProto
    data: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float = RTOL
    atol: float = ATOL

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"


def read_known() -> dict[str, tuple[str, str]]:
    """Case -> what it is known to do, and why."""
    lines = (line.split("\t") for line in KNOWN.read_text("utf-8").splitlines() if line)
    return {name: (outcome, reason) for name, outcome, reason in lines}


@cache
def all_cases() -> dict[str, Case]:
    """kind/name -> case, in a fixed order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected results are computed, infinities and all
        return {case.key: case for case in (*_computed(), *_stored())}


def _computed() -> Iterator[Case]:
    """The cases that onnx computes: those of single operators."""
    from onnx.backend.test.case.node import collect_testcases

    for found in sorted(collect_testcases(None), key=lambda c: c.name):
        if found.model is not None:
            data = tuple(([*map(plain, xs)], [*map(plain, ys)]) for xs, ys in found.data_sets)
            rtol, atol = max(found.rtol, RTOL), max(found.atol, ATOL)
            yield Case("node", found.name, found.model, data, rtol, atol)


def _stored() -> Iterator[Case]:
    """The cases that onnx keeps as files."""
    for kind in STORED:
        for folder in sorted((DATA / kind).iterdir()):
            if (folder / "model.onnx").exists():
                model = onnx.load(folder / "model.onnx")
                sets = sorted(folder.glob("test_data_set_*"))
                data = tuple(
                    (_read(s, "input", model.graph.input), _read(s, "output", model.graph.output))
                    for s in sets
                )
                yield Case(kind, folder.name, model, data)


def _read(folder: Path, what: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    values = []
    for k in range(len(list(folder.glob(f"{what}_*.pb")))):
        is_sequence = infos[k].type.HasField("sequence_type")
        proto = SequenceProto() if is_sequence else TensorProto()
        proto.ParseFromString((folder / f"{what}_{k}.pb").read_bytes())
        values.append(plain(proto))
    return values


def plain(value: Any) -> Any:
    """A test's value as NumPy arrays and lists of them."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, SequenceProto):
        return numpy_helper.to_list(value)
    return value


def find_difference(got: Any, want: Any, rtol: float, atol: float) -> str:
    """What a result has that the standard does not say; empty if they agree."""
    if want is None:
        return ""
    if isinstance(want, list | tuple):
        if len(got) != len(want):
            return f"{len(got)} elements for {len(want)}"
        pairs = zip(got, want, strict=True)
        return next(filter(None, (find_difference(g, w, rtol, atol) for g, w in pairs)), "")
    got, want = np.asarray(got), np.asarray(want)
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if want.dtype.kind in "OUSTbiu":
        same = bool((got == want).all())
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        same = np.allclose(got.astype(wide), want.astype(wide), rtol, atol, equal_nan=True)
    return "" if same else "values differ"


def find_rounding(want: Any) -> float:
    """Two roundings, relative, of a floating-point type narrower than float32; 0 of any other."""
    dtype = np.asarray(want).dtype
    is_narrow = dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
    return 2 * float(ml_dtypes.finfo(dtype).eps) if is_narrow else 0.0
