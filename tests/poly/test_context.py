"""isl's options and budget hold inside the `with`, and no longer."""

import islpy as isl
import pytest

from polyc.poly.context import isl_options, operation_budget

CONTEXT = isl.DEFAULT_CONTEXT


def test_options_are_set_and_restored():
    before = CONTEXT.get_schedule_maximize_band_depth(), CONTEXT.get_ast_build_detect_min_max()
    with isl_options(schedule_maximize_band_depth=1, detect_min_max=1) as context:
        assert context.get_schedule_maximize_band_depth() == 1
        assert context.get_ast_build_detect_min_max() == 1
        with isl_options(schedule_maximize_band_depth=0):
            assert CONTEXT.get_schedule_maximize_band_depth() == 0
        assert CONTEXT.get_schedule_maximize_band_depth() == 1
    after = CONTEXT.get_schedule_maximize_band_depth(), CONTEXT.get_ast_build_detect_min_max()
    assert after == before


def test_options_are_restored_after_an_error():
    before = CONTEXT.get_schedule_maximize_band_depth()
    with pytest.raises(ZeroDivisionError), isl_options(schedule_maximize_band_depth=1 - before):
        _ = 1 // 0
    assert CONTEXT.get_schedule_maximize_band_depth() == before


def test_an_unknown_option_is_refused_before_any_is_set():
    before = CONTEXT.get_schedule_maximize_band_depth()
    options = isl_options(schedule_maximize_band_depth=1 - before, no_such_option=1)
    with pytest.raises(AttributeError, match="no_such_option"), options:
        pass
    assert CONTEXT.get_schedule_maximize_band_depth() == before


def work() -> isl.Set:
    return isl.Set("{ A[i, j] : exists k, l : i = 3k + 5l and j = 2k - 7l }").complement()


def test_a_budget_stops_isl_and_is_lifted_after():
    with pytest.raises(isl.Error), operation_budget(5):
        work()
    assert not work().is_empty()
