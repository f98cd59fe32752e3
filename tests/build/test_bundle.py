"""Saved models: whose they are, what is in them, and what they claim."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyc
from polyc import ops
from polyc.build.bundle import HOLDS, MANIFEST_FILE, WEIGHTS_FILE
from polyc.errors import BuildError, InvalidModel, PolycError
from polyc.files import table as tables
from polyc.files.table import TABLE_FILE, write_table
from polyc.graph.ir import Graph
from polyc.toolchain.cache import Cache
from tests.programs import SCALE_C, compiled, install_pipeline, options, scale_program

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def scaled(monkeypatch, tmp_path):
    """A model that multiplies by a number."""

    def make(factor: float) -> polyc.CompiledModel:
        install_pipeline(monkeypatch, compiled(scale_program((factor,)), SCALE_C))
        graph = Graph(f"g{factor}", (), {}, (), ())
        return polyc.compile(graph, options=options(tmp_path), target="baseline")

    return make


def test_a_newer_model_at_the_same_place_is_the_newer_one(scaled, tmp_path):
    place = tmp_path / "saved"
    kept = []
    for factor in (2.0, 3.0):
        scaled(factor).save(place)
        kept.append(polyc.load(place))
        np.testing.assert_array_equal(kept[-1](X), X * factor)
    scaled(4.0).save(tmp_path / "other")
    shutil.rmtree(place)
    (tmp_path / "other").rename(place)
    kept.append(polyc.load(place))
    shutil.copytree(place, tmp_path / "copy")
    scaled(5.0).save(tmp_path / "fifth")
    shutil.copytree(tmp_path / "fifth", place, dirs_exist_ok=True)  # into the very same files
    kept.append(polyc.load(place))
    for factor, model in enumerate(kept, 2):
        np.testing.assert_array_equal(model(X), X * factor)


def test_libraries_of_different_code_at_one_place(monkeypatch, tmp_path):
    """The weights are equal: only the code differs."""
    place, results = tmp_path / "saved", []
    for sign in "*+":
        text = SCALE_C.replace("x[pc_n] * w[0]", f"x[pc_n] {sign} w[0]")
        install_pipeline(monkeypatch, compiled(scale_program((2.0,)), text))
        graph = Graph(f"g{sign}", (), {}, (), ())
        polyc.compile(graph, options=options(tmp_path), target="baseline").save(place)
        results.append(polyc.load(place))
    np.testing.assert_array_equal(results[0](X), X * 2)
    np.testing.assert_array_equal(results[1](X), X + 2)


def test_a_living_model_needs_no_files(scaled, tmp_path):
    model = scaled(2.0)
    before = model.source
    shutil.rmtree(tmp_path / "cache")
    assert model.source == before
    model.save(tmp_path / "saved")
    model.export(tmp_path / "exported")
    loaded = polyc.load(tmp_path / "saved")
    shutil.rmtree(tmp_path / "saved")
    loaded.save(tmp_path / "again")
    np.testing.assert_array_equal(polyc.load(tmp_path / "again")(X), X * 2)


def test_a_digest_can_be_demanded(scaled, tmp_path):
    place = tmp_path / "saved"
    model = scaled(2.0)
    model.save(place)
    assert polyc.load(place, digest=model.digest).digest == model.digest
    other = scaled(3.0)
    assert other.digest != model.digest
    other.save(place)
    polyc.load(place)
    with pytest.raises(InvalidModel, match=f"digest {other.digest}, not '{model.digest}'"):
        polyc.load(place, digest=model.digest)


@pytest.mark.parametrize("name", ["model.so", WEIGHTS_FILE, MANIFEST_FILE, "source/driver.c"])
@pytest.mark.parametrize("damage", ["byte", "cut", "gone", "pipe", "device", "folder"])
def test_a_damaged_file_is_named_and_not_run(scaled, tmp_path, name, damage):
    place = tmp_path / "saved"
    model = scaled(2.0)
    model.save(place)
    file = place / name
    content = file.read_bytes()
    file.unlink()
    match damage:
        case "byte":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "cut":
            file.write_bytes(content[:-1])
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
    with pytest.raises(InvalidModel, match=f"{place}.*({name}|{MANIFEST_FILE})"):
        polyc.load(place, digest=model.digest)


def test_a_new_model_is_in_memory_what_lies_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PART", 1000)  # the weights are hashed in parts while written
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape, np.float32) for shape in ((3, 171), (171, 5))]
    h = ops.input("x", (2, 3))
    for weight in weights:
        h = ops.relu(ops.matmul(h, weight))
    graph = Graph.of(y=h)
    made = polyc.compile(graph, options=options(tmp_path))
    monkeypatch.setattr("polyc.build.make_model.make_model", None)  # no more from here
    found = polyc.compile(graph, options=options(tmp_path))
    assert made.digest == found.digest
    wanted = np.maximum(np.maximum(X @ weights[0], 0) @ weights[1], 0)
    np.testing.assert_allclose(made(X), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(made(X), found(X))
    (entry,) = (e for e in Cache(tmp_path / "cache").entries() if e.kind == "models")
    listed = json.loads((entry.folder / TABLE_FILE).read_text())["files"]
    for name, (size, digest) in listed.items():
        content = (entry.folder / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (size, digest)
    assert listed[WEIGHTS_FILE][0] > 2 * 1000


def test_weights_that_were_exchanged_with_their_checksums(scaled, tmp_path):
    """What CRC-32 and a table show nothing of, a digest does."""
    place = tmp_path / "saved"
    model = scaled(2.0)
    model.save(place)
    weights = np.fromfile(place / WEIGHTS_FILE, np.float32)
    weights[0] = 7
    weights.tofile(place / WEIGHTS_FILE)
    write_table(place, HOLDS)
    np.testing.assert_array_equal(polyc.load(place)(X), X * 7)
    with pytest.raises(InvalidModel, match="digest"):
        polyc.load(place, digest=model.digest)


def test_processes_that_save_to_one_place(scaled, tmp_path):
    scaled(2.0).save(tmp_path / "one")
    program = (
        "import sys, polyc\n"
        "model = polyc.load(sys.argv[1])\n"
        "for _ in range(30):\n"
        "    model.save(sys.argv[2])\n"
        "    polyc.load(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "one"), str(tmp_path / "place")]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [p.wait() for p in running] == [0] * 3
    np.testing.assert_array_equal(polyc.load(tmp_path / "place")(X), X * 2)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "cache") == ["one", "place"]


def test_a_model_that_is_replaced_while_its_key_is_waited_for(monkeypatch, tmp_path):
    """The real pipeline: what is compiled is what the key was computed from."""
    from polyc.graph.onnx.export import export_onnx
    from polyc.toolchain.cache import Cache

    def write(factor: float) -> None:
        graph = Graph.of(y=ops.input("x", (2, 3)) * np.float32(factor))
        file.write_bytes(export_onnx(graph).SerializeToString())

    def compile() -> np.ndarray:
        return polyc.compile(file, options=options(tmp_path), target="baseline")(X)

    file, fetch = tmp_path / "m.onnx", Cache.fetch_and_read

    def meanwhile(self, kind, *rest):
        if kind == "models":
            monkeypatch.setattr(Cache, "fetch_and_read", fetch)
            write(3.0)
        return fetch(self, kind, *rest)

    write(2.0)
    monkeypatch.setattr(Cache, "fetch_and_read", meanwhile)
    np.testing.assert_array_equal(compile(), X * 3)
    write(2.0)
    np.testing.assert_array_equal(compile(), X * 2)
    write(3.0)
    np.testing.assert_array_equal(compile(), X * 3)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a value, itself included."""
    inside: Any = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    return [path, *(p for key, x in inside for p in leaves(x, (*path, key)))]


LIES = (None, -1, 2**70, 1.5, True, "add", "x" * 300, [], {}, [[]], float("inf"))


def test_manifests_that_lie_are_refused_or_do_no_harm(scaled, tmp_path):
    place = tmp_path / "saved"
    scaled(2.0).save(place)
    true = json.loads((place / MANIFEST_FILE).read_text())
    refused = 0
    for path in leaves(true)[1:]:
        for lie in LIES:
            told = copy.deepcopy(true)
            *above, last = path
            part = told
            for key in above:
                part = part[key]
            part[last] = lie
            refused += not is_loaded(place, json.dumps(told))
        *above, last = path
        part = told = copy.deepcopy(true)
        for key in above:
            part = part[key]
        del part[last]
        refused += not is_loaded(place, json.dumps(told))
    assert refused > 500
    for text in ("", "[" * 100_000, "[]", "null", "7", '"x"', "{", "\xff"):
        assert not is_loaded(place, text)


def is_loaded(place: Path, manifest: str) -> bool:
    """Whether a model with that manifest is loaded; all that is raised is polyc's own."""
    (place / MANIFEST_FILE).write_text(manifest, encoding="latin-1")
    write_table(place, HOLDS)
    try:
        model = polyc.load(place)
        assert repr(model)
        assert str(model.explain())
    except PolycError:
        return False
    return True


@pytest.mark.parametrize("table", ["[]", "{", "[" * 100_000, '{"holds": 1, "files": []}', "\xff"])
def test_tables_that_are_none(scaled, tmp_path, table):
    place = tmp_path / "saved"
    scaled(2.0).save(place)
    (place / TABLE_FILE).write_text(table, encoding="latin-1")
    with pytest.raises(InvalidModel, match=f"{place} is damaged"):
        polyc.load(place)


@pytest.mark.parametrize("size", [2**41, 2**46])
def test_weights_of_any_claimed_size(scaled, tmp_path, size):
    """A file of terabytes with nothing in it."""
    place = tmp_path / "saved"
    scaled(2.0).save(place)
    data = json.loads((place / MANIFEST_FILE).read_text())
    data["weights_bytes"] = size
    (place / MANIFEST_FILE).write_text(json.dumps(data))
    table = write_table(place, HOLDS)
    rows = {n: [e.size, e.sha256] for n, e in table.files.items()}
    rows[WEIGHTS_FILE] = [size, "0" * 64]
    (place / TABLE_FILE).write_text(json.dumps({"holds": HOLDS, "files": rows}))
    with pytest.raises(PolycError, match=f"{size} bytes|not {size}"):
        polyc.load(place)


@pytest.mark.parametrize("name", ["a\0b", "n" * 300, "file/below", ""])
def test_places_that_cannot_be_written(scaled, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    model = scaled(2.0)
    for put in (model.save, model.export):
        with pytest.raises(PolycError, match=r"another (place|folder)"):
            put(name)
    with pytest.raises(InvalidModel, match="is not a saved polyc model"):
        polyc.load(name)


def test_a_full_disk_is_told(scaled, tmp_path, monkeypatch):
    def refuse(self, data):
        raise OSError(28, "No space left on device")

    model = scaled(2.0)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(BuildError, match=f"{tmp_path / 'saved'}: No space left"):
        model.save(tmp_path / "saved")
    assert [p.name for p in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("threads", [2**40, -1])
def test_numbers_of_threads_that_no_machine_has(tmp_path, threads):
    with pytest.raises(PolycError, match=f"threads is {threads}"):
        polyc.compile(Graph("g", (), {}, (), ()), options=options(tmp_path), threads=threads)


def test_threads_of_a_wrong_type(tmp_path):
    with pytest.raises(TypeError, match="`threads` is of type str"):
        polyc.compile(Graph("g", (), {}, (), ()), options=options(tmp_path), threads="2")
