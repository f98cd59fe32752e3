"""What is measured on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from onnx import TensorProto, helper

from bench import micro
from bench.problems import Problem
from bench.zoo import LIGHT
from bench.zoo.bert import bert
from bench.zoo.network import Example
from bench.zoo.vit import vit

SIZES = (1024, 2048, 4096, 8192)

PRECISIONS = {
    "float32": TensorProto.FLOAT,
    "tf32": TensorProto.FLOAT,
    "bfloat16": TensorProto.BFLOAT16,
    "float16": TensorProto.FLOAT16,
}
"""How products are computed -> what the matrices hold."""


def gpu_problems() -> Iterator[Problem]:
    """By group: gemm in each precision, rows, elementwise, attention, light, transformers."""
    for precision in PRECISIONS:
        for n in SIZES:
            make = partial(gemm, n, precision)
            yield Problem(f"gemm-{precision}-{n}", f"gemm-{precision}", make, precision=precision)
    for rows, columns in ((4096, 1024), (16384, 4096)):
        shape = f"{rows}x{columns}"
        yield Problem(f"softmax-{shape}", "rows", partial(micro.softmax, rows, columns))
        yield Problem(f"layernorm-{shape}", "rows", partial(micro.layer_norm, rows, columns))
    yield Problem("gelu-64Mi", "elementwise", partial(micro.gelu, 8192))
    yield Problem("muladd-64Mi", "elementwise", partial(micro.muladd, 8192))
    for name, axes in (("rows", [1]), ("columns", [0]), ("all", [0, 1])):
        yield Problem(f"sum-{name}-8192", "sums", partial(micro.total, 8192, axes))
    for tokens in (512, 2048):
        yield Problem(f"attention-{tokens}", "attention", partial(micro.attention, 16, tokens, 64))
    for name, example in LIGHT.items():
        yield Problem(name, "light", example)
    yield Problem("bert_base", "transformer", bert)
    yield Problem("vit_base", "transformer", vit)


def gemm(n: int, precision: str) -> Example:
    """y = a b, n x n; the inputs are float32, to be converted to what the model takes."""
    element = PRECISIONS[precision]
    infos = [helper.make_tensor_value_info(name, element, [n, n]) for name in "aby"]
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    graph = helper.make_graph([node], f"gemm-{precision}", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    random = np.random.default_rng(0)
    return Example(model, {name: random.standard_normal((n, n), np.float32) for name in "ab"})
