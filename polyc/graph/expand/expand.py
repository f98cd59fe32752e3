"""Nodes that stand for several others: functions of the standard, layers, control flow.

Where this compiler has no rule of its own for an operator, what it compiles is what the standard
says about it in terms of others, or what a table here says. `expand_node` is asked during type
inference, when types and many values are known. What comes out is ordinary nodes, so that all that
follows, fusion above all, sees what there is to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx

from polyc.budget import UNLIMITED, Budget
from polyc.errors import NotFixed, ShapeError
from polyc.graph.bodies import Names, instantiate
from polyc.graph.compose import Composer
from polyc.graph.expand.contrib.operators import CONTRIB, CONTRIB_DOMAIN
from polyc.graph.expand.contrib.signatures import find_contrib_signature
from polyc.graph.expand.control.keep import keep_branches
from polyc.graph.expand.control.loop import repeat_loop
from polyc.graph.expand.control.repeat import Around, Operands, Typed, repeat_scan
from polyc.graph.expand.control.unroll import CONTROL_FLOW
from polyc.graph.expand.determinant import expand_det
from polyc.graph.expand.finding import (
    expand_compress,
    expand_computed,
    expand_count,
    expand_non_zero,
    expand_scatter_true,
    expand_trim,
    expand_unique,
)
from polyc.graph.expand.fourier import expand_dft, expand_stft
from polyc.graph.expand.functions import find_function
from polyc.graph.expand.images.affine_grid import expand_affine_grid
from polyc.graph.expand.images.columns import expand_col2im
from polyc.graph.expand.images.deformed import expand_deform_conv
from polyc.graph.expand.images.regions import (
    expand_align_regions,
    expand_max_roi_pool,
    expand_roi_align,
)
from polyc.graph.expand.images.suppression import expand_suppression
from polyc.graph.expand.images.unpooling import expand_max_unpool
from polyc.graph.expand.learned.operators import LEARNED
from polyc.graph.expand.ngrams import expand_tf_idf
from polyc.graph.expand.random import (
    expand_bernoulli,
    expand_dropout,
    expand_multinomial,
    expand_random,
    is_training,
)
from polyc.graph.expand.recurrent import expand_recurrent
from polyc.graph.expand.selection import expand_top_k
from polyc.graph.expand.training import STEPS, expand_optimiser
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.naming import ML_DOMAIN
from polyc.graph.shapes import is_supported
from polyc.graph.shapes.attributes import check_ranges
from polyc.graph.shapes.checks import RuleBroken, given
from polyc.graph.shapes.signature import bind_types, check_attributes, find_signature

DISTRIBUTIONS = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

COMPOSED: dict[str, Callable[[Node, Sequence[Tensor | None]], Body]] = {
    **dict.fromkeys(("LSTM", "GRU", "RNN"), expand_recurrent),
    **dict.fromkeys(STEPS, expand_optimiser),
    **dict.fromkeys(DISTRIBUTIONS, expand_random),
    "AffineGrid": expand_affine_grid,
    "AlignRegions": expand_align_regions,
    "Bernoulli": expand_bernoulli,
    "Col2Im": expand_col2im,
    "Compress": expand_compress,
    "Computed": expand_computed,
    "Count": expand_count,
    "DFT": expand_dft,
    "DeformConv": expand_deform_conv,
    "Det": expand_det,
    "Dropout": expand_dropout,
    "MaxRoiPool": expand_max_roi_pool,
    "MaxUnpool": expand_max_unpool,
    "Multinomial": expand_multinomial,
    "NonMaxSuppression": expand_suppression,
    "NonZero": expand_non_zero,
    "RoiAlign": expand_roi_align,
    "STFT": expand_stft,
    "ScatterTrue": expand_scatter_true,
    "TfIdfVectorizer": expand_tf_idf,
    "Trim": expand_trim,
    "Unique": expand_unique,
}
"""Operator -> the nodes that it stands for, by its own inputs."""

CHEAPER: dict[str, Callable[[Node, Sequence[Tensor | None]], Body | None]] = {"TopK": expand_top_k}
"""Operator with statements of its own -> nodes that take less, for operands of which they do."""

VARIADIC = frozenset({"Max", "Mean", "Min", "Sum"})
MOST_OPERANDS = 64
"""Operands of a pointwise node that are read by one expression."""

_OF_ANY_TYPE = frozenset({*CONTROL_FLOW, *STEPS, "SequenceMap"})
"""Operators whose inputs may be of different types in one variadic list, or no tensors."""

KEPT: dict[str, Callable[[Node, Operands, Around], Body | Typed | None]] = {
    "If": keep_branches,
    "Loop": repeat_loop,
    "Scan": repeat_scan,
}
"""Operator -> the loop around kernels that it is, or both of its branches, if it can be kept so."""

DOMAINS = ("", "ai.onnx.preview.training", INTERNAL)
"""Where the operators of `COMPOSED` are defined; no name is in two."""


def expand_node(
    node: Node,
    inputs: Sequence[Tensor | None],
    names: Names,
    around: Around | None = None,
    budget: Budget = UNLIMITED,
) -> tuple[Node, ...] | Typed | None:
    """The nodes that a node stands for, in order; None if it stands for itself.

    `inputs` are its operands' types, with values where they are known. The new nodes write
    `node.outputs`, and may have to be expanded again. `around` is what control flow is given to try
    what its steps are; without it they are written out, within `budget`. Raises UnsupportedOp for
    control flow that is decided at run time.
    """
    title = f"{node.op} {node.name!r}"
    try:
        if node.domain == "" and node.op in VARIADIC and len(inputs) > MOST_OPERANDS:
            return instantiate(node, _divide_operands(node, inputs), names)
        if node.domain == "" and is_supported(node.op) and not is_training(node, inputs):
            body = CHEAPER[node.op](node, inputs) if node.op in CHEAPER else None
            return instantiate(node, body, names) if body else None
        _check_form(node, inputs)
        if around and node.domain == "" and node.op in KEPT:
            kept = KEPT[node.op](node, inputs, around)
            if kept is not None:
                return kept if isinstance(kept, Typed) else instantiate(node, kept, names)
        if node.domain == "" and node.op in CONTROL_FLOW:
            whole = replace(node, name=node.get("of", node.name))
            return instantiate(whole, CONTROL_FLOW[node.op](node, inputs, budget), names)
        if node.domain in DOMAINS and node.op in COMPOSED:
            return instantiate(node, COMPOSED[node.op](node, inputs), names)
        if node.domain == ML_DOMAIN and node.op in LEARNED:
            return instantiate(node, LEARNED[node.op](node, inputs), names)
        if node.domain == CONTRIB_DOMAIN and node.op in CONTRIB:
            return instantiate(node, CONTRIB[node.op](node, inputs), names)
        body = find_function(node, inputs)
    except RuleBroken as broken:
        raise ShapeError(f"{title}: {broken}") from broken
    except NotFixed as unknown:
        statement = f"{title}: {unknown.statement}"
        raise unknown.saying(statement) from unknown
    return None if body is None else instantiate(node, body, names)


def _divide_operands(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """Sum(x0, …, x999) -> Sum(Sum(x0, …, x63), x64, …, x126) and so on: in the same order."""
    c = Composer()
    op = "Sum" if node.op == "Mean" else node.op
    result, *rest = node.inputs
    for k in range(0, len(rest), MOST_OPERANDS - 1):
        result = c(op, result, *rest[k : k + MOST_OPERANDS - 1])
    if node.op == "Mean":
        result = c("Div", result, c.constant(len(inputs), given(inputs[0]).dtype))
    return c.body(tuple(dict.fromkeys(node.inputs)), (result,))


def _check_form(node: Node, inputs: Sequence[Tensor | None]) -> None:
    """Attributes are of the kinds and in the ranges that the operator has, and so are operands."""
    if node.domain == CONTRIB_DOMAIN:
        signature = find_contrib_signature(node.op)
    elif onnx.defs.has(node.op, node.domain):
        signature = find_signature(node.op, node.domain)
    else:
        signature = None  # an operator of our own, or one that is not known
    if signature is None:
        return
    if node.op not in CONTROL_FLOW:  # those have attributes of our own
        check_attributes(node, signature)
    check_ranges(node)
    if node.op not in _OF_ANY_TYPE:
        bind_types(signature, inputs, len(node.outputs))
