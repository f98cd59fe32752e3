"""Exported C: it builds with make alone, runs, and keeps hostile names out of the text."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import polyc
from polyc import ops
from polyc.build.export_names import file_name
from polyc.errors import InvalidModel
from polyc.graph.ir import Graph
from polyc.types.spec import TensorSpec
from tests.programs import (
    GATHER_C,
    SCALE_C,
    compiled,
    gather_program,
    install_pipeline,
    options,
    scale_program,
)

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
GRAPH = Graph("g", (), {}, (), ())


def make(folder: Path, target: str = "all") -> None:
    """Build with nothing of Python on the way."""
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    done = subprocess.run(
        ["make", "-C", str(folder), target], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def example(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./example", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@needs_make
def test_a_compiled_model_builds_and_gives_what_polyc_gives(tmp_path):
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((20, 8)).astype(np.float32)
    bias = generator.standard_normal(8).astype(np.float32)
    x = ops.input("x", (5, 20))
    graph = replace(Graph.of(y=ops.relu(ops.matmul(x, weight) + bias)), name="dense layer/1")
    model = polyc.compile(graph, options=options(tmp_path), target="baseline")
    model.export(tmp_path / "c")
    make(tmp_path / "c")
    done = example(tmp_path / "c", "weights.bin", "2")
    assert done.returncode == 0, done.stderr
    name, _, numbers = done.stdout.partition(":")
    assert name == "y"
    expected = model(np.zeros((5, 20), np.float32)).ravel()[:8]
    np.testing.assert_allclose(np.fromstring(numbers, sep=" "), expected, rtol=1e-5)
    header = (tmp_path / "c" / "model_dense_layer_1.h").read_text()
    assert "io[0]  float [5, 20]  x" in header
    assert "#define MODEL_DENSE_LAYER_1_IO_1_BYTES 160" in header
    assert (tmp_path / "c" / "lib" / "model_dense_layer_1.so").is_file()


@needs_make
def test_several_outputs_types_and_a_missing_weight_file(monkeypatch, tmp_path):
    install_pipeline(monkeypatch, compiled(gather_program(), GATHER_C))
    polyc.compile(GRAPH, options=options(tmp_path), target="baseline").export(tmp_path / "c")
    make(tmp_path / "c")
    done = example(tmp_path / "c")
    assert done.stdout == "y: 0\nsame: 0 0 0 0 0 0\nempty:\nfixed: 5 7\n"
    done = example(tmp_path / "c", "gone.bin")
    assert (done.returncode, done.stderr) == (1, "gone.bin cannot be read\n")
    make(tmp_path / "c", "clean")
    assert not (tmp_path / "c" / "example").exists()


@needs_make
def test_hostile_names_stay_names(monkeypatch, tmp_path):
    evil = '*/ #error "\n%n\\'
    program = scale_program(name=evil)
    spec = TensorSpec(evil, np.dtype(np.float32), (2, 3))
    program = replace(program, inputs=((spec, "x"),), outputs=((spec, "y"),))
    install_pipeline(monkeypatch, compiled(program, SCALE_C))
    model = polyc.compile(GRAPH, options=options(tmp_path), target="baseline")
    model.export(tmp_path / "c")
    make(tmp_path / "c")
    assert example(tmp_path / "c").returncode == 0
    assert (tmp_path / "c" / "model_error_n.h").is_file()


@needs_make
def test_no_name_of_a_model_is_code(tmp_path):
    """Names of the model, of its inputs, nodes and sizes that would run when the example starts."""
    evil = '*/ __attribute__((constructor)) void f(void) { puts("EVIL"); } /*'
    x, y = (helper.make_tensor_value_info(n + evil, 1, [evil, 3]) for n in "xy")
    node = helper.make_node("Exp", [x.name], [y.name], f"Exp {evil}")
    graph = helper.make_graph([node], evil, [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model = polyc.compile(proto, options=options(tmp_path), target="baseline")
    model.export(tmp_path / "c")
    for file in (tmp_path / "c").glob("**/*.[ch]"):
        code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        assert "constructor))" not in code, file
    make(tmp_path / "c")
    done = example(tmp_path / "c")
    assert done.returncode == 0
    assert "EVIL" not in done.stdout.splitlines()


@needs_make
@pytest.mark.parametrize("name", ["stdio", "polyc", "int", "INT32", "weights"])
def test_models_called_like_headers_and_keywords(monkeypatch, tmp_path, name):
    """Built by a user who looks for headers in the exported folder before those of the system."""
    install_pipeline(monkeypatch, compiled(scale_program(name=name), SCALE_C))
    model = polyc.compile(GRAPH, options=options(tmp_path), target="baseline")
    model.export(tmp_path / "c")
    makefile = tmp_path / "c" / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(CFLAGS)", "$(CFLAGS) -I. -Isrc"))
    make(tmp_path / "c")
    assert example(tmp_path / "c").returncode == 0


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a/b-c", "model_a_b_c"),
        ("7net", "model_7net"),
        ("", "model"),
        ("été", "model_t"),
        ("../x", "model_x"),
        ("model", "model"),
        ("model_x", "model_x"),
        ("models", "model_models"),
    ],
)
def test_names_of_exported_files(name, plain):
    assert file_name(name) == plain


def test_only_an_export_is_replaced(monkeypatch, tmp_path):
    install_pipeline(monkeypatch, compiled(scale_program(), SCALE_C))
    model = polyc.compile(GRAPH, options=options(tmp_path))
    place = tmp_path / "place"
    place.mkdir()
    model.export(place)
    model.export(place)
    (place / "build").mkdir()
    with pytest.raises(InvalidModel, match=r"holds 'build', which polyc did not write.*make clean"):
        model.export(place)
    assert (place / "build").is_dir()
    with pytest.raises(InvalidModel, match="holds a 'exported model'"):
        model.save(place)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("keep")
    with pytest.raises(InvalidModel, match="is no exported model that polyc wrote"):
        model.export(tmp_path / "mine")
    assert (tmp_path / "mine" / "precious").read_text() == "keep"
    with pytest.raises(InvalidModel, match=r"is no exported model that polyc wrote.*it is a file"):
        model.export(tmp_path / "mine" / "precious")


@needs_make
def test_sizes_known_only_at_run_time(tmp_path):
    """The example runs at the hint; the header says how large arrays are for any size."""
    x = ops.input("x", ("rows", 20))
    graph = replace(Graph.of(y=ops.softmax(x, 1), z=ops.exp(x)), name="rows")
    hinted = {"dims": {"rows": (1, 99)}, "hint": {"rows": 7}}
    model = polyc.compile(graph, options=options(tmp_path), target="baseline", **hinted)
    model.export(tmp_path / "c")
    make(tmp_path / "c")
    header = (tmp_path / "c" / "model_rows.h").read_text()
    assert "#define MODEL_ROWS_IO_1_BYTES(sizes) (20*(sizes)[0]) * 4" in header
    assert "rows (1 to 99)" in header
    done = example(tmp_path / "c")
    assert done.stdout.splitlines() == ["y:" + " 0.05" * 8, "z:" + " 1" * 8]
