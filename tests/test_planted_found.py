"""The proof refuses what defects would make of sizes that a call finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from polyc import Graph
from polyc.errors import IllegalSchedule
from polyc.graph.onnx_import import import_onnx
from polyc.program.driver_nest import Address, Find, Wait
from polyc.types.sizes import Size
from tests.branching import read
from tests.planted import Faults, Proven, Wrong, after, prove
from tests.sampling import sampled

FAULTS = Faults()


def finding() -> Graph:
    """Rows that are chosen, their product, and those that begin with a positive element.

    Besides the places of five elements: there must be as many.
    """
    return import_onnx(
        read("""g (bool[n] m, float[n, 24] x, float[24, 40] w, bool[9] h, float[5] b)
            => (float[k, 40] y, float[j, 24] z, float[k, 24] r, float[1, 5] s, int64 l) {
            v = Compress<axis = 0>(x, m) u = MatMul(v, w) y = Softmax(u)
            zero = Constant<value = int64 {0}>() first = Gather<axis = 1>(v, zero)
            none = Constant<value = float {0}>() good = Greater(first, none)
            z = Compress<axis = 0>(v, good) r = Exp(v)
            p = NonZero(h) q = Cast<to = 1>(p) s = Add(q, b) l = Size(p)
        }"""),
        decides=True,
    )


def only_told() -> Graph:
    """A size that nothing needs but the caller: int64[0, k]"""
    return import_onnx(read("g (float x) => (int64[r, k] y) { y = NonZero(x) }"), decides=True)


def alike() -> Graph:
    """Two sizes of which the same is said, and what is done with one and with the other."""
    return import_onnx(
        read("""g (bool[9] m, bool[9] n, float[9] x, float[9] w) => (float[j] y, float[k] z) {
            a = Compress<axis = 0>(x, m) y = Exp(a) b = Compress<axis = 0>(w, n) z = Exp(b)
        }"""),
        decides=True,
    )


def fault(place: str, said: str, model: Callable[[], Graph] = finding) -> Callable[[Wrong], Wrong]:
    return FAULTS.note(place, model, said)


DRIVER = "polyc.program.driver_nest:make_driver"


def each_find(right: Wrong, change: Callable[[Find], Any]) -> Wrong:
    """What a driver does, with another node for each size that it finds."""
    return after(right, lambda nest: tuple(change(n) if isinstance(n, Find) else n for n in nest))


@fault(DRIVER, "is not compared with 0 and")
def another_limit(right):
    return each_find(right, lambda node: replace(node, most=node.most + 1))


@fault(DRIVER, "is not compared with 0 and")
def a_limit_that_is_a_number(right):
    return each_find(right, lambda node: replace(node, most=1 << 20))


@fault(DRIVER, "is not read from")
def the_size_of_something_else(right):
    return each_find(right, lambda node: replace(node, source=Address("io", 3)))


@fault(DRIVER, "before all threads have come to it")
def a_size_that_nobody_waits_for(right):
    def without(nest):
        behind = (*nest[1:], None)
        return (n for n, then in zip(nest, behind, strict=True) if not isinstance(then, Find))

    return after(right, lambda nest: tuple(without(nest)))


@fault(DRIVER, "is made before .* is found")
def a_launch_before_its_size(right):
    def late(nest):
        return (*(n for n in nest if not isinstance(n, Find)), Wait(), *finds(nest))

    return after(right, late)


@fault(DRIVER, "is read before .* writes")
def a_size_before_it_is_there(right):
    def early(nest):
        return (Wait(), *finds(nest), *(n for n in nest if not isinstance(n, Find)))

    return after(right, early)


def finds(nest):
    return [node for node in nest if isinstance(node, Find)]


@fault(DRIVER, "is made before .* is found")
def a_size_that_is_never_found(right):
    return after(right, lambda nest: tuple(n for n in nest if not isinstance(n, Find)))


@fault(DRIVER, "size size_k is not found", only_told)
def a_size_that_the_caller_needs(right):
    return after(right, lambda nest: tuple(n for n in nest if not isinstance(n, Find)))


@fault("polyc.program.driver_nest:_list_needs", "is not compared with")
def no_limit(right):
    return after(right, lambda pair: (Size.of("size_n") * 2, pair[1]))


@fault("polyc.program.plan:at_most", "no room for|only a call finds")
def room_for_what_is_typical(right):
    return lambda extent: extent


@fault("polyc.program.plan:at_most", "has no room for")
def room_for_less(right):
    def less(extent):
        room = right(extent)
        return room - 4 if isinstance(room, Size) else room

    return less


@fault("polyc.schedule.cluster:awaited_by", "unwritten|is read before|is made before")
def kernels_that_do_not_wait(right):
    return lambda statements, scop: frozenset()


@fault("polyc.program.driver_nest:_list_needs", "is not negative is not checked when")
def what_must_fit_is_not_checked(right):
    return after(right, lambda pair: (pair[0], ()))


OTHERS = "its kernel is for calls in which .* it is in others"


@fault("polyc.backends.kernels:_use", "its statements are not those of the kernel", alike)
def the_size_of_another_launch(right):
    return after(right, lambda use: use and replace(use, sizes={}))


@fault("polyc.program.program:Launch.told", "calls .* with .*size_j", alike)
def a_size_that_is_not_told(right):
    return lambda self, kernel: kernel.sizes


@fault("polyc.mapping.sign_sizes:related_ranges", OTHERS, alike)
def kernels_for_at_least_one(right):
    return after(right, lambda sizes: tuple(replace(size, lower=1) for size in sizes))


@fault("polyc.poly.conditions:_among", OTHERS, alike)
def kernels_for_what_is_not_needed(right):
    def more(size):
        few = Size.of(size.name) - 3
        return replace(size, needs=(*size.needs, few))

    return after(right, more)


SELDOM = {no_limit, room_for_less, another_limit, a_size_that_is_never_found}
SELDOM |= {a_size_before_it_is_there, kernels_that_do_not_wait, what_must_fit_is_not_checked}
"""Those that the proof refuses by what refuses others as well."""


@pytest.mark.parametrize("model", [finding, alike])
def test_without_a_fault_all_is_proven(tmp_path, model):
    with pytest.raises(Proven):
        prove(model(), tmp_path)


@pytest.mark.parametrize(
    "planted", sampled(FAULTS, seldom=lambda fault: fault.wrong in SELDOM), ids=str
)
def test_a_fault_is_refused(planted, tmp_path, monkeypatch):
    planted.plant(monkeypatch)
    with pytest.raises(IllegalSchedule, match=planted.said):
        prove(planted.model(), tmp_path)
