"""Work that is shared with forked processes: all of it is done, whatever becomes of them."""

import os
import time

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.options import Options
from polyc.toolchain import share_work as sharing
from polyc.toolchain.share_work import can_fork, share_work

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux only")

HERE = os.getpid()


def share(tasks, do, processes=3):
    """What comes of tasks, each with the process that did it."""

    def pack(result):
        return repr(result).encode()

    def unpack(task, content):
        return eval(content.decode())

    with share_work(
        tasks, lambda task: (do(task), os.getpid()), pack, unpack, processes
    ) as results:
        return dict(results)


def squares(tasks):
    return {task: task * task for task in tasks}


def slowly(task):
    time.sleep(0.01)
    return task * task


def values(results):
    return {task: value for task, (value, _) in results.items()}


@pytest.mark.parametrize("count", [0, 1, 2, 40])
@pytest.mark.parametrize("processes", [1, 2, 5])
def test_each_task_is_done(count, processes):
    assert values(share(range(count), slowly, processes)) == squares(range(count))


def test_several_processes_work():
    done_by = {process for _, process in share(range(60), slowly).values()}
    assert len(done_by) == 3
    assert HERE in done_by


def test_what_is_long_comes_back_whole():
    results = share(range(8), lambda task: str(task) * 300_000)
    assert values(results) == {task: str(task) * 300_000 for task in range(8)}


def test_what_does_not_fit_in_the_pipe_is_done_here(monkeypatch):
    monkeypatch.setattr(sharing, "MAX_TASKS", 5)
    assert values(share(range(12), slowly)) == squares(range(12))


def elsewhere(do_there):
    """A task that is another one in forked processes."""
    return lambda task: slowly(task) if os.getpid() == HERE else do_there(task)


def test_tasks_of_processes_that_die_are_done_again():
    results = share(range(20), elsewhere(lambda task: os._exit(3)))
    assert values(results) == squares(range(20))
    assert {process for _, process in results.values()} == {HERE}


def test_tasks_of_processes_that_hang_are_done_again(monkeypatch):
    monkeypatch.setattr(sharing, "SILENCE", 0.2)
    assert values(share(range(20), elsewhere(lambda task: time.sleep(3600)))) == squares(range(20))


def test_an_error_is_raised_here(capfd):
    def fail(task):
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task"):
        share(range(20), fail)
    assert share(range(20), elsewhere(fail))
    assert not capfd.readouterr().err  # the forked processes say nothing


def test_none_is_left():
    with share_work(range(9), elsewhere(lambda task: time.sleep(3600)), repr, repr, 3):
        children = [helper.pid for helper in sharing.multiprocessing.active_children()]
        assert len(children) == 2
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_without_processes_to_give(monkeypatch):
    def refuse(self):
        raise OSError("no process")

    fork = sharing.multiprocessing.get_context("fork").Process
    monkeypatch.setattr(fork, "start", refuse)
    assert values(share(range(9), slowly)) == squares(range(9))


def network():
    """Layers that differ, so that each is a kernel of its own."""
    generator = np.random.default_rng(0)
    value = ops.input("x", (3, 8))
    for width in range(9, 15):
        weight = generator.standard_normal((width - 1, width), dtype=np.float32)
        value = ops.softmax(ops.matmul(value, weight))
    return Graph.of(y=value)


def test_a_model_is_the_same_however_many_processes_compile_it(tmp_path):
    one, many = (
        polyc.compile(network(), options=Options(processes=n, cache_dir=tmp_path / str(n)))
        for n in (1, 3)
    )
    assert one.source == many.source
    assert one.explain().proven == many.explain().proven
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_array_equal(one(x), many(x))
