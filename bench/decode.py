"""Decoding with GPT-2 (124M): a token with 512 cached, beside reading what it needs once.

    python -m bench.decode --threads 1 2 --json decode.json
    python -m bench.decode --bits 4 --activations int8       # weights in blocks of 32

A token uses each weight once, and each row of the cache, so the least it can take is the time of
reading them from memory. That is measured in the same run, in turns with polyc and with ONNX
Runtime: a plain sum over as many bytes, on as many threads. Then a prompt of 128 tokens, on polyc
and on ONNX Runtime. Errors are those against ONNX Runtime's floats; of weights of 4 bits, those of
both against the model with these weights restored.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import onnx
from onnx import numpy_helper

import polyc
from bench.zoo.gpt2 import Gpt2, gpt2
from bench.zoo.network import Example
from polyc.options import options_from_environment
from polyc.run.reference import relative_error
from polyc.target.machine import detect_target
from polyc.target.measure import load_probes
from polyc.toolchain.pages import allocate_pages

LINE = 8 * 64
"""Bytes that the probe sums up at a time."""

PAUSE = 0.02
"""Seconds after which threads of an engine that wait for more work have gone to sleep."""

Step = Callable[[], Any]


def bytes_read(example: Example) -> int:
    """Bytes that a token needs: all weights but tables of which it takes a row, and the cache."""
    graph = example.model.graph
    names = {
        name
        for node in graph.node
        for k, name in enumerate(node.input)
        if (node.op_type, k) != ("Gather", 0)
    }
    arrays = [numpy_helper.to_array(w) for w in graph.initializer if w.name in names]
    arrays += [value for name, value in example.feeds.items() if name in names]
    return sum(array.nbytes for array in arrays)


def reader(size: int, threads: int) -> Callable[[], float]:
    """A function that reads `size` bytes from memory and gives the seconds that this took."""
    options = options_from_environment()
    probes = load_probes(detect_target(options.cc), options)
    part = size // threads // LINE * LINE
    memory = allocate_pages(part * threads).view(np.float32)
    memory.fill(1.0)
    floats = cffi.FFI().from_buffer("float[]", memory)
    # Two walks, of which the second is timed.
    return lambda: size / probes.read_rate(floats, part // 4, 1, threads, 2)


def take_turns(steps: Mapping[str, tuple[Step, Step]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each step; the first function of a pair prepares it, and is not timed.

    A step that gives a number has timed itself.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, (prepare, step) in steps.items():
            time.sleep(PAUSE)
            prepare()
            start = time.perf_counter()
            told = step()
            took = time.perf_counter() - start
            seconds[name].append(told if isinstance(told, float) else took)
    return seconds


def measure(
    sizes: Gpt2,
    example: Example,
    prompt: int,
    threads: int,
    rounds: int,
    reference: onnx.ModelProto | None = None,
) -> dict[str, Any]:
    """Medians in milliseconds, and the errors of polyc's logits against ONNX Runtime's.

    reference: the model whose logits are the right ones, if it is another than the example's; then
    ONNX Runtime's errors as well.
    """
    limit = sizes.positions
    ranges = {"past": (0, limit), "tokens": (1, limit)}
    chosen: dict[str, Any] = {"target": "cpu", "threads": threads, "state": sizes.states}
    decoder = polyc.compile(
        example.model, dims={**ranges, "tokens": 1}, hint={"past": sizes.past}, **chosen
    )
    reads = polyc.compile(example.model, dims=ranges, hint={"tokens": prompt, "past": 1}, **chosen)
    has_peer = importlib.util.find_spec("onnxruntime") is not None
    token = example.feeds["input_ids"]
    begin = {name: example.feeds[name] for name in sizes.states}
    # One call in front, so that a timed one finds everything in its place.
    before = {name: value[:, :, :-1] for name, value in begin.items()}
    decoding, prompting = decoder.start(), reads.start()
    text = np.resize(np.arange(sizes.vocabulary), (1, prompt))
    whole = {"input_ids": text, **{name: value[:, :, :0] for name, value in begin.items()}}

    def go_back() -> None:
        decoding.reset(before)
        decoding(token)

    size = bytes_read(example)
    steps: dict[str, tuple[Step, Step]] = {
        "read": (lambda: None, reader(size, threads)),
        "decode": (go_back, lambda: decoding(token)),
    }
    prompts: dict[str, tuple[Step, Step]] = {
        "prompt": (prompting.reset, lambda: prompting(text)),
    }
    errors = {}
    if has_peer:
        peer = _open_peer(example.model, threads)
        steps["decode, peer"] = (lambda: None, lambda: peer(example.feeds))
        prompts["prompt, peer"] = (lambda: None, lambda: peer(whole))
        decoding.reset(begin)
        right = peer if reference is None else _open_peer(reference, threads)
        wanted = {"decode": right(example.feeds), "prompt": right(whole)}
        for what, logits in ("decode", decoding(token)), ("prompt", prompting(text)):
            errors[what] = relative_error(logits, wanted[what])
        if reference is not None:
            for what, feeds in ("decode", example.feeds), ("prompt", whole):
                errors[f"{what}, peer"] = relative_error(peer(feeds), wanted[what])
    prompting(text)
    times = {**take_turns(steps, rounds), **take_turns(prompts, max(3, rounds // 4))}
    medians = {name: 1e3 * statistics.median(all_) for name, all_ in times.items()}
    share = medians["read"] / medians["decode"]
    return {"threads": threads, "bytes": size, "share": share, "ms": medians, "errors": errors}


def _open_peer(model: onnx.ModelProto, threads: int) -> Callable[[Any], np.ndarray]:
    """ONNX Runtime's logits for some feeds."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Where it multiplies with blocks of 4 bits that it restores, it rounds no activations.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda feeds: np.asarray(session.run(None, dict(feeds))[0])


def show(row: Mapping[str, Any]) -> str:
    """A few lines of what was measured."""
    ms, size = row["ms"], row["bytes"]
    lines = [
        f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}",
        f"  reading {size / 1e6:.0f} MB: {ms['read']:.2f} ms, {size / ms['read'] / 1e6:.1f} GB/s",
        f"  decoding a token: {ms['decode']:.2f} ms, of which reading is {row['share']:.0%}",
    ]
    for what in ("decode", "prompt"):
        if f"{what}, peer" in ms:
            errors = [row["errors"][key] for key in (what, f"{what}, peer") if key in row["errors"]]
            lines.append(
                f"  {what}: polyc {ms[what]:.1f} ms, ONNX Runtime {ms[f'{what}, peer']:.1f} ms; "
                f"largest difference {' and '.join(f'{error:.1e}' for error in errors)} of the "
                "largest logit"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--past", type=int, default=512, help="cached tokens")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt")
    parser.add_argument("--bits", type=int, choices=[4, 32], default=32, help="of a weight")
    parser.add_argument("--activations", choices=["float32", "int8"], default="float32")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", type=Path, help="also write every figure here")
    chosen = parser.parse_args(arguments)
    sizes = replace(Gpt2(), past=chosen.past)
    example, reference = gpt2(sizes), None
    if chosen.bits == 4:
        reference = polyc.quantise_weights(example.model, form="DequantizeLinear")
        small = polyc.quantise_weights(example.model, activations=chosen.activations)
        example = replace(example, model=small)
    rows = []
    for threads in chosen.threads:
        rows.append(measure(sizes, example, chosen.prompt, threads, chosen.rounds, reference))
        sys.stdout.write(show(rows[-1]) + "\n")
        sys.stdout.flush()
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
