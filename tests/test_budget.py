"""The memory that a model may take."""

import resource
from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc import Graph, budget, ops
from polyc.budget import Budget, memory_there_is, require_table, show_bytes
from polyc.errors import InternalError, InvalidModel, InvalidOption, TooLarge, naming_defects
from polyc.options import Options, options_from_environment
from polyc.run.calls import Binder
from polyc.toolchain.cache import open_cache
from polyc.toolchain.pages import allocate_pages
from polyc.types.spec import TensorSpec
from tests.sampling import thorough


def test_a_size_beyond_the_limit_is_refused_with_all_that_is_known():
    Budget(100).require(100, "x")
    with pytest.raises(TooLarge, match=r"tensor 'add' takes 3.0 GiB, .* 2.0 GiB; .* POLYC_MEMORY"):
        Budget(2**31).require(3 * 2**30, "tensor 'add'")
    with pytest.raises(TooLarge, match="over 1024 TiB"):
        Budget.of().require(2**70, "x")
    with pytest.raises(TooLarge, match="x is defined by a table"):
        require_table(2**62, "x")


def test_sizes_are_shown_with_units():
    shown = [show_bytes(n) for n in (0, 2**20 - 1, 2**20, 3 * 2**39)]
    assert shown == ["0 bytes", "1048575 bytes", "1.0 MiB", "1.5 TiB"]


def test_the_limit_is_the_least_that_is_known(monkeypatch, tmp_path):
    assert Budget.of().memory == memory_there_is() > 2**20
    assert Budget.of(5).memory == 5
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**25, -1))
    assert memory_there_is.__wrapped__() == 2**25
    (tmp_path / "memory.max").write_text("16777216\n")
    monkeypatch.setattr(budget, "CGROUPS", tmp_path)
    assert memory_there_is.__wrapped__() == 2**24
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_there_is.__wrapped__() == 2**25


def test_the_environment_may_set_it():
    assert options_from_environment({}).memory_limit == Options().memory_limit == 0
    assert options_from_environment({"POLYC_MEMORY": "4096"}).memory_limit == 4096
    for wrong in ("-1", "4G", "²", "9" * 19):
        with pytest.raises(InvalidOption, match="POLYC_MEMORY"):
            options_from_environment({"POLYC_MEMORY": wrong})


def test_the_environment_may_limit_the_cache(tmp_path):
    chosen = options_from_environment(
        {"POLYC_CACHE_DIR": str(tmp_path), "POLYC_CACHE_LIMIT": "4096"}
    )
    assert open_cache(chosen).limit == 4096
    assert open_cache(Options(cache_dir=tmp_path)).limit == Options().cache_limit == 8 << 30
    with pytest.raises(InvalidOption, match="POLYC_CACHE_LIMIT"):
        options_from_environment({"POLYC_CACHE_LIMIT": "8 GiB"})


def test_a_limit_is_a_number_of_bytes():
    for wrong in (-1, 2**63):
        with pytest.raises(InvalidOption, match="memory_limit"):
            Options(memory_limit=wrong)
    with pytest.raises(TypeError, match="memory_limit"):
        Options(memory_limit="4 GiB")


def test_memory_that_is_not_there_is_told():
    binder = Binder("mul", (), [TensorSpec("add", np.dtype(np.float32), (2**44,))])
    with pytest.raises(TooLarge, match="'add'"):
        binder.allocate_outputs()
    for size in (2**46, 2**62, 2**64):
        with pytest.raises(TooLarge, match=str(size)):
            allocate_pages(size)


def test_an_exception_that_nobody_foresaw_says_so():
    told = "Relu 'exp': polyc fails .KeyError: 'a'"
    with pytest.raises(InternalError, match=told) as caught, naming_defects("Relu 'exp'"):
        raise KeyError("a")
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(TooLarge), naming_defects("x"):
        raise MemoryError
    for passed in (InvalidModel("x"), FileNotFoundError("x"), KeyboardInterrupt()):
        with pytest.raises(type(passed)), naming_defects("x"):
            raise passed


@pytest.mark.parametrize("target", ["baseline", thorough("cuda")])
def test_weights_and_what_a_call_works_in_count_together(tmp_path, target):
    """One byte less than both is too little, though it is enough for either."""
    x = ops.input("x", (96, 64))
    first, second = (np.full((64, 64), v, np.float32) for v in (1.0, 2.0))
    graph = Graph.of(y=ops.matmul(ops.softmax(ops.matmul(x, first), axis=0), second))
    chosen = Options(cache_dir=tmp_path, memory_limit=2**20, emulated=True, threads=1)
    report = polyc.compile(graph, target=target, options=chosen).explain()
    assert report.arena_bytes > 96 * 4
    less = replace(chosen, memory_limit=report.arena_bytes + report.weights_bytes - 1)
    with pytest.raises(TooLarge, match="what a call works in, and its weights, takes"):
        polyc.compile(graph, target=target, options=less)


def test_a_call_that_says_the_sizes_asks_as_well(tmp_path):
    x = ops.input("x", ("n", 4))
    chosen = Options(cache_dir=tmp_path, memory_limit=2**16, threads=1)
    model = polyc.compile(Graph.of(y=ops.softmax(x, axis=1)), target="baseline", options=chosen)
    model.save(tmp_path / "saved")
    for kept in (model, polyc.load(tmp_path / "saved")):
        assert kept(np.ones((100, 4), np.float32)).shape == (100, 4)
        with pytest.raises(TooLarge, match=r"what a call works in.*the limit is 65536 bytes"):
            kept(np.ones((5000, 4), np.float32))
