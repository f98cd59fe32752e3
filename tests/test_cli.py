"""The command line: what it prints, writes and returns; kernels are written by hand."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc import cli, load, ops
from polyc.commands import doctor
from polyc.graph.ir import Graph
from polyc.graph.onnx.export import export_onnx
from polyc.mapping.tuned import Tuned
from polyc.target.rates import Rates
from polyc.types.spec import TensorSpec
from tests.programs import (
    F32,
    SCALE_C,
    compiled,
    install_pipeline,
    options,
    scale_program,
    stored,
)
from tests.sampling import thorough


def scales_model() -> onnx.ModelProto:
    """y = x * 2 * 3 by two Mul nodes."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    weights = [
        numpy_helper.from_array(np.array([v], np.float32), n) for v, n in ((2, "a"), (3, "b"))
    ]
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["t1"], name="first"),
        helper.make_node("Mul", ["t1", "b"], ["y"], name="second"),
    ]
    graph = helper.make_graph(nodes, "scales", infos[:1], infos[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def exposed_program(factors: tuple[float, ...]):
    """The scaling program with its intermediate t1 as an output."""
    program = scale_program(factors)
    arrays = {**program.arrays, "t1": stored("t1", (2, 3), "output")}
    outputs = ((TensorSpec("t1", F32, (2, 3)), "t1"), *program.outputs)
    return replace(program, arrays=arrays, outputs=outputs)


def small_network() -> onnx.ModelProto:
    """y = softmax(gemm(flatten(relu(conv(x) + 1)))), for the real pipeline."""
    generator = np.random.default_rng(0)
    shapes = {"k": (4, 2, 3, 3), "one": (1,), "w": (64, 5), "c": (5,)}
    weights = [
        numpy_helper.from_array(generator.standard_normal(s).astype(np.float32), n)
        for n, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["t1"], name="conv", pads=[1] * 4),
        helper.make_node("Add", ["t1", "one"], ["t2"], name="add"),
        helper.make_node("Relu", ["t2"], ["t3"], name="relu"),
        helper.make_node("Flatten", ["t3"], ["t4"], name="flatten"),
        helper.make_node("Gemm", ["t4", "w", "c"], ["t5"], name="gemm"),
        helper.make_node("Softmax", ["t5"], ["y"], name="softmax"),
    ]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 2, 4, 4]), ("y", [1, 5]))
    ]
    graph = helper.make_graph(nodes, "small", infos[:1], infos[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def polyc(monkeypatch, command):
    """Runs a command on a program that stands in for the pipeline's."""
    install_pipeline(monkeypatch, compiled(scale_program(), SCALE_C))
    return command


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Runs a command: (exit code, stdout, stderr)."""
    for name in [n for n in os.environ if n.startswith("POLYC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    onnx.save(scales_model(), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["polyc", *arguments])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_compile_then_run_the_folder(polyc, tmp_path):
    code, out, _ = polyc("compile", "m.onnx", "-o", "built", "--threads", "1")
    said = f"scales: 2 kernels written to built\ndigest: {load('built').digest}\n"
    assert (code, out) == (0, said)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    code, out, _ = polyc("run", "built", "--input", "x=x.npy", "-o", "results")
    assert code == 0
    assert "y: float32[2, 3] [[0.0, 6.0, 12.0], [18.0, 24.0, 30.0]]" in out
    np.testing.assert_array_equal(np.load(tmp_path / "results" / "y.npy"), x * 6)


def test_random_inputs_follow_the_seed(polyc):
    first, again, other = (polyc("run", "m.onnx", "--seed", s)[1] for s in "001")
    assert first == again != other


def test_bench_and_explain(polyc, tmp_path):
    code, out, _ = polyc("bench", "m.onnx", "--seconds", "0", "--kernels", "--threads", "1")
    assert code == 0
    assert "scales, 1 thread: median" in out
    assert "mul_1" in out
    assert "Gflop/s" in out
    code, out, _ = polyc("explain", "m.onnx")
    assert code == 0
    assert "parallel i" in out
    assert "Gflop/s" not in out
    assert polyc("explain", "m.onnx", "--html", "r.html", "--times")[0] == 0
    assert "<td>Mul mul_0</td>" in (tmp_path / "r.html").read_text()


def test_verify_names_the_first_node_that_differs(polyc, monkeypatch):
    install_pipeline(monkeypatch, compiled(exposed_program((2.0, 3.0)), SCALE_C))
    code, out, err = polyc("verify", "m.onnx", "--seed", "1")
    assert (code, err) == (0, "")
    assert "2 tensors agree" in out
    install_pipeline(monkeypatch, compiled(exposed_program((2.0, 3.5)), SCALE_C))
    code, _, err = polyc("verify", "m.onnx", "--seed", "1", "--target", "baseline")
    assert code == 1
    assert "node 'second' (Mul) computes tensor 'y' with relative error 1.67e-01" in err


def test_verify_looks_at_the_fused_model_too(polyc, monkeypatch):
    exposed = compiled(exposed_program((2.0, 3.0)), SCALE_C)
    fused = compiled(scale_program((2.0, 3.5)), SCALE_C)
    pipeline = install_pipeline(monkeypatch, exposed)
    run = pipeline.run_pipeline

    def run_pipeline(model, *rest, **named):
        pipeline.result = exposed if len(model.graph.output) > 1 else fused
        return run(model, *rest, **named)

    pipeline.run_pipeline = run_pipeline
    code, _, err = polyc("verify", "m.onnx")
    assert code == 1
    assert "'y' with relative error 1.67e-01" in err
    assert "when the model is fused, though every node agrees on its own" in err


def test_a_real_network_by_every_command(command, tmp_path):
    onnx.save(small_network(), tmp_path / "net.onnx")
    code, out, err = command("explain", "net.onnx")
    assert (code, err) == (0, "")
    for part in (
        "Conv conv, Relu relu",
        "for 4 nodes",
        "proven: arena:",
        "reads of what has been written before",
        "not fused: ",
        "compiled in: ",
    ):
        assert part in out
    code, out, err = command("verify", "net.onnx")
    assert (code, err) == (0, "")
    assert "6 tensors agree with onnx's reference" in out
    code, out, err = command("verify", "net.onnx", "--exact", "--target", "cuda:sm_80")
    assert (code, err) == (0, "")
    assert "on the emulator: all 15 elements of outputs as the statements say, exactly" in " ".join(
        out.split()
    )
    assert command("bench", "net.onnx", "--seconds", "0", "--kernels")[0] == 0
    assert command("export", "net.onnx", "c")[1].startswith("small: written to c; build it")
    assert (tmp_path / "c" / "Makefile").is_file()
    first, again = (command("run", model)[1] for model in ("net.onnx", "net.onnx"))
    assert first == again
    assert first.startswith("y: float32[1, 5]")


def test_verify_names_the_node_whose_kernel_is_wrong(command, monkeypatch, tmp_path):
    from polyc import pipeline

    right = pipeline.run_pipeline

    def wrong(*arguments, kept, **taken):
        *arguments, emit = arguments

        def swap(kernel):
            text = kernel.source.replace("pc_max_", "pc_min_")
            emit(replace(kernel, source=text))

        return right(*arguments, swap, **taken)

    monkeypatch.setattr(pipeline, "run_pipeline", wrong)
    onnx.save(small_network(), tmp_path / "net.onnx")
    code, _, err = command("verify", "net.onnx")
    assert code == 1
    assert "node 'relu' (Relu) computes tensor 't3'" in err
    assert "the nodes before it agree" in err


@pytest.mark.thorough
def test_doctor_measures_once_and_then_knows(polyc, monkeypatch, tmp_path):
    rates = Rates(2e11, 3e11, 1e11, 8e10, 3e10, 7e10, 4e10, 8e10, 1e-7, 1e-9, measured=True)
    monkeypatch.setattr("polyc.target.measure.measure_rates", lambda target, options: rates)
    monkeypatch.setattr(doctor, "_nvcc", lambda options: doctor.Check("CUDA compiler", True, ""))
    assert "200 Gflop/s" not in polyc("doctor")[1]
    code, out, err = polyc("doctor", "--measure")
    assert (code, err) == (0, "")
    assert f"kept in {tmp_path / 'cache' / 'machine'}" in out
    assert "200 Gflop/s a core" in out
    assert "(measured)" in polyc("doctor")[1]


def test_rates_that_cannot_be_kept_are_an_error(polyc, monkeypatch, tmp_path):
    monkeypatch.setattr("polyc.target.measure.measure_rates", lambda target, options: target.rates)
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "file"))
    code, _, err = polyc("doctor", "--measure")
    assert code == 1
    assert "the rates cannot be kept in" in err


def test_doctor_says_what_is_there_and_what_to_do(polyc, monkeypatch, tmp_path):
    code, out, err = polyc("doctor")
    assert (code, err) == (0, "")
    for part in ("gcc", "vector registers", str(tmp_path / "cache"), "CUDA"):
        assert part in out
    monkeypatch.setenv("POLYC_CC", "no-such-compiler")
    monkeypatch.setattr(doctor, "_nvcc", lambda options: doctor.Check("CUDA compiler", True, ""))
    (tmp_path / "cache2").write_text("in the way")
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache2"))
    code, out, err = polyc("doctor")
    assert code == 1
    assert "MISSING" in out
    assert "install gcc" in out
    assert "set POLYC_CACHE_DIR to a writable folder" in out
    assert err == "polyc: error: polyc cannot compile here: see compiler, runtime above\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POLYC_TUNE", "long"),
        ("POLYC_DUMP", "loops"),
        ("POLYC_CUDA", "yes"),
        ("POLYC_PATIENCE", "-1"),
        ("OMP_NUM_THREADS", "²"),
        ("OMP_NUM_THREADS", str(2**40)),
        ("POLYC_CC", "'gcc"),
    ],
)
def test_variables_that_mean_nothing_are_named(polyc, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    code, _, err = polyc("run", "m.onnx", "--target", "baseline")
    assert code == 1
    assert err.startswith("polyc: error: ")
    assert err.count("\n") == 1
    assert name in err
    assert value.removeprefix("'") in err


def test_a_user_without_a_home_is_told(polyc, monkeypatch):
    monkeypatch.delenv("POLYC_CACHE_DIR")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["no such user"])
    code, _, err = polyc("run", "m.onnx")
    assert code == 1
    assert "set HOME, or set POLYC_CACHE_DIR" in err


def test_the_cache_is_shown_listed_and_cleared(polyc, tmp_path):
    assert (
        polyc("cache")[1].splitlines()[-1].startswith(f"{tmp_path / 'cache'}: 0 entries, 0.0 MiB")
    )
    polyc("run", "m.onnx")
    kinds = [line.partition(":")[0] for line in polyc("cache")[1].splitlines()]
    assert kinds == ["libraries", "models", "objects", str(tmp_path / "cache")]
    assert "models/" in polyc("cache", "list")[1]
    assert polyc("cache", "clear")[1].startswith("removed: 6 entries")
    assert polyc("cache", "list")[1] == ""
    assert polyc("run", "m.onnx")[0] == 0


def test_doctor_says_that_others_may_write_to_the_cache(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    check = doctor._cache(options(tmp_path))
    assert not check.well
    assert check.needed
    assert f"chmod -R go-w {tmp_path / 'cache'}" in check.remedy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "gone.onnx"), "model file gone.onnx cannot be read"),
        (("run", "."), "is not a saved polyc model"),
        thorough(("run", "m.onnx", "--input", "x"), "'x' is not of the form NAME=FILE.npy"),
        thorough(
            ("run", "m.onnx", "--input", "z=m.onnx"), "m.onnx cannot be read as a NumPy array"
        ),
        thorough(("run", "m.onnx", "--input", "x=gone.npy"), "gone.npy cannot be read"),
        (("run", "m.onnx", "--target", "z80"), "'z80' is not known"),
        (("verify", "gone.onnx"), "model file gone.onnx cannot be read"),
        thorough(("run", "m.onnx", "-o", "m.onnx"), "cannot be written to m.onnx/y.npy"),
        thorough(("run", "m.onnx", "-o", "m.onnx/deep"), "cannot be written to m.onnx/deep/y.npy"),
        (("explain", "m.onnx", "--html", "gone/page.html"), "the report cannot be written"),
        (("compile", "m.onnx", "-o", "m.onnx"), "m.onnx exists, and is no saved model"),
        thorough(
            ("compile", "m.onnx", "-o", "m.onnx/deep/er"), "cannot be written to m.onnx/deep/er"
        ),
        (("compile", "/dev/zero", "-o", "x"), "it is a device, not a regular file"),
        (("verify", "/dev/zero"), "it is a device, not a regular file"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(polyc, arguments, message):
    code, _, err = polyc(*arguments)
    assert code == 1
    assert err.startswith("polyc: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_bad_environment_is_an_error_too(polyc, monkeypatch):
    monkeypatch.setenv("POLYC_DUMP", "everything")
    code, _, err = polyc("explain", "m.onnx")
    assert code == 1
    assert "the stages are graph" in err


@pytest.mark.parametrize("arguments", [("run",), ("fly",), ("bench", "m.onnx", "--threads", "0")])
def test_wrong_usage_is_exit_code_2(polyc, arguments):
    assert polyc(*arguments)[0] == 2


def test_tune_says_what_became_faster(command, monkeypatch, tmp_path):
    from polyc.tuning.search import Finding, Search, spell_in_positions

    def run(search, tasks, budget):
        assert budget == 5
        for task in tasks:
            better = "gemm" in task.name or "t5" in task.name
            chosen = spell_in_positions(task.cluster, task.chosen)
            tuned = Tuned(chosen, 0.25 if better else 0.0, finished=True)
            yield Finding(task, tuned, "as it was", "as it is")

    monkeypatch.setattr(Search, "run", run)
    onnx.save(small_network(), tmp_path / "net.onnx")
    code, out, err = command("tune", "net.onnx", "--seconds", "5", "--threads", "1")
    assert (code, err) == (0, "")
    for part in ("less time", "25.0%", "as it was", "as it is", "before: median", "after: median"):
        assert part in out
    assert "small: 1 kernel of " in out
    assert "tuned, 25% less time" in command("explain", "net.onnx", "--threads", "1")[1]
    code, out, _ = command("tune", "net.onnx", "--seconds", "5", "--threads", "1")
    assert code == 0
    assert "small: 0 kernels of" in out


def test_sizes_are_said_on_the_command_line(command, tmp_path):
    graph = Graph.of(y=ops.exp(ops.input("x", ("rows", 3))))
    onnx.save(export_onnx(graph), tmp_path / "rows.onnx")
    for arguments, shown in (
        (["--size", "rows=5"], "y: float32[5, 3]"),
        (["--size", "rows=1:99:7"], "y: float32[7, 3]"),
        ([], "y: float32[128, 3]"),
    ):
        code, out, err = command("run", "rows.onnx", "--threads", "1", *arguments)
        assert code == 0, err
        assert shown in out


def test_schedules_that_are_printed_are_read(command, tmp_path):
    onnx.save(small_network(), tmp_path / "net.onnx")
    code, printed, _ = command("schedule", "net.onnx", "--threads", "1")
    assert code == 0
    names = [line.partition(": ")[0] for line in printed.splitlines()]
    at = names.index("conv_out")
    (tmp_path / "mine.txt").write_text(
        "# of the sum\nconv_out: split y 2  # tiles\n    | keep all at y'\n\n"
    )
    code, edited, _ = command("schedule", "net.onnx", "--threads", "1", "--schedule", "mine.txt")
    assert code == 0
    before, after = printed.splitlines(), edited.splitlines()
    assert after.pop(at) == "conv_out: split y 2 | keep t2_acc in registers at y'"
    assert after == [line for line in before if line != before[at]]
    (tmp_path / "mine.txt").write_text(printed)
    assert command("schedule", "net.onnx", "--threads", "1", "--schedule", "mine.txt")[1] == printed
    for wrong in ("order i", "a: order i\na: order i", ": order i"):
        (tmp_path / "mine.txt").write_text(wrong)
        code, _, error = command("explain", "net.onnx", "--schedule", "mine.txt")
        assert code == 1
        assert "is not of the form KERNEL: SCHEDULE" in error
    code, _, error = command("explain", "net.onnx", "--schedule", "none.txt")
    assert code == 1
    assert "cannot be read" in error
