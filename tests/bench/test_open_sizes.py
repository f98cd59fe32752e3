"""A network whose sizes are opened, beside the same for fixed ones."""

import onnx
import pytest

from bench.open_sizes import NAMES, main, race, read_size, with_image
from tests.e2e.shipped import Writer


def network() -> onnx.ModelProto:
    b = Writer()
    return b.model(b.pool("x", 3, 2, 1), inputs=[("x", (1, 3, 9, 9))])


def test_an_image_is_opened_and_fixed():
    opened, name = with_image(network(), NAMES)
    assert name == "x"
    dims = opened.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["batch", 3, "height", "width"]
    fixed, _ = with_image(opened, (2, 7, 5))
    dims = fixed.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [2, 3, 7, 5]
    b = Writer()
    with pytest.raises(ValueError, match="not one image"):
        with_image(b.model(b.op("Relu", "x"), inputs=[("x", (3, 4))]), NAMES)


@pytest.mark.thorough
def test_each_size_has_a_row():
    rows = race("net", network(), [(1, 9, 9), (2, 7, 12)], 1, lambda: 0.0)
    assert [row.size for row in rows] == [(1, 9, 9), (2, 7, 12)]
    assert all(row.difference < 1e-5 for row in rows)


def test_what_cannot_be_compared_is_told(tmp_path, capsys):
    b = Writer()
    onnx.save(b.model(b.op("Relu", "x"), inputs=[("x", (3, 4))]), tmp_path / "flat.onnx")
    assert main([str(tmp_path / "flat.onnx"), "--size", "1x2x3"]) == 1
    assert "not one image" in capsys.readouterr().err
    assert read_size("2x320x256") == (2, 320, 256)
