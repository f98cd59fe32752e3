"""The driver: the one C function a model is run by, a straight line of kernel calls.

    static void launches(pc_thread *pc_self, const struct call *call)
    {
        conv(io[0], weights + 0, arena + 0, ...);      /* conv1, relu1 */
        pool(arena + 0, arena + 6400, ...);            /* pool1 */
        ...
    }

io holds the inputs, then the outputs, in the graph's order. Every offset is a literal from the
memory plan, or a sum of products of the sizes that are known only at run time, so the driver has
neither tables nor allocation. All threads of a team go through all
launches; kernels share their loops out among them (`runtime/polyc_team.h`), and a barrier stands
where `place_barriers` found that a launch depends on one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from polyc.loopnest.index import Condition
from polyc.loopnest.index_text import show_condition
from polyc.loopnest.nodes import Kernel
from polyc.loopnest.prototype import Prototype
from polyc.names import comment
from polyc.printing.host_text import (
    checked_name,
    pointer_type,
    print_address,
    print_arguments,
    print_extent,
    print_found,
    print_measure,
    print_overlap,
    print_regions,
    print_sizes,
)
from polyc.printing.team import print_team
from polyc.printing.telling import (
    places_of_found,
    print_decide,
    print_decisions,
    print_find,
)
from polyc.program.driver_nest import (
    Call,
    CopyOut,
    Decide,
    DriverNode,
    Find,
    Repeat,
    Wait,
    When,
    count_told,
    walk,
)
from polyc.program.plan import Plan
from polyc.program.program import Program
from polyc.types.branches import list_demanding
from polyc.types.ranges import ADDRESS_LIMIT

DRIVER_FILE = "driver.c"

HEADER = "polyc.h"
"""The header that every generated file includes."""

POOL_HEADER = "polyc_pool.h"
"""The threads."""

STOP_HEADER = "polyc_stop.h"
"""How a call is ended early."""

SMALL_PROGRAM = 1 << 21
"""Operations, where a byte counts as two, below which a program is not worth a second thread.

That is 10 to 20 us, and waking a thread costs 5 us, and 30 more until it runs.
"""

LAUNCHES_A_FUNCTION = 250
"""Launches of one C function, so that gcc takes as long for each as for any other."""

_SIGNATURE = "void *const *io, const void *weights, void *arena, const i64 *sizes, int threads"


def is_worth_sharing(program: Program) -> bool:
    """Whether a second thread can do a fair part of a program before the first is through."""
    work = sum(one.runs * (one.flops + 2 * one.bytes) for one in program.launches)
    return work >= SMALL_PROGRAM


def print_driver(
    program: Program,
    plan: Plan,
    nest: Sequence[DriverNode],
    *,
    shared: bool = True,
    pinned: bool = False,
    refused: Sequence[Condition] | None = None,
) -> str:
    """The driver's C text.

    `nest` is what it does, node by node (`make_driver`). Unless `shared`, a call runs on one
    thread, whatever it is told; `pinned` keeps each thread but the caller's on a core of its own.
    refused: conditions on sizes with which nothing may be done. polyc_check then returns -(OUTPUTS
    + k + 1) for sizes of which condition k holds, and 0 for others; and so does polyc_run; and
    polyc_team says how many threads a call with some sizes is worth (`printing/team.py`).
    polyc_run returns 0; k + 1 when launch k met
    an index out of range; (launches) + k + 1 when size k of those that a call finds is not what was
    compiled for, and behind these when a branch that a call takes does not admit its sizes;
    -(k + 1), having done nothing, when output k overlaps an input or an
    earlier output; or PC_STOPPED when a watcher ended it (`runtime/polyc_stop.h`). polyc_profile is
    the same, but it waits for all threads before and after each launch, and writes to seconds[k]
    how long launch k took, alone. polyc_arena_bytes says how large the arena must be for some
    sizes; -1 if that is more than can be addressed.
    """
    lines = [
        *_print_head(program),
        # Between launches of what takes microseconds nobody has to be asked.
        f"#define PC_ENDS {'pc_is_stopped(pc_self)' if shared or program.sizes else '0'}",
        *print_decisions(nest),
        *_print_launches(program, plan, nest),
        *(["#define PC_PINNED 1"] if pinned else []),
        "#define PC_CALL struct call",
        "#define PC_BODY launches",
        f'#include "{POOL_HEADER}"',
        "",
        *print_overlap(program).splitlines(),
        "",
        *([] if refused is None else _print_check(program, refused)),
        *_print_run(program, shared, refused is not None),
        f"int polyc_run({_SIGNATURE})",
        "{",
        "    return run(io, weights, arena, sizes, threads, NULL);",
        "}",
        "",
        f"int polyc_profile({_SIGNATURE}, double *seconds)",
        "{",
        "    return run(io, weights, arena, sizes, threads, seconds);",
        "}",
        "",
        *_print_arena(program, plan),
    ]
    return "\n".join(lines)


def _count_slots(program: Program) -> int:
    """Inputs and outputs."""
    return len(program.inputs) + len(program.outputs)


def _print_head(program: Program) -> Iterator[str]:
    """Headers, prototypes, and the arguments of a call."""
    count = len(program.launches)
    yield f"/* {comment(program.name)}: {count} launches of {len(program.kernels)} kernels. */"
    yield from ("#include <stddef.h>", "#include <string.h>", f'#include "{HEADER}"')
    yield from (f'#include "{STOP_HEADER}"', "")
    yield from map(print_prototype, program.kernels)
    yield from (
        "",
        "struct call {",
        f"    void *io[{max(_count_slots(program), 1)}];",
        "    const char *weights;",
        "    char *arena;",
        # Not where the caller has them: a worker that comes late may read these after the call.
        f"    i64 sizes[{max(len(program.told), 1)}]; /* known only at run time */",
        "    int *failed;     /* by launch, size found, and decision that needs something */",
        "    double *seconds; /* by launch, or NULL */",
        "};",
        "",
    )


def _print_launches(program: Program, plan: Plan, nest: Sequence[DriverNode]) -> Iterator[str]:
    """The function that every thread of a call runs, and those that it calls where it is long."""
    yield from _TIMING.splitlines()
    kernels = {k.name: k for k in program.kernels}

    def print_nodes(nodes: Sequence[DriverNode]) -> list[str]:
        return [line for n in nodes for line in _print_node(n, program, kernels, "    ")]

    *before, last = _cut(nest)
    count, found = count_told(nest), places_of_found(nest)
    more, given, leave = (", i64 *decided", ", decided", _LEAVE) if count else ("", "", [])
    for number, nodes in enumerate(before):
        head = f"launches_{number}(pc_thread *pc_self, const struct call *call{more})"
        yield from _print_function(head, program, plan, found, print_nodes(nodes))
    calls = [f"    i64 decided[{count}] = {{0}};"] if count else []
    for number in range(len(before)):
        calls += [f"    launches_{number}(pc_self, call{given});", *leave]
    head = "launches(pc_thread *pc_self, const struct call *call)"
    yield from _print_function(head, program, plan, found, print_nodes(last), calls)


_LEAVE = ["    if (pc_self->late)", "        return;"]


def _print_function(
    head: str,
    program: Program,
    plan: Plan,
    found: Mapping[str, str],
    lines: Iterable[str],
    before: Iterable[str] = (),
) -> Iterator[str]:
    """A function of launches, with what these refer to; `found`: where sizes are that are found."""
    yield from (
        f"APART void {head}",
        "{",
        *before,
        "    void *const *const io = call->io;",
        "    const char *const weights = call->weights;",
        "    char *const arena = call->arena;",
        "    (void)io, (void)weights, (void)arena, (void)pc_self;",
        *print_sizes(program, "call->sizes", "    "),
        *print_found(program, found, "    "),
        *(print_regions(plan, "    ") if plan.regions else ()),
        *(["    (void)arena_end;"] if plan.regions else ()),
        "",
        *lines,
        "}",
        "",
    )


def _cut(nest: Sequence[DriverNode]) -> list[list[DriverNode]]:
    """The nodes in runs of at most `LAUNCHES_A_FUNCTION` launches, at least one run.

    A loop over steps is one node, however many launches it has, and so is a branch.
    """
    runs: list[list[DriverNode]] = [[]]
    filled = 0
    for node in nest:
        launches = sum(isinstance(one, Call) for one in walk(node))
        if filled and filled + launches > LAUNCHES_A_FUNCTION:
            runs.append([])
            filled = 0
        runs[-1].append(node)
        filled += launches
    return runs


def _print_node(
    node: DriverNode, program: Program, kernels: Mapping[str, Prototype], indent: str
) -> Iterator[str]:
    match node:
        case Wait():
            yield f"{indent}pc_barrier(pc_self);"
        case Repeat(step, body):
            name, steps = step.name, print_extent(step.steps)
            yield f"{indent}for (i64 {name} = 0; {name} < {steps}; {name}++) {{"
            for inner in body:
                yield from _print_node(inner, program, kernels, f"{indent}    ")
            yield f"{indent}}}"
        case Decide():
            yield from print_decide(node, program, indent)
        case Find():
            yield from print_find(node, program, indent)
        case When(number, holds, body):
            yield f"{indent}if ({'' if holds else '!'}decided[{number}]) {{"
            for inner in body:
                yield from _print_node(inner, program, kernels, f"{indent}    ")
            yield f"{indent}}}"
        case Call(position, kernel, _, sizes):
            origin = program.launches[position].origin
            if origin:
                yield f"{indent}/* {', '.join(map(comment, origin))} */"
            arguments = [*print_arguments(node, kernels[kernel]), *sizes]
            inside = ", ".join([*arguments, "pc_self", f"&call->failed[{position}]"])
            yield f"{indent}LAUNCH({position}, {kernel}({inside}));"
        case CopyOut(position, source, size):
            copied = f"{print_address(source)}, {print_extent(size)}"
            yield f"{indent}PC_SHARE(1)"
            yield f"{indent}    memcpy(io[{position}], {copied});"


def _print_arena(program: Program, plan: Plan) -> Iterator[str]:
    """The function that says how large an arena must be.

    Products of sizes may not fit an integer, so they are first compared as doubles, which only
    round.
    """
    limit = f"0x1p{ADDRESS_LIMIT.bit_length() - 1}"
    yield from ("i64 polyc_arena_bytes(const i64 *sizes)", "{", "    (void)sizes;")
    yield from print_sizes(program, "sizes", "    ")
    for size in dict.fromkeys(size for region in plan.regions for size in region):
        yield f"    if ({print_measure(size)} >= {limit})"
        yield "        return -1;"
    yield from print_regions(plan, "    ")
    yield from (f"    return arena_end < {limit} ? arena_end : -1;", "}", "")


def _print_check(program: Program, refused: Sequence[Condition]) -> Iterator[str]:
    """The function that says whether a call may have some sizes."""
    yield from ("int polyc_check(const i64 *sizes)", "{", "    (void)sizes;")
    yield from print_sizes(program, "sizes", "    ")
    yield from (f"    (void){size.name};" for size in program.sizes)
    for k, condition in enumerate(refused):
        yield f"    if ({show_condition(condition)})"
        yield f"        return -(OUTPUTS + {k + 1});"
    yield from ("    return 0;", "}", "")
    (kernel,) = program.kernels
    assert isinstance(kernel, Kernel), "loops of people are not kept as text alone"
    yield from print_team(kernel)


def _print_run(program: Program, shared: bool, checked: bool) -> Iterator[str]:
    """The function that checks a call's arguments, and has the team run it."""
    count, demanding = len(program.launches), len(list_demanding(program.demands))
    slots = count + len(program.found) + demanding
    yield from (f"static int run({_SIGNATURE}, double *seconds)", "{")
    if checked:
        yield from (
            "    const int wrong = polyc_check(sizes);",
            "    if (wrong)",
            "        return wrong;",
        )
    yield from (
        "    for (int k = 0; k < OUTPUTS; k++)",
        "        if (overlaps(io, INPUTS + k, sizes))",
        "            return -(k + 1);",
        f"    int failed[{slots + 1}] = {{0}};",
        "    struct call call = {",
        "        .weights = weights, .arena = arena, .failed = failed, .seconds = seconds,",
        "    };",
        f"    for (int k = 0; k < {_count_slots(program)}; k++)",
        "        call.io[k] = io[k];",
        f"    for (int k = 0; k < {len(program.told)}; k++)",
        "        call.sizes[k] = sizes[k];",
    )
    if not shared:
        yield "    threads = 1; /* so little work is done sooner than shared */"
    yield from (
        f"    for (int k = 0; k < {count} && seconds; k++)",
        "        seconds[k] = 0; /* the steps of a loop add up */",
        "    if (pc_run(&call, threads))",
        "        return PC_STOPPED;",
        f"    for (int k = 0; k < {slots}; k++)",
        "        if (failed[k])",
        "            return k + 1;",
        "    return 0;",
        "}",
        "",
    )


_TIMING = """\
/* Functions of their own, not inlined: the C compiler takes long over many branches in one. */
#define APART static __attribute__((noinline, unused))

/* Times of launches, where somebody asks for them. */
APART double begin(const pc_thread *pc_self, const double *seconds)
{
    return seconds ? pc_begin(pc_self) : 0;
}
APART void finish(const pc_thread *pc_self, double began, double *seconds, i64 k)
{
    if (seconds)
        pc_finish(pc_self, began, &seconds[k]);
}

#define LAUNCH(k, launch)                                    \\
    do {                                                     \\
        if (PC_ENDS)                                         \\
            return;                                          \\
        const double began = begin(pc_self, call->seconds);  \\
        launch;                                              \\
        finish(pc_self, began, call->seconds, k);            \\
    } while (0)

"""


def print_prototype(kernel: Prototype) -> str:
    """The declaration of a kernel's C function."""
    arguments = [pointer_type(p.dtype, p.writes) + "restrict" for p in kernel.params]
    arguments += ["i64"] * len(kernel.sizes)
    return f"void {checked_name(kernel.name)}({', '.join([*arguments, 'pc_thread *', 'int *'])});"
