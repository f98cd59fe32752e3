"""Python's collector while models are compiled."""

import gc

import pytest

from polyc.build.seldom import NEW_VALUES, collecting_seldom


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_last_to_leave_puts_back_what_there_was():
    gc.set_threshold(701, 11, 12)
    first, second = collecting_seldom(), collecting_seldom()
    first.__enter__()
    assert gc.get_threshold() == (NEW_VALUES, 11, 12)
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (NEW_VALUES, 11, 12)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (701, 11, 12)


def test_an_error_puts_it_back_too():
    gc.set_threshold(701, 11, 12)
    with pytest.raises(ValueError, match="refused"), collecting_seldom():
        raise ValueError("refused")
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.parametrize("chosen", [0, NEW_VALUES + 1])
def test_a_user_who_wants_less_keeps_it(chosen):
    gc.set_threshold(chosen, 11, 12)
    with collecting_seldom():
        assert gc.get_threshold() == (chosen, 11, 12)
