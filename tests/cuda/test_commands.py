"""The command line on the emulator, and what `polyc doctor` says about CUDA."""

from __future__ import annotations

import onnx
import pytest

from polyc.commands import doctor
from polyc.target.cuda import ask_driver
from tests.cuda.test_target import make_driver
from tests.programs import options
from tests.test_cli import command, small_network  # noqa: F401  (a fixture)

pytestmark = pytest.mark.cuda


def test_commands_take_a_gpu_as_their_target(command, monkeypatch):  # noqa: F811
    monkeypatch.setenv("POLYC_CUDA", "emulate")
    onnx.save(small_network(), "net.onnx")
    code, out, err = command("verify", "net.onnx", "--target", "cuda")
    assert (code, err) == (0, "")
    assert "outputs of the fused model" in out
    code, out, _ = command("explain", "net.onnx", "--target", "cuda:sm_90", "--times")
    assert code == 0
    assert "cuda sm_90, H100, emulated" in out
    assert "registers" in out
    code, out, _ = command("bench", "net.onnx", "--target", "cuda", "--seconds", "0")
    assert code == 0
    code, out, err = command("tune", "net.onnx", "--target", "cuda", "--seconds", "1")
    assert code == 1
    assert "cannot be tuned" in err


@pytest.mark.thorough
def test_doctor_describes_what_is_there(monkeypatch, tmp_path):
    driver = ask_driver(make_driver(tmp_path, devices=2))
    monkeypatch.setattr(doctor, "ask_driver", lambda: driver)
    monkeypatch.setattr(doctor, "_nvcc", lambda options: doctor.Check("CUDA compiler", True, ""))
    checks = {c.what: c for c in doctor.examine(options(tmp_path, emulated=True))}
    assert checks["CUDA driver"].found == "CUDA 13.0"
    assert "cuda sm_90a, NVIDIA H200: 132 multiprocessors, 227 KiB" in checks["GPU 1"].found
    assert "4,917 GB/s" in checks["GPU 0"].found
    assert "runs on this CPU" in checks["CUDA emulator"].found


def test_doctor_says_what_is_missing(tmp_path):
    checks = {c.what: c for c in doctor.examine(options(tmp_path, nvcc="no-nvcc"))}
    compiler = checks["CUDA compiler"]
    if not compiler.well:
        assert "set POLYC_NVCC" in compiler.remedy
        assert not compiler.needed
    if ask_driver().missing:
        assert not checks["CUDA driver"].well
        assert "install NVIDIA's driver" in checks["CUDA driver"].remedy
