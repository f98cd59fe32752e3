"""Shape and type inference: the output types of one node from the types of its inputs.

`infer_node` checks a node against the standard's signature (`signature`), then calls the shape
rule of its operator. Rules live in one module for each kind of operator; each is one function
under `@shape_rule`. Their arithmetic (windows, slices, broadcasting, pads, …) is public and pure:
the lowering to statements calls the same functions, so shapes and loops cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyc.errors import NotFixed, ShapeError, UnsupportedOp
from polyc.graph.ir import INTERNAL, MAX_RANK, Node, Shape, Tensor
from polyc.graph.shapes import (  # noqa: F401  (imported to fill the table of rules)
    contraction,
    convolution,
    creation,
    gather,
    movement,
    normalization,
    pointwise,
    pooling,
    quantization,
    reduction,
    resize,
    sampling,
    scatter,
    slicing,
)
from polyc.graph.shapes.attributes import check_ranges
from polyc.graph.shapes.checks import RuleBroken, describe_tensor, require, require_rank
from polyc.graph.shapes.internal import INTERNAL_TYPES
from polyc.graph.shapes.rules import RULES
from polyc.graph.shapes.signature import Signature, bind_types, check_attributes, find_signature

MAX_ELEMENTS = 2**40
"""Largest tensor: 4 TiB of float32, beyond any machine, yet far from overflow in 64-bit indices."""


def infer_node(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """The output types of a node in the newest form of its operator.

        Conv(X: float32[1,32,8,8], W: float32[64,32,3,3]) -> (Y: float32[1,64,6,6],)

    `inputs[i]` is None where the node omits an input, and has a value where it is a constant. The
    result has one tensor for each of `node.outputs`; an absent output's tensor has the name "".
    Raises ShapeError where shapes or element types do not fit, InvalidModel for malformed
    attributes, UnsupportedOp for an operator without a rule or a shape known only at run time.
    """
    if node.domain == INTERNAL and node.op in INTERNAL_TYPES:
        return INTERNAL_TYPES[node.op](node, inputs)
    if node.domain not in ("", "ai.onnx") or node.op not in RULES:
        domain = f" of domain {node.domain!r}" if node.domain else ""
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: operator {node.op}{domain} is not supported; "
            "replace it by operators that are, or keep it out of the compiled model"
        )
    signature = find_signature(node.op)
    check_attributes(node, signature)
    check_ranges(node)
    try:
        for tensor in filter(None, inputs):
            require_rank(tensor, f"tensor {tensor.name!r}", 0, MAX_RANK)
        bound = bind_types(signature, inputs, len(node.outputs))
        padded = (*inputs, *[None] * (len(signature.inputs) - len(inputs)))
        shapes = RULES[node.op].shapes(node, padded)
        for shape in shapes:
            _check_size(shape)
        types = [_output_type(node, i, signature, bound, padded) for i in range(len(node.outputs))]
    except RuleBroken as broken:
        raise ShapeError(_locate(node, signature, inputs, broken)) from broken
    except NotFixed as broken:
        located = _locate(node, signature, inputs, broken).removesuffix(f"; {broken.way_out}")
        raise broken.saying(located) from broken
    pairs = zip(node.outputs, types, shapes[: len(types)], strict=True)
    return tuple(Tensor(name, dtype, shape) for name, dtype, shape in pairs)


def is_supported(op: str) -> bool:
    """Whether an operator of the standard has a shape rule."""
    return op in RULES


def _output_type(
    node: Node,
    index: int,
    signature: Signature,
    bound: dict[str, np.dtype],
    inputs: Sequence[Tensor | None],
) -> np.dtype:
    variable = signature.formal_output(index).type_variable
    allowed = signature.allowed[variable]
    chosen = RULES[node.op].dtype
    if variable in bound:
        return bound[variable]
    if len(allowed) == 1:
        return next(iter(allowed))
    assert chosen is not None, f"the rule of {node.op} must say the type of output {index}"
    dtype = chosen(node, inputs)
    names = ", ".join(sorted(map(str, allowed)))
    require(dtype in allowed, "element type of the output", f"one of {names}", dtype, "ask for one")
    return dtype


def _check_size(shape: Shape) -> None:
    rank, way_out = len(shape), "join dimensions, or drop those of extent 1"
    require(rank <= MAX_RANK, "rank of the output", f"at most {MAX_RANK}", rank, way_out)
    # Zeros are left out: a tensor without elements must not hide another extent that overflows.
    size = math.prod(d for d in shape if isinstance(d, int) and d)
    if size > MAX_ELEMENTS:
        limit = f"at most 2**{MAX_ELEMENTS.bit_length() - 1}"
        raise RuleBroken("number of elements of the output", limit, size, "use a smaller size")


def _locate(
    node: Node,
    signature: Signature,
    inputs: Sequence[Tensor | None],
    broken: RuleBroken | NotFixed,
) -> str:
    """The message of a broken rule, with the node and everything that decided it."""
    roles = [(signature.formal_input(i).name, t) for i, t in enumerate(inputs) if signature.inputs]
    seen = [describe_tensor(role, t) for role, t in roles if t is not None]
    seen += [
        f"{k}={v}" for k, v in sorted(node.attributes.items()) if not isinstance(v, np.ndarray)
    ]
    return f"{node.op} {node.name!r}: {broken.statement} ({', '.join(seen)}); {broken.way_out}"
