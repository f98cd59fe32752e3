"""What must hold of a model before anything relies on it; each check passes or raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, MutableSequence
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from polyc.budget import Budget
from polyc.errors import InvalidModel, UnsupportedOp
from polyc.graph.ir import INTERNAL
from polyc.graph.onnx.nodes import STANDARD_DOMAINS, brief, one_line

DOMAINS = (
    *STANDARD_DOMAINS,
    *sorted({s.domain for s in onnx.defs.get_all_schemas()} - {*STANDARD_DOMAINS, INTERNAL}),
    "com.microsoft",
)
"""The domains whose operators a model may use: those that the onnx package describes, and one."""

MAX_DEPTH = 32
"""The deepest nest of graphs in attributes: many readers of protobuf end at a hundred messages."""

MAX_CALL_DEPTH = 100
"""The deepest chain of functions that call each other; the inliner is recursive."""


def check_text(model: ModelProto) -> None:
    """Every name in the model is UTF-8 text; protobuf hands over what is not as bytes."""
    waiting = [model]
    while waiting:
        message = waiting.pop()
        for field in message.DESCRIPTOR.fields:
            # Bulk data is left alone, since looking at it means a copy.
            if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING):
                continue
            value = getattr(message, field.name)
            if isinstance(value, MutableSequence):
                values = list(value)
            else:
                values = [value] if message.HasField(field.name) else []
            if field.type == field.TYPE_MESSAGE:
                waiting += values
            elif any(isinstance(v, bytes) for v in values):
                raise InvalidModel(
                    f"the field {field.full_name} holds {value!r:.80}, which is not UTF-8 text; "
                    "the file is damaged: fetch or export it again"
                )


def check_depth(model: ModelProto) -> None:
    """Graphs in attributes are not nested deeper than MAX_DEPTH; what reads them is recursive."""
    level = [model.graph, *model.functions]
    for _ in range(MAX_DEPTH):
        attributes = [a for g in level for n in g.node for a in n.attribute]
        level = [g for a in attributes for g in (*([a.g] if a.HasField("g") else []), *a.graphs)]
        if not level:
            return
    raise InvalidModel(
        f"graphs are nested deeper than {MAX_DEPTH} in the attributes of nodes; unnest them"
    )


def find_opset(model: ModelProto) -> int:
    """The version of the standard operators, once it is known to be one that can be read."""
    if model.ir_version > onnx.IR_VERSION:
        raise InvalidModel(
            f"the model has IR version {model.ir_version}, but onnx {onnx.__version__} reads up "
            f"to {onnx.IR_VERSION}; install a newer onnx, or export for an older one"
        )
    versions = {o.version for o in model.opset_import if o.domain in STANDARD_DOMAINS}
    if len(versions) > 1:
        raise InvalidModel(f"the model imports the standard operators in versions {versions}")
    newest = onnx.defs.onnx_opset_version()
    # The first IR versions had no imports: the operator set was the first one too.
    opset = versions.pop() if versions else (1 if model.ir_version < 3 else newest)
    if opset < 1:
        raise InvalidModel(f"the model imports opset {opset}; versions begin with 1")
    if opset > newest:
        raise UnsupportedOp(
            f"the model imports opset {opset}, but onnx {onnx.__version__} knows up to {newest}; "
            "install a newer onnx, or export for an older opset"
        )
    return int(opset)


def check_domains(graph: GraphProto) -> None:
    """No node is of a domain that nothing is known of.

    The model's own functions, whose domains are free, are inlined before. Operators of the domain
    `polyc` stand between others that polyc made itself: code behind the import trusts them.
    """
    for node in all_nodes(graph.node):
        if node.domain not in DOMAINS:
            known = ", ".join(DOMAINS[2:])
            raise UnsupportedOp(
                f"node {brief(node.name)} ({brief(node.op_type)}) is of the domain "
                f"{brief(node.domain)}; known are the standard's, {known}, and domains of "
                "functions that the model brings: replace the node"
            )


def check_bodies(graph: GraphProto, opset: int) -> None:
    """A graph in an attribute has as many inputs and outputs as what is done with it asks for.

    If(c; then, else) -> y                 no input, one output
    Loop(n, c, s; body) -> s, ys           body(step, c, s) -> c, s, y
    Scan(s, x; body) -> s, ys              body(s, x[0]) -> s, y
    SequenceMap(x; body) -> y              body(x[0]) -> y
    """
    for node in all_nodes(graph.node):
        given, wanted = len(node.input), len(node.output)
        given -= node.op_type == "Scan" and opset < 9  # the first is the sequences' lengths
        given = 0 if node.op_type == "If" else given
        wanted += node.op_type == "Loop"
        for attribute in node.attribute:
            body = attribute.g
            if not attribute.HasField("g") or node.domain not in STANDARD_DOMAINS:
                continue
            if len(body.input) != given or len(body.output) < wanted:
                raise InvalidModel(
                    f"node {brief(node.name)} ({brief(node.op_type)}): its graph "
                    f"{brief(attribute.name)} has {len(body.input)} inputs and {len(body.output)} "
                    f"outputs, but should have {given} and {wanted}; export it again"
                )


def check_definitions(graph: GraphProto) -> None:
    """Each tensor is defined once, and before it is read; each output is defined."""
    given = [i.name for i in graph.input]
    _require_distinct(given, "input")
    _require_distinct([o.name for o in graph.output], "output")
    defined = {*given, *(t.name for t in graph.initializer)}
    later = {o for n in graph.node for o in n.output}
    for index, node in enumerate(graph.node):
        label = f"node {brief(node.name or f'{node.op_type}_{index}')} ({brief(node.op_type)})"
        for name in filter(None, node.input):
            if name not in defined and name in later:
                raise InvalidModel(
                    f"{label} reads {brief(name)}, which depends on what it writes; break the cycle"
                )
            if name not in defined:
                raise InvalidModel(
                    f"{label} reads {brief(name)}, which nothing defines; add it as an input"
                )
        for name in filter(None, node.output):
            if name in defined:
                raise InvalidModel(
                    f"{label} defines {brief(name)} again; a tensor is written once: rename one"
                )
            defined.add(name)
    for output in graph.output:
        if output.name not in defined:
            raise InvalidModel(f"output {brief(output.name)} is computed by no node; remove it")
    if not graph.output:
        raise InvalidModel("the graph has no output; there is nothing to compile")


def _require_distinct(names: Iterable[str], what: str) -> None:
    for name, count in Counter(names).items():
        if not name or count > 1:
            raise InvalidModel(f"{what} {brief(name)} is unnamed or listed twice; rename it")


def check_standard(model: ModelProto) -> None:
    """What the ONNX checker asks for: known operators, numbers of inputs, types of attributes."""
    checked = ModelProto()
    checked.CopyFrom(model)
    for output in checked.graph.output:
        # Types of outputs are inferred, so a model may leave them out; the checker insists on one.
        if not output.type.tensor_type.HasField("shape"):
            output.CopyFrom(_any_tensor(output.name))
    # The checker refuses deprecated operators, which are to be upgraded: their outputs stay as
    # inputs, and their own form is compared with the standard here.
    opset = find_opset(model)
    del checked.graph.node[:]
    for node in model.graph.node:
        if _is_deprecated(node, opset):
            checked.graph.input.extend(_any_tensor(o) for o in node.output if o)
        else:
            checked.graph.node.append(node)
    try:
        onnx.checker.check_model(checked)
    except Exception as error:  # C++, protobuf and unicode errors share no base
        raise InvalidModel(
            f"the ONNX checker refuses the model ({one_line(error)}); export it again"
        ) from error


def _any_tensor(name: str) -> ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, ())


def _is_deprecated(node: NodeProto, opset: int) -> bool:
    """Whether the standard advises against this operator; its form is checked if so."""
    if node.domain not in STANDARD_DOMAINS or not onnx.defs.has(node.op_type):
        return False
    try:
        schema = onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return False
    required = {a.name for a in schema.attributes.values() if a.required}
    complete = (
        schema.min_input <= len(node.input) <= schema.max_input
        and schema.min_output <= len(node.output) <= schema.max_output
        and required <= {a.name for a in node.attribute}
    )
    if schema.deprecated and not complete:
        raise InvalidModel(
            f"node {brief(node.name)} ({node.op_type}) lacks inputs, outputs or attributes that "
            f"opset {opset} asks for; export the model again"
        )
    return bool(schema.deprecated)


def check_functions(model: ModelProto, budget: Budget) -> None:
    """The calls among the model's functions end, and give a bounded number of nodes.

    Sizes are added from the callees up: ten functions that call the next one ten times each are a
    kilobyte on disk and ten thousand million nodes inlined.
    """
    bodies = {(f.domain, f.name, f.overload): list(all_nodes(f.node)) for f in model.functions}
    calls = {key: [(n.domain, n.op_type, n.overload) for n in body] for key, body in bodies.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        name = brief(error.args[1][0][1])
        raise InvalidModel(f"function {name} calls itself; it cannot be inlined") from None
    size: dict[tuple[str, str, str], int] = {}
    depth: dict[tuple[str, str, str], int] = {}
    for key in order:
        called = calls.get(key, [])
        size[key] = max(1, sum(size[c] for c in called))
        depth[key] = 1 + max((depth[c] for c in called), default=0)
    top = [(n.domain, n.op_type, n.overload) for n in all_nodes(model.graph.node)]
    total = sum(size.get(key, 1) for key in top)
    deepest = max((depth.get(key, 1) for key in top), default=0)
    if deepest > MAX_CALL_DEPTH:
        raise InvalidModel(
            f"the model's functions call each other {deepest} deep; the limit is {MAX_CALL_DEPTH}: "
            "inline some of them"
        )
    budget.check_nodes(total, f"the model, with its functions inlined ({total}),")


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, and those of their sub-graphs, without recursion."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting += attribute.g.node
            waiting += [n for g in attribute.graphs for n in g.node]
