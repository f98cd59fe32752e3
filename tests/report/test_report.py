"""The report: round trip, table, page, and text that must not break out of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from polyc.report.report import Fallback, KernelRow, Report, count

HOSTILE = "[red]<script>alert('x')</script>[/nothing] & \"q\""

REPORT = Report(
    "net",
    "cpu avx512, 2 cores",
    (
        KernelRow("conv_1", ("conv1", "relu1"), "parallel n, tile 6x64", 2_000_000, 4096, "proven"),
        KernelRow(HOSTILE, (HOSTILE,), HOSTILE, None, None, HOSTILE),
    ),
    (Fallback("Loop_1", "loops are not compiled"),),
    ("batch norm folded into conv1",),
    ("cluster 3: budget spent",),
    1 << 20,
    1 << 19,
    25_000_000,
    {"lower": 0.5, "build": 1.25},
)


def test_json_round_trip():
    assert Report.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT


def test_the_table_says_everything():
    text = str(REPORT)
    said = ["conv1, relu1", "2 M", "proven", "Loop_1: loops are not compiled"]
    said += ["25 MB of weights", "build 1.25 s", "budget spent", "cpu avx512", "<script>alert"]
    for part in said:
        assert part in text
    assert "Gflop/s" not in text


def test_times_give_rates():
    timed = REPORT.with_seconds([1e-3, 2e-3])
    assert timed.kernels[0].gflops == pytest.approx(2.0)
    assert timed.kernels[0].gbytes == pytest.approx(0.004096)
    assert timed.kernels[1].gflops is None
    assert "1,000.0" in str(timed)
    with pytest.raises(ValueError, match="shorter"):
        REPORT.with_seconds([1.0])


def test_the_page_escapes_every_text(tmp_path):
    REPORT.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert "script" not in tags
    assert tags.count("tr") == 3
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 "), (999, "999 "), (1234567, "1.23 M"), (5 * 10**12, "5 T")],
)
def test_counts(value, text):
    assert count(value) == text
