"""From protobuf messages to plain Python: nodes, attributes, constants and typed tensors."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.files.external import DataFolder
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.onnx.external_data import check_extents, dtype_of, read_sparse, read_tensor
from polyc.types.derived import plain_name
from polyc.types.sizes import Size

STANDARD_DOMAINS = ("", "ai.onnx")
"""Two names of one domain: that of the standard's operators."""

TEXT = np.dtype(object)
"""The element type of tensors of strings: NumPy keeps them as Python's."""

_NUMBERS = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


def brief(name: str) -> str:
    """A name as it may stand in a message: quoted, on one line, and not too long."""
    return repr(name if len(name) <= 80 else name[:80] + "…")


def one_line(error: Exception) -> str:
    """What another library's error says, on one line that is not too long."""
    return " ".join(str(error).split())[:800]


def read_node(proto: NodeProto, index: int, folder: DataFolder | None) -> Node:
    """NodeProto -> Node; without a name it is called "Relu_3" after its place in the list."""
    domain = "" if proto.domain in STANDARD_DOMAINS else proto.domain
    name = proto.name or f"{proto.op_type}_{index}"
    attributes: dict[str, Any] = {}
    for attribute in proto.attribute:
        owner = f"attribute {brief(attribute.name)} of node {brief(name)}"
        if attribute.name in attributes:
            raise InvalidModel(f"{owner} is given twice; keep one")
        attributes[attribute.name] = read_attribute(attribute, folder, owner)
    return Node(name, proto.op_type, tuple(proto.input), tuple(proto.output), attributes, domain)


def read_attribute(attribute: AttributeProto, folder: DataFolder | None, owner: str) -> Any:
    """AttributeProto -> int, float, str, array, Body, TypeProto, or a tuple of one of them."""
    if attribute.ref_attr_name:
        raise InvalidModel(f"{owner} refers to an attribute of a function, but stands outside one")
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if kind in ("UNDEFINED", "TYPE_PROTOS"):
        raise UnsupportedOp(f"{owner} has the kind {kind}, which is not read; remove it")
    value = onnx.helper.get_attribute_value(attribute)
    many = kind.endswith("S")
    values = tuple(value) if many else (value,)
    convert = _CONVERSIONS.get(kind.removesuffix("S"), lambda v, *_: v)
    values = tuple(convert(v, folder, owner) for v in values)
    return values if many else values[0]


def _decode(text: bytes, folder: DataFolder | None, owner: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise InvalidModel(f"{owner} is not UTF-8 ({error}); export it again") from None


def read_body(proto: GraphProto, folder: DataFolder | None, owner: str = "") -> Body:
    """The graph inside an attribute; its initialisers become Constant nodes."""
    values = [(t.name, read_tensor(t, folder)) for t in proto.initializer]
    values += [(s.values.name, read_sparse(s, folder)) for s in proto.sparse_initializer]
    constants = [Node(n, "Constant", (), (n,), {"value": v}) for n, v in values]
    nodes = [read_node(n, i, folder) for i, n in enumerate(proto.node)]
    named = {name for name, _ in values}
    inputs = tuple(i.name for i in proto.input if i.name not in named)
    return Body(inputs, (*constants, *nodes), tuple(o.name for o in proto.output))


_CONVERSIONS: dict[str, Callable[[Any, DataFolder | None, str], Any]] = {
    "STRING": _decode,
    "GRAPH": read_body,
    "TENSOR": read_tensor,
    "SPARSE_TENSOR": read_sparse,
}


def is_constant(node: Node | NodeProto) -> bool:
    """Whether a node is the standard's Constant, which has a value and no inputs."""
    op = node.op if isinstance(node, Node) else node.op_type
    return op == "Constant" and node.domain in STANDARD_DOMAINS


def constant_tensor(node: Node) -> Tensor:
    """Constant(; value_ints=(1, 2)) -> y: int64[2] = [1, 2]; a tensor attribute is the value."""
    if len(node.attributes) != 1 or len(node.outputs) != 1:
        raise InvalidModel(f"Constant {brief(node.name)} must have one attribute and one output")
    ((key, value),) = node.attributes.items()
    name = node.outputs[0]
    if key.startswith("value_string"):
        value = np.array(value, TEXT)
    if key in _NUMBERS and not isinstance(value, str | np.ndarray | Body):
        try:
            value = np.array(value, _NUMBERS[key])
        except (ValueError, OverflowError) as error:
            raise InvalidModel(
                f"constant {brief(name)}: {brief(key)} does not hold what its name says ({error}); "
                "give it a value of that type"
            ) from error
    if not isinstance(value, np.ndarray):
        raise InvalidModel(f"constant {brief(name)}: {brief(key)} is no tensor and no number")
    return Tensor(name, value.dtype, value.shape, value)


NO_NAMES = ("?", "-1", "*", "None")
"""What exporters write for a size that has no name."""


@dataclass(frozen=True)
class OpenInput:
    """An input that is no tensor of numbers, so that a call says what it is; and what it is.

    is_optional: a call may leave it out.
    """

    name: str
    reason: str
    is_optional: bool = False


def read_inputs(graph: GraphProto, constants: Container[str]) -> tuple[Tensor | OpenInput, ...]:
    """The graph's inputs that are no constants, as typed tensors where they are tensors."""
    named = {d.dim_param for i in graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    return tuple(read_type(i, named) for i in graph.input if i.name not in constants)


def read_type(info: onnx.ValueInfoProto, symbols: Container[str]) -> Tensor | OpenInput:
    """x: float[N, 3, ?] -> Tensor("x", float32, ("N", 3, "x_d2")), fresh beside `symbols`.

    A dimension of -1 is one that is not said, and so is one named "-1", "?" or "None": older
    exporters write it so, however often.
    """
    owner = f"input {brief(info.name)}"
    kind = info.type.WhichOneof("value")
    if kind is None:
        raise UnsupportedOp(f"{owner} is a value without a type; state it")
    if kind != "tensor_type":
        what = kind.removesuffix("_type").replace("optional", "value that may be absent")
        reason = f"{owner} is a {what}, of which a call says what it holds"
        return OpenInput(info.name, reason, kind == "optional_type")
    proto = info.type.tensor_type
    if not proto.HasField("shape"):
        raise UnsupportedOp(f"{owner} has no shape; state at least its number of dimensions")
    dtype = dtype_of(proto.elem_type, owner)
    if dtype == TEXT:
        return OpenInput(info.name, f"{owner} holds strings, which only a call brings")
    dims = proto.shape.dim
    check_extents([d.dim_value if _is_said(d) else 1 for d in dims], dtype, owner)
    shape = (
        int(d.dim_value)
        if _is_said(d)
        else Size.of(_name_of(d) or _fresh(f"{info.name}_d{i}", symbols))
        for i, d in enumerate(dims)
    )
    return Tensor(info.name, dtype, tuple(shape))


def _name_of(dim: onnx.TensorShapeProto.Dimension) -> str:
    """The name of a size; empty for what is no name, but says that there is none."""
    return "" if dim.dim_param in NO_NAMES else plain_name(str(dim.dim_param))


def _is_said(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return dim.HasField("dim_value") and dim.dim_value >= 0


def leave_open(info: onnx.ValueInfoProto) -> None:
    """Take out of a type what says no size: ONNX's own inference would compute with it."""
    for dim in info.type.tensor_type.shape.dim:
        if not _is_said(dim) and not _name_of(dim):
            dim.Clear()


def _fresh(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as make it free."""
    while name in taken:
        name += "_"
    return name


def unique_names(nodes: Sequence[Node]) -> list[str]:
    """The names of nodes, made unique: a, a, b -> a, a_1, b."""
    taken = {n.name for n in nodes}
    seen: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for node in nodes:
        name = node.name
        while name in seen or (name != node.name and name in taken):
            counts[node.name] = counts.get(node.name, 0) + 1
            name = f"{node.name}_{counts[node.name]}"
        seen.add(name)
        names.append(name)
    return names
