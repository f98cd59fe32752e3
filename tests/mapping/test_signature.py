"""Keys of clusters: the same whatever things are called, another for another computation."""

from collections.abc import Callable, Hashable
from dataclasses import replace

import islpy as isl
import numpy as np

from polyc.mapping.open_cluster import OpenCluster
from polyc.memory.storage import permuted, row_major
from polyc.scop.expr import Cast, Const, Expr, Load, call, rebuild
from polyc.scop.scop import Array, Scop, Statement
from tests.analysis.nests import conv_scop, matmul_scop
from tests.mapping.stages import open_cluster


def renamed(of: Scop) -> Scop:
    """The same program with every array and statement called otherwise."""
    arrays = {n: f"other_{n}" for n in of.arrays}
    statements = {s.name: f"T_{k}" for k, s in enumerate(of.statements)}

    def function(f: isl.PwMultiAff) -> isl.PwMultiAff:
        text = str(f)
        for old, new in (arrays | statements).items():
            text = text.replace(f" {old}[", f" {new}[").replace(f"({old}[", f"({new}[")
        return isl.PwMultiAff(text)

    def leaf(e):
        return (
            replace(e, array=arrays[e.array], index=function(e.index)) if "index" in dir(e) else e
        )

    changed = tuple(
        replace(
            s,
            name=statements[s.name],
            domain=s.domain.set_tuple_name(statements[s.name]),
            array=arrays[s.array],
            write=function(s.write),
            value=rebuild(s.value, leaf),
            origin=("elsewhere",),
        )
        for s in of.statements
    )
    table = {arrays[n]: replace(a, name=arrays[n]) for n, a in of.arrays.items()}
    ends = (tuple(arrays[n] for n in names) for names in (of.inputs, of.outputs))
    return Scop("other", changed, table, *ends)


def test_names_do_not_matter():
    for of in (matmul_scop(5, 6, 7), conv_scop(3, 4, 5, 2, 3)):
        assert open_cluster(renamed(of)).key == open_cluster(of).key


def test_sizes_layouts_and_neighbours_do():
    of = matmul_scop(8, 16, 32)
    one = open_cluster(of)
    other_sizes = open_cluster(matmul_scop(8, 32, 16))
    output = of.arrays[of.outputs[0]]
    turned = replace(one, storages={**one.storages, output.name: permuted(output, (1, 0))})
    shared = replace(one, private=frozenset())
    undecided = replace(one, storages={})
    keys = [o.key for o in (one, other_sizes, turned, shared, undecided)]
    assert len(set(keys)) == 5


def test_arrays_that_the_cluster_does_not_touch_do_not_matter():
    one = open_cluster(matmul_scop(8, 16, 32))
    extra = replace(next(iter(one.arrays.values())), name="extra")
    more = OpenCluster(
        one.cluster,
        {**one.arrays, "extra": extra},
        {**one.storages, "extra": row_major(extra)},
        one.private,
    )
    assert more.key == one.key


def test_a_key_is_the_same_in_every_session():
    """It is kept on disk: a change of its spelling voids what was tuned, and should be meant."""
    assert len(open_cluster(matmul_scop(8, 16, 32)).key) == 32


def pointwise(value: Callable[[Load], Expr], array: str = "x", dtype: str = "float32") -> Hashable:
    """The signature of  y[i] = value(x[i])."""
    kind = np.dtype(dtype)
    space = "{ S[i] : 0 <= i < 9 }"
    load = Load(array, isl.PwMultiAff(f"{{ S[i] -> {array}[i] }}"), kind)
    statement = Statement(
        "S", isl.Set(space), ("i",), "y", isl.PwMultiAff("{ S[i] -> y[i] }"), value(load)
    )
    arrays = {n: Array(n, kind, (9,), k) for n, k in ((array, "input"), ("y", "output"))}
    return open_cluster(Scop("one", (statement,), arrays, (array,), ("y",))).signature


def twice(function: str) -> Callable[[Load], Expr]:
    return lambda x: call(function, x, x)


def test_an_array_does_not_capture_the_function_of_its_name():
    found = [pointwise(twice(name), name) for name in ("add", "mul", "max")]
    assert len(set(found)) == 3
    names = [pointwise(twice("add"), name) for name in ("add", "mul", "x", "S")]
    assert len(set(names)) == 1


def test_constants_are_compared_bit_by_bit():
    def added(value: float | int, dtype: str = "float32") -> Hashable:
        return pointwise(lambda x: call("add", x, Const(value, np.dtype(dtype))))

    nan, other = float("nan"), float("nan")
    assert added(nan) == added(other)
    values = [added(v) for v in (nan, 0.0, -0.0, 1.0, 1, float("inf"), 0.1, 0.1 + 1e-17)]
    assert len(set(values)) == len(values)
    assert added(1, "int32") != added(1, "int64")


def test_types_and_conversions_are_compared():
    half = np.dtype("float16")
    found = {
        pointwise(lambda x: x),
        pointwise(lambda x: x, dtype="float64"),
        pointwise(lambda x: Cast(Cast(x, half), x.dtype)),
        pointwise(lambda x: Cast(Cast(x, half, for_storage=True), x.dtype)),
    }
    assert len(found) == 4
