"""Kernels that another process compiled: found again, equal in all, and made anew if damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError
from polyc.loops.run import make
from polyc.options import options_from_environment
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(3)


def smooth(x, y):
    for i in range(1, len(x) - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3


def arguments(n=9):
    return RNG.random(n), RNG.random(n)


@pytest.fixture
def compiled(monkeypatch):
    """The names of recipes that have run."""
    runs = []
    for name in ("make_for_cpu", "make_for_all", "make_for_cuda"):
        original = getattr(make, name)

        def counted(*given, original=original, name=name):
            runs.append(name)
            return original(*given)

        monkeypatch.setattr(make, name, counted)
    return runs


def kernel(tmp_path, function=smooth, **choices):
    options = replace(options_from_environment(), cache_dir=tmp_path / "cache")
    if choices.get("target") == "cuda":
        options = replace(options, emulated=True)
    return polyc.kernel(options=options, **choices)(function)


def entries(tmp_path) -> list[Path]:
    return sorted((tmp_path / "cache" / "kernels").glob("??/*"))


TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_found_is_what_was_made(tmp_path, compiled, target):
    first, second = (kernel(tmp_path, target=target) for _ in range(2))
    check(first, *arguments())
    assert len(compiled) == 1
    check(second, *arguments())
    assert len(compiled) == 1
    assert first.explain() == second.explain()
    assert first.source == second.source
    folders = tmp_path / "one", tmp_path / "other"
    for one, folder in zip((first, second), folders, strict=True):
        one.export(folder)
    assert len(compiled) == (2 if target == "cpu" else 1)
    texts = [{f.name: f.read_text() for f in d.rglob("*.*") if f.is_file()} for d in folders]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", TARGETS)
def test_what_sizes_must_keep_to_is_found_as_well(tmp_path, compiled, target):
    told = []
    for _ in range(2):
        one = kernel(tmp_path, target=target)
        with pytest.raises(ShapeError, match="a subscript of 'y' leaves the array") as refused:
            one(RNG.random(9), RNG.random(5))
        told.append(str(refused.value))
        check(one, *arguments())
        check(one, *arguments(1))  # nothing to do
    assert told[0] == told[1]
    assert compiled == (["make_for_cpu"] * 2 if target == "cpu" else ["make_for_cuda"])


def test_whatever_decides_makes_another_entry(tmp_path, compiled):
    def other(x, y):
        for i in range(1, len(x) - 1):
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 4

    ways = [
        kernel(tmp_path),
        kernel(tmp_path, other),
        kernel(tmp_path, schedule="reverse i"),
        kernel(tmp_path, target="baseline"),
    ]
    unproven = kernel(tmp_path)
    ways.append(replace(unproven, options=replace(unproven.options, verify=False)))
    for one in ways:
        check(one, *arguments())
    check(kernel(tmp_path), *(a.astype(np.float32) for a in arguments()))
    assert len(compiled) == len(entries(tmp_path)) == 6
    assert "nothing, as the options say" in ways[-1].explain()


FILES = ("model.so", "explain.txt", "manifest.json", "source/driver.c", "CHECKSUMS")
OFTEN = dict(zip(FILES, ("cut", "gone", "changed", "changed", "gone"), strict=True))
"""How each file is damaged in an ordinary run."""


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (damage, file) if OFTEN[file] == damage else thorough(damage, file)
        for damage in ("cut", "changed", "gone")
        for file in FILES
    ],
)
def test_a_damaged_entry_is_made_anew(tmp_path, compiled, file, damage):
    check(kernel(tmp_path), *arguments())
    (entry,) = entries(tmp_path)
    place = entry / file
    content = place.read_bytes()
    if damage == "gone":
        place.unlink()
    else:
        half = len(content) // 2
        place.write_bytes(
            content[:half] + (b"" if damage == "cut" else b"!" * (len(content) - half))
        )
    again = kernel(tmp_path)
    check(again, *arguments())
    assert len(compiled) == 2
    assert place.read_bytes() == content


def test_without_a_cache_nothing_is_left(tmp_path, compiled):
    for _ in range(2):
        one = kernel(tmp_path)
        one.options = replace(one.options, cache=False)
        check(one, *arguments())
    assert len(compiled) == 2
    assert not entries(tmp_path)


SCRIPT = """
import sys
import numpy as np
import polyc

@polyc.kernel
def scale(A, B, x, y, z):
    for i in range(len(x)):
        y[i] = A[i] * x[i] + B[i] * z[i]

y = np.ones(5)
scale(y * 2, y * 3, y * 5, y, y * 7)
print(y, sorted(m for m in sys.modules if m.startswith("polyc.loops.schedule")))
"""


def test_another_process_finds_it(tmp_path):
    """Whatever order sets are in there; and without the scheduler."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    told = []
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "POLYC_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(Path(polyc.__file__).parents[1]),
        }
        ran = subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(ran.stdout)
    assert "[31. 31. 31. 31. 31.]" in told[0]
    assert "polyc.loops.schedule.tile" in told[0]
    assert told[1] == "[31. 31. 31. 31. 31.] []\n"
    assert len(entries(tmp_path)) == 1
