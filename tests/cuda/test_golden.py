"""Schedule trees and CUDA of small models, against the texts kept in `golden/`.

A text that changes is looked at, and then kept with  pytest tests/cuda --update-golden.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.cuda import CudaTarget
from polyc.trace import make_trace
from tests.golden.models import MODELS

pytestmark = pytest.mark.cuda

HERE = Path(__file__).parent / "golden"

KEPT = ["matmul_bias_relu", "softmax", "max_pool"]


@cache
def compile_model(name: str) -> dict[str, str]:
    """File suffix -> text: the trees of all kernels, and their functions."""
    with TemporaryDirectory() as folder:
        options = Options(dump=("schedule",), dump_dir=Path(folder), progress=False)
        compiled = run_pipeline(
            MODELS[name](), CudaTarget.named("sm_80"), options, make_trace(options)
        )
        trees = [file.read_text().strip() for file in sorted(Path(folder).glob("*schedule*"))]
    functions = [device.text for device in compiled.devices.values()]
    return {"txt": "\n\n".join(trees) + "\n", "cu": "\n".join(functions)}


@pytest.mark.parametrize("suffix", ["txt", "cu"])
@pytest.mark.parametrize("name", KEPT)
def test_the_text_is_the_one_kept(name, suffix, request):
    text = compile_model(name)[suffix]
    file = HERE / f"{name}.{suffix}"
    if request.config.getoption("--update-golden"):
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), "nothing is kept yet: run pytest tests/cuda --update-golden"
    assert text == file.read_text(encoding="utf-8"), "look at the change, then --update-golden"
