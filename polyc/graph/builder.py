"""Build graphs in Python from immutable expressions.

    x = input_value("x", (4, 8))            # x: float32[4, 8]
    y = apply("Relu", [x @ w])              # y: float32[4, 5], checked as it is written
    graph_of({"y": y})                      # Graph: MatMul, Relu

There is no graph while expressions are written: a `Value` knows what it is computed from, and
`graph_of` walks back from the outputs. An expression that is used twice is one node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polyc.errors import InvalidModel, NotFixed, ShapeError
from polyc.graph.bodies import Names
from polyc.graph.expand.contrib.operators import CONTRIB_DOMAIN
from polyc.graph.expand.contrib.signatures import find_contrib_signature
from polyc.graph.expand.control.repeat import Typed
from polyc.graph.expand.expand import expand_node
from polyc.graph.inference.folding import Folds
from polyc.graph.inference.infer import infer_graph
from polyc.graph.inference.one_node import infer_or_fold
from polyc.graph.ir import Graph, Node, Shape, Tensor
from polyc.graph.shapes.signature import Signature, find_signature
from polyc.types.call_sizes import parse_size
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import assume
from polyc.types.sizes import Size

_serials = itertools.count()


@dataclass(frozen=True, eq=False)
class Call:
    """One operator application; its results are the `Value`s that point to it.

    needs: what must not be negative of sizes, for it and all that it is computed from.
    """

    op: str
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Any]
    types: tuple[Tensor, ...]
    domain: str = ""
    needs: tuple[Size, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """A tensor expression: an input, a constant, or one output of a call.

    Two values are equal only if they are the same object; comparisons of elements are functions
    (`polyc.ops.less`, …). `type` has a value for constants; `call` is None for leaves.
    """

    type: Tensor
    call: Call | None = None
    index: int = 0
    serial: int = field(default_factory=_serials.__next__)

    # NumPy hands `array + value` over to `__radd__` instead of asking each element.
    __array_ufunc__ = None

    @property
    def name(self) -> str:
        return self.type.name

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def op(self) -> str:
        """The operator that computes this value; empty for an input or a constant."""
        return self.call.op if self.call else ""

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        return self.call.inputs if self.call else ()

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.call.attributes if self.call else {}

    def make_graph(self, outputs: Mapping[str, Value]) -> Graph:
        """The graph of several expressions; see `Graph.of`."""
        return graph_of(outputs)

    def __add__(self, other: Operand) -> Value:
        return apply("Add", [self, other])

    def __radd__(self, other: Operand) -> Value:
        return apply("Add", [other, self])

    def __sub__(self, other: Operand) -> Value:
        return apply("Sub", [self, other])

    def __rsub__(self, other: Operand) -> Value:
        return apply("Sub", [other, self])

    def __mul__(self, other: Operand) -> Value:
        return apply("Mul", [self, other])

    def __rmul__(self, other: Operand) -> Value:
        return apply("Mul", [other, self])

    def __truediv__(self, other: Operand) -> Value:
        return apply("Div", [self, other])

    def __rtruediv__(self, other: Operand) -> Value:
        return apply("Div", [other, self])

    def __pow__(self, other: Operand) -> Value:
        return apply("Pow", [self, other])

    def __rpow__(self, other: Operand) -> Value:
        return apply("Pow", [other, self])

    def __matmul__(self, other: Operand) -> Value:
        return apply("MatMul", [self, other])

    def __rmatmul__(self, other: Operand) -> Value:
        return apply("MatMul", [other, self])

    def __neg__(self) -> Value:
        return apply("Neg", [self])

    def __repr__(self) -> str:
        return f"<{self.op or 'leaf'} {self.type}>"


Operand = Value | np.ndarray | np.generic | int | float | bool
"""What may stand where an operator wants a tensor; numbers take the other operands' type."""


def input_value(name: str, shape: Sequence[int | str], dtype: Any = "float32") -> Value:
    """A graph input: ("x", ("N", 8)) -> x: float32[N, 8]; a string is a size known at run time.

    Or a sum of such: "past + n".
    """
    if not name:
        raise InvalidModel("an input has the empty name; give it one")
    for extent in shape:
        if not (isinstance(extent, int | np.integer | str) and extent != ""):
            raise ShapeError(f"input {name!r}: {extent!r} is no extent; give an integer or a name")
        if not isinstance(extent, str) and extent < 0:
            raise ShapeError(f"input {name!r} has the negative extent {extent}; give at least 0")
    extents = tuple(parse_size(d) if isinstance(d, str) else int(d) for d in shape)
    return Value(Tensor(name, np.dtype(dtype), extents))


def constant_value(array: Any, name: str = "", dtype: Any = None) -> Value:
    """A constant: anything that NumPy makes an array of; later changes to `array` are not seen."""
    value = np.array(array, dtype=dtype)
    if value.dtype.kind in "OSU":
        raise InvalidModel(f"constant {name!r} holds {value.dtype}; only numbers are compiled")
    value.setflags(write=False)
    return Value(Tensor(name, value.dtype, value.shape, value))


def as_integers(value: Any, scalar: bool = False) -> Value | None:
    """What steers a shape: 3 or (3,) -> constant [3]; None and expressions stay what they are."""
    if value is None or isinstance(value, Value):
        return value
    numbers = np.asarray(value, np.int64)
    return constant_value(numbers if scalar else np.atleast_1d(numbers))


def apply(op: str, inputs: Sequence[Operand | None], **attributes: Any) -> Value:
    """The only or first output of an operator in its newest form: apply("Relu", [x]) -> Relu(x).

    None is an absent optional input. Attributes that are None are left out. Raises ShapeError
    where shapes or types do not fit.
    """
    return apply_many(op, inputs, 1, **attributes)[0]


def apply_many(
    op: str, inputs: Sequence[Operand | None], count: int, **attributes: Any
) -> tuple[Value, ...]:
    """The first `count` outputs of an operator: apply_many("TopK", [x, k], 2)."""
    return _apply(Call(op, _as_values(inputs), attributes, ()), find_signature(op), count)


def apply_contrib(op: str, inputs: Sequence[Operand | None], **attributes: Any) -> Value:
    """The first output of an operator of com.microsoft: apply_contrib("Gelu", [x])."""
    signature = find_contrib_signature(op)
    assert signature is not None, "callers name what is in the table"
    call = Call(op, _as_values(inputs), attributes, (), CONTRIB_DOMAIN)
    return _apply(call, signature, 1)[0]


def _apply(call: Call, signature: Signature, count: int) -> tuple[Value, ...]:
    """The outputs of a call whose types are not known yet."""
    op, operands, kinds = call.op, call.inputs, signature.attributes
    kept = {k: _plain(v, kinds.get(k, "")) for k, v in call.attributes.items() if v is not None}
    names = _name_operands(operands)
    outputs = tuple(f"%out{i}" for i in range(count))
    known = {**dict(zip(names, operands, strict=True)), "": None}
    taken = Names({*names, *outputs})
    waiting = [Node(op, op, names, outputs, kept, call.domain)]
    while waiting:
        node = waiting.pop()
        values = tuple(known[name] for name in node.inputs)
        parts = expand_node(node, [None if v is None else v.type for v in values], taken)
        assert not isinstance(parts, Typed), "branches are typed where a graph is imported"
        if parts is None:
            results = _apply_one(node, values)
            known.update((n, v) for n, v in zip(node.outputs, results, strict=True) if n)
        else:
            waiting += reversed(parts)
    return tuple(v for v in (known[name] for name in outputs) if v is not None)


def _name_operands(operands: Sequence[Value | None]) -> tuple[str, ...]:
    """A name for each operand: its own, or its place where it has none or shares it."""
    owner: dict[str, Value] = {}
    names = []
    for place, value in enumerate(operands):
        name = value.name or f"%{place}" if value is not None else ""
        if value is not None and owner.setdefault(name, value) is not value:
            name = f"%{place}"
        names.append(name)
    return tuple(names)


def _apply_one(node: Node, operands: tuple[Value | None, ...]) -> tuple[Value, ...]:
    """The outputs of a node that stands for itself; constants where they are known."""
    tensors = [None if v is None else v.type for v in operands]
    calls = [v.call for v in operands if v is not None and v.call is not None]
    needs = dict.fromkeys(need for call in calls for need in call.needs)
    while True:
        try:
            with assume(needed_ranges(tuple(needs))):
                found = infer_or_fold(node, tensors, Folds())
            break
        except NotFixed as reason:
            if all(need in needs for need in reason.needs):
                raise
            needs |= dict.fromkeys(reason.needs)
    types = tuple(replace(t, name="") for t in found)
    if all(t.is_constant for t in types):
        return tuple(Value(t) for t in types)
    call = Call(node.op, operands, node.attributes, types, node.domain, tuple(needs))
    return tuple(Value(t, call, i) for i, t in enumerate(types))


def _plain(value: Any, kind: str) -> Any:
    """An attribute as the standard types it: 1 -> 1.0 for FLOAT, [1, 2] -> (1, 2) for INTS."""
    if kind == "FLOAT" and isinstance(value, int):
        return float(value)
    return tuple(value) if isinstance(value, list) else value


def _as_values(inputs: Sequence[Operand | None]) -> tuple[Value | None, ...]:
    """Arrays become constants; Python numbers become constants of the first operand's type."""
    dtype = next((v.dtype for v in inputs if isinstance(v, Value | np.ndarray | np.generic)), None)
    operands = list(inputs)
    while operands and operands[-1] is None:
        operands.pop()
    return tuple(
        v
        if v is None or isinstance(v, Value)
        else constant_value(v, dtype=dtype if isinstance(v, bool | int | float) else None)
        for v in operands
    )


def graph_of(outputs: Mapping[str, Value], name: str = "graph") -> Graph:
    """The graph that computes `outputs`, by name, from the inputs and constants they reach.

    Inputs come in order of creation. Raises InvalidModel for no outputs, for two inputs of one
    name, and for an output that takes the name of an input or constant.
    """
    if not outputs:
        raise InvalidModel("a graph needs at least one output; name what it computes")
    values = list(_reached(outputs.values()))
    leaves = sorted((v for v in values if v.call is None), key=lambda v: v.serial)
    inputs = [v for v in leaves if not v.type.is_constant]
    calls = dict.fromkeys(v.call for v in values if v.call)
    read = {(v.call, v.index) for v in values}
    # An output that nobody reads has a name too: the parts of a Split cannot be left out.
    values += [Value(t, c, k) for c in calls for k, t in enumerate(c.types) if (c, k) not in read]
    names = _choose_names(outputs, values, leaves)
    results = {(v.call, v.index): names[v] for v in values if v.call}
    nodes = [
        Node(
            f"{call.op}_{i}",
            call.op,
            tuple("" if v is None else names[v] for v in call.inputs),
            tuple(results[call, k] for k in range(len(call.types))),
            call.attributes,
            call.domain,
        )
        for i, call in enumerate(calls)
    ]
    nodes += [
        Node(f"Identity_{wanted}", "Identity", (names[value],), (wanted,))
        for wanted, value in outputs.items()
        if names[value] != wanted
    ]
    known = {names[v]: replace(v.type, name=names[v]) for v in leaves}
    return infer_graph(name, nodes, known, [names[v] for v in inputs], list(outputs))


def _reached(outputs: Iterable[Value]) -> Iterator[Value]:
    """The values that outputs depend on, each once and after what it is computed from."""
    seen: set[Value] = set()
    # A stack instead of recursion, since a chain may be longer than Python's stack.
    stack = [(v, False) for v in reversed(list(outputs))]
    while stack:
        value, ready = stack.pop()
        if ready:
            yield value
        elif value not in seen:
            seen.add(value)
            stack.append((value, True))
            stack += [(v, False) for v in reversed(value.inputs) if v is not None and v not in seen]


def _choose_names(
    outputs: Mapping[str, Value], values: Sequence[Value], leaves: Sequence[Value]
) -> dict[Value, str]:
    """A name for each value: its own, the output's that it is, or a fresh one such as "relu_2"."""
    names: dict[Value, str] = {}
    taken: dict[str, Value] = {}
    for value in leaves:
        if value.name and taken.setdefault(value.name, value) is not value:
            raise InvalidModel(f"two inputs or constants are named {value.name!r}; rename one")
        if value.name:
            names[value] = value.name
    for wanted, value in outputs.items():
        if not wanted or taken.get(wanted, value) is not value:
            raise InvalidModel(f"output {wanted!r} is unnamed or named like an input; rename it")
        if value.call is not None:
            names.setdefault(value, wanted)
    used = {*taken, *outputs}
    counts: dict[str, Iterator[int]] = {}
    for value in values:
        if value not in names:
            stem = value.op.lower() or "constant"
            numbered = (f"{stem}_{i}" for i in counts.setdefault(stem, itertools.count()))
            names[value] = next(n for n in numbered if n not in used)
    return names
