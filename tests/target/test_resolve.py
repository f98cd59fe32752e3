"""Names of targets."""

from __future__ import annotations

import pytest

from polyc.errors import BuildError, UnsupportedOp
from polyc.options import Options
from polyc.target import resolve
from polyc.target.cuda import NAMED_GPUS, PORTABLE, CudaTarget, Driver
from polyc.target.machine import Target, detect_target
from polyc.target.resolve import resolve_target

HERE = CudaTarget.named("sm_90a")


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU and nvcc."""
    monkeypatch.setattr(resolve, "ask_driver", lambda: Driver(13000, (HERE,)))
    monkeypatch.setattr(resolve, "find_nvcc", lambda *_: None)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(resolve, "ask_driver", lambda: Driver(missing="no driver"))


def test_names_of_cpus(no_gpu):
    assert resolve_target("avx2", Options()) is Target.named("avx2")
    assert resolve_target(Target.named("avx2"), Options()) is Target.named("avx2")
    assert resolve_target("auto", Options()) == resolve_target("cpu", Options()) == detect_target()
    with pytest.raises(UnsupportedOp, match="'z80' is not known; choose one of auto, cpu, avx512"):
        resolve_target("z80", Options())


def test_names_of_gpus(no_gpu):
    assert resolve_target("cuda", Options()) is PORTABLE
    assert resolve_target("cuda:sm_90", Options()) is NAMED_GPUS["sm_90"]
    assert resolve_target(HERE, Options()) is HERE
    with pytest.raises(UnsupportedOp, match="'sm_5' is not known"):
        resolve_target("cuda:sm_5", Options())


def test_the_gpu_that_is_here(gpu):
    assert resolve_target("cuda", Options()) is HERE
    assert resolve_target("auto", Options()) is HERE
    assert resolve_target("cpu", Options()) == detect_target()
    assert resolve_target("cuda", Options(emulated=True)) is PORTABLE
    assert resolve_target("auto", Options(emulated=True)) == detect_target()


def test_a_gpu_without_a_compiler_for_it_is_not_taken(gpu, monkeypatch):
    def missing(*_):
        raise BuildError("none")

    monkeypatch.setattr(resolve, "find_nvcc", missing)
    assert resolve_target("auto", Options()) == detect_target()
