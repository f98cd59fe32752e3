"""ONNX in, `Graph` out: read, check, inline, upgrade, infer.

A model file is written by strangers. Whatever it holds, `import_onnx` gives a consistent Graph or
raises a PolycError that names what is wrong. Bulk data is read first and kept apart, so that
checking, inlining and shape inference work on a small skeleton, however large the weights are.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, inliner, numpy_helper

from polyc.budget import Budget
from polyc.errors import InvalidModel, NeedsValues, PolycError, naming_defects
from polyc.files.external import DataFolder
from polyc.files.model_file import ModelFile, check_size, reading_model
from polyc.files.reader import Reader
from polyc.graph.inference.fix_sizes import fix_tensor
from polyc.graph.inference.infer import infer_graph
from polyc.graph.inference.parameters import rename_found
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.onnx.checks import (
    check_bodies,
    check_definitions,
    check_depth,
    check_domains,
    check_functions,
    check_standard,
    check_text,
    find_opset,
)
from polyc.graph.onnx.external_data import embed, read_sparse, read_tensor
from polyc.graph.onnx.nodes import (
    STANDARD_DOMAINS,
    OpenInput,
    brief,
    constant_tensor,
    is_constant,
    leave_open,
    one_line,
    read_inputs,
    read_node,
    read_type,
    unique_names,
)
from polyc.graph.onnx.order import sort_nodes
from polyc.graph.onnx.runtime_operators import name_runtime_operators
from polyc.graph.onnx.wire import LargeData, split_model
from polyc.graph.upgrade import Context, is_newest_form, upgrade_nodes
from polyc.graph.values import name_values
from polyc.options import Options
from polyc.types.sizes import Extent, names_in

SMALL_ELEMENTS = 1024
"""Integer constants up to this size stay in the skeleton, where they may be shapes."""


Source = str | os.PathLike[str] | bytes | ModelProto | ModelFile


@dataclass(frozen=True)
class UntypedModel:
    """A model as it is read: checked, its functions inlined, its nodes in newest forms.

    `inputs` are in order, tensors with symbols for sizes that are not said. `flat` is the message
    that was read, if it was one, without data and functions.
    """

    name: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, Tensor]
    inputs: tuple[Tensor | OpenInput, ...]
    outputs: tuple[str, ...]
    flat: ModelProto = field(default_factory=ModelProto)


def import_onnx(
    source: Source,
    sizes: Mapping[str, Extent] | None = None,
    budget: Budget | None = None,
    decides: bool = False,
    values: Collection[str] = (),
    whole: bool = False,
) -> Graph:
    """Read a model: path, file, bytes, or ModelProto -> Graph in newest operator forms.

    Initialisers are constants, also where the model lists them as inputs with a default value. A
    named dimension becomes a symbol, an unknown one a fresh symbol such as "x_d0"; `sizes` are the
    values of symbols that are known; `budget` is what this may take, by default that of the
    options; `decides`: whether both branches of an If are kept where a call decides; `values`:
    inputs whose elements are sizes that a call says; `whole`: whether nodes stay that have no form
    in ONNX when they are expanded, so that the graph can be written again. Raises InvalidModel for
    a malformed, inconsistent or unsafe model, UnsupportedOp for a valid one that is not compiled,
    NeedsValues for one that only a call completes, ShapeError where shapes do not fit, and TooLarge
    or TooLong beyond the budget.
    """
    budget = budget or Budget.start(Options())
    model = read_model(source, budget)
    for given in model.inputs:
        if isinstance(given, OpenInput):
            raise NeedsValues(given.reason, ())
    typed = [fix_tensor(t, sizes or {}) for t in model.inputs if isinstance(t, Tensor)]
    typed = name_values(typed, values)
    graph = infer_graph(
        model.name,
        model.nodes,
        {**model.constants, **{t.name: t for t in typed}},
        [t.name for t in typed],
        model.outputs,
        budget,
        decides,
        whole=whole,
    )
    declared = {info.name: info for info in model.flat.graph.output}
    return rename_found(graph, _declared_names(graph, declared)) if graph.found else graph


def _declared_names(graph: Graph, declared: Mapping[str, onnx.ValueInfoProto]) -> dict[str, str]:
    """What the model's outputs call sizes that a call finds, where that is no other size."""
    found = {size.name for size in graph.found}
    taken = names_in(d for tensor in graph.tensors.values() for d in tensor.shape)
    names: dict[str, str] = {}
    for output, info in declared.items():
        dims = info.type.tensor_type.shape.dim
        shape = graph.tensors[output].shape
        for extent, dim in zip(shape, dims, strict=False):
            name = str(extent)
            fresh = dim.dim_param and dim.dim_param not in {*taken, *names.values()}
            if fresh and name in found and name not in names:
                names[name] = dim.dim_param
    return names


def read_model(source: Source, budget: Budget | None = None) -> UntypedModel:
    """A model as it is read; raises what `import_onnx` raises before types are inferred."""
    with naming_defects("reading the model"):
        return _read_model(source, budget or Budget.start(Options()))


def _read_model(source: Source, budget: Budget) -> UntypedModel:
    """`read_model`, whatever it raises."""
    # 1. Bytes become a protobuf message, and its data become arrays.
    model, data, folder = _parse(source)
    budget.check_nodes(len(model.graph.node), "the model")
    check_text(model)
    check_depth(model)
    opset = find_opset(model)
    constants = _read_constants(model.graph, data, folder)
    inputs = read_inputs(model.graph, constants)
    functions = (n for f in model.functions for n in f.node)
    embed((*(n for n in model.graph.node if not is_constant(n)), *functions), folder)

    # 2. What is left is checked as a whole before anything relies on it.
    skeleton = _without_data(model, constants, opset)
    name_runtime_operators(skeleton, opset)
    sort_nodes(skeleton.graph)
    check_definitions(skeleton.graph)
    check_standard(skeleton)

    # 3. Functions are inlined before the upgrade, which knows operators only.
    flat = _inline_functions(skeleton, budget)
    check_domains(flat.graph)
    check_bodies(flat.graph, opset)
    nodes = tuple(read_node(n, i, None) for i, n in enumerate(flat.graph.node))
    nodes = _upgrade(nodes, opset, flat)

    if isinstance(source, ModelFile):
        source.check_others()  # all that lies outside of the file has been read by now

    # 4. Constant nodes leave last: functions and the upgrade bring new ones.
    fresh = [constant_tensor(n) for n in nodes if is_constant(n)]
    return UntypedModel(
        skeleton.graph.name,
        tuple(_rename([n for n in nodes if not is_constant(n)])),
        {**constants, **{t.name: t for t in fresh}},
        inputs,
        tuple(o.name for o in skeleton.graph.output),
        flat,
    )


def _parse(source: Source) -> tuple[ModelProto, LargeData, DataFolder | None]:
    """The model, its large data, and the folder of its external data where it has one."""
    if isinstance(source, ModelProto):
        return source, {}, None
    if not isinstance(source, str | os.PathLike | bytes | ModelFile):
        kind = type(source).__name__
        raise InvalidModel(f"a {kind} is no model; give a path, bytes or an onnx.ModelProto")
    folder = None
    opening: AbstractContextManager[Reader]
    if isinstance(source, ModelFile):
        folder = DataFolder(source.path.parent, frozenset(source.others))
        opening = source.reading()
    elif isinstance(source, bytes):
        check_size(len(source))
        opening = Reader(BytesIO(source), len(source), hashed=False)
    else:
        folder, opening = DataFolder(Path(source).parent), reading_model(Path(source))
    try:
        with opening as reader:
            message, data = split_model(reader)
        return ModelProto.FromString(message), data, folder
    except PolycError:
        raise
    except Exception as error:  # protobuf's implementations differ in what they raise
        raise InvalidModel(f"this is no ONNX model ({error}); is the file complete?") from error


def _read_constants(
    graph: GraphProto, data: LargeData, folder: DataFolder | None
) -> dict[str, Tensor]:
    """The initialisers and the outputs of Constant nodes, by name."""
    dense = [
        (t.name, read_tensor(t, folder, data=data.get(k))) for k, t in enumerate(graph.initializer)
    ]
    sparse = [(s.values.name, read_sparse(s, folder)) for s in graph.sparse_initializer]
    tensors = [Tensor(name, v.dtype, v.shape, v) for name, v in (*dense, *sparse)]
    tensors += [
        constant_tensor(read_node(n, i, folder)) for i, n in enumerate(graph.node) if is_constant(n)
    ]
    constants: dict[str, Tensor] = {}
    for tensor in tensors:
        if not tensor.name or tensor.name in constants:
            raise InvalidModel(
                f"constant {brief(tensor.name)} is unnamed or defined twice; rename it"
            )
        constants[tensor.name] = tensor
    return constants


def _without_data(model: ModelProto, constants: Mapping[str, Tensor], opset: int) -> ModelProto:
    """The model with each large constant as an input of its type: the same graph, in few bytes."""
    # Before IR version 4 an initialiser had to be an input too.
    skeleton = ModelProto(ir_version=model.ir_version and max(model.ir_version, 4))
    others = [o for o in model.opset_import if o.domain not in STANDARD_DOMAINS]
    skeleton.opset_import.extend([onnx.helper.make_opsetid("", opset), *others])
    skeleton.functions.extend(model.functions)
    graph = skeleton.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(n for n in model.graph.node if not is_constant(n))
    for node in graph.node:
        node.domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    graph.input.extend(i for i in model.graph.input if i.name not in constants)
    graph.output.extend(model.graph.output)
    for info in (*graph.input, *graph.output):
        leave_open(info)
    for name, tensor in constants.items():
        if tensor.value is not None and tensor.dtype == np.int64 and tensor.size <= SMALL_ELEMENTS:
            graph.initializer.append(numpy_helper.from_array(tensor.value, name))
        else:
            element = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
            graph.input.append(onnx.helper.make_tensor_value_info(name, element, tensor.extents))
    return skeleton


def _inline_functions(model: ModelProto, budget: Budget) -> ModelProto:
    """The model with the body of each of its own functions in place of the call."""
    if not model.functions:
        return model
    check_functions(model, budget)
    try:
        flat = inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:  # C++ and protobuf errors share no base
        raise InvalidModel(f"a function cannot be inlined ({one_line(error)})") from error
    check_definitions(flat.graph)
    return flat


def _upgrade(nodes: tuple[Node, ...], opset: int, model: ModelProto) -> tuple[Node, ...]:
    """The nodes in newest form; types are inferred only where some node is in an older one."""
    if all(is_newest_form(n, opset) for n in nodes):
        return nodes
    names = {name for n in nodes for name in (*n.inputs, *n.outputs)}
    types = _infer_types(model)
    return upgrade_nodes(nodes, opset, Context(frozenset(names | set(types)), types))


def _infer_types(model: ModelProto) -> dict[str, Tensor]:
    """The types that ONNX's own inference finds: it knows the old forms, and may leave gaps."""
    constants = model.graph.initializer
    types = {t.name: Tensor(t.name, np.dtype(np.int64), tuple(t.dims)) for t in constants}
    for info in infer_values(model):
        try:
            known = read_type(info, ())
        except PolycError:
            continue
        if isinstance(known, Tensor):
            types[info.name] = known
    return types


def infer_values(model: ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs, outputs and what is between, as far as ONNX's own inference knows them."""
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # a rule that needs a type that is missing refuses, and says so
        graph = model.graph
    return [*graph.input, *graph.value_info, *graph.output]


def _rename(nodes: Sequence[Node]) -> list[Node]:
    return [replace(n, name=name) for n, name in zip(nodes, unique_names(nodes), strict=True)]
