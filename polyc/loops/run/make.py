"""From what is ordered to a folder on disk: compiled, proven, built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import islpy as isl

from polyc.build.bundle import write_bundle
from polyc.loopnest.index import Condition
from polyc.loopnest.index_text import show_condition
from polyc.loopnest.nodes import Block, Kernel
from polyc.loopnest.prototype import Param
from polyc.loops.run.build import (
    Sources,
    build,
    build_for_cuda,
    describe,
    describe_for_cuda,
    print_cuda_sources,
    print_sources,
)
from polyc.loops.run.compile import CompiledLoops, compile_loops, name_kernel
from polyc.loops.run.compile_cuda import CompiledForCuda
from polyc.loops.run.report import explain, explain_for_cuda
from polyc.loops.run.stored import Order, write_texts
from polyc.names import array_name, fresh
from polyc.poly.show import show_tree
from polyc.printing.driver import print_prototype
from polyc.printing.host_text import pointer_type
from polyc.printing.runtime_table import preamble
from polyc.printing.scope import Uses
from polyc.program.program import Launch, Program
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.toolchain.cache import Cache
from polyc.types.parameters import Parameter

OTHER_SIZES = "sizes that are not usual: they have code of their own", ""
"""What code for the usual sizes refuses others for; no place says so."""


SHOWN_SIZE = 16
"""What an example takes for a size, if a call may have it."""

PARAM = isl.dim_type.param


def make_for_cpu(order: Order, usual: bool, folder: Path, cache: Cache) -> None:
    """A kernel for the usual sizes, or for all."""
    compiled = _compile(order, usual)
    texts = {f"{compiled.kernel.name}.c": compiled.text}
    sources = print_sources(texts, compiled.program, compiled.refused)
    _finish(order, compiled, sources, [OTHER_SIZES] if usual else [], folder, cache)


def make_for_all(order: Order, folder: Path, cache: Cache) -> None:
    """A kernel for all sizes, with code of their own for the usual ones."""
    usual, general = _compile(order, True), _compile(order, False)
    program, text = _choose_by_sizes(usual, general)
    texts = {f"{program.kernels[0].name}.c": text}
    texts |= {f"{one.kernel.name}.c": one.text for one in (usual, general)}
    program = replace(program, sizes=_with_hints(program.sizes, usual.sizes))
    sources = print_sources(texts, program, general.refused)
    _finish(order, usual, sources, [], folder, cache)


def make_for_cuda(order: Order, compiled: CompiledForCuda, folder: Path, cache: Cache) -> None:
    """A kernel for a GPU, and sizes that are known."""
    target, emulated = order.target, order.options.emulated
    assert isinstance(target, CudaTarget)
    sources = print_cuda_sources(
        compiled.kernel, compiled.device, compiled.program, emulated=emulated
    )
    library = build_for_cuda(sources, target, order.options, cache)
    facts = compiled.proof.facts if compiled.proof else ""
    how = "emulated" if emulated else "cuda"
    manifest = describe_for_cuda(sources, compiled.plan.origin, facts, target, compiled.device, how)
    write_bundle(folder, manifest, library, sources.files)
    write_texts(folder, explain_for_cuda(compiled), show_tree(compiled.plan.tree))


def _compile(order: Order, usual: bool) -> CompiledLoops:
    assert isinstance(order.target, Target)
    return compile_loops(
        order.function,
        order.signature,
        order.target,
        order.options,
        usual=usual,
        given=order.given,
    )


def _finish(
    order: Order,
    compiled: CompiledLoops,
    sources: Sources,
    others: Sequence[tuple[str, str]],
    folder: Path,
    cache: Cache,
) -> None:
    assert isinstance(order.target, Target)
    library = build(sources, order.target, order.options, cache)
    facts = compiled.proof.facts if compiled.proof else ""
    requirements = [(r.what, str(r.place)) for r in compiled.requirements]
    manifest = describe(
        sources, compiled.plan.origin, facts, order.target, [*requirements, *others]
    )
    write_bundle(folder, manifest, library, sources.files)
    write_texts(folder, explain(compiled), show_tree(compiled.plan.tree))


def _choose_by_sizes(usual: CompiledLoops, general: CompiledLoops) -> tuple[Program, str]:
    """A program of one kernel that calls one of two, and the text of that.

    void k_f(A, n, …) { if (n is not usual) k1_f(A, n, …); else k0_f(A, n, …); }

    What they have in the arena lies there side by side.
    """
    given = {name for _, name in usual.program.inputs}
    taken = {*usual.program.arrays}
    renamed = {
        name: name if name in given else fresh(name, taken) for name in general.program.arrays
    }
    arrays = dict(usual.program.arrays)
    for name, array in general.program.arrays.items():
        arrays.setdefault(renamed[name], replace(array, name=renamed[name]))
    params = {p.name: p for p in usual.kernel.params}
    for p in general.kernel.params:
        known = params.get(renamed[p.name])
        writes = p.writes or (known is not None and known.writes)
        params[renamed[p.name]] = Param(renamed[p.name], p.dtype, p.shape, writes)
    name = name_kernel(usual.lowered.scop, "k")
    kernel = Kernel(name, tuple(params.values()), Block(()), sizes=usual.kernel.sizes)
    launch = Launch(name, tuple(params))
    program = replace(usual.program, kernels=(kernel,), launches=(launch,), arrays=arrays)
    return program, _print_choice(kernel, usual, general, renamed)


def _with_hints(sizes: Sequence[Parameter], allowed: isl.Set) -> tuple[Parameter, ...]:
    """Sizes with such as a call may have, small and as equal as they can be: for an example."""
    some = allowed
    for size in sizes:
        position = some.find_dim_by_name(PARAM, size.name)
        fixed = some if position < 0 else some.fix_val(PARAM, position, isl.Val(SHOWN_SIZE))
        some = some if fixed.is_empty() else fixed
    point = some.sample_point()
    hints = {}
    for size in sizes:
        position = point.get_space().find_dim_by_name(PARAM, size.name)
        value = point.get_coordinate_val(PARAM, position) if position >= 0 else isl.Val(SHOWN_SIZE)
        hints[size.name] = int(value.to_python())
    return tuple(replace(size, hint=hints[size.name]) for size in sizes)


def _print_choice(
    kernel: Kernel, usual: CompiledLoops, general: CompiledLoops, renamed: dict[str, str]
) -> str:
    other: Condition = usual.refused[-1]
    arguments = [
        f"{pointer_type(p.dtype, p.writes)}restrict {array_name(p.name)}" for p in kernel.params
    ]
    arguments += [f"i64 {size}" for size in kernel.sizes]
    head = f"void {kernel.name}({', '.join([*arguments, 'pc_thread *pc_self', 'int *status'])})"

    def call(one: Kernel, names: Sequence[str]) -> str:
        given = [*map(array_name, names), *one.sizes, "pc_self", "status"]
        return f"{one.name}({', '.join(given)});"

    lines = [
        "/* Which code is for a call: that for the usual sizes, or that for all others. */",
        preamble(Uses()),
        print_prototype(usual.kernel),
        print_prototype(general.kernel),
        "",
        head,
        "{",
        f"    if ({show_condition(other)})",
        f"        {call(general.kernel, [renamed[p.name] for p in general.kernel.params])}",
        "    else",
        f"        {call(usual.kernel, [p.name for p in usual.kernel.params])}",
        "}",
        "",
    ]
    return "\n".join(lines)
