"""Arguments of wrong types are TypeErrors that name them, and wrong values PolycErrors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc import Graph, Options, ops
from polyc.arguments import check_options
from polyc.errors import InvalidOption, PolycError, ShapeError
from polyc.options import MAX_THREADS
from polyc.run.specialise import SpecialisingModel
from tests.programs import options
from tests.sampling import sampled, thorough
from tests.staged import model_of

X = np.ones((2, 3), np.float32)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Models of each kind: of fixed, open and found sizes, with states, and in stages."""
    chosen = options(tmp_path_factory.mktemp("cache"))
    x, n = ops.input("x", (2, 3)), ops.input("x", ("add", 3))
    fixed = polyc.compile(Graph.of(y=x + 1.0), options=chosen)
    open_ = polyc.compile(Graph.of(y=n + 1.0), options=chosen)
    kept = polyc.compile(Graph.of(y=x + ops.input("h", (2, 3)), g=x * 2.0), options=chosen,
                         state={"h": "g"})  # fmt: skip
    head = """g (float[2, 3] x) => (float[i, 3] y) {
        zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()"""
    mask = """s = ReduceSum<keepdims = 0>(x, one) c = Cast<to = 9>(s)
        y = Compress<axis = 0>(x, c) }"""
    found = polyc.compile(model_of(f"{head} {mask}"), options=chosen)
    cut = """s = ReduceSum(x) t = Reshape(s, one) n = Cast<to = 7>(t)
        y = Slice(x, zero, n, zero) }"""
    staged = polyc.compile(model_of(f"{head} {cut}"), options=chosen)
    return {"fixed": fixed, "open": open_, "states": kept.start(), "found": found,
            "stages": staged}  # fmt: skip


KINDS = ("fixed", "open", "states", "found", "stages")

WRONG_TYPES = {
    "target": (None, 5, b"cpu", ["cpu"]),
    "opt_level": ("3", 1.5, True, [3]),
    "threads": ("2", 2.0, True, object()),
    "tune": ("1", [], 1j, True),
    "dims": (5, "n", [("n", 1)], {1: 2}, {"n": 1.5}, {"n": None}, {"n": (None, 3)}, {"n": True}),
    "hint": (5, ["n"], {"n": "3"}, {"n": (1, 2)}, {None: 3}),
    "state": ("x=y", {"x": 3}, {3: "y"}, [("x", "y")]),
    "options": (5, {"threads": 1}, "threads"),
}

WRONG_VALUES = {
    "target": ("", "gpu", "cuda:sm_1", "cuda:"),
    "opt_level": (-1, 4, 2**70),
    "threads": (-1, 2**40),
    "tune": (-1, math.nan, math.inf),
    "dims": ({"add": -1}, {"add": (2, 1)}, {"add": (1, 2, 3)}, {"add": 2**70}, {"add": "2 +"}),
    "hint": ({"add": 2**70}, {"add": -3}),
    "state": ({"nothing": "y"}, {"x": "nothing"}, {"x": "y", "z": "y"}),
}


def cases(table):
    return [
        pytest.param(name, value, id=f"{name}-{k}-{type(value).__name__}")
        for name, values in table.items()
        for k, value in enumerate(values)
    ]


def compile_with(name, value, folder):
    chosen = {"options": options(folder), name: value}
    graph = Graph.of(y=ops.input("x", ("add", 3)) + 1.0)
    return polyc.compile(graph, **chosen)


@pytest.mark.parametrize(("name", "value"), cases(WRONG_TYPES))
def test_a_wrong_type_is_a_type_error_that_names_the_argument(name, value, tmp_path):
    if name == "target" and value is None:
        value = object()
    with pytest.raises(TypeError, match=rf"^`{name}.* but must be "):
        compile_with(name, value, tmp_path)


@pytest.mark.parametrize(("name", "value"), cases(WRONG_VALUES))
def test_a_wrong_value_is_an_error_of_polyc(name, value, tmp_path):
    with pytest.raises(PolycError):
        compile_with(name, value, tmp_path)


def test_numbers_of_numpy_are_numbers(tmp_path):
    model = polyc.compile(
        Graph.of(y=ops.input("x", ("n", 3)) + 1.0), options=options(tmp_path), threads=np.int64(1),
        opt_level=np.int8(2), dims={"n": (np.int32(1), np.int64(4))}, hint={"n": np.uint8(3)},
    )  # fmt: skip
    np.testing.assert_array_equal(model(X), 2)
    fixed = polyc.compile(
        Graph.of(y=ops.input("x", ("n", 3)) + 1.0),
        options=options(tmp_path),
        dims={"n": X.shape[0]},
    )
    assert fixed.outputs[0].shape == (2, 3)


@pytest.mark.parametrize(
    "wrong",
    [{"cc": 5}, {"max_nodes": 1.5}, {"patience": "1"}, {"verify": 1},
     {"cache_dir": "folder"}, {"dump": "c"}, {"sizes": (1,)},
     {"progress": 1}, {"dump_dir": "folder"}, {"states": {"x": "y"}}, {"states": ("x",)},
     {"schedules": (("x", 1),)}],
)  # fmt: skip
def test_options_of_wrong_types(wrong):
    with pytest.raises(TypeError, match=f"{next(iter(wrong))}.* but must be "):
        Options(**wrong)


def test_options_of_wrong_values():
    for wrong in ({"dump": ("code",)}, {"threads": MAX_THREADS + 1}, {"max_operations": -1}):
        with pytest.raises(InvalidOption):
            Options(**wrong)
    with pytest.raises(TypeError, match="`threads` is of type str"):
        replace(Options(), threads="2")
    assert check_options(Options(), threads=np.int64(3), tune=None) == Options(threads=3)


WRONG_ARRAYS = {
    "none": None, "text": "abc", "bytes": b"abc", "object": object(), "dict": {}, "set": {1, 2},
    "ragged": [[1, 2, 3], [4, 5]], "letters": [[1, 2, "a"], [4, 5, 6]], "complex": [[1j] * 3] * 2,
    "objects": X.astype(object), "strings": X.astype("U4"), "wide": X.astype(np.float64),
    "swapped": X.astype(">f4"), "transposed": np.ones((3, 2), np.float32), "scalar": np.float32(1),
    "rank": X[None], "huge": [[10**400] * 3] * 2, "records": np.zeros((2, 3), "f4,f4"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sampled(WRONG_ARRAYS, seldom=["swapped"]))
def test_what_is_no_array_of_an_input(compiled, kind, name):
    with pytest.raises(ShapeError, match="input 'x'"):
        compiled[kind](WRONG_ARRAYS[name])
    with pytest.raises(ShapeError, match="input 'x'"):
        compiled[kind].run({"x": WRONG_ARRAYS[name]})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feeds", [None, 5, [X], "x", X])
def test_feeds_are_by_name(compiled, kind, feeds):
    calls = [compiled[kind].run, compiled[kind].profile]
    calls += [] if kind == "states" else [compiled[kind].explain] if feeds is not None else []
    for call in calls:
        with pytest.raises(TypeError, match=r"^`feeds` is of type .* but must be arrays"):
            call(feeds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feeds", [{}, {"y": X}, {"x": X, "y": X}, {1: X}, {None: X}])
def test_feeds_of_other_names(compiled, kind, feeds):
    with pytest.raises(ShapeError):
        compiled[kind].run(feeds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("out", [thorough(5), "y", {"y": X}, object(), np.float32(1)])
def test_out_is_an_array_or_a_list(compiled, kind, out):
    with pytest.raises(TypeError, match=r"^`out` is of type .* but must be an array"):
        compiled[kind](X, out=out)


def read_only():
    array = np.ones((2, 3), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "out",
    [[], [X, X], [None], [5], X.astype(np.float64), X.astype(object), X.T, read_only(),
     np.empty((2, 4), np.float32)],
)  # fmt: skip
def test_out_that_does_not_fit(compiled, kind, out):
    with pytest.raises(ShapeError):
        compiled[kind](X, out=out)


@pytest.mark.parametrize("begin", [5, "h", [X], X])
def test_what_states_begin_with(compiled, begin):
    with pytest.raises(TypeError, match=r"^`begin` is of type"):
        compiled["states"]._model.start(begin)
    for wrong in ({"x": X}, {1: X}, {"h": None}, {"h": [[1, 2], [3]]}, {"h": X[None]}):
        with pytest.raises(ShapeError):
            compiled["states"]._model.start(wrong)


def test_results_of_stages_are_copied_whatever_the_strides(compiled):
    out = np.empty((2, 6), np.float32)[:, ::2]
    for kind in ("found", "stages"):
        out[...] = 0
        assert compiled[kind](X, out=out) is out
        np.testing.assert_array_equal(out, X)
    for kind in ("fixed", "open", "states"):
        with pytest.raises(ShapeError, match="C-contiguous"):
            compiled[kind](X, out=out)


def test_the_kinds_are_what_they_are_called(compiled):
    assert isinstance(compiled["stages"], SpecialisingModel)
    assert compiled["found"].outputs[0].shape == ("i", 3)
    assert not isinstance(compiled["found"], SpecialisingModel)
    assert compiled["open"].sizes
    for kind in ("fixed", "open"):
        np.testing.assert_array_equal(compiled[kind](X), X + 1)
