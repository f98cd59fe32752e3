"""The proof refuses what defects would make of branches that a call takes, or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from polyc.errors import IllegalSchedule
from polyc.program.driver_nest import Address, Decide, Wait, When
from polyc.types.sizes import Size
from tests.branching import branching, demanding
from tests.planted import Faults, Proven, Wrong, after, prove
from tests.sampling import sampled

FAULTS = Faults()


def fault(place: str, said: str) -> Callable[[Wrong], Wrong]:
    return FAULTS.note(place, branching, said)


@fault("polyc.program.driver_nest:make_driver", "is not in the branches that it belongs")
def the_other_branch(right):
    return after(right, lambda nest: tuple(over_branches(nest, lambda n: not n.holds)))


def over_branches(nest, choose):
    for node in nest:
        yield replace(node, holds=choose(node)) if isinstance(node, When) else node


@fault("polyc.program.driver_nest:make_driver", "is not in the branches that it belongs")
def both_branches(right):
    def opened(nest):
        return (part for n in nest for part in (n.body if isinstance(n, When) else (n,)))

    return after(right, lambda nest: tuple(opened(nest)))


@fault("polyc.program.driver_nest:make_driver", "before all threads have come to it")
def a_decision_that_nobody_waits_for(right):
    def without(nest):
        behind = (*nest[1:], None)
        return (n for n, then in zip(nest, behind, strict=True) if not isinstance(then, Decide))

    return after(right, lambda nest: tuple(without(nest)))


@fault("polyc.program.driver_nest:make_driver", "is not read from c")
def a_decision_by_something_else(right):
    def elsewhere(node):
        return replace(node, source=Address("io", 2)) if isinstance(node, Decide) else node

    return after(right, lambda nest: tuple(map(elsewhere, nest)))


@fault("polyc.program.driver_nest:make_driver", "that threads may still be in")
def no_barrier_behind_a_branch(right):
    def without(nest):
        before = (None, *nest)
        pairs = zip(before, nest, strict=False)
        return (n for last, n in pairs if not (isinstance(last, When) and n == Wait()))

    def ends(nest):  # between branches all wait
        last = max(k for k, n in enumerate(nest) if isinstance(n, When))
        return (*nest[:last], *without(nest[last:]))

    return after(right, lambda nest: tuple(ends(nest)))


@fault("polyc.threads.barriers:place_barriers", "that threads may still be in")
def barriers_inside_of_branches_alone(right):
    def forget(launches, slots):
        found = right(launches, slots)
        parted = {k for k in found if k and launches[k].branches != launches[k - 1].branches}
        return found - parted

    return forget


@fault("polyc.scop.lower.context:find_branches", "unwritten")
def a_value_that_only_one_branch_computes(right):
    def deeper(found):
        inside = next(branches for branches in found if branches)
        return tuple(branches or inside * (k == 1) for k, branches in enumerate(found))

    return after(right, deeper)


@fault("polyc.program.plan:find_lifetimes", "c at .* is not live in launch")
def a_condition_that_is_forgotten(right):
    return after(right, lambda spans: {n: (a, a if n == "c" else b) for n, (a, b) in spans.items()})


@fault("polyc.schedule.cluster:Cluster.branches", "is executed in c, but its launch in")
def kernels_in_every_call(right):
    return property(lambda self: ())


def fault_of_needs(place: str, said: str) -> Callable[[Wrong], Wrong]:
    return FAULTS.note(place, demanding, said)


@fault_of_needs("polyc.program.driver_nest:make_driver", "does not see to what the branches behind")
def a_decision_that_any_sizes_may_follow(right):
    def careless(node):
        return replace(node, needs=((), ())) if isinstance(node, Decide) else node

    return after(right, lambda nest: tuple(map(careless, nest)))


@fault_of_needs(
    "polyc.program.driver_nest:needs_behind", "does not see to what the branches behind"
)
def the_needs_of_the_other_branch(right):
    return after(right, lambda needs: needs[::-1])


OTHERS = "kernel is for calls in which -?size_[mn] [-+] size_[mn] is not negative"


@fault_of_needs("polyc.pipeline:_program", OTHERS)
def needs_that_no_driver_hears_of(right):
    return after(right, lambda program: replace(program, demands={}))


@fault_of_needs("polyc.backends.kernels:needs_in", OTHERS)
def kernels_for_the_calls_of_one_branch_in_both(right):
    return lambda demands, branches: tuple(need for needs in demands.values() for need in needs)


@fault_of_needs("polyc.backends.kernels:needed_ranges", OTHERS)
def more_is_assumed_of_sizes_than_is_needed(right):
    other = Size.of("size_m") - Size.of("size_n")
    return lambda needs: right(needs or (other,))


SELDOM = {
    barriers_inside_of_branches_alone,
    both_branches,
    a_condition_that_is_forgotten,
    a_value_that_only_one_branch_computes,
    kernels_in_every_call,
}
"""Those that the proof refuses by what refuses others as well."""


@pytest.mark.parametrize("model", [branching, demanding])
def test_without_a_fault_all_is_proven(tmp_path, model):
    with pytest.raises(Proven):
        prove(model(), tmp_path)


@pytest.mark.parametrize("planted", sampled(FAULTS, seldom=lambda f: f.wrong in SELDOM), ids=str)
def test_a_fault_is_refused(planted, tmp_path, monkeypatch):
    planted.plant(monkeypatch)
    with pytest.raises(IllegalSchedule, match=planted.said):
        prove(planted.model(), tmp_path)
