"""A Scop executed by NumPy, statement by statement: the meaning that generated code must keep.

Each statement is evaluated over all points of its domain at once. On the way the interpreter
checks what the compiler relies on: accesses stay inside their arrays, nothing is read before it is
written, no element is assigned twice, and an element is updated only after its initialisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import islpy as isl
import numpy as np

from polyc.errors import RuntimeFailure
from polyc.scop.expr import Call, Cast, Const, Expr, Index, Load, Within, offset_range
from polyc.scop.scop import Scop, Statement

Points = np.ndarray  # int64[points, iterators], in lexicographic order
OUT, SET, DIV = isl.dim_type.out, isl.dim_type.set, isl.dim_type.div


def interpret(scop: Scop, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Array name of each input -> its value; gives array name of each output -> its value."""
    memory = Memory(scop, feeds)
    with np.errstate(all="ignore"):
        for statement in scop.statements:
            memory.execute(statement)
    for name in scop.outputs:
        assert memory.written[name].all(), f"output {name} is not written in full"
    return {name: memory.values[name].reshape(scop.arrays[name].shape) for name in scop.outputs}


class Memory:
    """The arrays of a scop while it runs, flat, and which of their elements are written."""

    def __init__(self, scop: Scop, feeds: Mapping[str, np.ndarray]) -> None:
        self.arrays = scop.arrays
        self.values: dict[str, np.ndarray] = {}
        self.written: dict[str, np.ndarray] = {}
        for array in scop.arrays.values():
            given = array.kind in ("input", "constant")
            value = feeds[array.name] if array.kind == "input" else array.value
            if given:
                assert value is not None, f"{array.name} has no value"
                assert value.shape == array.shape, f"{array.name}: {value.shape}, {array.shape}"
                assert value.dtype == array.dtype, f"{array.name}: {value.dtype}, {array.dtype}"
            start = value.reshape(-1) if given else np.zeros(math.prod(array.shape), array.dtype)
            self.values[array.name] = start
            self.written[array.name] = np.full(math.prod(array.shape), given)

    def execute(self, statement: Statement) -> None:
        for branch in statement.branches:
            assert self.written[branch.condition].all(), f"{statement.name}: who decides is unknown"
            if bool(self.values[branch.condition].item()) != branch.holds:
                return
        points = points_of(statement.domain)
        own = [load for load in statement.loads if load.array == statement.array]
        for level in self.levels(statement, points, own) if own else [points]:
            self.assign(statement, level)

    def assign(self, statement: Statement, points: Points) -> None:
        """A[write(p)] = value(p), or op=, for all points at once."""
        name = statement.name
        target, written = self.values[statement.array], self.written[statement.array]
        at, defined = self.position(name, statement.array, statement.write, points)
        assert defined.all(), f"{name}: the write is not defined on the whole domain"
        value = np.broadcast_to(self.evaluate(name, statement.value, points), len(points))
        assert value.dtype == target.dtype, f"{name}: {value.dtype} into {target.dtype}"
        if statement.reduction:
            assert written[at].all(), f"{name} updates what is not initialised"
            REDUCTIONS[statement.reduction].at(target, at, value)
            return
        assert not written[at].any(), f"{name} writes an element that is already written"
        assert np.bincount(at).max(initial=0) <= 1, f"{name} writes an element twice"
        target[at] = value
        written[at] = True

    def levels(self, statement: Statement, points: Points, own: list[Load]) -> list[Points]:
        """The points of a recurrence, split so that each part reads only what is written before.

        level(p) = 1 + max level(q) over the points q whose element p reads; q < p must hold.
        """
        name = statement.name
        at, _ = self.position(name, statement.array, statement.write, points)
        writer = np.full(self.values[statement.array].shape, -1)
        writer[at] = np.arange(len(points))
        level = np.zeros(len(points), np.int64)
        sources = []
        for load in own:
            assert not load.dynamic, f"{name} reads its own array at an index that is data"
            read, defined = self.position(name, load.array, load.index, points)
            sources.append(np.where(defined, writer[read], -1))
        for p, reads in enumerate(np.stack(sources, 1)):
            assert (reads < p).all(), f"{name} reads an element before it is written"
            level[p] = max((level[q] + 1 for q in reads if q >= 0), default=0)
        return [points[level == n] for n in range(level.max(initial=-1) + 1)]

    def position(
        self,
        name: str,
        array: str,
        index: isl.PwMultiAff,
        points: Points,
        dynamic: tuple[tuple[int, Expr], ...] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """The row-major position of each point's element, and where it is defined; 0 elsewhere."""
        shape, given = self.arrays[array].shape, dict(dynamic)
        assert index.dim(OUT) == len(shape), f"{name}: {index} into {array}{shape}"
        defined = contains(index.domain(), points)
        position = np.zeros(len(points), np.int64)
        for k, extent in enumerate(shape):
            if k in given:
                values = self.evaluate(name, given[k], points)
                if offset_range(given[k]) is not None:
                    values = values + evaluate_piecewise(index.get_pw_aff(k), points)[0]
            else:
                values, _ = evaluate_piecewise(index.get_pw_aff(k), points)
            inside = (values >= 0) & (values < extent) | ~defined
            assert inside.all(), f"{name}: {array} {index} leaves {shape} at {points[~inside][0]}"
            position = position * extent + values
        return np.where(defined, position, 0), defined

    def evaluate(self, name: str, expr: Expr, points: Points) -> np.ndarray:
        """The value of an expression at each point."""
        match expr:
            case Const(value=value, dtype=dtype):
                return np.full(len(points), value, dtype)
            case Index(value=formula, dtype=dtype):
                values, defined = evaluate_piecewise(formula, points)
                assert defined.all(), f"{name}: {formula} is not defined on the whole domain"
                return values.astype(dtype)
            case Within(domain=domain):
                return contains(domain, points)
            case Cast(argument=argument, dtype=dtype):
                return convert(self.evaluate(name, argument, points), dtype)
            case Load():
                return self.load(name, expr, points)
            case Call(function=function, arguments=arguments, dtype=dtype):
                values = [self.evaluate(name, a, points) for a in arguments]
                result = FUNCTIONS[function](*values)
                same = function in TYPED or result.dtype == dtype
                assert same, f"{name}: {function} gives {result.dtype}, declared {dtype}"
                return result.astype(dtype)

    def load(self, name: str, expr: Load, points: Points) -> np.ndarray:
        source = self.values[expr.array]
        assert source.dtype == expr.dtype, f"{name}: {expr.array} is {source.dtype}"
        at, defined = self.position(name, expr.array, expr.index, points, expr.dynamic)
        assert self.written[expr.array][at[defined]].all(), (
            f"{name} reads an element of {expr.array} that is not written"
        )
        # outside its guard a load gives what no correct select lets through
        values = np.full(len(points), np.nan if source.dtype.kind == "f" else 77, source.dtype)
        values[defined] = source[at[defined]]
        return values


def points_of(domain: isl.Set) -> Points:
    """All points of a bounded set, in lexicographic order."""
    rank = domain.dim(SET)
    if domain.is_empty():
        return np.zeros((0, rank), np.int64)
    low = [domain.dim_min_val(k).to_python() for k in range(rank)]
    high = [domain.dim_max_val(k).to_python() for k in range(rank)]
    count = [b - a + 1 for a, b in zip(low, high, strict=True)]
    box = np.indices(count).reshape(rank, math.prod(count)).T + np.array(low, np.int64)
    return box[contains(domain, box)]


def contains(domain: isl.Set, points: Points) -> np.ndarray:
    """Whether each point satisfies the constraints of one of the basic sets."""
    inside = np.zeros(len(points), bool)
    for basic in domain.compute_divs().get_basic_sets():
        fits = np.ones(len(points), bool)
        for constraint in basic.get_constraints():
            value = constraint.get_constant_val().to_python() + linear(constraint, SET, points)
            fits &= value == 0 if constraint.is_equality() else value >= 0
        inside |= fits
    return inside


def evaluate_piecewise(formula: isl.PwAff, points: Points) -> tuple[np.ndarray, np.ndarray]:
    """The value at each point, and where it is defined; 0 elsewhere."""
    values, defined = np.zeros(len(points), np.int64), np.zeros(len(points), bool)
    for domain, affine in formula.get_pieces():
        inside = contains(domain, points)
        values[inside] = evaluate_affine(affine, points[inside])
        defined |= inside
    return values, defined


def evaluate_affine(affine: isl.Aff, points: Points) -> np.ndarray:
    """floor of a quasi-affine expression at each point."""
    denominator = affine.get_denominator_val()
    scaled = affine.scale_val(denominator)
    value = scaled.get_constant_val().to_python() + linear(scaled, isl.dim_type.in_, points)
    return value // denominator.to_python()


def linear(form: isl.Aff | isl.Constraint, kind: isl.dim_type, points: Points) -> np.ndarray:
    """Sum of coefficient times iterator, and coefficient times integer division."""
    total = np.zeros(len(points), np.int64)
    for k in range(points.shape[1]):
        total += form.get_coefficient_val(kind, k).to_python() * points[:, k]
    for k in range(form.dim(DIV) if isinstance(form, isl.Aff) else form.get_local_space().dim(DIV)):
        factor = form.get_coefficient_val(DIV, k).to_python()
        if factor:
            total += factor * evaluate_affine(form.get_div(k), points)
    return total


def convert(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A total conversion: float to int truncates and saturates, NaN gives 0; int to int wraps."""
    if dtype == np.bool_ or values.dtype.kind != "f" or dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    inside = (values > low) & (values < high)
    result = np.where(inside, values, 0).astype(dtype)
    result[values >= high] = limits.max
    result[values <= low] = limits.min
    return result


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    quotient = np.floor_divide(a, b)
    return np.where(b == 0, 0, quotient + ((quotient < 0) & (quotient * b != a))).astype(a.dtype)


def _remainder(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b: (
        function(a, b) if a.dtype.kind == "f" else np.where(b == 0, 0, function(a, b))
    )


def _shift(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
        return np.where(inside, function(a, np.where(inside, b, 0)), 0).astype(a.dtype)

    return shift


def philox(
    counter: np.ndarray, stream: np.ndarray, key0: np.ndarray, key1: np.ndarray
) -> np.ndarray:
    """The first word of Philox4x32-10 of (counter, stream, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    a, b, k0, k1 = (np.asarray(v, np.uint64) for v in (counter, stream, key0, key1))
    c = d = np.zeros_like(a)
    for step in range(10):
        p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        j0, j1 = (np.uint64(step * w & 0xFFFFFFFF) for w in (0x9E3779B9, 0xBB67AE85))
        a, c = (
            (q >> np.uint64(32)) ^ b ^ ((k0 + j0) & mask),
            (p >> np.uint64(32)) ^ d ^ ((k1 + j1) & mask),
        )
        b, d = q & mask, p & mask
    return a.astype(np.uint32)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.power(a, b)
    inverse = _divide(np.ones_like(a), a)  # -1, 0 or 1, so that only the parity of b counts
    return np.where(b < 0, np.power(inverse, b & 1), np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _between(values: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    assert ((least <= values) & (values <= most)).all(), "a constant adds more than is said of it"
    return values


def _exp_normal(x: np.ndarray) -> np.ndarray:
    return np.where(x < (-708 if x.dtype == np.float64 else -87), 0, np.exp(x)).astype(x.dtype)


def _wrap(index: np.ndarray, extent: np.ndarray) -> np.ndarray:
    if ((index < -extent) | (index >= extent)).any():
        raise RuntimeFailure(f"an index of {index} is outside of {extent[0]} elements")
    return np.where(index < 0, index + extent, index)


REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip

_erf = np.vectorize(math.erf, otypes=[np.float64])

FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "neg": np.negative,
    "abs": np.abs, "mod": _remainder(np.mod), "fmod": _remainder(np.fmod),
    "min": np.minimum, "max": np.maximum, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "trunc": np.trunc, "sqrt": np.sqrt, "reciprocal": np.reciprocal, "sign": np.sign,
    "rounded": np.positive,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
    "bitnot": np.invert, "shl": _shift(np.left_shift), "shr": _shift(np.right_shift),
    "isnan": np.isnan, "isinf": np.isinf, "select": np.where,
    "exp": np.exp, "exp_normal": _exp_normal, "exp2": np.exp2,
    "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "expm1": np.expm1, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": _erf,
    "pow": _power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "fma": lambda a, b, c: a * b + c, "index": _wrap, "offset": _between, "philox": philox,
}  # fmt: skip

TYPED = frozenset({"erf"})  # computed in float64, rounded to the declared type
