"""Give Gemm its plain form, A B + C, wherever constants allow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.rewriting import (
    SMALL_CONSTANT_BYTES,
    Change,
    Rewritten,
    Scope,
    apply_rule,
)
from polyc.types.element_types import is_float

_DEFAULTS = {"transA": 0, "transB": 0, "alpha": 1.0, "beta": 1.0}
_ABSORBERS = {"transA": (0,), "transB": (1,), "alpha": (1, 0), "beta": (2,)}
"""Attribute -> the operands (A, B, C) that can absorb it, the likelier one first."""


def normalize_gemms(graph: Graph) -> Rewritten:
    """Fold the factors and transpositions of Gemm into its constant operands.

    y = Gemm(A, B, C; alpha=2, beta=3, transB=1)   ->   y = Gemm(A, 2 * B^T, 3 * C)

    Scaled in float64 and rounded once; nothing is folded if that overflows. A large constant that
    has other readers is left alone, as it would be stored twice.
    """
    return apply_rule(graph, "gemm", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op != "Gemm" or node.domain or not is_float(scope.tensor(node.outputs[0]).dtype):
        return None
    plan = _plan(scope, node)
    inputs = list(node.inputs)
    constants = []
    for operand in sorted(set(plan.values())):
        taken = [attribute for attribute, k in plan.items() if k == operand]
        constant = _absorb(scope, node, operand, taken)
        if constant is None:
            return None
        constants.append(constant)
        inputs[operand] = constant.name
    if not plan:
        return None
    attributes = {k: v for k, v in node.attributes.items() if k not in plan}
    text = f"{', '.join(plan)} of Gemm '{node.name}' folded into constants"
    plain = replace(node, inputs=tuple(inputs), attributes=attributes)
    return Change(text, (plain,), tuple(constants))


def _plan(scope: Scope, node: Node) -> dict[str, int]:
    """Attribute that is not at its default -> the operand that absorbs it."""
    constant = [k for k, name in enumerate(node.inputs) if name and _may_replace(scope, name)]
    plan = {}
    for attribute, operands in _ABSORBERS.items():
        takers = [k for k in operands if k in constant]
        if takers and node.get(attribute, _DEFAULTS[attribute]) != _DEFAULTS[attribute]:
            plan[attribute] = takers[0]
    return plan


def _may_replace(scope: Scope, name: str) -> bool:
    value = scope.value(name)
    if value is None:
        return False
    return scope.is_read_once(name) or value.nbytes <= SMALL_CONSTANT_BYTES


def _absorb(scope: Scope, node: Node, operand: int, attributes: list[str]) -> Tensor | None:
    original = scope.tensor(node.inputs[operand])
    value = np.asarray(original.value, np.float64)
    for attribute in attributes:
        value = value.T if attribute.startswith("trans") else value * node.get(attribute)
    with np.errstate(over="ignore"):
        rounded = np.asarray(value, original.dtype, order="C")
    if not np.isfinite(rounded).all():
        return None
    return scope.constant(original.name, rounded)
