"""The standard's signature of an operator: how many inputs, of which element types, attributes.

Read from the installed onnx package, whose newest operator set is the form that graphs use, so
that no table here can disagree with the standard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.checks import require

_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional
_INTEGER = (int, np.integer)
_NUMBER = (int, float, np.integer, np.floating)
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "INT": lambda v: isinstance(v, _INTEGER),
    "FLOAT": lambda v: isinstance(v, _NUMBER),
    "STRING": lambda v: isinstance(v, str),
    "TENSOR": lambda v: isinstance(v, np.ndarray),
    "INTS": lambda v: isinstance(v, list | tuple) and all(isinstance(x, _INTEGER) for x in v),
    "FLOATS": lambda v: isinstance(v, list | tuple) and all(isinstance(x, _NUMBER) for x in v),
    "STRINGS": lambda v: isinstance(v, list | tuple) and all(isinstance(x, str) for x in v),
}


@dataclass(frozen=True)
class Formal:
    """A formal input or output: its name, and the type variable (or fixed type) it has.

    mixed: it stands for many, and each of them may have another one of the types.
    """

    name: str
    type_variable: str
    optional: bool
    mixed: bool = False


@dataclass(frozen=True)
class Signature:
    """What a call of an operator must look like.

    inputs, outputs: formal parameters; the last one stands for all that follow.
    allowed: type variable -> the element types it may stand for; a fixed type is a variable with
        one choice.
    attributes: name -> kind ("INT", "FLOATS", "TENSOR", …); `required` must be given.
    """

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    allowed: Mapping[str, frozenset[np.dtype]]
    attributes: Mapping[str, str]
    required: frozenset[str]
    input_count: tuple[int, int]
    output_count: tuple[int, int]

    def formal_input(self, index: int) -> Formal:
        return self.inputs[min(index, len(self.inputs) - 1)]

    def formal_output(self, index: int) -> Formal:
        return self.outputs[min(index, len(self.outputs) - 1)]


@cache
def find_signature(op: str, domain: str = "") -> Signature:
    """The signature of an operator in the newest operator set; `UnsupportedOp` if there is none."""
    try:
        schema = onnx.defs.get_schema(op, domain=domain)
    except onnx.defs.SchemaError as error:
        raise UnsupportedOp(f"{op} is not an operator of the ONNX standard") from error
    table = _element_types()
    allowed = {
        c.type_param_str: frozenset(table[t] for t in c.allowed_type_strs if t in table)
        for c in schema.type_constraints
    }
    inputs, outputs = tuple(map(_formal, schema.inputs)), tuple(map(_formal, schema.outputs))
    for formal in (*inputs, *outputs):
        if formal.type_variable in table:
            allowed[formal.type_variable] = frozenset({table[formal.type_variable]})
    return Signature(
        inputs,
        outputs,
        allowed,
        {a.name: str(a.type).rpartition(".")[2] for a in schema.attributes.values()},
        frozenset(a.name for a in schema.attributes.values() if a.required),
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
    )


def check_attributes(node: Node, signature: Signature) -> None:
    """Raise `InvalidModel` for an attribute that is missing, unknown or of the wrong kind."""
    title = f"{node.op} {node.name!r}"
    for name in sorted(signature.required - set(node.attributes)):
        raise InvalidModel(f"{title}: attribute {name} is required; add it to the node")
    for name, value in node.attributes.items():
        kind = signature.attributes.get(name)
        if kind is None:
            known = ", ".join(sorted(signature.attributes)) or "none"
            raise InvalidModel(f"{title}: no attribute {name}; the operator's are: {known}")
        if kind in _KINDS and not _KINDS[kind](value):
            shown = f"{type(value).__name__} {value!r}"
            raise InvalidModel(f"{title}: attribute {name} must be of kind {kind}, got {shown}")


def bind_types(
    signature: Signature, inputs: Sequence[Tensor | None], outputs: int
) -> dict[str, np.dtype]:
    """Check number and element types of the inputs: type variable -> element type.

    Raises `RuleBroken` for a wrong count, an element type that the operator does not take, and
    for inputs of different types where the standard wants them equal.
    """
    _require_count("inputs", len(inputs), signature.input_count)
    _require_count("outputs", outputs, signature.output_count)
    bound: dict[str, np.dtype] = {}
    for i, tensor in enumerate(inputs):
        formal = signature.formal_input(i)
        if tensor is None:
            require(formal.optional, f"input {formal.name}", "a tensor", "none", "connect it")
            continue
        variable, dtype = formal.type_variable, tensor.dtype
        if dtype not in signature.allowed[variable]:
            names = ", ".join(sorted(map(str, signature.allowed[variable])))
            rule = f"element type of {formal.name} ({tensor.name!r})"
            require(False, rule, f"one of {names}", dtype, "insert a Cast before the node")
        other = dtype if formal.mixed else bound.setdefault(variable, dtype)
        rule = f"inputs of type {variable} must have one element type"
        require(other == dtype, rule, other, dtype, "insert a Cast before the node")
    return bound


def _require_count(what: str, count: int, bounds: tuple[int, int]) -> None:
    least, most = bounds
    expected = str(least) if least == most else f"{least} to {most}"
    require(least <= count <= most, f"number of {what}", expected, count, "fix the node's list")


def _formal(parameter: Any) -> Formal:
    name, kind, optional = parameter.name, parameter.type_str, parameter.option == _OPTIONAL
    return Formal(name, kind, optional, not parameter.is_homogeneous)


def element_type(code: int) -> np.dtype:
    """The element type that the standard gives a number: 1 -> float32."""
    known = code in onnx.TensorProto.DataType.values() and code != onnx.TensorProto.UNDEFINED
    require(known, "element type", "a number of TensorProto.DataType", code, "use such a number")
    return onnx.helper.tensor_dtype_to_np_dtype(code)


@cache
def _element_types() -> Mapping[str, np.dtype]:
    """The standard's name of a tensor type -> NumPy's: "tensor(float)" -> float32."""
    names = onnx.TensorProto.DataType.items()
    to_dtype = onnx.helper.tensor_dtype_to_np_dtype
    return {f"tensor({n.lower()})": to_dtype(v) for n, v in names if n != "UNDEFINED"}
