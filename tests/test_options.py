"""Options made by hand keep their cache where the environment says, never in the working folder."""

from pathlib import Path

import pytest

from polyc.errors import InvalidOption
from polyc.options import Options, options_from_environment


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    assert Options(minimal_filtering=False).cache_dir == tmp_path
    assert options_from_environment().cache_dir == tmp_path


def test_without_one_the_cache_is_the_platform_s(monkeypatch):
    monkeypatch.delenv("POLYC_CACHE_DIR", raising=False)
    assert Options().cache_dir == options_from_environment().cache_dir
    assert Options().cache_dir.is_absolute()
    assert Options().cache_dir != Path()


def test_the_environment_may_ask_for_tuning():
    assert options_from_environment({}).tune == 0
    assert options_from_environment({"POLYC_TUNE": "2.5"}).tune == 2.5
    for wrong in ("-1", "long", "nan", "1e3"):
        with pytest.raises(ValueError, match="POLYC_TUNE"):
            options_from_environment({"POLYC_TUNE": wrong})


def test_the_environment_says_which_cuda():
    assert options_from_environment({}).nvcc == "nvcc"
    assert not options_from_environment({"POLYC_CUDA": ""}).emulated
    assert options_from_environment({"POLYC_CUDA": "emulate"}).emulated
    assert options_from_environment({"CUDA_HOME": "/opt/cuda"}).nvcc == "/opt/cuda/bin/nvcc"
    assert options_from_environment({"POLYC_NVCC": "my-nvcc", "CUDA_HOME": "/a"}).nvcc == "my-nvcc"
    with pytest.raises(ValueError, match="POLYC_CUDA is 'yes'"):
        options_from_environment({"POLYC_CUDA": "yes"})


def test_what_float32_is_multiplied_as():
    assert Options().precision == "float32"
    assert Options(precision="bf16").precision == "bf16"
    assert options_from_environment({}).precision == "float32"
    assert options_from_environment({"POLYC_PRECISION": "bf16"}).precision == "bf16"
    for make in (
        lambda: Options(precision="half"),
        lambda: options_from_environment({"POLYC_PRECISION": "half"}),
    ):
        with pytest.raises(InvalidOption, match="precision is 'half'; give 'float32' or 'bf16'"):
            make()
    with pytest.raises(TypeError, match="`precision` is of type int, but must be 'float32' or 'b"):
        Options(precision=16)
