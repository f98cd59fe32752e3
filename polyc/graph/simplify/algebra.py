"""Algebraic rules that hold for every IEEE value: NaN, infinities, signed zeros and subnormals.

| before                     | after           | why it is exact                                 |
|----------------------------|-----------------|-------------------------------------------------|
| x + -0.0, x - 0.0          | x               | also for ±0.0; x + 0.0 would turn -0.0 into 0.0 |
| x * 1, x / 1, x ** 1       | x               | the result needs no rounding                    |
| x + 0, x - 0, x or 0, ...  | x               | integers; `or`, `xor` and shifts bit by bit     |
| x and true, x or false     | x               | booleans                                        |
| x * -1                     | -x              | only the sign changes                           |
| -(-x), not not x           | x               | the sign bit, the truth value, flips twice      |
| x + -y, x - -y, -x * -y    | x-y, x+y, x*y   | IEEE defines x - y as x + (-y)                  |
| f(f(x))                    | f(x)            | f: Abs, Ceil, Floor, Relu, Round, Sign          |
| Abs(-x)                    | Abs(x)          | the sign bit is cleared anyway                  |
| max(x, x), x and x, ...    | x               | one value                                       |
| x ** 2                     | x * x           | one rounding of x²                              |
| x ** 3                     | x * x * x       | two roundings (1.5 ulp), same special values    |
| x ** -1, 1 / x             | Reciprocal(x)   | one rounding of 1/x                             |
| x ** 0.5                   | Sqrt(x)         | only where x is seen to be never -0.0 or -inf   |
| x / c                      | x * (1/c)       | c = ±2^k, 1/c normal: one rounding of x/c       |
| (x + c) + d, (x * c) * d   | x+(c+d), ...    | integers, modulo 2^n                            |
| (x * c) * d                | x * (c*d)       | c, d = ±2^k, |c|, |d| >= 1: only overflow       |
| Where(c, x, y)             | x or y          | c constant, all true or all false               |

"Exact" is up to the payload and sign of a NaN. Not here, because they are wrong for some value:
x * 0 -> 0 (NaN, inf), x - x -> 0 (NaN, inf), x / x -> 1 (0, inf), Sqrt(x * x) -> |x| (overflow),
(x + c) + d for floats (rounding), x / c -> x * (1/c) for other c (two roundings).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, drop, is_filled
from polyc.types.element_types import is_float

_SEARCH_DEPTH = 4
"""How many nodes up `_is_never_negative` looks; variance + epsilon needs three."""


def simplify_algebra(graph: Graph) -> Rewritten:
    """Apply the table above, e.g. y = Pow(x, 2) -> y = Mul(x, x)."""
    return apply_rule(graph, "algebra", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    for rule in _RULES.get(node.op, ()):
        change = rule(scope, node)
        if change is not None:
            return change
    return None


def _became(node: Node, op: str, inputs: tuple[str, ...], *tensors: Tensor) -> Change:
    text = f"{node.op} '{node.name}' became {op}({', '.join(inputs)})"
    return Change(text, (Node(node.name, op, inputs, node.outputs),), tensors)


def _keeps_shape(scope: Scope, node: Node, operand: str) -> bool:
    """Whether broadcasting and promotion leave this operand as it is."""
    source, target = scope.tensor(operand), scope.tensor(node.outputs[0])
    return source.shape == target.shape and source.dtype == target.dtype


def _neutral(scope: Scope, node: Node) -> Change | None:
    # x + -0.0 -> x, 1 * x -> x
    left, right = node.inputs[:2]
    sides = [(left, right)] if node.op in _NOT_COMMUTATIVE else [(left, right), (right, left)]
    for operand, other in sides:
        number = _NEUTRAL[node.op]
        if node.op == "Add" and is_float(scope.tensor(other).dtype):
            number = -0.0
        if is_filled(scope.value(other), number) and _keeps_shape(scope, node, operand):
            return drop(node, operand, f"{number} is neutral")
    return None


def _times_minus_one(scope: Scope, node: Node) -> Change | None:
    for operand, other in (node.inputs, node.inputs[::-1]):
        dtype = scope.tensor(other).dtype
        signed = dtype.kind == "i" or is_float(dtype)
        negates = signed and is_filled(scope.value(other), -1)
        if negates and _keeps_shape(scope, node, operand):
            return _became(node, "Neg", (operand,))
    return None


def _inverse(scope: Scope, node: Node) -> Change | None:
    # -(-x) -> x
    inner = scope.producer(node.inputs[0])
    if inner is None or inner.op != node.op:
        return None
    return drop(node, inner.inputs[0], f"it undoes '{inner.name}'")


def _idempotent(scope: Scope, node: Node) -> Change | None:
    # Floor(Floor(x)) -> Floor(x); the four roundings also leave each other's results alone
    inner = scope.producer(node.inputs[0])
    if inner is None:
        return None
    if inner.op == node.op or (inner.op in _ROUNDINGS and node.op in _ROUNDINGS):
        return drop(node, node.inputs[0], f"'{inner.name}' has done it")
    if node.op == "Abs" and inner.op == "Neg":
        return _became(node, "Abs", inner.inputs)
    return None


def _same_operands(scope: Scope, node: Node) -> Change | None:
    if len(set(node.inputs)) > 1 or len(node.inputs) < 2:
        return None
    return drop(node, node.inputs[0], "its operands are one tensor")


def _absorb_negation(scope: Scope, node: Node) -> Change | None:
    # x + -y -> x - y;  x - -y -> x + y;  -x * -y -> x * y
    left, right = (_negated(scope, i) for i in node.inputs)
    x, y = node.inputs
    if node.op == "Mul":
        return _became(node, "Mul", (left, right)) if left and right else None
    if right:
        return _became(node, "Sub" if node.op == "Add" else "Add", (x, right))
    return _became(node, "Sub", (y, left)) if left and node.op == "Add" else None


def _negated(scope: Scope, name: str) -> str:
    producer = scope.producer(name)
    return producer.inputs[0] if producer is not None and producer.op == "Neg" else ""


def _power(scope: Scope, node: Node) -> Change | None:
    base, exponent = node.inputs[0], scope.value(node.inputs[1])
    if not _keeps_shape(scope, node, base):
        return None
    if is_filled(exponent, 2):
        return _became(node, "Mul", (base, base))
    if is_filled(exponent, 3):
        return _cube(scope, node)
    if not is_float(scope.tensor(base).dtype):
        return None
    if is_filled(exponent, -1):
        return _became(node, "Reciprocal", (base,))
    if is_filled(exponent, 0.5) and _is_never_negative(scope, base):
        return _became(node, "Sqrt", (base,))
    return None


def _cube(scope: Scope, node: Node) -> Change:
    base = scope.tensor(node.inputs[0])
    square = scope.result(f"{node.outputs[0]}_square", base.dtype, base.shape)
    nodes = (
        Node(f"{node.name}_square", "Mul", (base.name, base.name), (square.name,)),
        Node(node.name, "Mul", (square.name, base.name), node.outputs),
    )
    return Change(f"Pow '{node.name}' became two multiplications", nodes, (square,))


def _is_never_negative(scope: Scope, name: str, depth: int = _SEARCH_DEPTH) -> bool:
    """Whether each element is NaN or has the sign bit clear, as its node shows."""
    value = scope.value(name)
    if value is not None:
        return not np.signbit(value).any()
    node = scope.producer(name)
    if node is None or depth == 0:
        return False
    if node.op in ("Abs", "Exp", "Sigmoid", "Softmax", "ReduceSumSquare"):
        return True
    if node.op == "Mul" and node.inputs[0] == node.inputs[1]:
        return True
    if node.op in ("Add", "Mul", "ReduceMean", "ReduceSum", "ReduceMax"):
        operands = node.inputs[:1] if node.op.startswith("Reduce") else node.inputs
        return all(_is_never_negative(scope, i, depth - 1) for i in operands)
    return False


def _division(scope: Scope, node: Node) -> Change | None:
    left, right = node.inputs
    if not is_float(scope.tensor(left).dtype):
        return None
    if is_filled(scope.value(left), 1) and _keeps_shape(scope, node, right):
        return _became(node, "Reciprocal", (right,))
    divisor = scope.value(right)
    if divisor is None or not _is_power_of_two(divisor):
        return None
    with np.errstate(over="ignore"):
        inverse = np.asarray(1 / divisor, divisor.dtype)
    if not _is_power_of_two(inverse):
        return None
    constant = scope.constant(f"{right}_inverse", inverse)
    return _became(node, "Mul", (left, constant.name), constant)


def _is_power_of_two(value: np.ndarray) -> bool:
    """Whether each element is ±2^k, finite and normal."""
    tiny = ml_dtypes.finfo(value.dtype).tiny
    mantissa, _ = np.frexp(value)
    return bool(((np.abs(mantissa) == 0.5) & (np.abs(value) >= tiny) & np.isfinite(value)).all())


def _reassociate(scope: Scope, node: Node) -> Change | None:
    # (x op c) op d -> x op (c op d)
    operand, outer = _constant_operand(scope, node)
    inner = scope.producer(operand)
    if outer is None or inner is None or inner.op != node.op or not scope.is_read_once(operand):
        return None
    source, first = _constant_operand(scope, inner)
    if first is None or not _is_exact_chain(node.op, first, outer):
        return None
    with np.errstate(over="ignore"):
        merged = first + outer if node.op == "Add" else first * outer
    if is_float(merged.dtype) and not np.isfinite(merged).all():
        return None
    constant = scope.constant(f"{node.outputs[0]}_constant", np.asarray(merged))
    text = f"constants of {node.op} '{inner.name}' and '{node.name}' merged"
    return Change(text, (replace(node, inputs=(source, constant.name)),), (constant,))


def _constant_operand(scope: Scope, node: Node) -> tuple[str, np.ndarray | None]:
    left, right = node.inputs
    value = scope.value(right)
    return (left, value) if value is not None else (right, scope.value(left))


def _is_exact_chain(op: str, first: np.ndarray, second: np.ndarray) -> bool:
    if first.dtype.kind in "iu":
        return True
    if not is_float(first.dtype) or op != "Mul":
        return False
    # Scaling down twice would round twice among the subnormals.
    return all(_is_power_of_two(c) and bool((np.abs(c) >= 1).all()) for c in (first, second))


def _where(scope: Scope, node: Node) -> Change | None:
    condition = scope.value(node.inputs[0])
    if condition is None or not condition.size or condition.all() != condition.any():
        return None
    chosen = node.inputs[1] if condition.all() else node.inputs[2]
    if not _keeps_shape(scope, node, chosen):
        return None
    return drop(node, chosen, "its condition is constant")


_NEUTRAL: dict[str, float] = {
    **dict.fromkeys(("Add", "Sub", "BitwiseOr", "BitwiseXor", "BitShift", "Or", "Xor"), 0),
    **dict.fromkeys(("Mul", "Div", "Pow", "And"), 1),
}
_NOT_COMMUTATIVE = ("Sub", "Div", "Pow", "BitShift")
_ROUNDINGS = ("Ceil", "Floor", "Round")
_RULES: dict[str, tuple[Callable[[Scope, Node], Change | None], ...]] = {
    "Add": (_neutral, _absorb_negation, _reassociate),
    "Sub": (_neutral, _absorb_negation),
    "Mul": (_neutral, _times_minus_one, _absorb_negation, _reassociate),
    "Div": (_neutral, _division),
    "Pow": (_neutral, _power),
    "BitShift": (_neutral,),
    **dict.fromkeys(("And", "Or", "BitwiseOr"), (_neutral, _same_operands)),
    **dict.fromkeys(("Max", "Min", "BitwiseAnd"), (_same_operands,)),
    **dict.fromkeys(("Xor", "BitwiseXor"), (_neutral,)),
    **dict.fromkeys(("Neg", "Not"), (_inverse,)),
    **dict.fromkeys(("Abs", *_ROUNDINGS, "Relu", "Sign"), (_idempotent,)),
    "Where": (_where,),
}
