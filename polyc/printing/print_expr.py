"""Expressions and assignments in C, scalar and vector, by one table-driven rule.

A call f(a, b) on float32 prints as `pc_f_f32(a, b)`, on 16 lanes as `pc_f_f32x16(a, b)`; the four
float operations print infix. A load in a vector loop prints by its stride: 0 is a broadcast, 1 a
vector load, another constant a strided load, and anything else is gathered lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from polyc.loopnest.index import (
    Affine,
    Compare,
    Condition,
    choice,
    const,
    decide,
    of_extent,
    stride,
    variables,
)
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.instructions import bind, find_move
from polyc.loopnest.nodes import (
    Assign,
    Element,
    LoopExpr,
    Read,
    Test,
    Transpose,
    Value,
    walk_expr,
)
from polyc.loopnest.registers import register_of
from polyc.loopnest.substitute import substitute_element, substitute_expr
from polyc.loopnest.uniform import is_number, variables_of
from polyc.printing.literals import bare, literal
from polyc.printing.picked import find_picked
from polyc.printing.quantised import find_quantised
from polyc.printing.scope import Scope, Uses
from polyc.scop.expr import COMPARISONS, INT64, ORDERED, Call, Cast, Const
from polyc.scop.scop import identity
from polyc.target.instructions.lanes import COUNT, ROWS, STRIDE
from polyc.target.instructions.rows import VectorInstruction
from polyc.types.element_types import is_narrow, scalar_type, wide

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
STORED = frozenset({"select", "as_bits", "from_bits"})
"""Functions of values that are only stored."""

OF_ARGUMENT = COMPARISONS | {f"mask_{name}" for name in ORDERED} | {"as_bits"}
"""Functions that are named by the type of what they are applied to."""


@dataclass(frozen=True)
class Printer:
    """Prints assignments; `uses` gathers what they call."""

    uses: Uses

    # -- assignments --------------------------------------------------------------------------

    def scalar(self, assign: Assign, scope: Scope) -> str:
        """target = value;"""
        return self.scalar_of(assign, self.expr(assign.value, scope), scope)

    def scalar_of(self, assign: Assign, value: str, scope: Scope) -> str:
        """target = value, for a value that is text already."""
        return self._update(assign, self._place(assign.target, scope), value, scope)

    def vector(self, assign: Assign, scope: Scope) -> list[str]:
        """The assignment for all lanes of scope.lanes at once."""
        assert scope.lanes is not None
        lanes, dtype = scope.count, assign.dtype
        if assign.target.array in scope.registers:
            register = register_of(assign.target, scope.lanes)
            assert register is not None
            local = scope.registers[assign.target.array].local
            name = register.name(local)
            if register.lanes == 1:
                return self._reduce_lanes(assign, name, scope)
            fused = self._fused(assign, name, scope)
            if fused and (scope.is_full or not local.is_tile):
                return [fused]
            value = self._value(assign, scope, combined=local.is_tile)
            return [self._update(assign, name, value, scope)]
        address = scope.address(assign.target)
        step = stride(address, scope.lanes.var)
        first = scope.show_offset(assign.target.array, scope.first(address))
        if step == 0:
            return self._reduce_lanes(assign, f"{assign.target.array}[{first}]", scope)
        if step is None:
            return self._scatter(assign, scope)
        partial = scope.is_partial(assign.target)
        if partial and step != 1:
            return self._scatter(assign, scope)
        kept = scope.locals.get(assign.target.array)
        # Lanes that are stored, and are combined with others later on, add nothing of their own.
        combined = not partial and kept is not None and kept.is_tile
        value = self._value(assign, scope, combined)
        place = f"&{assign.target.array}[{first}]"
        if assign.reduction:
            old = self._load(assign.target, first, step, dtype, scope)
            value = self.apply(assign.reduction, [old, value], dtype, lanes)
        return [self.move(dtype, scope, place, step, partial, value)]

    def move(
        self, dtype: np.dtype, scope: Scope, place: str, step: int, partial: bool, value: str = ""
    ) -> str:
        """A load of a register from memory, or a store of a value there, as the table spells it."""
        row = find_move(ROWS, is_store=bool(value), is_full=not partial, step=step)
        numbers = {COUNT: show_index(scope.filled), STRIDE: str(step)}
        return self._spell(row, dtype, scope.count, {**numbers, "p": place, "v": value})

    def place_of(self, element: Element, scope: Scope) -> str:
        """The address of what lane 0 takes."""
        first = scope.show_offset(element.array, scope.first(scope.address(element)))
        return f"&{element.array}[{first}]"

    def _fused(self, assign: Assign, target: str, scope: Scope) -> str:
        """An update of a register by one instruction of the table; empty if there is none."""
        for row in ROWS:
            if row.nest.reduction is None or assign.dtype.kind != "f":
                continue
            bound = bind(row, assign)
            if bound is not None:
                texts = {name: self.expr(e, scope) for name, e in bound.items()}
                texts[row.nest.result.name] = target
                return self._spell(row, assign.dtype, scope.count, texts)
        return ""

    def _spell(
        self, row: VectorInstruction, dtype: np.dtype, lanes: int, fields: Mapping[str, str]
    ) -> str:
        """An instruction that every target has, in C."""
        spelling = row.spell(frozenset(), lanes)
        assert spelling is not None, f"{row.name} is not spelled for {lanes} lanes"
        name = self._name(spelling.function, dtype, lanes) if spelling.function else ""
        return spelling.text.format(f=name, **fields)

    def _update(self, assign: Assign, target: str, value: str, scope: Scope) -> str:
        lanes = scope.count
        if assign.reduction is None:
            return f"{target} = {value};"
        if assign.reduction in ("add", "mul") and assign.dtype.kind == "f":
            return f"{target} {INFIX[assign.reduction]}= {bare(value)};"
        return f"{target} = {self.apply(assign.reduction, [target, value], assign.dtype, lanes)};"

    def _reduce_lanes(self, assign: Assign, target: str, scope: Scope) -> list[str]:
        """All lanes meet in one element."""
        if assign.reduction is None:
            return self._scatter(assign, scope)
        value = self._value(assign, scope, combined=True)
        folded = f"{self._name('reduce_' + assign.reduction, assign.dtype, scope.count)}({value})"
        return [self._update(assign, target, folded, scope.alone)]

    def _value(self, assign: Assign, scope: Scope, combined: bool) -> str:
        """The value of an assignment; those of its idle lanes that are `combined` are neutral."""
        value = self.expr(assign.value, scope)
        if not combined or assign.reduction is None or scope.is_full:
            return value
        neutral = literal(identity(assign.reduction, assign.dtype), assign.dtype)
        name = self._name("fill", assign.dtype, scope.count)
        return f"{name}({bare(value)}, {show_index(scope.filled)}, {neutral})"

    def _scatter(self, assign: Assign, scope: Scope) -> list[str]:
        """A vector stored lane by lane, where the places follow no stride."""
        assert scope.lanes is not None
        alone, kind = scope.alone, scalar_type(assign.dtype)
        self._name("splat", assign.dtype, scope.count)  # defines the vector type
        value = self.expr(assign.value, scope)
        lines = ["{", f"    const {kind}x{scope.count} pc_lanes = {value};"]
        for k, alive in scope.each_lane():
            at = {scope.lanes.var: scope.lanes.lower + k}
            target = self._place(substitute_element(assign.target, at), alone)
            lane = f"pc_lanes[{k}]" + (" & 1" if assign.dtype == np.bool_ else "")
            update = self._update(assign, target, lane, alone)
            lines.append(f"    {f'if ({alive}) ' if alive else ''}{update}")
        return [*lines, "}"]

    def transpose(self, node: Transpose) -> str:
        """A square local array, transposed in place, or the rows of another one interleaved."""
        if node.rows:
            return f"{self._name('interleave', node.dtype, node.lanes)}({node.array}, {node.rows});"
        return f"{self._name('transpose', node.dtype, node.lanes)}({node.array});"

    # -- expressions --------------------------------------------------------------------------

    def expr(self, expr: LoopExpr, scope: Scope) -> str:
        """The expression, as a scalar or as a vector of scope.count lanes."""
        lanes = scope.count
        match expr:
            case Const(value, dtype) if is_narrow(dtype):
                number = Cast(Const(value, wide(dtype)), dtype)
                return self._splat(self.expr(number, scope.alone), dtype, lanes)
            case Const(value, dtype):
                return self._splat(literal(value, dtype), dtype, lanes)
            case Value(index, dtype):
                return self._index(index, dtype, scope)
            case Test(condition):
                return self._test(condition, scope)
            case Read():
                return self._read(expr, scope)
            case Call() | Cast() if lanes > 1 and is_number(expr, scope.lanes):
                alone = self.expr(expr, scope.alone)
                return self._splat(alone, expr.dtype, lanes)
            case Cast(argument, dtype):
                found = find_quantised(expr, scope.lanes)
                if found is not None:
                    parts = [self.expr(found.value, scope)]
                    parts += [self.expr(e, scope.alone) for e in (found.scale, found.zero)]
                    return self.apply(found.function, parts, found.zero.dtype, lanes)
                source, target = scalar_type(argument.dtype), scalar_type(dtype)
                self.uses.casts.add((source, target, lanes))
                suffix = f"x{lanes}" if lanes > 1 else ""
                return f"pc_cast_{source}_{target}{suffix}({self.expr(argument, scope)})"
            case Call(function, arguments, dtype):
                return self._call(function, arguments, dtype, scope)
        raise AssertionError(f"no C for {expr}")

    def _call(
        self, function: str, arguments: tuple[LoopExpr, ...], dtype: np.dtype, scope: Scope
    ) -> str:
        if function == "index":
            if scope.lanes is not None:
                return self._each_lane(Call(function, arguments, dtype), scope)
            extent = arguments[1]
            if isinstance(extent, Const):
                bound = str(int(extent.value))
            else:
                assert isinstance(extent, Value)
                bound = show_index(extent.index)
            return f"pc_index({self.expr(arguments[0], scope)}, {bound}, status)"
        if function == "offset":
            return self.expr(arguments[0], scope)
        values = arguments
        if function == "select" and isinstance(arguments[0], Test):
            return self._branch(arguments[0].condition, arguments[1:], dtype, scope)
        if function == "select" and isinstance(arguments[0], Call):
            test = arguments[0]
            if test.function in ORDERED and test.arguments[0].dtype == dtype:
                function, values = f"select_{test.function}", (*test.arguments, *arguments[1:])
        kind = arguments[0].dtype if function in OF_ARGUMENT else dtype
        texts = [self.expr(a, scope) for a in values]
        if function in INFIX and kind.kind == "f" and all(isinstance(a, Const) for a in values):
            # Of its type: in the exact run that is no float, and C would multiply 0.1f by 0.01f.
            texts[0] = f"({scalar_type(kind)}){texts[0]}"
        return self.apply(function, texts, kind, scope.count)

    def _branch(
        self,
        condition: Condition,
        branches: tuple[LoopExpr, ...],
        dtype: np.dtype,
        scope: Scope,
    ) -> str:
        """A choice by position: what is guarded is read only where the condition holds.

        A scalar choice still reads something in either case, at a place that depends on the guard:
        where loads depend on conditions, gcc 12 vectorises  t = a <= 1 ? a : c[j]  with
        a = i > j ? x[j] : 0  into wrong code.
        """
        lanes, texts = scope.lanes, [show_condition(condition)]
        if lanes is not None and lanes.var in variables(choice(condition, const(1), const(0))):
            below = (e for branch in branches for e in walk_expr(branch))
            if any(isinstance(e, Read) and e.guarded for e in below):
                return self._each_lane(Call("select", (Test(condition), *branches), dtype), scope)
            texts = [self._test(condition, scope), *(self.expr(b, scope) for b in branches)]
            return self.apply("select", texts, dtype, scope.count)
        for guard, branch in zip((f"({texts[0]})", f"!({texts[0]})"), branches, strict=True):
            texts.append(self.expr(branch, scope.with_guard(guard)))
        if lanes is None:
            return self.apply("select", texts, dtype, 1)
        test, then, otherwise = texts
        return f"({test} ? {then} : {otherwise})"

    def apply(self, function: str, values: list[str], dtype: np.dtype, lanes: int) -> str:
        """A function of values that are text."""
        assert not is_narrow(dtype) or function in STORED, f"{function} of {dtype}"
        if function in INFIX and dtype.kind == "f" and len(values) == 2:
            return f"({values[0]} {INFIX[function]} {values[1]})"
        return f"{self._name(function, dtype, lanes)}({', '.join(map(bare, values))})"

    def _name(self, function: str, dtype: np.dtype, lanes: int) -> str:
        kind = scalar_type(dtype)
        self.uses.functions.add((function, kind, lanes))
        return f"pc_{function}_{kind}" + (f"x{lanes}" if lanes > 1 else "")

    def _splat(self, value: str, dtype: np.dtype, lanes: int) -> str:
        return f"{self._name('splat', dtype, lanes)}({bare(value)})" if lanes > 1 else value

    def _index(self, index: Affine, dtype: np.dtype, scope: Scope) -> str:
        kind, lanes = scalar_type(dtype), scope.count
        if scope.lanes is None or scope.lanes.var not in variables(index):
            return self._splat(f"(({kind})({show_index(index)}))", dtype, lanes)
        step = stride(index, scope.lanes.var)
        if step == 1 and dtype.kind in "iu":
            first = show_index(scope.first(index))
            return f"{self._name('iota', dtype, lanes)}(({kind})({first}))"
        return self._each_lane(Value(index, dtype), scope)

    def _test(self, condition: Condition, scope: Scope) -> str:
        if scope.lanes is None or decide(condition) is not None:
            text = f"(({show_condition(condition)}) ? 1 : 0)"
            return self._splat(text, np.dtype(bool), scope.count)
        if isinstance(condition, Compare):
            left = self._index(condition.left, INT64, scope)
            zero = self._splat("(i64)0", INT64, scope.count)
            return self.apply(condition.operator, [left, zero], INT64, scope.count)
        parts = [self._test(c, scope) for c in condition.arguments]
        text = parts[0]
        for part in parts[1:]:
            text = self.apply(condition.operator, [text, part], np.dtype(bool), scope.count)
        return text

    def _read(self, read: Read, scope: Scope) -> str:
        element, dtype, lanes = read.element, read.dtype, scope.count
        if scope.lanes is None:
            return self._place(element, scope, read.dynamic, read.guarded)
        if element.array in scope.registers:
            register = register_of(element, scope.lanes)
            assert register is not None
            name = register.name(scope.registers[element.array].local)
            return name if register.lanes > 1 else self._splat(name, dtype, lanes)
        moving = [e for _, e in read.dynamic if scope.lanes.var in variables_of(e)]
        address = scope.address(element)
        step = stride(address, scope.lanes.var)
        partial = scope.is_partial(element)
        if moving or step is None or (partial and step not in (0, 1)):
            return self._picked(read, address, scope) or self._each_lane(read, scope)
        first = self._offset(element, scope.first(address), scope.alone, read.dynamic)
        if step == 0:
            return self._splat(f"{element.array}[{first}]", dtype, lanes)
        return self._load(element, first, step, dtype, scope)

    def _picked(self, read: Read, address: Affine, scope: Scope) -> str:
        """pick(loadn(&x[3], 8), {0, 0, 1, 1, …, 7, 7}); empty where one load is not enough."""
        found, array = find_picked(address, scope), read.element.array
        if found is None or read.dynamic or read.guarded:
            return ""
        load, pick = (self._name(f, read.dtype, scope.count) for f in ("loadn", "pick"))
        place = f"&{array}[{scope.show_offset(array, found.first)}]"
        loaded = f"{load}({place}, {show_index(found.count)})"
        return found.spell(pick, loaded, 8 * read.dtype.itemsize)

    def _load(self, element: Element, first: str, step: int, dtype: np.dtype, scope: Scope) -> str:
        place = f"&{element.array}[{first}]"
        return self.move(dtype, scope, place, step, scope.is_partial(element))

    def _each_lane(self, expr: LoopExpr, scope: Scope) -> str:
        """A vector written out: (f32x4){x[0], x[7], x[14], x[21]}; idle lanes are 0."""
        assert scope.lanes is not None
        alone = scope.alone
        kind = scalar_type(expr.dtype)
        self._name("splat", expr.dtype, scope.count)  # defines the vector type
        sign = "-" if kind == "b8" else ""  # a mask in registers, 0 or 1 in memory
        values = []
        for k, alive in scope.each_lane():
            lane = substitute_expr(expr, {scope.lanes.var: scope.lanes.lower + k})
            value = sign + self.expr(lane, alone)
            values.append(f"({alive} ? {value} : 0)" if alive else value)
        return f"({kind}x{scope.count}){{{', '.join(values)}}}"

    def _place(
        self,
        element: Element,
        scope: Scope,
        dynamic: tuple[tuple[int, LoopExpr], ...] = (),
        guarded: bool = False,
    ) -> str:
        """array[address], as an lvalue; array[guard ? address : 0] where it is guarded."""
        if element.array in scope.registers:
            return scope.registers[element.array].scalar(element)
        address = self._offset(element, scope.address(element), scope, dynamic)
        return f"{element.array}[{f'{scope.guard} ? {address} : 0' if guarded else address}]"

    def _offset(
        self,
        element: Element,
        address: Affine,
        scope: Scope,
        dynamic: tuple[tuple[int, LoopExpr], ...],
    ) -> str:
        """The offset of an element as text: its address, and its coordinates that are data."""
        text = scope.show_offset(element.array, address)
        shape = scope.shapes[element.array]
        for d, index in dynamic:
            step = show_index(of_extent(math.prod(shape[d + 1 :])))
            value = self.expr(index, scope)
            step = f"({step})" if " " in step else step
            text += f" + {value}" if step == "1" else f" + {step} * {value}"
        return text
