"""GPUs as they are described, and as a driver tells them."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from polyc.codegen.cuda.grid import Grid
from polyc.errors import UnsupportedOp
from polyc.target.cuda import NAMED_GPUS, PORTABLE, CudaTarget, ask_driver

pytestmark = pytest.mark.cuda

H200 = {
    1: 1024,  # threads of a block
    10: 32,
    13: 1_980_000,  # clock in kHz
    16: 132,
    36: 3_201_000,  # clock of the memory in kHz
    37: 6144,
    38: 60 << 20,
    39: 2048,
    75: 9,
    76: 0,
    81: 228 << 10,
    82: 65536,
    97: 227 << 10,
    106: 32,
}


def make_driver(folder, devices=1, attributes=None, error=0):
    """A library that answers as the driver would."""
    cases = "".join(f"case {k}: *v = {x}; return 0;\n" for k, x in (attributes or H200).items())
    text = f"""
    #include <string.h>
    int cuInit(unsigned f) {{ return {error}; }}
    int cuDriverGetVersion(int *v) {{ *v = 13000; return 0; }}
    int cuDeviceGetCount(int *n) {{ *n = {devices}; return 0; }}
    int cuDeviceGet(int *d, int k) {{ *d = k; return 0; }}
    int cuDeviceGetName(char *s, int n, int d) {{ strncpy(s, "NVIDIA H200", n); return 0; }}
    int cuDeviceGetAttribute(int *v, int a, int d) {{ switch (a) {{ {cases} }} return 1; }}
    """
    library = folder / "libcuda.so.1"
    compiler = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(compiler, input=text.encode(), check=True)
    return str(library)


def test_the_driver_describes_its_devices(tmp_path):
    driver = ask_driver(make_driver(tmp_path, devices=2))
    assert driver.version == 13000
    assert not driver.missing
    first, second = driver.devices
    assert first == second
    assert str(first) == "cuda sm_90a, NVIDIA H200"
    assert first.has_wgmma
    assert first.capability == 90
    assert first.multiprocessors == 132
    assert first.shared_per_block == 227 << 10
    assert first.bandwidth == pytest.approx(4.9e12, rel=0.01)
    assert first.flops == pytest.approx(66.9e12, rel=0.01)
    assert first.tensor_flops == pytest.approx(1070e12, rel=0.01)


def test_an_architecture_that_is_not_known_is_taken_as_the_nearest_below(tmp_path):
    (gpu,) = ask_driver(make_driver(tmp_path, attributes={**H200, 75: 11, 76: 7})).devices
    assert gpu.arch == "sm_117"
    assert gpu.flops > 0


@pytest.mark.parametrize(("devices", "error"), [(0, 0), (1, 100)])
def test_a_driver_without_devices_says_so(tmp_path, devices, error):
    driver = ask_driver(make_driver(tmp_path, devices=devices, error=error))
    assert driver.devices == ()
    assert "finds no GPU" in driver.missing


def test_without_a_driver_the_remedy_is_told():
    driver = ask_driver("no-such-library.so")
    assert driver.devices == ()
    assert "install NVIDIA's driver" in driver.missing


def test_named_gpus():
    assert CudaTarget.named("sm_80") is PORTABLE
    for name, gpu in NAMED_GPUS.items():
        assert gpu.arch == name
        assert gpu.shared_per_block < gpu.shared_per_multiprocessor
        assert gpu.lanes(np.dtype(np.float32)) == 4
    assert not NAMED_GPUS["sm_90"].has_wgmma
    with pytest.raises(UnsupportedOp, match="choose one of 'cuda:sm_80'"):
        CudaTarget.named("sm_20")


def test_a_grid_is_shown_without_ones():
    assert str(Grid("k0", (8, 4, 1), (16, 16, 1))) == "8x4 blocks of 16x16"
    assert str(Grid("k0", (1, 1, 1), (256, 1, 1))) == "1 blocks of 256"


def test_the_roofline_is_the_slower_of_moving_and_computing():
    gpu = CudaTarget.named("sm_80")
    assert gpu.floor(10, 4_000_000) == 2e-6
    assert gpu.floor(39_000_000, 8) == 2e-6
    assert gpu.floor(312_000_000, 8, by_tensor_cores=True) == 1e-6
