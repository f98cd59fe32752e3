"""Names of sizes that follow from others, but by no product or short sum of them.

    floor((h - 1)/2)    the rows that a stride of 2 leaves of h
    min(h, 512)         the rows of h that a Slice to 512 keeps
    min(-a, -b)         less the larger of a and b, which is shown as max(a, b)
    sum(a + … + f, g)   the rows of many tensors, one below the other (`add_up`)

Such a name is the text that people see, and knows what it stands for. Equal texts are equal values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from polyc.types.sizes import Extent

Operation = Literal["floor", "min", "sum"]


def plain_name(name: str) -> str:
    """A name that a model gives, in quotes if it could be that of a size that follows from others.

    floor(h/2)   ->   'floor(h/2)'       h*w   ->   'h*w'       2*h   ->   2*h
    """
    product = "*" in name and all(name.split("*")) and not (name[0].isdigit() or name[0] == "'")
    return f"'{name}'" if product or name.startswith(("floor(", "max(", "min(", "sum(")) else name


class Derived(str):
    """The name of what an operation gives: a quotient, rounded down, the smaller of two, a sum.

    operands: dividend and divisor, which is a positive number; or the two that are compared, or
    added.
    """

    operation: Operation
    operands: tuple[Extent, Extent]

    def __new__(cls, operation: Operation, first: Extent, second: Extent) -> Derived:
        inside = f"{first}, {second}"
        if operation == "floor":
            inside = f"{first}/{second}" if str(first).isidentifier() else f"({first})/{second}"
        made = super().__new__(cls, f"{operation}({inside})")
        made.operation, made.operands = operation, (first, second)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Derived, (self.operation, *self.operands)


def show_larger(product: tuple[str, ...], coefficient: int) -> tuple[tuple[str, ...], int]:
    """A term of a sum as it is shown, where the larger of two has its name.

    -2 * min(-a, -b)   ->   2 * max(a, b)
    """
    names: list[str] = []
    for name in product:
        smaller = name.operands if isinstance(name, Derived) and name.operation == "min" else ()
        if smaller and all(map(_begins_below_0, smaller)):
            coefficient = -coefficient
            names.append(f"max({', '.join(sorted(str(-operand) for operand in smaller))})")
        else:
            names.append(name)
    return tuple(names), coefficient


def _begins_below_0(extent: Extent) -> bool:
    return (extent if isinstance(extent, int) else extent.terms[0][1]) < 0
