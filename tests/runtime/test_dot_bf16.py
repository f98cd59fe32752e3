"""Sums of products of bfloat16, on every machine, and by the instruction where there is one."""

import ctypes
import subprocess

import ml_dtypes
import numpy as np
import pytest

from polyc.target.instructions.lanes import BF16
from polyc.target.machine import host_features
from tests.runtime.native import FLAGS, RUNTIME, WARNINGS, Isa, Uses, compiled, preamble

NATIVE = Isa("bf16", ("-march=x86-64-v4", "-mavx512bf16"), (), 16)
ISAS = (
    (NATIVE, BF16),
    (Isa("avx512", ("-march=x86-64-v4",), (), 16), "avx512bw"),
    (Isa("avx2", ("-march=x86-64-v3",), (), 8), "avx2"),
    (Isa("sse2", (), (), 4), "sse2"),
)
LANES = (2, 4, 8, 16)


def source() -> str:
    """A C function for each number of lanes: from memory, to memory."""
    uses, texts = Uses(), []
    for lanes in LANES:
        uses.instructions.add(("polyc_dot_bf16.h", lanes))
        uses.functions |= {("load", "f32", lanes), ("store", "f32", lanes)}
        uses.functions.add(("load", "bf16", 2 * lanes))
        v, pairs = f"f32x{lanes}", f"bf16x{2 * lanes}"
        texts.append(
            f"void dot_{lanes}(f32 *acc, const bf16 *a, const bf16 *b)\n"
            f"{{ pc_store_{v}(acc, pc_dot2_bf16bf16_{v}(pc_load_{v}(acc), pc_load_{pairs}(a), "
            f"pc_load_{pairs}(b))); }}"
        )
    return preamble(uses) + "\n".join(texts)


@pytest.mark.parametrize(("isa", "feature"), ISAS, ids=lambda x: getattr(x, "name", ""))
def test_sums_are_those_of_float32(tmp_path, isa, feature):
    if feature not in (host_features() or ()):
        pytest.skip(f"this CPU has no {feature}")
    library = compiled(source(), isa, tmp_path)
    rng = np.random.default_rng(0)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, 1e37, -1e-30, 2.0**-126], np.float32)
    for lanes in LANES:
        for chance in (0.0, 0.3):
            a, b = rng.standard_normal((2, 2 * lanes)).astype(np.float32)
            a = np.where(rng.random(a.shape) < chance, rng.choice(odd, a.shape), a)
            a, b = (v.astype(ml_dtypes.bfloat16) for v in (a, b))
            acc = rng.standard_normal(lanes).astype(np.float32)
            with np.errstate(invalid="ignore"):
                products = (a.astype(float) * b.astype(float)).reshape(lanes, 2)
                wanted = acc + products.sum(1)
            places = (ctypes.c_void_p(x.ctypes.data) for x in (acc, a, b))
            getattr(library, f"dot_{lanes}")(*places)
            np.testing.assert_allclose(acc, wanted, rtol=1e-6, atol=1e-6)


def test_it_is_the_instruction_of_the_machine(tmp_path):
    path = tmp_path / "dot.c"
    path.write_text(source())
    command = ["gcc", *FLAGS, *WARNINGS, *NATIVE.flags, f"-I{RUNTIME}", "-S", "-o", "-", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert text.count("vdpbf16ps") == 3  # of 4, 8 and 16 lanes
