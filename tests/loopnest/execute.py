"""Generated loops executed by Python: the meaning that passes over a LoopNest must keep.

A vector loop over assignments runs as its C does: each assignment for all lanes before the next,
and reads before writes. Locals are poisoned where they begin, and every index is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    LoopExpr,
    Node,
    Read,
    Test,
    Transpose,
    Value,
)
from polyc.scop.expr import Call, Cast, Const
from tests.loopnest.indices import evaluate, holds
from tests.scop.interpreter import FUNCTIONS, REDUCTIONS, convert

Arrays = dict[str, np.ndarray]
Values = Mapping[str, int]


def execute(node: Node, arrays: Arrays, values: Values | None = None) -> None:
    """Run the loops on arrays in stored form; what they write is changed in place."""
    values = values or {}
    match node:
        case Block(body, locals_):
            poison = {lo.name: _poisoned(lo.shape, lo.dtype) for lo in locals_}
            inside = {**arrays, **poison}
            for child in body:
                execute(child, inside, values)
        case For(kind="vector", body=Block(body=body)) if all(isinstance(n, Assign) for n in body):
            for assign in body:
                assert isinstance(assign, Assign)
                _lanes(assign, arrays, list(_iterations(node, values)))
        case For():
            end = None if node.end is None else int(_value(node.end, arrays, values))
            only = None if node.only is None else int(_value(node.only, arrays, values))
            for inside_values in _iterations(node, values):
                at = inside_values[node.var]
                if (end is None or at < end) and only in (None, at):
                    execute(node.body, arrays, inside_values)
        case If(condition, then, otherwise):
            chosen = then if holds(condition, values) else otherwise
            if chosen:
                execute(chosen, arrays, values)
        case Assign():
            _lanes(node, arrays, [values])
        case Transpose(array, _, lanes, rows):
            assert arrays[array].shape == (rows or lanes, lanes)
            arrays[array][:] = arrays[array].T.copy().reshape(arrays[array].shape)


def assert_same(before: Block, after: Block, arrays: Arrays) -> None:
    """Both do the same to the arrays, which are what `after` leaves."""
    expected = {name: value.copy() for name, value in arrays.items()}
    execute(before, expected)
    execute(after, arrays)
    for name, value in expected.items():
        np.testing.assert_array_equal(arrays[name], value, err_msg=f"{name}\n{after}")


def instances(node: Node, values: Values | None = None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The statement instances executed, in order."""
    values = values or {}
    match node:
        case Block(body=body):
            for child in body:
                yield from instances(child, values)
        case For(body=body):
            for inside in _iterations(node, values):
                yield from instances(body, inside)
        case If(condition, then, otherwise):
            chosen = then if holds(condition, values) else otherwise
            if chosen:
                yield from instances(chosen, values)
        case Assign(statement, instance):
            yield statement, tuple(evaluate(i, values) for i in instance)


def _iterations(loop: For, values: Values) -> Iterator[Values]:
    start, stop = evaluate(loop.lower, values), evaluate(loop.upper, values)
    return ({**values, loop.var: v} for v in range(start, stop, loop.step))


def _poisoned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, np.nan if dtype.kind == "f" else 77, dtype)


def _lanes(assign: Assign, arrays: Arrays, lanes: list[Values]) -> None:
    """target = value in all lanes: every value is read before one is written."""
    target = arrays[assign.target.array]
    computed = [_value(assign.value, arrays, values) for values in lanes]
    for values, value in zip(lanes, computed, strict=True):
        place = _place(assign.target, arrays, values, goes_on=len(lanes) > 1)
        assert np.asarray(value).dtype == assign.dtype, f"{assign.statement}: {value.dtype}"
        if assign.reduction:
            value = REDUCTIONS[assign.reduction](target[place], value)
        target[place] = value


def _place(
    element: Element, arrays: Arrays, values: Values, goes_on: bool = False
) -> tuple[int, ...]:
    """The place of an element; goes_on: in the next row, where a vector is longer than one."""
    place = tuple(evaluate(i, values) for i in element.index)
    shape = arrays[element.array].shape
    if goes_on and len(place) == len(shape) == 2 and place[1] >= shape[1] > 0:
        place = (place[0] + place[1] // shape[1], place[1] % shape[1])
    inside = len(place) == len(shape) and all(0 <= k < n for k, n in zip(place, shape, strict=True))
    assert inside, f"{element} at {values} leaves {shape}"
    return place


def _value(expr: LoopExpr, arrays: Arrays, values: Values) -> np.generic:
    match expr:
        case Const(value, dtype):
            return dtype.type(value)
        case Value(index, dtype):
            return dtype.type(evaluate(index, values))
        case Test(condition, dtype):
            return dtype.type(holds(condition, values))
        case Read(element, _, dynamic):
            index = tuple(evaluate(i, values) for i in element.index)
            given = {d: int(_value(e, arrays, values)) for d, e in dynamic}
            place = tuple(given.get(d, i) for d, i in enumerate(index))
            shape = arrays[element.array].shape
            assert all(0 <= k < n for k, n in zip(place, shape, strict=True)), f"{element}: {place}"
            return arrays[element.array][place]
        case Call("select", (test, then, otherwise)):
            return _value(then if _value(test, arrays, values) else otherwise, arrays, values)
        case Call(function, arguments, dtype):
            given_values = [np.asarray([_value(a, arrays, values)]) for a in arguments]
            return FUNCTIONS[function](*given_values).astype(dtype)[0]
        case Cast(argument, dtype):
            return convert(np.asarray([_value(argument, arrays, values)]), dtype)[0]
