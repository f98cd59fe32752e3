"""Whatever a model calls its tensors, nodes and sizes: results are NumPy's."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import polyc
from polyc.printing.runtime_table import FUNCTIONS
from tests.programs import options

C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof nullptr constexpr alignas alignof thread_local static_assert bool
catch class delete explicit export friend mutable namespace new operator private public template
this throw using virtual wchar_t bitand compl xor_eq char16_t noexcept decltype
main errno NULL EOF linux unix i386 stdin stdout assert offsetof memcpy size_t t int64_t INFINITY
NAN M_PI I complex INT_MAX INT8_MAX __linux__ __FILE__ va_list signbit fmaxf y0 j1
"""
ISL = """
exists and or not implies infty infinity nan NaN min max rat true false ceild floord mod ceil floor
lexmin sum none all AND Exists Floor MIN e isolate separate atomic unroll domain mark
"""
GENERATED = """
c0 c1 c12 S_x S_y S_add_0 k0_y pc_n pc_self pc_thread pc_floordiv PC_SHARE PC_TYPE acc acc_local
x_local x_local_0_16 tile_0 partial_0 partial_0_1 x_packed x_parts x_M x_ y_acc y_padded x_1 x__1
size_n size_t size_add step_0 region_1 arena_end io arena weights call failed sizes threads timed
launches status stream error value other values warp apart row f32 f64 i64 b8 bf16 f32x16 i32x8
pc_load_f32x16 PC_LANES PC_IOTA pc_each __restrict__ _ 0 1x
"""
EXPRESSIONS = [*FUNCTIONS, "load", "const", "index", "within", "cast", "float32", "int64", "open"]
WORDS = list(
    dict.fromkeys([*EXPRESSIONS, *keyword.kwlist, *C.split(), *ISL.split(), *GENERATED.split()])
)

BINARY: dict[str, Callable[..., np.ndarray]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
    "Max": np.maximum, "Min": np.minimum,
}  # fmt: skip
UNARY: dict[str, Callable[..., np.ndarray]] = {
    "Neg": np.negative, "Abs": np.abs, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt,
    "Tanh": np.tanh, "Floor": np.floor, "Ceil": np.ceil, "Sin": np.sin, "Cos": np.cos,
    "Sign": np.sign, "Reciprocal": np.reciprocal, "Atan": np.arctan,
}  # fmt: skip
REDUCTIONS = {"add": "ReduceSum", "mul": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
SHAPE = (3, 5)


class Model:
    """Nodes and what they should give, as they are added; sizes may be names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}
        self.wanted: dict[str, np.ndarray] = {}
        self.rng = np.random.default_rng(0)

    def input(self, name: str, shape: Sequence[int], dims: Sequence[str] = ()) -> np.ndarray:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims or shape))
        self.feeds[name] = self.rng.uniform(0.6, 1.7, shape).astype(np.float32)
        return self.feeds[name]

    def node(self, op: str, inputs: Sequence[str], output: str, **attributes: object) -> None:
        name = str(attributes.pop("name", ""))
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attributes))

    def output(self, name: str, value: np.ndarray) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        self.wanted[name] = value

    def check(self, folder: Path) -> polyc.CompiledModel:
        graph = helper.make_graph(self.nodes, "int", self.inputs, self.outputs)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        compiled = polyc.compile(proto, options=options(folder))
        results = compiled.run(self.feeds)
        wrong = [
            name
            for name, value in self.wanted.items()
            if not np.allclose(results[name], value, rtol=2e-5, atol=1e-5)
        ]
        assert not wrong
        return compiled


@pytest.mark.thorough
def test_arrays_that_are_called_like_the_function_that_reads_them(tmp_path: Path):
    """add(x, add) and mul(x, mul) are not one kernel: pointwise, reduced, and behind a product."""
    model = Model()
    x, c = model.input("x", SHAPE), model.input("c", (5, 4))
    for op, apply in BINARY.items():
        name = op.lower()
        wide, narrow = model.input(name, SHAPE), model.input(f"{name}.4", (3, 4))
        model.node(op, ["x", name], f"1{name}")
        model.output(f"1{name}", apply(x, wide))
        model.node(op, ["x", name], f"2{name}")
        model.node("ReduceMax", [f"2{name}"], f"3{name}", axes=[1])
        model.output(f"3{name}", apply(x, wide).max(1, keepdims=True))
        model.node("MatMul", ["x", "c"], f"4{name}")
        model.node(op, [f"4{name}", f"{name}.4"], f"5{name}")
        model.output(f"5{name}", apply(x @ c, narrow))
    for op, apply in UNARY.items():
        name = op.lower()
        wide = model.input(name, SHAPE)
        model.node(op, [name], f"1{name}")
        model.output(f"1{name}", apply(wide))
        model.node(op, [name], f"2{name}")
        model.node("ReduceMax", [f"2{name}"], f"3{name}", axes=[1])
        model.output(f"3{name}", apply(wide).max(1, keepdims=True))
        model.node("MatMul", [name, "c"], f"4{name}")
        model.node(op, [f"4{name}"], f"5{name}")
        if op not in ("Floor", "Ceil", "Sign"):  # a product rounds
            model.output(f"5{name}", apply(wide @ c))
    model.check(tmp_path)


def test_results_that_are_called_like_the_function_that_computes_them(tmp_path: Path):
    model = Model()
    x, other = model.input("x", SHAPE), model.input("other", SHAPE)
    for op, apply in BINARY.items():
        model.node(op, ["x", "other"], op.lower())
        model.output(op.lower(), apply(x, other))
    for op, apply in UNARY.items():
        model.node(op, ["x"], op.lower())
        model.output(op.lower(), apply(x))
    model.check(tmp_path)


def test_arrays_that_are_called_like_the_reduction_over_them(tmp_path: Path):
    model = Model()
    for name, op in REDUCTIONS.items():
        value = model.input(name, SHAPE)
        axes = [1]
        if op == "ReduceSum":
            model.node("Constant", [], "axes", value=onnx.numpy_helper.from_array(np.array([1])))
            model.node(op, [name, "axes"], f"y{name}")
        else:
            model.node(op, [name], f"y{name}", axes=axes)
        reduce = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}[name]
        model.output(f"y{name}", reduce(value, 1, keepdims=True))
    model.check(tmp_path)


@pytest.mark.thorough
def test_inputs_of_any_name(tmp_path: Path):
    """All of them in one pointwise kernel, in one reduction, and behind one product."""
    model = Model()
    x, c = model.input("the x", SHAPE), model.input("the c", (5, 5))
    values = {word: model.input(word, SHAPE) for word in WORDS if word}
    model.node("MatMul", ["the x", "the c"], "product")
    totals = {"p": x, "q": np.zeros_like(x), "r": x @ c}
    last = {"p": "the x", "q": "the x", "r": "product"}
    for k, (word, value) in enumerate(values.items()):
        for kind, op in zip("pqr", ("Add", "Max", "Sub"), strict=True):
            model.node(op, [last[kind], word], f"{kind} {k}")
            last[kind] = f"{kind} {k}"
        totals["p"] = totals["p"] + value
        totals["q"] = np.maximum(totals["q"] if k else x, value)
        totals["r"] = totals["r"] - value
    model.node("ReduceMin", [last["q"]], "q end", axes=[1])
    model.output(last["p"], totals["p"])
    model.output("q end", totals["q"].min(1, keepdims=True))
    model.output(last["r"], totals["r"])
    model.check(tmp_path)


@pytest.mark.thorough
def test_outputs_and_nodes_of_any_name(tmp_path: Path):
    """Each is computed from the one before, in kernels of ever more statements."""
    model = Model()
    x = model.input("the x", SHAPE)
    words, length = list(WORDS), 4
    while words:
        before, value = "the x", x
        for word in words[:length]:
            model.node("Sub", ["the x", before], word, name=word)
            value, before = x - value, word
            model.output(word, value)
        words, length = words[length:], length + 3
    model.check(tmp_path)


SIZES = [w for w in WORDS if w.isidentifier() and w not in FUNCTIONS] + ["add", "select"]
AT_ONCE = 20
"""Sizes of a model: each is a parameter of all its sets."""


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, len(SIZES), AT_ONCE))
def test_sizes_of_any_name(first: int, tmp_path: Path):
    model = Model()
    words = SIZES[first : first + AT_ONCE]
    for k in range(0, len(words), 5):
        dims = words[k : k + 5]
        shape = [2 + (k + d) % 2 for d in range(len(dims))]
        value = model.input(f"x {k}", shape, dims)
        model.node("Neg", [f"x {k}"], f"y {k}")
        model.output(f"y {k}", -value)
    model.check(tmp_path)
