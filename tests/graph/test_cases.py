"""Where a comparison of sizes decides how many dimensions something has."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from polyc.errors import NotFixed, ShapeError
from polyc.graph.inference.cases import decide_cases, find_cases
from polyc.graph.inference.parameters import find_parameters
from polyc.graph.ir import Node, Tensor
from polyc.graph.onnx_import import import_onnx
from polyc.types.estimate import with_hints
from polyc.types.parameters import needed_ranges, tightened
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size, bounds

N = Size.of("n")


def entry(name, value):
    entries = np.asarray([value], object)
    return Tensor(name, np.dtype(np.int64), (1,), entries=entries)


def cases_of(op, one, other):
    node = Node("c", op, ("a", "b"), ("c",))
    return find_cases(node, [entry("a", one), entry("b", other)], {})


def test_a_comparison_says_what_is_needed_on_both_sides():
    assert cases_of("Equal", N, 1) == ((N - 1, 1 - N), (N - 2,))
    assert cases_of("Less", N, 5) == ((4 - N,), (N - 5,))
    assert cases_of("LessOrEqual", N, 5) == ((5 - N,), (N - 6,))
    assert cases_of("Greater", N, 5) == ((N - 6,), (5 - N,))
    assert cases_of("GreaterOrEqual", N, 5) == ((N - 5,), (4 - N,))
    assert cases_of("Equal", 3, 1) is None  # numbers decide it now


def test_what_is_not_the_largest_is_less():
    with assume([SizeRange("n", 1, 8)]):
        assert cases_of("Equal", N, 8) == ((N - 8, 8 - N), (7 - N,))


def test_views_keep_cases_and_not_swaps_them():
    known = {"c": cases_of("Equal", N, 1)}
    assert find_cases(Node("d", "Cast", ("c",), ("d",)), [None], known) == known["c"]
    assert find_cases(Node("d", "Not", ("c",), ("d",)), [None], known) == known["c"][::-1]
    assert find_cases(Node("d", "Not", ("x",), ("d",)), [None], known) is None


def undecided(*cases):
    return NotFixed("it depends", "give it", cases=cases)


def test_the_case_that_no_call_can_be_in_is_left_out():
    one, more = (N - 1, 1 - N), (N - 2,)

    def infer(needs):
        if not needs:
            raise undecided(one, more)
        if needs == more:
            raise ShapeError("it does not fit")
        return needs

    assert decide_cases(infer) == one


def test_where_both_fit_a_call_decides():
    def infer(needs):
        if not needs:
            raise undecided((N - 1,), (N - 2,))
        return needs

    with pytest.raises(NotFixed, match="it depends"):
        decide_cases(infer)


def test_a_case_behind_a_case_counts_only_where_all_of_it_is_decided():
    inner = ((N - 5,), (N - 6,))

    def infer(needs):
        if not needs:
            raise undecided((N - 1,), (N - 2,))
        if needs == (N - 1,):
            raise ShapeError("it does not fit")
        if needs == (N - 2,):
            raise undecided(*inner)
        return needs

    with pytest.raises(NotFixed):
        decide_cases(infer)


def test_endless_cases_end():
    asked = []

    def infer(needs):
        asked.append(needs)
        raise undecided((N - len(asked),), (N,))

    with pytest.raises(NotFixed):
        decide_cases(infer)
    assert len(asked) < 20


def test_bounds_of_a_size_follow_from_a_quotient_that_is_known():
    windows = (N + 320) // 512
    with assume(needed_ranges((windows - 1, 1 - windows))):
        assert bounds(windows) == (1, 1)
        size = tightened("n")
    assert (size.lower, size.upper) == (192, 703)
    assert {(n + 320) // 512 for n in (192, 703)} == {1}
    assert {(n + 320) // 512 for n in (191, 704)} == {0, 2}


def test_a_hint_is_large_enough_for_what_branches_need():
    needs = [N // 64 - 5]
    (size,) = with_hints([SizeRange("n")], {}, needs)
    assert size.hint == 512
    (size,) = with_hints([SizeRange("n", 1, 200)], {}, needs)
    assert size.hint == 128  # nothing that it may be is enough
    (size,) = with_hints([SizeRange("n", hint=7)], {}, needs)
    assert size.hint == 7


def test_a_signal_is_longer_than_one_window():
    (size,) = with_hints([SizeRange("n", 512)], {}, [])
    assert size.hint == 4096
    (size,) = with_hints([SizeRange("n", 512, 1000)], {}, [])
    assert size.hint == 1000
    (size,) = with_hints([SizeRange("n", 64)], {}, [])
    assert size.hint == 128


def test_a_length_that_a_single_far_window_would_go_over_is_one_of_sound():
    def hint(size, *extents):
        (found,) = with_hints([size], {}, [], extents)
        return found.hint

    n = SizeRange("n")
    assert hint(n, N // 256 + 1) == 16000
    assert hint(n, N, N // 64 + 1) == 128  # three windows
    assert hint(n, N // 8000) == 128  # there are never many of them
    assert hint(SizeRange("n", 1, 4000), N // 256 + 1) == 4000
    assert hint(SizeRange("n", hint=50), N // 256 + 1) == 50


@pytest.mark.parametrize(("dtype", "hint"), [(np.float32, 16000), (np.int32, 128)])
def test_a_text_is_no_signal(dtype, hint):
    """Windows of 512, 256 apart, over what is padded by as many."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=1),
        helper.make_node("Conv", ["f", "w"], ["y"], strides=[256], pads=[256, 256]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, [1, 1, "n"])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.ones((4, 1, 512), np.float32), "w")],
    )
    _, sizes = find_parameters(import_onnx(helper.make_model(graph)))
    assert {p.name: p.hint for p in sizes}["size_n"] == hint
