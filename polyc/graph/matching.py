"""RegexFullMatch, in a process of its own, because an expression may take longer than anyone waits.

The standard means RE2's expressions, which are matched in linear time. Python's own matcher, which
the reference evaluator uses as well, tries one way after the other: (a+)+b takes 2^n steps to find
that n letters a do not match. It cannot be interrupted from another thread, but a process can.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from polyc.errors import RuntimeFailure

LIMIT_SECONDS = 60.0

_PROGRAM = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
match = re.compile(pattern).fullmatch
json.dump([match(text) is not None for text in texts], sys.stdout)
"""


def match_whole(texts: np.ndarray, pattern: str, node: str) -> np.ndarray:
    """Which elements the expression matches from end to end, as an array of bool.

    Raises RuntimeFailure, in which `node` names the node, for an expression that is none, and for
    one that takes too long.
    """
    given = json.dumps([pattern, [str(text) for text in texts.reshape(-1)]])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeFailure(
            f"{node}: the expression {pattern[:80]!r} takes more than {LIMIT_SECONDS:g} s to "
            "match; write it without repetitions inside of repetitions"
        ) from None
    except OSError as error:
        raise RuntimeFailure(f"{node}: no process can be started to match: {error}") from error
    if done.returncode:
        told = done.stderr.strip().rpartition("\n")[2]
        raise RuntimeFailure(f"{node}: the expression {pattern[:80]!r} is refused ({told[:200]})")
    return np.array(json.loads(done.stdout), np.bool_).reshape(texts.shape)
