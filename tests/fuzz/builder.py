"""A graph under construction: its tensors so far, and how operators get operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from tests.fuzz.evaluate import Kind, evaluate
from tests.fuzz.values import (
    BOOL,
    FLOATS,
    INT4,
    Rejected,
    Value,
    hold,
    is_float,
)

_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 16, 17, 31, 33)
_WEIGHTS = np.array([4, 5, 5, 4, 4, 3, 4, 3, 1, 2, 2, 2, 1, 1], float)
SYMBOLS = {11: ("n", (11, 18, 1)), 19: ("m", (19, 5, 2))}
"""Where sizes are open: a size of the first run -> its name, and the size in each run."""

Accept = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True)
class Traits:
    """What is peculiar to a graph. zeros: a size may be 0; special: NaN and infinities occur;
    symbolic: some sizes of inputs are open; opset: of the ai.onnx domain; dtype: the usual type."""

    zeros: bool = False
    special: bool = False
    symbolic: bool = False
    opset: int = 26
    dtype: np.dtype = np.dtype(np.float32)  # noqa: RUF009


@dataclass
class Builder:
    """The nodes so far, and every tensor, by the random choices of `rng`."""

    rng: np.random.Generator
    traits: Traits = field(default_factory=Traits)
    values: list[Value] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    count: int = 0

    # choices

    def chance(self, probability: float) -> bool:
        """True so often."""
        return bool(self.rng.random() < probability)

    def one_of(self, options: Sequence[Any]) -> Any:
        """One of them, each as likely as the other."""
        return options[int(self.rng.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def size(self) -> int:
        """A size of a dimension: often small or odd, seldom 0, sometimes one that is open."""
        if self.traits.zeros and self.chance(0.15):
            return 0
        if self.traits.symbolic and self.chance(0.3):
            return int(self.one_of(list(SYMBOLS)))
        return int(self.rng.choice(_SIZES, p=_WEIGHTS / _WEIGHTS.sum()))

    def real(self, *options: float, dtype: np.dtype) -> float | None:
        """A number for an attribute; left out sometimes, unless float64 sees its rounding."""
        left_out = self.chance(0.4) and dtype != np.float64
        return None if left_out else self.one_of(options)

    def shape(self, rank: int | None = None, most: int = 4000) -> tuple[int, ...]:
        """A shape with at most so many elements."""
        rank = (
            int(self.rng.choice(6, p=[0.04, 0.14, 0.28, 0.3, 0.2, 0.04])) if rank is None else rank
        )
        for _ in range(20):
            shape = tuple(self.size() for _ in range(rank))
            if np.prod(shape) <= most:
                return shape
        return (2,) * rank

    def float_type(self) -> np.dtype:
        """The graph's usual type, or once in a while another one."""
        usual = self.traits.dtype if is_float(self.traits.dtype) else FLOATS[0]
        return usual if self.chance(0.9) else self.one_of(FLOATS)

    # tensors

    def pick(
        self,
        types: Sequence[np.dtype] = FLOATS,
        accept: Accept | None = None,
        shape: Sequence[int] | None = None,
        fresh: float = 0.12,
        **draw: Any,
    ) -> Value:
        """A tensor of one of the types whose shape is accepted, or a new one of `shape`.

        Without `accept` the shape must be `shape`, where given. A tensor that is there may be
        converted or reshaped to suit. fresh: how likely a new one is where there are others; draw:
        how its elements are drawn.
        """
        if accept is None:
            accept = (lambda s: True) if shape is None else (lambda s: s == tuple(shape))
        if not self.chance(fresh):
            made = {name for node in self.nodes for name in node.output}
            values = sorted(self.values, key=lambda v: v.name in made)  # the latest results last
            known = [v for v in values if v.dtype in types and accept(v.shape)]
            if known:
                return self.one_of(known[-3:] if self.chance(0.7) else known)
            for value in reversed(values[-4:]):
                adapted = self._adapt(value, types, accept)
                if adapted is not None:
                    return adapted
        if shape is None:
            shape = next(filter(accept, (self.shape() for _ in range(200))), None)
            if shape is None:
                raise Rejected("no shape suits")
        usual = self.traits.dtype
        dtype = usual if usual in types and self.chance(0.8) else self.one_of(types)
        return self.make(shape, dtype, **{"constant": self.chance(0.15), **draw})

    def _adapt(self, value: Value, types: Sequence[np.dtype], accept: Accept) -> Value | None:
        """A tensor made to suit by a Cast to a float and a Reshape; None if that is not enough."""
        floats = [t for t in types if is_float(t)]
        if value.dtype not in types and not floats:
            return None
        shape = value.shape
        if not accept(shape):
            tries = (self._factors(value.shape) for _ in range(30))
            shape = next((s for s in tries if accept(s)), None)
            if shape is None or (self.traits.symbolic and any(n in SYMBOLS for n in value.shape)):
                return None
        if value.dtype not in types:
            to = self.traits.dtype if self.traits.dtype in floats else self.one_of(floats)
            code = helper.np_dtype_to_tensor_dtype(to)
            (value,) = self.add("Cast", [value], Kind.TYPED, to=code)
        if shape != value.shape:
            (value,) = self.add("Reshape", [value, self.integers(list(shape))], Kind.EXACT)
        return value

    def _factors(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Other sizes of as many elements."""
        rank = self.integer(1, 5)
        return tuple(self.factors(int(np.prod(shape)), rank)) if 0 not in shape else tuple(shape)

    def factors(self, n: int, rank: int) -> list[int]:
        """Sizes whose product is n."""
        sizes, p = [1] * rank, 2
        while n > 1:
            while n % p == 0:
                sizes[self.integer(0, rank - 1)] *= p
                n //= p
            p += 1
        return sizes

    def make(
        self,
        shape: Sequence[int],
        dtype: np.dtype = FLOATS[0],
        constant: bool | None = None,
        **draw: Any,
    ) -> Value:
        """A new input or constant."""
        dtype = np.dtype(dtype)
        open_ = self.traits.symbolic and any(n in SYMBOLS for n in shape)
        if constant is None:
            constant = self.chance(0.4)
        if constant and not open_:
            return self.constant(self.draw(shape, dtype, **draw))
        arrays = [
            self.draw(
                [SYMBOLS[n][1][r] if open_ and n in SYMBOLS else n for n in shape], dtype, **draw
            )
            for r in range(self.runs)
        ]
        return self.feed(arrays)

    @property
    def runs(self) -> int:
        """For how many choices of sizes everything is evaluated."""
        return 3 if self.traits.symbolic else 1

    def feed(self, arrays: Sequence[np.ndarray]) -> Value:
        """A new input, with what it holds in each run."""
        value = Value(self.name("x"), arrays[0].dtype, tuple(map(hold, arrays)))
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array: np.ndarray) -> Value:
        """A new constant; it is not among the tensors that `pick` finds."""
        value = Value(self.name("c"), array.dtype, (hold(array),) * self.runs, is_constant=True)
        self.constants.append(value)
        return value

    def integers(self, numbers: Sequence[int] | int, dtype: type = np.int64) -> Value:
        """A constant of these integers: axes, a shape, …"""
        return self.constant(np.array(numbers, dtype))

    def draw(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        low: float | None = None,
        high: float | None = None,
        finite: bool = False,
    ) -> np.ndarray:
        """Random elements; from low to high where given. finite: numbers in every graph."""
        shape = tuple(shape)
        if dtype == BOOL:
            return self.rng.random(shape) < 0.5
        if not is_float(dtype):
            unsigned = dtype.kind == "u" or dtype == INT4[1]
            low = (0 if unsigned else -9) if low is None else low
            high = 9 if high is None else high
            if dtype in INT4:
                low, high = max(low, -8 if dtype == INT4[0] else 0), min(high, 7)
            return self.rng.integers(int(low), int(high) + 1, shape).astype(dtype)
        if low is None:
            array = self.rng.standard_normal(shape) * (1.0 if high is None else high)
        else:
            array = self.rng.uniform(low, 1.0 if high is None else high, shape)
        array = np.asarray(array).astype(dtype)
        if self.traits.special and not finite and self.chance(0.5) and dtype in FLOATS:
            marks = self.rng.random(shape) < 0.1
            array[marks] = self.rng.choice([np.nan, np.inf, -np.inf, -0.0], int(marks.sum()))
        return array

    def name(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{prefix}{self.count}"

    # nodes

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        kind: Kind,
        outputs: int | Sequence[bool] = 1,
        captured: Sequence[Value] = (),
        noise: float = 0.0,
        **attributes: Any,
    ) -> list[Value]:
        """Append a node and what it gives. outputs: how many, or which of them it has.

        captured: tensors from outside that its bodies read. Raises Rejected; then nothing has been
        appended.
        """
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = [self.name("t") if w else "" for w in wanted]
        given = {k: a for k, a in attributes.items() if a is not None}
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, **given)
        read = {v.name: v for v in (*inputs, *captured) if v is not None}
        values = evaluate(
            node, list(read.values()), kind, self.traits.opset, self.rng, self.traits.special, noise
        )
        if not self.traits.zeros and any(0 in run.shape for v in values for run in v.runs):
            raise Rejected("empty")
        if len(values[0].runs) < self.runs:
            values = [Value(v.name, v.dtype, v.runs * self.runs) for v in values]
        self.nodes.append(node)
        self.values.extend(values)
        return values


def declare(value: Value, symbolic: bool) -> ValueInfoProto:
    """A graph's input or output, with names for the sizes that are open."""
    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    shape: list[int | str] = list(value.shape)
    if symbolic:
        sizes = zip(*(run.shape for run in value.runs), strict=True)
        shape = [_open_size(size) for size in sizes]
    return helper.make_tensor_value_info(value.name, code, shape)


def _open_size(size: tuple[int, ...]) -> int | str:
    if len(set(size)) == 1:
        return size[0]
    return next((name for name, sizes in SYMBOLS.values() if sizes == size), "")


def store(value: Value) -> TensorProto:
    """A constant as the model has it."""
    return numpy_helper.from_array(value.array, value.name)


def assemble(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Value],
    constants: Sequence[Value],
    outputs: Sequence[Value],
    traits: Traits,
) -> ModelProto:
    """The model."""
    results = [helper.make_tensor_value_info(
        v.name, helper.np_dtype_to_tensor_dtype(v.dtype), None if traits.symbolic else v.shape
    ) for v in outputs]  # fmt: skip
    graph: GraphProto = helper.make_graph(
        nodes,
        "fuzz",
        [declare(v, traits.symbolic) for v in inputs],
        results,
        [store(v) for v in constants],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", traits.opset)], ir_version=10
    )
