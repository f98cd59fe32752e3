"""What the compiler makes of small models, stage by stage, against the texts kept beside this file.

A text that changes is looked at, and then kept with  pytest tests/golden --update-golden.  What
must hold of them, whatever else changes, is asserted below.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from polyc.options import STAGES, Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.target.machine import Target
from polyc.trace import make_trace
from tests.golden.models import MODELS

HERE = Path(__file__).parent
KEPT = {
    "scop": "scop.txt",
    "schedule": "schedule.txt",
    "loopnest": "loopnest.txt",
    "c": "kernels.c",
}


@cache
def compile_model(name: str) -> tuple[Compiled, dict[str, str]]:
    """The compiled model, and the text of each stage: its dumps in order, under their names."""
    with TemporaryDirectory() as folder:
        options = Options(dump=STAGES, dump_dir=Path(folder), progress=False)
        compiled = run_pipeline(
            MODELS[name](), Target.named("avx512"), options, make_trace(options)
        )
        texts = dict.fromkeys(KEPT, "")
        for stage in KEPT:
            for file in sorted(Path(folder).glob(f"?-{stage}*"), key=_position):
                title = file.stem.partition(f"-{stage}-")[2]
                heading = f"{_comment(stage, title)}\n" if title else ""
                texts[stage] += f"{heading}{file.read_text().strip()}\n\n"
    return compiled, {stage: text.strip() + "\n" for stage, text in texts.items()}


def _position(file: Path) -> int:
    """2-schedule-k10_S -> 10"""
    number = re.search(r"-k(\d+)_", file.name)
    return int(number[1]) if number else 0


def _comment(stage: str, title: str) -> str:
    return f"/* ==== {title} ==== */" if stage == "c" else f"==== {title} ===="


@pytest.mark.parametrize("stage", KEPT)
@pytest.mark.parametrize("name", MODELS)
def test_the_text_of_a_stage_is_the_one_kept(name, stage, request):
    _, texts = compile_model(name)
    file = HERE / name / KEPT[stage]
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(texts[stage], encoding="utf-8")
    assert file.is_file(), "nothing is kept yet: run pytest tests/golden --update-golden"
    kept = file.read_text(encoding="utf-8")
    assert texts[stage] == kept, "look at the change, then run pytest tests/golden --update-golden"


def test_nothing_is_kept_that_no_model_makes():
    folders = {p.name for p in HERE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders <= set(MODELS)


# -- what must hold, whatever else changes --------------------------------------------------------

CONTRACTIONS = ["matmul_bias_relu", "conv_bn_relu_add", "depthwise_separable_conv", "flatten_gemm"]


def c_of(name: str) -> str:
    return compile_model(name)[1]["c"]


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_accumulators_are_vectors_in_registers(name):
    text = c_of(name)
    assert re.search(r"^ +f32x16 \w+", text, re.MULTILINE), "no vector is declared"
    assert re.search(r"\w+ \+= .* \* (pc_load_f32x16|loaded_\d+)", text), "none is accumulated"
    assert not re.search(r"_local\[\d+\]", text), "an accumulator is an array in memory"


@pytest.mark.parametrize("name", ["matmul_bias_relu", "conv_bn_relu_add", "softmax", "layer_norm"])
def test_outer_loops_are_shared_among_threads(name):
    assert re.search(r"PC_SHARE\((?!1\))", c_of(name))


@pytest.mark.parametrize(
    "name",
    ["matmul_bias_relu", "conv_bn_relu_add", "softmax", "layer_norm", "depthwise_separable_conv"],
)
def test_vector_instructions_are_used(name):
    assert "f32x16" in c_of(name)


@pytest.mark.parametrize("name", ["matmul_bias_relu", "conv_bn_relu_add", "softmax", "layer_norm"])
def test_one_kernel_computes_all_of_it(name):
    compiled, _ = compile_model(name)
    assert len(compiled.program.launches) == 1


def test_convolutions_write_into_their_concatenation():
    compiled, _ = compile_model("concat_of_convs")
    assert len(compiled.program.launches) == 3
    temporaries = [a for a in compiled.program.arrays.values() if a.kind == "temporary"]
    assert [a.storage.size for a in temporaries] == [48 * 7 * 7]


def test_a_flattened_tensor_is_read_where_it_is():
    compiled, texts = compile_model("flatten_gemm")
    assert len(compiled.program.launches) == 2
    assert "pc_floordiv" not in texts["c"]
    assert "pc_mod" not in texts["c"]


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_is_proven(name):
    compiled, _ = compile_model(name)
    assert all("executed in full" in row.proof for row in compiled.rows)
