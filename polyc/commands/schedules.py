"""Schedules in a file, one kernel after another, as `polyc schedule` prints them.

conv1: order o y x | split x 14 | vector o     # what stands behind a # is a remark
softmax: parallel i
    | vector j                                 # a line that is indented goes on
"""

from __future__ import annotations

from pathlib import Path

from polyc.errors import IllegalSchedule
from polyc.files.regular import open_regular, read_whole
from polyc.names import show_text


def read_schedules(file: Path | None) -> dict[str, str]:
    """The argument `schedule` of `polyc.compile`; IllegalSchedule names a line that has no name."""
    if file is None:
        return {}
    try:
        with open_regular(file) as stream:
            text = read_whole(stream).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IllegalSchedule(f"the schedules in {file} cannot be read: {error}") from None
    found: dict[str, str] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition("#")[0].rstrip()
        if not said:
            continue
        if said[0].isspace() and name:
            found[name] += " " + said.strip()
            continue
        name, colon, schedule = said.partition(":")
        name = name.strip()
        if not colon or not name or name in found:
            raise IllegalSchedule(
                f"{file}, line {number}: {show_text(repr(said), 200)} is not of the form "
                "KERNEL: SCHEDULE, with each kernel once; what goes on is indented"
            )
        found[name] = schedule.strip()
    return found
