"""A model with changes that a message may have: other attributes, types, edges, nodes, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from tests.fuzz.broken.hostile import DOMAINS, Dice

Change = Callable[[ModelProto, Dice], None]

OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
KINDS = tuple(AttributeProto.AttributeType.values())
TYPES = (*TensorProto.DataType.values(), 99, -1)


def change_structure(data: bytes, other: bytes, dice: Dice) -> bytes:
    """One to four changes; `other` is another model, from which nodes come."""
    model = ModelProto.FromString(data)
    for _ in range(1 + dice.below(4)):
        if dice.one_in(12):
            _adopt(model, ModelProto.FromString(other), dice)
        else:
            dice.choose(CHANGES)(model, dice)
    return bytes(model.SerializeToString())


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _graph(model: ModelProto, dice: Dice) -> GraphProto:
    return dice.choose(list(_graphs(model.graph)))


def _node(model: ModelProto, dice: Dice) -> NodeProto:
    nodes = [n for g in _graphs(model.graph) for n in g.node]
    nodes += [n for f in model.functions for n in f.node]
    return dice.choose(nodes) if nodes else model.graph.node.add(op_type="Relu")


def _info(model: ModelProto, dice: Dice) -> ValueInfoProto:
    graph = _graph(model, dice)
    infos = [*graph.input, *graph.input, *graph.output, *graph.value_info]
    return dice.choose(infos) if infos else graph.input.add(name=dice.name())


def _tensor(model: ModelProto, dice: Dice) -> TensorProto:
    graph = _graph(model, dice)
    tensors = list(graph.initializer)
    tensors += [a.t for n in graph.node for a in n.attribute if a.HasField("t")]
    return dice.choose(tensors) if tensors else graph.initializer.add(name=dice.name())


def _value(model: ModelProto, dice: Dice) -> str:
    """The name of some value, or of none."""
    graph = _graph(model, dice)
    names = [name for n in graph.node for name in (*n.input, *n.output)]
    names += [i.name for i in (*graph.input, *graph.initializer)]
    return dice.choose(names) if names and not dice.one_in(5) else dice.name()


def change_attribute(model: ModelProto, dice: Dice) -> None:
    """Another value, of the same kind or not, another name, twice, or none."""
    node = _node(model, dice)
    if not node.attribute:
        _set_attribute(node.attribute.add(name=_attribute_name(node, dice)), dice)
        return
    at = dice.below(len(node.attribute))
    attribute = node.attribute[at]
    match dice.below(8):
        case 0:
            del node.attribute[at]
        case 1:
            attribute.type = dice.choose(KINDS)
        case 2:
            attribute.name = _attribute_name(node, dice)
        case 3:
            copy = AttributeProto()
            copy.CopyFrom(attribute)
            node.attribute.append(copy)
        case 4:
            attribute.ref_attr_name = dice.name()
        case 5:
            _set_attribute(attribute, dice)
        case _:
            _vary_attribute(attribute, dice)


def _attribute_name(node: NodeProto, dice: Dice) -> str:
    known = onnx.defs.has(node.op_type, node.domain)
    names = sorted(onnx.defs.get_schema(node.op_type, node.domain).attributes) if known else []
    return dice.choose(names) if names and not dice.one_in(6) else dice.name()


def _set_attribute(attribute: AttributeProto, dice: Dice) -> None:
    name, fresh = attribute.name, AttributeProto()
    values = (
        dice.integer(), dice.number(), dice.name().encode("utf-8", "replace"),
        [dice.integer() for _ in range(dice.below(5))], [dice.number() for _ in range(3)],
        [dice.name() for _ in range(2)], onnx.helper.make_tensor("t", 1, [2], [1.0, 2.0]),
        onnx.helper.make_graph([], "empty", [], []),
    )  # fmt: skip
    value = dice.choose(values)
    kind = AttributeProto.INTS if value == [] else None
    fresh.CopyFrom(onnx.helper.make_attribute(name, value, attr_type=kind))
    attribute.CopyFrom(fresh)


def _vary_attribute(attribute: AttributeProto, dice: Dice) -> None:
    """Another value of the same kind."""
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = dice.integer()
        case AttributeProto.FLOAT:
            attribute.f = dice.choose((0.0, -1.0, float("nan"), float("inf"), 1e38, 1e-45))
        case AttributeProto.STRING:
            attribute.s = dice.choose((dice.name().encode("utf-8", "replace"), b"\xff\xfe"))
        case AttributeProto.INTS if attribute.ints and not dice.one_in(3):
            attribute.ints[dice.below(len(attribute.ints))] = dice.integer()
        case AttributeProto.INTS:
            _resize(attribute.ints, dice.integer(), dice)
        case AttributeProto.FLOATS:
            _resize(attribute.floats, dice.choose((0.0, -1.0, float("inf"))), dice)
        case _:
            _set_attribute(attribute, dice)


def _resize(values: object, value: object, dice: Dice) -> None:
    """A list with an element more, or without some."""
    kept = list(values)[: dice.below(len(values) + 1)]  # type: ignore[arg-type, call-overload]
    kept += [value] * dice.below(3)
    del values[:]  # type: ignore[attr-defined]
    values.extend(kept)  # type: ignore[attr-defined]


def change_type(model: ModelProto, dice: Dice) -> None:
    """Another element type, other dimensions, or none, or what is no tensor."""
    info = _info(model, dice)
    kind = info.type.tensor_type
    dims = kind.shape.dim
    match dice.below(8):
        case 0:
            kind.elem_type = dice.choose(TYPES)
        case 1:
            info.ClearField("type")
        case 2:
            kind.ClearField("shape")
        case 3:
            dims.add(dim_value=dice.extent())
        case 4 if dims:
            del dims[dice.below(len(dims))]
        case 5 if dims:
            dims[dice.below(len(dims))].dim_param = dice.name()
        case 6 if dice.one_in(3):
            info.type.sequence_type.elem_type.tensor_type.elem_type = dice.choose(TYPES)
        case _:
            dim = dims[dice.below(len(dims))] if dims else dims.add()
            dim.dim_value = dice.extent()


def change_edge(model: ModelProto, dice: Dice) -> None:
    """Inputs and outputs of a node renamed, doubled, dropped, or more of them."""
    node = _node(model, dice)
    names = node.output if dice.one_in(3) else node.input
    match dice.below(4):
        case 0 if names:
            del names[dice.below(len(names))]
        case 1:
            names.extend([_value(model, dice) for _ in range(1 + dice.below(3))])
        case 2:
            names.insert(0, dice.choose(("", _value(model, dice))))
        case _:
            at = dice.below(len(names)) if names else 0
            names[at : at + 1] = [_value(model, dice)]


def change_nodes(model: ModelProto, dice: Dice) -> None:
    """A node dropped, doubled, moved, of another operator, or of another domain."""
    graph = _graph(model, dice)
    node = dice.choose(graph.node) if graph.node else _node(model, dice)
    match dice.below(6):
        case 0 if graph.node:
            del graph.node[dice.below(len(graph.node))]
        case 1:
            graph.node.append(_copy(node))
        case 2:
            copies = [_copy(graph.node[int(k)]) for k in dice.random.permutation(len(graph.node))]
            del graph.node[:]
            graph.node.extend(copies)
        case 3:
            node.domain = dice.choose(DOMAINS)
        case 4 if dice.one_in(4):
            node.op_type = dice.name()
        case _:
            node.op_type = dice.choose(OPERATORS)


def _copy(node: NodeProto) -> NodeProto:
    """A message of its own: one that is in a list goes with it."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _adopt(model: ModelProto, other: ModelProto, dice: Dice) -> None:
    """Nodes and constants of another model, read from where they can be."""
    graph = _graph(model, dice)
    for node in other.graph.node[: 1 + dice.below(3)]:
        adopted = graph.node.add()
        adopted.CopyFrom(node)
        for k in range(len(adopted.input)):
            adopted.input[k] = _value(model, dice)
    for tensor in other.graph.initializer[:2]:
        graph.initializer.add().CopyFrom(tensor)


def change_tensor(model: ModelProto, dice: Dice) -> None:
    """A constant with other values, dimensions, type, fewer bytes, or data elsewhere."""
    tensor = _tensor(model, dice)
    match dice.below(8):
        case 0:
            tensor.raw_data = tensor.raw_data[: dice.below(len(tensor.raw_data) + 1)]
        case 1:
            tensor.data_type = dice.choose(TYPES[:-1])
        case 2:
            tensor.dims.append(dice.extent())
        case 3 if tensor.dims:
            tensor.dims[dice.below(len(tensor.dims))] = dice.extent()
        case 4 if tensor.dims:
            del tensor.dims[dice.below(len(tensor.dims))]
        case 5:
            tensor.data_location = TensorProto.EXTERNAL
            entries = ("location", "offset", "length", "checksum", dice.name())
            for key in entries[: 1 + dice.below(5)]:
                tensor.external_data.add(key=key, value=dice.choose((dice.name(), "-1", "1e9")))
        case 6:
            tensor.name = dice.choose((dice.name(), _value(model, dice)))
        case _:
            _fill_tensor(tensor, dice)


def _fill_tensor(tensor: TensorProto, dice: Dice) -> None:
    """Values that shapes, axes and pads do not have."""
    count = min(len(tensor.raw_data) // 8 or len(tensor.int64_data) or 1, 8)
    if tensor.data_type == TensorProto.INT64:
        values = [dice.integer() for _ in range(count)]
        tensor.CopyFrom(onnx.helper.make_tensor(tensor.name, tensor.data_type, [count], values))
    elif tensor.raw_data:
        tensor.raw_data = dice.octets(1) * len(tensor.raw_data)
    else:
        del tensor.float_data[1:]


def change_versions(model: ModelProto, dice: Dice) -> None:
    """Operator sets and the format's version."""
    match dice.below(5):
        case 0:
            model.ir_version = dice.choose((0, 1, 3, 4, 10, 99, -1, 2**63 - 1))
        case 1:
            del model.opset_import[:]
        case 2:
            version = dice.choose((1, 13, -1, 2**31))
            model.opset_import.add(domain=dice.choose(DOMAINS), version=version)
        case _:
            if not model.opset_import:
                model.opset_import.add()
            chosen = dice.choose(model.opset_import)
            chosen.version = dice.choose((0, -1, 99, 2**63 - 1, *range(1, 25)))


def change_names(model: ModelProto, dice: Dice) -> None:
    """A value, a node or a graph gets another name, everywhere or at one place."""
    graph = _graph(model, dice)
    old, new = _value(model, dice), dice.name()
    match dice.below(4):
        case 0:
            graph.name = new
        case 1:
            _node(model, dice).name = new
        case 2:
            _info(model, dice).name = new
        case _:
            for node in graph.node:
                node.input[:] = [new if n == old else n for n in node.input]
                node.output[:] = [new if n == old else n for n in node.output]
            for named in (*graph.input, *graph.output, *graph.initializer):
                named.name = new if named.name == old else named.name


def change_ends(model: ModelProto, dice: Dice) -> None:
    """Inputs and outputs of a graph dropped, doubled, or of nothing."""
    graph = _graph(model, dice)
    ends = graph.input if dice.one_in(2) else graph.output
    match dice.below(3):
        case 0 if ends:
            del ends[dice.below(len(ends))]
        case 1 if ends:
            copy = ValueInfoProto()
            copy.CopyFrom(dice.choose(ends))
            ends.append(copy)
        case _:
            ends.add(name=_value(model, dice))


CHANGES: tuple[Change, ...] = (
    *(change_attribute,) * 5,
    *(change_type,) * 3,
    *(change_edge,) * 3,
    *(change_nodes,) * 3,
    *(change_tensor,) * 3,
    change_versions,
    change_names,
    change_ends,
)
"""By how often they are chosen."""
