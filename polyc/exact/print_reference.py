"""A scop as naive C++: what a model means, statement by statement, in the order of the text.

    S_MatMul_0: { [i, j, k] : 0 <= i < 100 and … }    acc[i, j] add= mul(x[i, k], w[k, j])
    ->
    static void S1(i64 i0, i64 i1, i64 i2)
    { A2[i0 * 64 + i1] = pc_add_f32(A2[i0 * 64 + i1], pc_mul_f32(A0[i0 * 256 + i2], A1[…])); }
    static void run_1(void)
    { for (i64 c0 = 0; c0 <= 99; c0 += 1) … S1(c0, c1, c2); }

No loop is moved, no array is shared, nothing is kept in registers, and nothing of the compiler's
own code generator is used: loops are isl's for the identity as schedule, and every array lies row
by row. Names of the model do not appear; statements, arrays and parameters are numbered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import islpy as isl
import numpy as np

from polyc.poly.context import isl_options
from polyc.printing.runtime_table import preamble
from polyc.printing.scope import Uses
from polyc.scop.expr import COMPARISONS, Call, Cast, Const, Expr, Index, Load, Within
from polyc.scop.scop import Scop, Statement
from polyc.types.element_types import is_narrow, scalar_type, wide
from polyc.types.ranges import Step
from polyc.types.sizes import Extent, Size

PARAM, IN, SET, OUT = (
    isl.dim_type.param,
    isl.dim_type.in_,
    isl.dim_type.set,
    isl.dim_type.out,
)

UNIT = 48
"""Statements that are compiled in one piece, side by side with others."""


def declare_reference(units: int) -> str:
    """The functions of so many units, for cffi."""
    arguments = "void *const *arrays, const int64_t *sizes, int *status"
    return "".join(f"void pc_reference_{k}({arguments});\n" for k in range(units))


def print_reference(scop: Scop, sizes: Sequence[str]) -> list[str]:
    """Functions pc_reference_0, pc_reference_1, …, to be called in this order.

    Each is given all arrays of the scop in their order, and the values of sizes: the parameters of
    the scop's sets, in the order of `sizes`. Inputs and constants hold what they are; the functions
    fill the others.
    """
    return [_print_unit(scop, sizes, k, part) for k, part in enumerate(_units(scop.statements))]


def _units(statements: Sequence[Statement]) -> list[list[Statement]]:
    """The statements in pieces of about UNIT; loops over steps stay whole."""
    units: list[list[Statement]] = [[]]
    for _, group in groupby(statements, key=lambda s: s.step or s.name):
        if len(units[-1]) >= UNIT:
            units.append([])
        units[-1] += group
    return units


def _print_unit(scop: Scop, sizes: Sequence[str], unit: int, part: Sequence[Statement]) -> str:
    printer = _Printer(scop, part, sizes)
    statements = [printer.statement(k, s) for k, s in enumerate(part)]
    body = list(printer.calls())
    used = [k for k, name in enumerate(scop.arrays) if name in printer.touched]
    types = [scalar_type(a.dtype) for a in scop.arrays.values()]
    head = "(void *const *arrays, const i64 *sizes, int *failed)"
    return "\n".join(
        [
            preamble(printer.uses),
            _HELPERS,
            *(f"static {types[k]} *A{k};" for k in used),
            *(f"static i64 {name};" for name in printer.parameters.values()),
            "static int *status;",
            "",
            *statements,
            f'extern "C" void pc_reference_{unit}{head}',
            "{",
            "    (void)arrays, (void)sizes;",
            "    status = failed;",
            *(f"    A{k} = ({types[k]} *)arrays[{k}];" for k in used),
            *(f"    {printer.parameters[name]} = sizes[{k}];" for k, name in enumerate(sizes)),
            *body,
            "}",
            "",
        ]
    )


_HELPERS = """\
/* What isl prints. */
#define floord(a, b) pc_floordiv(a, b)
PC_INLINE i64 min(i64 a, i64 b) { return a < b ? a : b; }
PC_INLINE i64 max(i64 a, i64 b) { return a > b ? a : b; }
"""


class _Printer:
    """Prints statements; `uses` gathers what they call, `touched` the arrays that they name."""

    def __init__(self, scop: Scop, part: Sequence[Statement], sizes: Sequence[str]) -> None:
        self.scop, self.part = scop, part
        self.uses = Uses()
        self.touched: set[str] = set()
        steps = dict.fromkeys(s.step.name for s in scop.statements if s.step)
        self.parameters = {name: f"p{k}" for k, name in enumerate([*sizes, *steps])}
        self._arrays = {name: f"A{k}" for k, name in enumerate(scop.arrays)}

    def statement(self, number: int, s: Statement) -> str:
        """Two functions: one instance, and all of them in lexicographic order."""
        count = s.domain.dim(SET)
        arguments = ", ".join(f"i64 i{k}" for k in range(count)) or "void"
        inside = self._as_parameters(s.domain, SET).params()
        build = isl.AstBuild.from_context(inside)
        target = self._element(s.array, s.write, (), build)
        value = self._expr(s.value, build)
        dtype = self.scop.arrays[s.array].dtype
        if s.reduction:
            value = self._apply(s.reduction, dtype, [target, value])
        return "\n".join(
            [
                f"static inline void S{number}({arguments})",
                f"{{ {target} = {value}; }}",
                f"static void run_{number}(void)",
                "{",
                self._loops(number, s.domain),
                "}",
                "",
            ]
        )

    def calls(self) -> Iterator[str]:
        """All statements in order; those of a loop over steps once a step."""
        numbered = enumerate(self.part)
        for step, group in groupby(numbered, key=lambda pair: pair[1].step):
            runs = [self._run(number) for number, _ in group]
            if step is None:
                yield from (f"    {run}" for run in runs)
                continue
            yield from self._repeated(step, runs)

    def _run(self, number: int) -> str:
        """All instances of a statement, where its branches are taken."""
        branches = self.part[number].branches
        self.touched.update(branch.condition for branch in branches)
        conditions = [f"!{self._arrays[b.condition]}[0] == {int(not b.holds)}" for b in branches]
        guard = f"if ({' && '.join(conditions)}) " if branches else ""
        return f"{guard}run_{number}();"

    def _repeated(self, step: Step, runs: Sequence[str]) -> Iterator[str]:
        name = self.parameters[step.name]
        yield f"    for ({name} = 0; {name} < {self._extent(step.steps)}; {name}++) {{"
        yield from (f"        {run}" for run in runs)
        yield "    }"

    # -- integer sets -------------------------------------------------------------------------

    def _loops(self, number: int, domain: isl.Set) -> str:
        """isl's loops over a domain in lexicographic order."""
        named = self._renamed(domain).set_tuple_name(f"S{number}")
        # S -> [i]
        schedule = isl.UnionMap.from_map(named.identity().reset_tuple_id(OUT))
        with isl_options() as context:
            before = context.get_ast_iterator_type()
            context.set_ast_iterator_type("i64")
            try:
                build = isl.AstBuild.from_context(isl.Set("{ : }"))
                return str(build.node_from_schedule_map(schedule).to_C_str())
            finally:
                context.set_ast_iterator_type(before)

    def _renamed(self, relation):  # type: ignore[no-untyped-def]
        """A set or function with our names for its parameters."""
        for k in range(relation.dim(PARAM)):
            known = self.parameters[relation.get_dim_name(PARAM, k)]
            relation = relation.set_dim_id(PARAM, k, isl.Id(known))
        return relation

    def _as_parameters(self, relation, kind):  # type: ignore[no-untyped-def]
        """A set or function of iterators as one of parameters named i0, i1, …"""
        relation = self._renamed(relation)
        count = relation.dim(kind)
        relation = relation.move_dims(PARAM, 0, kind, 0, count)
        for k in range(count):
            relation = relation.set_dim_id(PARAM, k, isl.Id(f"i{k}"))
        return relation

    def _index(self, function: isl.PwAff, build: isl.AstBuild) -> str:
        flat = self._as_parameters(function, IN).project_domain_on_params()
        return f"({build.expr_from_pw_aff(flat).to_C_str()})"

    # -- expressions --------------------------------------------------------------------------

    def _expr(self, e: Expr, build: isl.AstBuild) -> str:
        match e:
            case Const(value, dtype):
                return self._constant(value, dtype)
            case Index(value, dtype):
                return f"(({scalar_type(dtype)})(i64){self._index(value, build)})"
            case Within(domain):
                inside = self._as_parameters(domain, SET).params()
                return f"((b8)(({build.expr_from_set(inside).to_C_str()}) ? 1 : 0))"
            case Load(array, index, _, dynamic):
                return self._element(array, index, dynamic, build)
            case Cast(argument, dtype):
                names = scalar_type(argument.dtype), scalar_type(dtype)
                self.uses.casts.add((*names, 1))
                return f"pc_cast_{names[0]}_{names[1]}({self._expr(argument, build)})"
            case Call(function, arguments, dtype):
                values = [self._expr(a, build) for a in arguments]
                if function == "select":  # the other branch may read what is not there
                    return f"({values[0]} ? {values[1]} : {values[2]})"
                if function == "index":
                    return f"pc_index({values[0]}, {values[1]}, status)"
                of_argument = function in COMPARISONS or function == "as_bits"
                return self._apply(function, arguments[0].dtype if of_argument else dtype, values)
        raise AssertionError(f"no C for {e}")

    def _apply(self, function: str, dtype: np.dtype, values: Sequence[str]) -> str:
        kind = scalar_type(dtype)
        self.uses.functions.add((function, kind, 1))
        return f"pc_{function}_{kind}({', '.join(values)})"

    def _constant(self, value: int | float | bool, dtype: np.dtype) -> str:
        kind = scalar_type(dtype)
        if is_narrow(dtype):
            stored = scalar_type(wide(dtype))
            self.uses.casts.add((stored, kind, 1))
            return f"pc_cast_{stored}_{kind}({self._constant(value, wide(dtype))})"
        if dtype.kind != "f":
            whole = int(value)
            text = f"{whole}ull" if whole >= 0 else f"(-{-whole - 1}ll - 1)"
            return f"(({kind}){text})"
        number = float(dtype.type(value))
        if np.isnan(number):
            return f'{kind}(__builtin_nan(""))'
        if np.isinf(number):
            return f"{kind}({'-' if number < 0 else ''}__builtin_inf())"
        return f"{kind}({number.hex()})"

    def _element(
        self,
        array: str,
        index: isl.PwMultiAff,
        dynamic: tuple[tuple[int, Expr], ...],
        build: isl.AstBuild,
    ) -> str:
        """array[position], row-major."""
        self.touched.add(array)
        computed = dict(dynamic)
        position = "0"
        for k, extent in enumerate(self.scop.arrays[array].shape):
            if k in computed:
                place = self._expr(computed[k], build)
            else:
                place = self._index(index.get_pw_aff(k), build)
            position = f"({position}) * {self._extent(extent)} + {place}" if k else place
        return f"{self._arrays[array]}[{position}]"

    def _extent(self, extent: Extent) -> str:
        if not isinstance(extent, Size):
            return str(extent)
        products = (
            " * ".join([f"(i64){factor}", *(self.parameters[n] for n in names)])
            for names, factor in extent.terms
        )
        return f"({' + '.join(products)})"
