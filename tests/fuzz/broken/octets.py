"""A message with changes to its bytes, as a file has that was cut, or overwritten."""

from __future__ import annotations

from tests.fuzz.broken.hostile import Dice


def change_octets(data: bytes, other: bytes, dice: Dice) -> bytes:
    """One to six changes; `other` is another message, from which parts come."""
    for _ in range(1 + dice.below(6)):
        data = _change(data, other, dice)
    return data


def _change(data: bytes, other: bytes, dice: Dice) -> bytes:
    at = dice.below(len(data) + 1)
    end = min(len(data), at + 1 + dice.below(16))
    match dice.below(8):
        case 0 | 1:  # a bit
            place = min(at, len(data) - 1)
            flipped = bytes([data[place] ^ (1 << dice.below(8))]) if data else b""
            return data[:place] + flipped + data[place + 1 :]
        case 2:  # cut off
            return data[:at]
        case 3:  # cut out
            return data[:at] + data[end:]
        case 4:  # bytes of any value
            return data[:at] + dice.octets(8) + data[at:]
        case 5:  # the largest numbers
            return data[:at] + b"\xff" * (1 + dice.below(10)) + data[end:]
        case 6:  # twice
            return data[:end] + data[at:]
        case _:  # a part of another
            begin = dice.below(len(other) + 1)
            return data[:at] + other[begin : begin + 1 + dice.below(64)] + data[end:]
