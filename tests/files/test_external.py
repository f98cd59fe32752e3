"""Which files a serialised model names, whatever order its encoder chose."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from polyc.errors import InvalidModel
from polyc.files.external import find_locations
from polyc.files.model_file import ModelChanged, ModelFile
from polyc.graph.onnx_import import import_onnx, read_model

DATA = np.arange(4, dtype=np.float32)


def field(number: int, content: bytes) -> bytes:
    """A field with a length: at most 127 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def entry(key: bytes, value: bytes, swapped: bool = False) -> bytes:
    parts = [field(1, key), field(2, value)]
    return field(13, b"".join(reversed(parts) if swapped else parts))


def external(name: str, location: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def swap_entries(data: bytes, location: str) -> bytes:
    """The same message, with the value of each entry before its key."""
    key, value = field(1, b"location"), field(2, location.encode())
    assert key + value in data
    return data.replace(key + value, value + key)


def model(*tensors: TensorProto) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
    names = ["x", *(t.name for t in tensors)]
    node = helper.make_node("Sum", names, ["y"])
    graph = helper.make_graph([node], "add", infos[:1], infos[1:], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_locations_everywhere_tensors_may_be():
    branch = helper.make_graph([], "g", [], [], [external("a", "in_graph")])
    sparse = onnx.SparseTensorProto(values=external("b", "in_sparse"))
    attributes = {
        "t": external("c", "in_attribute"),
        "ts": [external("d", "in_list")],
        "then_branch": branch,
        "s": sparse,
    }
    proto = model(external("w", "in_initializer"))
    proto.graph.node.append(helper.make_node("If", ["c"], ["z"], **attributes))
    function = helper.make_function(
        "own",
        "f",
        [],
        ["y"],
        [helper.make_node("Constant", [], ["y"], value=external("e", "in_f"))],
        [helper.make_opsetid("", 17)],
    )
    proto.functions.append(function)
    expected = ["in_attribute", "in_f", "in_graph", "in_initializer", "in_list", "in_sparse"]
    assert find_locations(proto.SerializeToString()) == expected


def test_the_order_of_an_entry_s_fields_does_not_matter():
    data = model(external("w", "w.bin")).SerializeToString()
    swapped = swap_entries(data, "w.bin")
    assert onnx.ModelProto.FromString(swapped) == onnx.ModelProto.FromString(data)
    assert find_locations(swapped) == find_locations(data) == ["w.bin"]


def test_bytes_that_only_look_like_a_location_do_no_harm():
    rubbish = [b"", b"\xff" * 20, b"\x03a\0b", b"location" * 9, b"\x3a\x7flocation", b"\x0b" * 12]
    for tail in rubbish:
        assert (
            find_locations(b"\x3a" + tail) == find_locations(b"\x0a\x08location\x12" + tail) == []
        )


def test_a_location_is_found_wherever_it_lies_in_a_large_file(tmp_path):
    """Files are looked through in parts of a mebibyte."""
    file = tmp_path / "m.onnx"
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    for size in range((1 << 20) - 200, (1 << 20) + 9, 3):
        padded = model(external("w", "w.bin"))
        padded.doc_string = ""
        padded.graph.doc_string = "x" * 9
        head = onnx.ModelProto(doc_string="x" * size).SerializeToString()
        file.write_bytes(head + padded.SerializeToString())
        assert list(ModelFile.examine(file).others) == ["w.bin"]


def test_weights_that_change_are_another_model(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(swap_entries(model(external("w", "w.bin")).SerializeToString(), "w.bin"))
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    before = ModelFile.examine(file).parts
    assert before == ModelFile.examine(file).parts
    (tmp_path / "w.bin").write_bytes((DATA + 1).tobytes())
    assert before != ModelFile.examine(file).parts


@pytest.mark.parametrize("kind", ["absolute", "outside", "link", "pipe", "process", "missing"])
def test_what_import_would_refuse_is_not_opened(tmp_path, monkeypatch, kind):
    secret, folder = tmp_path / "secret", tmp_path / "model"
    secret.write_bytes(DATA.tobytes())
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    locations = {"absolute": str(secret), "outside": "../secret", "process": "/proc/self/environ"}
    location = locations.get(kind, kind)
    file = folder / "m.onnx"
    onnx.save(model(external("w", location)), file)
    opened, open_file = [], os.open

    def note(path, *arguments, **named):
        opened.append(Path(path))
        return open_file(path, *arguments, **named)

    monkeypatch.setattr(os, "open", note)
    with pytest.raises(InvalidModel, match="folder"):
        ModelFile.examine(file)
    assert set(opened) == {file}


def nested(location: str) -> onnx.ModelProto:
    """y = If(c; w, w), where both branches have their own w, from a file."""
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    names = ("then_branch", "else_branch")
    branches = {n: helper.make_graph([], n, [], [y], [external("y", location)]) for n in names}
    node = helper.make_node("If", ["c"], ["y"], **branches)
    graph = helper.make_graph([node], "g", [c], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_external_data_of_a_body_is_hashed_and_stays_inside(tmp_path):
    file, inside = tmp_path / "m" / "m.onnx", tmp_path / "m" / "w.bin"
    file.parent.mkdir()
    onnx.save(nested("w.bin"), file)
    keys = set()
    for value in (DATA, DATA + 1):
        inside.write_bytes(value.tobytes())
        source = ModelFile.examine(file)
        keys.add(tuple(source.parts))
        (node,) = read_model(source).nodes
        (constant,) = node.attributes["then_branch"].nodes
        np.testing.assert_array_equal(constant.attributes["value"], value)
    assert len(keys) == 2
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    onnx.save(nested("../w.bin"), file)
    with pytest.raises(InvalidModel, match="not a file inside the model's folder"):
        read_model(file)


def test_what_is_read_is_what_was_hashed(tmp_path):
    """Where the search for locations ends, at a group, an old kind of field, the reading does."""
    file, group = tmp_path / "m.onnx", b"\x9b\x06\x9c\x06"
    file.write_bytes(group + model(external("w", "w.bin")).SerializeToString())
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    source = ModelFile.examine(file)
    assert not source.others
    with pytest.raises(InvalidModel, match=r"a field is of kind 3, which no model has"):
        import_onnx(source)


def test_a_model_that_is_replaced_after_it_was_hashed(tmp_path):
    file = tmp_path / "m.onnx"
    onnx.save(model(external("w", "w.bin")), file)
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    source = ModelFile.examine(file)
    np.testing.assert_array_equal(import_onnx(source).tensors["w"].value, DATA)
    (tmp_path / "w.bin").write_bytes((DATA + 1).tobytes())
    with pytest.raises(ModelChanged):
        import_onnx(source)
    source = ModelFile.examine(file)
    onnx.save(model(external("add", "w.bin")), file)
    with pytest.raises(ModelChanged):
        import_onnx(source)
