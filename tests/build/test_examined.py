"""A large model is hashed once, and again when its file, or its external data, is another one."""

import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import polyc
from polyc.build import examined
from polyc.files import regular, table
from polyc.files.model_file import ModelFile
from polyc.options import Options


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Models of any size count as large, and a file is old at once."""
    monkeypatch.setattr(examined, "LARGE", 0)
    monkeypatch.setattr(regular, "TICK", 0)


@pytest.fixture
def hashed(monkeypatch):
    """The paths that were hashed."""
    paths = []
    whole = ModelFile.examine
    monkeypatch.setattr(ModelFile, "examine", lambda path: paths.append(path) or whole(path))
    return paths


def write(path, factor, external=False):
    weight = numpy_helper.from_array(np.full(3000, factor, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", 1, [3000])],
        [helper.make_tensor_value_info("y", 1, [3000])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, location="weights.bin")


def run(path, options):
    return polyc.compile(str(path), options=options)(np.ones(3000, np.float32))[0]


@pytest.mark.parametrize("external", [False, True])
def test_a_file_is_hashed_again_only_when_it_has_changed(tmp_path, hashed, external):
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2, external)
    assert run(path, options) == run(path, options) == 2
    assert len(hashed) == 1
    before = os.stat(path)
    (tmp_path / "weights.bin").unlink(missing_ok=True)
    write(path, 3, external)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(path, options) == 3
    assert len(hashed) > 1


def test_external_data_that_has_changed_is_hashed_again(tmp_path, hashed):
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2, external=True)
    assert run(path, options) == 2
    weights = tmp_path / "weights.bin"
    weights.write_bytes(np.full(3000, 5, np.float32).tobytes())
    assert run(path, options) == 5
    assert len(hashed) == 2
    weights.unlink()
    with pytest.raises(polyc.errors.InvalidModel):
        run(path, options)


def test_an_entry_that_was_damaged_is_made_anew(tmp_path, hashed):
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2)
    run(path, options)
    for file in (tmp_path / "cache" / "examined").rglob(examined.FILE):
        file.write_text("{}")
    assert run(path, options) == 2
    assert len(hashed) == 2


def test_a_file_that_was_just_written_is_not_remembered(tmp_path, hashed, monkeypatch):
    monkeypatch.setattr(regular, "TICK", 10**18)
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2)
    assert run(path, options) == run(path, options) == 2
    assert len(hashed) == 2
    assert not (tmp_path / "cache" / "examined").exists()


@pytest.fixture
def summed(monkeypatch):
    """The bytes of each memory that was filled and hashed."""
    sizes = []
    whole = table._fill_and_hash
    monkeypatch.setattr(table, "_fill_and_hash", lambda m, s: sizes.append(m.nbytes) or whole(m, s))
    return sizes


def weights_of(cache):
    (found,) = (cache / "models").rglob("weights.bin")
    return found


def test_weights_in_the_cache_are_hashed_once(tmp_path, summed):
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2)
    assert run(path, options) == 2
    size = weights_of(tmp_path / "cache").stat().st_size
    for times in (1, 1, 1):
        assert run(path, options) == 2
        assert summed.count(size) == times


def test_weights_that_were_touched_are_hashed_and_made_anew(tmp_path, summed):
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2)
    for _ in range(2):
        run(path, options)
    weights = weights_of(tmp_path / "cache")
    before = weights.stat()
    weights.write_bytes(bytes(before.st_size))
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(path, options) == 2
    assert summed.count(before.st_size) > 1
    assert any(weights_of(tmp_path / "cache").read_bytes())


def test_weights_that_were_just_written_are_hashed_the_next_time_too(tmp_path, summed, monkeypatch):
    monkeypatch.setattr(regular, "TICK", 10**18)
    path, options = tmp_path / "m.onnx", Options(cache_dir=tmp_path / "cache")
    write(path, 2)
    for _ in range(3):
        run(path, options)
    assert summed.count(weights_of(tmp_path / "cache").stat().st_size) == 2
