"""Elements by their number: dimensions of an array that one loop walks together count as one.

    collapse y x:   p = 14 y + x      acc[o, y, x]   ->   acc[o, 14 y + x]

A tile of that loop touches neighbours in number, such as the last element of a row and the first
four of the next. By rows and columns they fit a box of two rows alone; by number, one of five.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import islpy as isl

from polyc.memory.strides import accesses
from polyc.poly.affine import coefficients, outputs, plain_iterator
from polyc.schedule.loops import Loop, LoopTree, walk
from polyc.scop.scop import Array, Statement


def find_numbers(tree: LoopTree) -> list[isl.UnionPwAff]:
    """The numbers  S -> Z  of iterations of those loops that were several."""
    loops = (node for node in walk(tree) if isinstance(node, Loop))
    return [loop.numbers for loop in loops if loop.numbers is not None]


def number_elements(
    array: Array, users: Sequence[Statement], numbers: Iterable[isl.UnionPwAff]
) -> isl.PwMultiAff | None:
    """# A -> A': the array by numbers, if one of the loops walks it so.

    All accesses must agree, and each element must have a number of its own.
    """
    for function in numbers:
        pieces = function.get_pw_aff_list()
        walked = {
            piece.get_domain_space().get_tuple_name(isl.dim_type.set): piece
            for piece in (pieces.get_at(k) for k in range(pieces.n_pw_aff()))
        }
        if not walked.keys() >= {s.name for s in users}:
            continue
        found = {
            steps
            for s in users
            for steps in _list_steps(s, array.name, coefficients(walked[s.name]))
        }
        if len(found) == 1 and (steps := found.pop()) and _tells_apart(steps, array):
            return _make_map(array, dict(steps))
    return None


Steps = tuple[tuple[int, int], ...]
"""Dimensions of an array, each with what one step along it adds to a number."""


def _list_steps(s: Statement, array: str, number: Sequence[int | None]) -> Iterator[Steps]:
    """For each access: the dimensions that numbered iterators walk; () if it is not such a walk."""
    for name, index, _ in accesses(s):
        if name != array:
            continue
        plain = [plain_iterator(f) for f in outputs(index)]
        steps = [
            (d, step)
            for d, found in enumerate(plain)
            if found is not None and found[1] == 0 and (step := number[found[0]])
        ]
        complete = None not in number and len(steps) == sum(step != 0 for step in number)
        yield tuple(steps) if complete else ()


def _tells_apart(steps: Steps, array: Array) -> bool:
    """Whether no two elements have one number: all digits of a lower place count less than one."""
    room = 1
    for d, step in sorted(steps, key=lambda item: item[1]):
        extent = array.shape[d]
        if not isinstance(extent, int) or step < room:
            return False
        room += step * (extent - 1)
    return True


def _make_map(array: Array, steps: dict[int, int]) -> isl.PwMultiAff:
    """The number stands where the last of its dimensions was."""
    last = max(steps)
    names = [f"d{d}" for d in range(len(array.shape))]
    number = " + ".join(f"{step}*{names[d]}" for d, step in steps.items())
    here = {**dict(enumerate(names)), last: number}
    there = [here[d] for d in here if d == last or d not in steps]
    element, numbered = (f"{array.name}[{', '.join(places)}]" for places in (names, there))
    return isl.PwMultiAff(f"{{ {element} -> {numbered} }}")


def renumber(order: Sequence[int], numbers: isl.PwMultiAff) -> tuple[int, ...]:
    """An order of the array's dimensions, as one of those of A': a number where its last was."""
    homes: dict[int, int] = {}
    for k, function in enumerate(outputs(numbers)):
        homes |= {d: k for d, step in enumerate(coefficients(function)) if step != 0}
    backwards = dict.fromkeys(homes[d] for d in reversed(order))
    return tuple(reversed(backwards))
