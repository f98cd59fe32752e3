"""Tests that ask for `emulated` run twice: on the emulator (marker cuda), and on a GPU (gpu)."""

from __future__ import annotations

import pytest

from polyc.target.cuda import ask_driver


@pytest.fixture(
    params=[
        pytest.param(True, id="emulator", marks=pytest.mark.cuda),
        pytest.param(False, id="gpu", marks=pytest.mark.gpu),
    ]
)
def emulated(request) -> bool:
    """Whether the test runs on the emulator; skipped where the GPU that it wants is not."""
    if not request.param and (missing := ask_driver().missing):
        pytest.skip(missing)
    return bool(request.param)
