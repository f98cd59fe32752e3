"""Kernels that differ in the names of sizes alone are one, which is told others by each launch."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.graph.onnx_import import import_onnx
from polyc.mapping.sign_sizes import sign_sizes
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.machine import Target
from polyc.trace import make_trace
from polyc.types.derived import Derived
from polyc.types.parameters import Parameter
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size
from tests.branching import read

AVX2 = Target.named("avx2")


def program_of(graph: Graph, *sizes: SizeRange):
    options = Options(sizes=sizes)
    return run_pipeline(graph, AVX2, options, make_trace(options)).program


def beside(*shapes: tuple[int | str, ...]) -> Graph:
    """The softmax of each of some inputs."""
    each = (ops.input(f"x{k}", shape) for k, shape in enumerate(shapes))
    return Graph.of(**{f"y{k}": ops.softmax(x, axis=-1) for k, x in enumerate(each)})


def told(program) -> dict[str, set[tuple[str, ...]]]:
    kernels = {k.name: k for k in program.kernels}
    found: dict[str, set[tuple[str, ...]]] = {}
    for launch in program.launches:
        found.setdefault(launch.kernel, set()).add(launch.told(kernels[launch.kernel]))
    return found


def test_sizes_of_which_the_same_is_said_are_told_one_kernel():
    program = program_of(beside(("n", 12), ("m", 12)))
    assert all(sizes == {("size_n",), ("size_m",)} for sizes in told(program).values())
    assert len(program.launches) == 2 * len(program.kernels)


@pytest.mark.parametrize("sizes", [[SizeRange("n", 4)], [SizeRange("n", hint=1000)]], ids=str)
def test_others_have_kernels_of_their_own(sizes):
    program = program_of(beside(("n", 12), ("m", 12)), *sizes)
    assert len(program.launches) == len(program.kernels)


def test_one_size_in_two_places_is_no_two():
    program = program_of(beside(("n", "n"), ("n", "m")))
    assert all(len(sizes) == 1 for sizes in told(program).values())


def test_a_size_that_follows_goes_along():
    def halves(x: ops.Tensor) -> ops.Tensor:
        return ops.exp(ops.max_pool(x, (2, 2), strides=(2, 2)))

    one, other = (ops.input(f"x_{n}", (1, 12, n, 24)) for n in "hw")
    program = program_of(Graph.of(y=halves(one), z=halves(other)))
    assert len(program.launches) == 2 * len(program.kernels)
    known = [launch.sizes for launch in program.launches if launch.sizes]
    assert all(names["size_h"] == "size_w" for names in known)
    assert all(names["size_floor_h_2"] == "size_floor_w_2" for names in known)


def test_results(tmp_path):
    """For sizes in which the two differ, one of them being none."""
    model = polyc.compile(beside(("n", 12), ("m", 12)), options=Options(cache_dir=tmp_path))
    rng = np.random.default_rng(3)
    for n, m in [(1, 5), (33, 2), (4, 4)]:
        x, w = (rng.standard_normal((rows, 12)).astype(np.float32) for rows in (n, m))
        y, z = model(x, w)
        for got, of in ((y, x), (z, w)):
            wanted = np.exp(of) / np.exp(of).sum(-1, keepdims=True)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


CLASSES = 40


def test_kernels_of_the_sum_of_many_sizes_know_that_there_is_more():
    """What copies the rows that are found of one class behind those of all before is of few kinds.

    Sums have names of their own from some length on (`types/sizes.add_up`); each is told as at
    least what it adds to the one before.
    """
    given = ", ".join(f"bool[9] m{c}, float[9] x{c}" for c in range(CLASSES))
    parts = " ".join(f"v{c} = Compress<axis = 0>(x{c}, m{c})" for c in range(CLASSES))
    joined = ", ".join(f"v{c}" for c in range(CLASSES))
    text = f"g ({given}) => (float[k] y) {{ {parts} y = Concat<axis = 0>({joined}) }}"
    program = program_of(import_onnx(read(text), decides=True))
    sums = {k.name for k in program.kernels if any("size_sum" in size for size in k.sizes)}
    launched = [launch for launch in program.launches if launch.kernel in sums]
    assert len(launched) >= CLASSES - 6
    # Those of the first; then by how many are not in the sum yet, and how their names are sorted.
    assert len(sums) <= 7 + 3 * 6


def said(*sizes: Parameter, of: tuple[str, ...]):
    with assume(sizes):
        signed = sign_sizes(of, ())
    return signed.signature, signed.said, tuple(size.name for size in signed.sizes)


def test_positions_are_those_of_the_signature_then_of_what_is_said():
    least = Size.of(Derived("min", Size.of("size_n"), 9))
    sizes = Parameter("size_least", 0, 9, same=least), Parameter("size_n"), Parameter("size_z")
    signature, _, names = said(*sizes, of=("relu", "size_least", "size_least"))
    assert names == ("size_least", "size_n")
    assert signature == ("relu", "size_0", "size_0")


def test_what_is_needed_of_sizes_is_said():
    apart = Parameter("size_n"), Parameter("size_m")
    bound = Parameter("size_n", needs=(Size.of("size_n") - Size.of("size_m"),)), apart[1]
    assert said(*apart, of=("size_n",))[2] == ("size_n",)
    assert said(*bound, of=("size_n",))[2] == ("size_n", "size_m")
    assert said(*bound, of=("size_n",))[1] != said(*apart, of=("size_n", "size_m"))[1]


def test_where_nothing_is_assumed_all_stays_as_it_is():
    assert said(of=("relu", "size_n")) == (("relu", "size_n"), (), ())
