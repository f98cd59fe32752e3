"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from string import Template

from polyc.names import show, show_text
from polyc.report.report import Report
from polyc.report.text import LONGEST_CELL, make_table


def print_page(report: Report) -> str:
    """The page; every text is escaped, and each kernel's proof is spelled out."""
    heads, rows = make_table(report)
    proof = heads.index("proven")
    cells = [
        [*row[:proof], kernel.proof or "no", *row[proof + 1 :], kernel.told_schedule]
        for row, kernel in zip(rows, report.kernels, strict=True)
    ]
    heads.append("schedule")
    return _PAGE.substitute(
        model=html.escape(show(report.model)),
        facts="".join(
            f"<dt>{html.escape(k)}</dt><dd>{_escape(v)}</dd>\n" for k, v in report.facts()
        ),
        heads="".join(f"<th>{html.escape(h)}</th>" for h in heads),
        rows="".join(
            "<tr>" + "".join(f"<td>{_escape(c)}</td>" for c in row) + "</tr>\n" for row in cells
        ),
    )


def _escape(text: str) -> str:
    return html.escape(show_text(text, LONGEST_CELL))


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>polyc: $model</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 90em; padding: 0 1em; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: #fff; }
td { overflow-wrap: anywhere; }
dt { float: left; clear: left; width: 9em; color: #666; }
dd { margin-left: 9.5em; }
</style>
</head>
<body>
<h1>$model</h1>
<dl>
$facts</dl>
<table>
<thead><tr>$heads</tr></thead>
<tbody>
$rows</tbody>
</table>
</body>
</html>
""")
