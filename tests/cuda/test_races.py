"""Generated kernels under ThreadSanitizer: clean as they are, and not without any one barrier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyc import Graph, ops
from tests.cuda import emulated
from tests.cuda.models import compile_model

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not emulated.has_sanitizers(emulated.RACES), reason="no ThreadSanitizer here"
    ),
]

BARRIER = "PC_SYNC();"

FLAGS = (*emulated.RACES, "-Wno-maybe-uninitialized", "-Wno-uninitialized", "-Wno-empty-body")
"""gcc does not see that what is read under a condition is written under the same one."""

GRAPHS = {
    "product": Graph.of(y=ops.input("a", (40, 40)) @ ops.input("b", (40, 70))),
    "softmax": Graph.of(y=ops.softmax(ops.input("x", (2, 1100)))),
}


def runs_clean(text: str, buffers: list[np.ndarray], folder: Path) -> bool:
    program = emulated.build(text, folder, FLAGS)
    return not emulated.run(program, buffers, workspace=64).found


@pytest.mark.parametrize("name", GRAPHS)
def test_every_barrier_is_missed(name, tmp_path):
    model = compile_model(GRAPHS[name])
    rng = np.random.default_rng(0)
    shapes = [spec.shape for spec, _ in model.compiled.program.inputs]
    buffers = model.buffers([rng.random(shape, np.float32) for shape in shapes])
    assert runs_clean(model.text, buffers, tmp_path)
    parts = model.text.split(BARRIER)
    assert len(parts) > 2
    for k in range(1, len(parts)):
        without = BARRIER.join(parts[:k]) + ";" + BARRIER.join(parts[k:])
        assert not runs_clean(without, buffers, tmp_path), f"barrier {k} is not missed"
