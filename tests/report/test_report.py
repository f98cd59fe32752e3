"""The report: round trip, table, page, and text that must not break out of them."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from polyc.report.report import Fallback, KernelRow, NotFused, Report, count
from polyc.report.text import print_report

HOSTILE = "[red]<script>alert('x')</script>[/nothing] & \"q\""

REPORT = Report(
    "net",
    "cpu avx512, 2 cores",
    (
        KernelRow(
            "conv_1",
            ("conv1", "relu1"),
            "parallel n | split x 6",
            2_000_000,
            4096,
            "3 accesses in bounds",
            operators=("Conv", "Relu"),
            gain=0.25,
            called="conv1",
            steps="3",
        ),
        KernelRow(HOSTILE, (HOSTILE,), HOSTILE, None, None, HOSTILE),
        KernelRow("add_1", ("add1",), "rows", 10, 4096, "", copies="x -> x_padded"),
    ),
    (Fallback("split", "StringSplit", "it reads text"),),
    (*(f"batch_norm_folding: bn{k} into conv{k}" for k in range(5)), "gemm: transB"),
    1 << 20,
    1 << 19,
    25_000_000,
    {"lower": 0.5, "build": 1.25},
    tuple(NotFused(f"p{k}", f"c{k}", "the tile would split", 1000 * (k + 1)) for k in range(2)),
    ("1 kernel: 3 accesses in bounds", "arena: 2 arrays apart"),
)


def test_json_round_trip():
    assert Report.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT


def test_the_table_says_everything():
    text = str(REPORT)
    said = ["Conv conv1, Relu relu1", "2 M", "not compiled: StringSplit split: it reads text"]
    said += ["25 MB of weights", "1.75 s: lower 0.50, build 1.25", "cpu avx512"]
    said += ["<script>alert", "proven: arena: 2 arrays apart", "largest live set is 524 kB"]
    said += ["not fused: 2 x the tile would split: c1 after p1 (2 kB); c0 after p0 (1 kB)"]
    said += ["copies: 4.1 kB by 1 launch: x -> x_padded (4.1 kB)"]
    said += ["rewritten: 1 x gemm: transB", "3 launches of 3 kernels for 4 nodes"]
    for part in said:
        assert part in text
    assert "conv1: parallel n | split x 6  # tuned, 25% less time; in each of 3 steps\n" in text
    assert "Gflop/s" not in text
    proofs = [line.split()[-1] for line in text.splitlines() if line.startswith(("0", "2"))]
    assert proofs == ["yes", "no"]


def test_long_lists_are_cut_in_the_text_only(tmp_path):
    cut = "5 x batch_norm_folding: bn0 into conv0; bn1 into conv1; bn2 into conv2; …"
    assert f"rewritten: {cut}\n" in str(REPORT)
    REPORT.to_html(tmp_path / "report.html")
    assert "bn4 into conv4" in (tmp_path / "report.html").read_text()


def test_only_the_heaviest_kernels():
    text = print_report(REPORT.with_seconds([1e-3, 3e-3, 2e-3]), most=2)
    assert "conv_1" not in text
    assert "add_1" in text
    assert "… and 1 launch that take less" in text
    assert "conv_1" in print_report(REPORT, most=1)


def test_times_give_rates():
    timed = REPORT.with_seconds([1e-3, 2e-3, 1e-6])
    assert timed.kernels[0].gflops == pytest.approx(2.0)
    assert timed.kernels[0].gbytes == pytest.approx(0.004096)
    assert timed.kernels[1].gflops is None
    assert "1,000.0" in str(timed)
    with pytest.raises(ValueError, match="shorter"):
        REPORT.with_seconds([1.0])


def test_predictions_stand_beside_times_and_their_error_is_told():
    foreseen = [replace(k, predicted=2e-3) for k in REPORT.kernels]
    text = str(replace(REPORT, kernels=tuple(foreseen)).with_seconds([1e-3, 2e-3, 4e-3]))
    assert "predicted us" in text
    assert "predicted: half of the launches within 50%\n" in text
    assert "predicted" not in str(replace(REPORT, kernels=tuple(foreseen)))
    assert "predicted" not in str(REPORT.with_seconds([1e-3, 2e-3, 4e-3]))


def test_the_page_escapes_every_text(tmp_path):
    REPORT.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert "script" not in tags
    assert tags.count("tr") == 4
    assert "<td>3 accesses in bounds</td>" in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 "), (999, "999 "), (1234567, "1.23 M"), (5 * 10**12, "5 T")],
)
def test_counts(value, text):
    assert count(value) == text
