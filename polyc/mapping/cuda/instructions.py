"""Whether what a schedule gives to an instruction, or copies in the background, is its own.

    use mma.m16n8k16.bf16 am im an jn kk

    thread … gm 8, tn 4 ─ … ─ mma am, im 2, an, jn 2, kk 16 ─ acc add= left * right

What strategies emit is right by construction; of what people write each condition is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyc.errors import IllegalSchedule
from polyc.loopnest.swizzle import Swizzle
from polyc.mapping.cuda.boxes import comes_in_boxes
from polyc.mapping.cuda.scheduled import Scheduled
from polyc.mapping.cuda.swizzles import CHUNK
from polyc.names import show
from polyc.schedule.coordinates import Tile
from polyc.schedule.loops import Instances, Loop, LoopTree, children, statements_in, walk
from polyc.schedule.names import short
from polyc.schedule.text import spell
from polyc.schedule.threads import Pipeline, Use
from polyc.scop.expr import Call, Cast, Expr
from polyc.scop.scop import Statement
from polyc.target.cuda import CudaTarget
from polyc.target.instructions.tiles import INSTRUCTIONS, Instruction
from polyc.types.element_types import is_narrow


@dataclass(frozen=True)
class _Pattern:
    """The loops of an instruction, outermost first, with 0 for as many as there are.

    threads: (iterations, how many threads apart) of the innermost loops over threads; results: the
    order, among the loops, in which the array of sums has those that it has.
    """

    threads: tuple[tuple[int, int], ...]
    loops: tuple[int, ...]
    results: tuple[int, ...]


_PATTERNS = {
    "mma": _Pattern(((8, 4), (4, 1)), (0, 2, 0, 2, 0), (0, 2, 1, 3)),
    "wgmma": _Pattern(((4, 32), (8, 4), (4, 1)), (0, 0, 2, 0, 8, 2, 0), (1, 3, 4, 2, 5)),
}

GROUP_SWIZZLE = Swizzle(3, 3, 6)
"""Of 16-bit factors that warpgroups read: the one that the instruction knows."""


def check_instructions(mapped: Scheduled, target: CudaTarget) -> None:
    """Raise IllegalSchedule for a nest that is no instruction of the target, or no copy of it."""
    statements = {s.name: s for s in mapped.statements}
    for directive in mapped.schedule.directives:
        if isinstance(directive, Use):
            known = INSTRUCTIONS.get(directive.instruction)
            if known is None:
                raise IllegalSchedule(
                    f"{show(directive.instruction)} is no instruction; there are "
                    f"{', '.join(INSTRUCTIONS)}"
                )
            try:
                _check_use(known, mapped, target)
            except IllegalSchedule as error:
                raise IllegalSchedule(f"{spell(directive)}: {error}") from None
        elif isinstance(directive, Pipeline):
            _check_pipeline(directive, mapped)
    for path, leaf in _leaves(mapped.loops, ()):
        kinds = {loop.kind for loop in path}
        if kinds & {"copy", "box"}:
            _check_copy(statements[leaf.statement], path, mapped, target)


def _leaves(
    tree: LoopTree, above: tuple[Loop, ...]
) -> Iterator[tuple[tuple[Loop, ...], Instances]]:
    """Each statement, and the loops around it."""
    if isinstance(tree, Instances):
        yield above, tree
    if isinstance(tree, Loop):
        above = (*above, tree)
    for below in children(tree):
        yield from _leaves(below, above)


def _check_use(known: Instruction, mapped: Scheduled, target: CudaTarget) -> None:
    if target.capability < known.oldest or (known.kind == "wgmma" and not target.has_wgmma):
        raise IllegalSchedule(f"{target.name} has no such instruction; leave it out")
    statements = {s.name: s for s in mapped.statements}
    pattern = _PATTERNS[known.kind]
    for path, leaf in _leaves(mapped.loops, ()):
        inner = [loop for loop in path if loop.kind == known.kind]
        if not inner:
            continue
        threads = [(n.width, n.apart) for n in path if n.kind == "thread"]
        if tuple(threads[-len(pattern.threads) :]) != pattern.threads:
            wanted = ", ".join(f"{width} {apart} apart" for width, apart in pattern.threads)
            raise IllegalSchedule(f"the lanes around it are loops over threads: {wanted}")
        wanted_loops = (*pattern.loops[:-1], known.depth)
        counts = [loop.iterations for loop in inner]
        fits = len(counts) == len(wanted_loops) and all(
            want in (0, found) for want, found in zip(wanted_loops, counts, strict=True)
        )
        if not fits:
            shape = " ".join("any" if n == 0 else str(n) for n in wanted_loops)
            raise IllegalSchedule(f"its loops have {shape} iterations, in this order")
        _check_results([inner[k].name for k in pattern.results], mapped)
        _check_factors(statements[leaf.statement], known, mapped)


def _check_results(names: Sequence[str], mapped: Scheduled) -> None:
    tiles = [d for d in mapped.schedule.directives if isinstance(d, Tile)]
    if not any([*tile.results[-len(names) :]] == [*names] for tile in tiles):
        raise IllegalSchedule(
            f"it adds to sums that a tile has laid out so: into … {' '.join(names)}"
        )


def _check_factors(s: Statement, known: Instruction, mapped: Scheduled) -> None:
    factors = _factors(s.value)
    if s.reduction != "add" or len(factors) != 2 or not set(map(_array, factors)) <= {*mapped.made}:
        raise IllegalSchedule(f"{show(short(s.name))} is no sum of products of copies of a tile")
    for factor in factors:
        name = _array(factor)
        if mapped.made[name].dtype != known.dtype:
            raise IllegalSchedule(
                f"it multiplies {known.dtype}, and {show(name)} has {mapped.made[name].dtype}"
            )
        swizzle = mapped.swizzles.get(name)
        if known.kind == "wgmma" and swizzle != GROUP_SWIZZLE:
            raise IllegalSchedule(f"it reads rows of 128 bytes; say swizzle {show(name)} 3 3 6")
        if swizzle is not None and (known.dtype.itemsize << swizzle.to) < 1 << CHUNK:
            raise IllegalSchedule(f"it reads 16 bytes of {show(name)}, which are to stay together")


def _factors(value: Expr) -> tuple[Expr, ...]:
    """What a product multiplies, as memory has it."""
    match value:
        case Call("mul", arguments):
            return tuple(
                e.argument if isinstance(e, Cast) and is_narrow(e.argument.dtype) else e
                for e in arguments
            )
    return ()


def _array(factor: Expr) -> str:
    return getattr(factor, "array", "")


def _check_pipeline(directive: Pipeline, mapped: Scheduled) -> None:
    """Raise IllegalSchedule if what is copied ahead is read outside of the loop."""
    for name in directive.loops:
        title, _, loop = name.rpartition(".")
        writer = next(s for s in mapped.statements if short(s.name) == title)
        around = [
            n
            for n in walk(mapped.loops)
            if isinstance(n, Loop) and n.name == loop and writer.name in statements_in(n)
        ]
        readers = [s for s in mapped.statements if any(x.array == writer.array for x in s.loads)]
        outside = [s for s in readers if not any(s.name in statements_in(n) for n in around)]
        if outside:
            raise IllegalSchedule(
                f"{spell(directive)}: {show(short(outside[0].name))} reads it, and is not in that "
                f"loop; say fuse {name} {short(outside[0].name)}.{loop} before"
            )


def _check_copy(s: Statement, path: Sequence[Loop], mapped: Scheduled, target: CudaTarget) -> None:
    kind = next(loop.kind for loop in path if loop.kind in ("copy", "box"))
    said = f"{kind} of {show(short(s.name))}"
    stages = mapped.folds.get(s.array, {}).values()
    if not stages or min(stages) < 2:
        raise IllegalSchedule(
            f"{said}: what goes on in the background is ahead of its use; say pipeline "
            f"{short(s.name)}.LOOP with 2 stages or more, or vector in place of {kind}"
        )
    inner = [loop for k, loop in enumerate(path) if any(n.kind == "thread" for n in path[:k])]
    serial = next((loop for loop in inner if loop.kind == "sequential"), None)
    if serial is not None:
        raise IllegalSchedule(
            f"{said}: what each thread asks for is written out; say unroll {serial.name}"
        )
    if kind == "copy":
        return
    if not target.has_wgmma:
        raise IllegalSchedule(f"{said}: {target.name} brings no boxes; say copy")
    readers = {x.name for x in mapped.statements if any(e.array == s.array for e in x.loads)}
    grouped = {
        leaf.statement
        for around, leaf in _leaves(mapped.loops, ())
        if any(loop.kind == "wgmma" for loop in around)
    }
    if not readers <= grouped:
        raise IllegalSchedule(f"{said}: warpgroups read boxes, by use wgmma; say copy")
    storages = mapped.rewritten.storages
    if not any(comes_in_boxes(s, storages, along_k) for along_k in (False, True)):
        raise IllegalSchedule(
            f"{said}: its tile is no box of an array as it is stored, with zeros outside; say copy"
        )
    if [loop.width * loop.apart for loop in path if loop.kind == "thread"] != [1]:
        raise IllegalSchedule(
            f"{said}: one thread asks for it; say thread of a loop that runs once"
        )
