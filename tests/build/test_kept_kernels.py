"""A kernel in the cache is that of all models with one that is equal up to names, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import polyc
from polyc import Graph, ops
from polyc.backends import kept as keeping
from polyc.backends import kernels
from polyc.backends.common import Boundary, CompiledKernel
from polyc.build import fingerprint
from polyc.errors import BuildError, IllegalSchedule
from polyc.files.table import write_table
from polyc.graph.onnx.export import export_onnx
from polyc.options import Options
from polyc.toolchain.cache import Cache
from tests import networks
from tests.e2e.compare import find_difference
from tests.programs import options

HOSTILE = ("add", "int", "x_local", "kernel", "0", "a", "c0", "${a1}", "*/", "max", "tile_0", "")


def renamed(graph: Graph) -> onnx.ModelProto:
    """The model with other names for all that has one; inputs and outputs keep theirs."""
    model = export_onnx(graph)
    kept = {x.name for x in (*model.graph.input, *model.graph.output)}
    numbers, words = count(), cycle(HOSTILE)
    called: dict[str, str] = {"": ""}

    def call(name: str) -> str:
        if name not in called:
            called[name] = name if name in kept else f"{next(words)}{next(numbers)}"
        return called[name]

    for tensor in model.graph.initializer:
        tensor.name = call(tensor.name)
    for node in model.graph.node:
        node.name = f"{next(words)} {next(numbers)}"
        node.input[:] = map(call, node.input)
        node.output[:] = map(call, node.output)
    del model.graph.value_info[:]
    return model


def entries(chosen: Options, kind: str) -> list[Path]:
    return [one.folder for one in Cache(chosen.cache_dir).entries() if one.kind == kind]


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no kernel can be compiled."""

    def fail(*_: object) -> None:
        raise BuildError("a kernel is compiled")

    monkeypatch.setattr(kernels, "compile_for_cpu", fail)


@pytest.mark.parametrize(
    "network", [networks.transformer, networks.resnet], ids=lambda n: n.__name__
)
def test_a_model_with_other_names_is_made_of_kept_kernels(network, tmp_path, monkeypatch):
    graph = network()
    other = renamed(graph)
    alone = polyc.compile(other, options=options(tmp_path / "alone"))
    chosen = options(tmp_path)
    first = polyc.compile(graph, options=chosen)
    objects = len(entries(chosen, "objects"))
    refuse(monkeypatch)
    model = polyc.compile(other, options=chosen)
    assert model.source == alone.source != first.source
    assert len(entries(chosen, "objects")) == objects + 1, "the driver alone is compiled"
    feeds = networks.feeds(graph)
    (got, wanted) = (m.run(feeds)["y"] for m in (model, alone))
    np.testing.assert_array_equal(got, wanted)
    assert find_difference(got, networks.reference(graph), 1e-4, 1e-5) is None
    told = {k.name: k.proof for k in model.explain().kernels}
    assert all(proof.endswith("1 kernel proven earlier and kept") for proof in told.values())
    assert f"{len(told)} kernels proven earlier and kept" in model.explain().proven[0]
    assert not any("earlier" in fact for fact in first.explain().proven)


def layers(depth: int) -> Graph:
    h = ops.input("x", (7, 24))
    weights = networks.Weights()
    for _ in range(depth):
        h = ops.softmax(ops.matmul(h, weights(24, 24)) + weights(24))
    return Graph.of(y=h)


def test_a_deeper_model_compiles_what_is_new(tmp_path, monkeypatch):
    chosen = options(tmp_path)
    polyc.compile(layers(2), options=chosen)
    refuse(monkeypatch)
    graph = layers(5)
    got = polyc.compile(graph, options=chosen).run(networks.feeds(graph))["y"]
    assert find_difference(got, networks.reference(graph), 1e-4, 1e-6) is None
    with pytest.raises(BuildError, match="a kernel is compiled"):
        polyc.compile(Graph.of(y=ops.tanh(ops.input("x", (7, 24)))), options=chosen)


def test_what_decides_about_a_kernel_is_in_its_key(tmp_path, monkeypatch):
    graph, chosen = layers(1), options(tmp_path)
    polyc.compile(graph, options=chosen)
    known = len(entries(chosen, "kernels"))
    for k, (target, other) in enumerate(
        [("auto", replace(chosen, verify=False)), ("baseline", chosen)], start=2
    ):
        polyc.compile(graph, target=target, options=other)
        assert len(entries(chosen, "kernels")) == k * known
    monkeypatch.setattr(fingerprint, "hash_package", lambda: "another polyc")
    polyc.compile(graph, options=chosen)
    assert len(entries(chosen, "kernels")) == 4 * known


def open_columns() -> Graph:
    """Down columns of unknown height, which is a product of two sizes."""
    x = ops.input("x", ("n", "m", 24))
    joined = ops.reshape(x, (-1, 24))
    return Graph.of(y=ops.softmax(joined, axis=0) - ops.reduce_max(joined, axes=[0]))


def test_kernels_for_open_sizes_are_those_for_the_same_ranges(tmp_path, monkeypatch):
    chosen, graph = options(tmp_path), open_columns()
    polyc.compile(graph, options=chosen)
    known = len(entries(chosen, "kernels"))
    alone = polyc.compile(renamed(graph), options=options(tmp_path / "alone"))
    with monkeypatch.context() as patch:
        refuse(patch)
        model = polyc.compile(renamed(graph), options=chosen)
    assert model.source == alone.source
    for rows, columns in ((3, 5), (1, 1), (70, 2)):
        x = np.random.default_rng(rows).standard_normal((rows, columns, 24), np.float32)
        flat = x.reshape(-1, 24).astype(np.float64)
        weights = np.exp(flat - flat.max(0))
        wanted = weights / weights.sum(0) - flat.max(0)
        np.testing.assert_allclose(model(x), wanted, rtol=1e-5, atol=1e-6)
    polyc.compile(graph, dims={"n": (2, 70)}, options=chosen)
    assert len(entries(chosen, "kernels")) == 2 * known


def test_given_schedules_are_compiled_anew(tmp_path):
    graph, chosen = layers(1), options(tmp_path)
    schedules = polyc.compile(graph, options=options(tmp_path / "other")).schedules
    polyc.compile(graph, schedule=schedules, options=chosen)
    assert not entries(chosen, "kernels")


def forget_reads(boundary: Boundary) -> Boundary:
    return replace(boundary, reads={})


def forget_writes(boundary: Boundary) -> Boundary:
    return replace(boundary, writes={})


@pytest.mark.parametrize("wrong", [forget_reads, forget_writes])
def test_what_a_kept_kernel_touches_is_found_anew_by_the_proof(wrong, tmp_path, monkeypatch):
    """By what it is said to touch memory is planned, and barriers are placed."""
    graph, chosen = networks.transformer(), options(tmp_path)
    polyc.compile(graph, options=chosen)
    right = keeping._restore

    def restore(*told: Any) -> CompiledKernel:
        compiled = right(*told)
        return replace(compiled, boundary=wrong(compiled.boundary))

    monkeypatch.setattr(keeping, "_restore", restore)
    with pytest.raises(IllegalSchedule):
        polyc.compile(renamed(graph), options=chosen)


def cut(text: str) -> str:
    return text[: len(text) // 2]


def lie(text: str) -> str:
    return json.dumps({**json.loads(text), "flops": "many"})


@pytest.mark.parametrize("damage", [cut, lie])
@pytest.mark.parametrize("listed", [False, True])
def test_damaged_entries_are_made_again(damage: Callable[[str], str], listed: bool, tmp_path: Path):
    graph, chosen = layers(1), options(tmp_path)
    polyc.compile(graph, options=chosen)
    whole = {folder: (folder / keeping.FILE).read_text() for folder in entries(chosen, "kernels")}
    for folder, text in whole.items():
        (folder / keeping.FILE).write_text(damage(text))
        if listed:
            write_table(folder, "cache entry")
    got = polyc.compile(renamed(graph), options=chosen).run(networks.feeds(graph))["y"]
    assert find_difference(got, networks.reference(graph), 1e-4, 1e-6) is None
    assert all((folder / keeping.FILE).read_text() == text for folder, text in whole.items())
