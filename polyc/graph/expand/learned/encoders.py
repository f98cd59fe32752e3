"""LabelEncoder and CategoryMapper: numbers by a search in a sorted table; text is a call's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.learned.tables import refuse, require_length
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.naming import ML_DOMAIN
from polyc.graph.shapes.checks import given

Operands = Sequence[Tensor | None]

_TYPES = {"int64s": np.int64, "floats": np.float32}


def expand_label_encoder(node: Node, inputs: Operands) -> Body:
    """x[…] -> […]: the value whose key x is, of equal keys the first, or a default one"""
    c, x = Composer(), given(inputs[0])
    keys, values = _read(node, "keys"), _read(node, "values")
    require_length(node, "the table of values", len(values), len(keys))
    if keys.dtype != x.dtype:
        raise refuse(node, f"X is {x.dtype}, and the keys are {keys.dtype}")
    default = c.constant(_read_default(node, values.dtype))
    distinct, first = np.unique(keys, return_index=True)
    # A NaN is a key like others, which sorting puts last.
    lost = first[np.isnan(distinct)] if keys.dtype.kind == "f" else first[:0]
    first = first[: len(first) - len(lost)]
    result = default
    if len(first):
        at = _search(c, node.inputs[0], keys[first])
        same = c("Equal", c("Gather", c.constant(keys[first]), at), node.inputs[0])
        result = c("Where", same, c("Gather", c.constant(values[first]), at), default)
    if len(lost):
        result = c("Where", c("IsNaN", node.inputs[0]), c.constant(values[lost[0]]), result)
    return c.body(node.inputs, (c("Expand", result, c("Shape", node.inputs[0])),))


def _search(c: Composer, x: str, keys: np.ndarray) -> str:
    """x[…] -> int64[…]: where in rising keys the last one is that is not above x, or 0"""
    at, step = c("Expand", c.constant(np.int64(0)), c("Shape", x)), 1
    while step < len(keys):
        step *= 2
    table = c.constant(np.pad(keys, (0, step - len(keys)), mode="edge"))
    while step > 1:
        step //= 2
        probe = c("Add", at, c.constant(np.int64(step)))
        at = c("Where", c("LessOrEqual", c("Gather", table, probe), x), probe, at)
    return c("Min", at, c.constant(np.int64(len(keys) - 1)))


def _read(node: Node, what: str) -> np.ndarray:
    """The keys or values of a table, in the one form of several that is given."""
    forms = [
        f"{what}_{form}" for form in (*_TYPES, "tensor") if f"{what}_{form}" in node.attributes
    ]
    if len(forms) != 1:
        raise refuse(node, f"it has {', '.join(forms) or 'none'} for {what}, and needs one table")
    table = node.attributes[forms[0]]
    table = np.asarray(table, _TYPES.get(forms[0].removeprefix(f"{what}_")))
    if not table.size:
        raise refuse(node, f"{forms[0]} is empty")
    return table.reshape(-1)


def _read_default(node: Node, dtype: np.dtype) -> np.ndarray:
    """What a key that is not there gives."""
    tensor = node.get("default_tensor")
    if tensor is not None:
        if tensor.size != 1 or tensor.dtype != dtype:
            raise refuse(node, f"default_tensor is {tensor.dtype}{list(tensor.shape)}, not {dtype}")
        return np.asarray(tensor).reshape(())
    if dtype.kind == "f":
        return np.array(node.get("default_float", -0.0), dtype)
    default, limits = int(node.get("default_int64", -1)), np.iinfo(dtype)
    if not limits.min <= default <= limits.max:
        raise refuse(node, f"default_int64 is {default}, which is no {dtype}")
    return np.array(default, dtype)


def expand_category_mapper(node: Node, inputs: Operands) -> Body:
    """Numbers to text, as an encoder's; text to numbers is computed where it is."""
    c = Composer()
    numbers, names = node.get("cats_int64s", ()), node.get("cats_strings", ())
    require_length(node, "cats_strings", len(names), len(numbers))
    table = {"keys_int64s": list(numbers), "values_strings": list(names)}
    default = node.get("default_string", "_Unused")
    text = c("LabelEncoder", node.inputs[0], domain=ML_DOMAIN, default_string=default, **table)
    return c.body(node.inputs, (text,))
