"""Generated loops as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.nodes import (
    Assign,
    Await,
    Barrier,
    Block,
    Commit,
    Element,
    For,
    If,
    Kernel,
    LoopExpr,
    Node,
    Read,
    Test,
    TileMove,
    TileProduct,
    TileShapes,
    Transpose,
    Value,
)
from polyc.scop.expr import Call, Cast, Const


def show_expr(expr: LoopExpr) -> str:
    match expr:
        case Const(value=value):
            return repr(value)
        case Value(index=index):
            return show_index(index)
        case Test(condition=condition):
            return show_condition(condition)
        case Read(element, _, dynamic):
            return show_element(element) + (
                "{" + ", ".join(f"{d}: {show_expr(e)}" for d, e in dynamic) + "}" if dynamic else ""
            )
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(show_expr(a) for a in arguments)})"
        case Cast(argument=argument, dtype=dtype):
            return f"{dtype}({show_expr(argument)})"


def show_element(element: Element) -> str:
    return element.array + "".join(f"[{show_index(i)}]" for i in element.index)


def show_kernel(kernel: Kernel) -> str:
    """A kernel as text, a line a node, as dumps and error messages show it."""
    arrays = [f"{p.dtype} {p.name}{list(p.shape)}" for p in kernel.params]
    arguments = ", ".join([*arrays, *kernel.sizes])
    products = (f"  {name} = {meaning}" for name, meaning in kernel.products)
    return "\n".join([f"kernel {kernel.name}({arguments})", *products, *_show(kernel.body, "  ")])


def _show(node: Node, indent: str) -> Iterator[str]:
    match node:
        case Block(body=body, team=True):
            for child in body:
                if isinstance(child, Block) and not child.team:
                    yield f"{indent}one thread:"
                    yield from _show(child, indent + "  ")
                else:
                    yield from _show(child, indent)
        case Block(body=body, locals=locals_, concurrent=concurrent):
            for near in node.near:
                yield f"{indent}near {show_element(near.first)}, {near.rows} along {near.dimension}"
            for local in locals_:
                place = "registers" if local.in_registers else _PLACES[local.space]
                swizzled = ", swizzled" if local.swizzle else ""
                yield f"{indent}{place} {local.dtype} {local.name}{list(local.shape)}{swizzled}"
            for k, child in enumerate(body):
                if concurrent:
                    yield f"{indent}{'beside it' if k else 'at the same time'}:"
                yield from _show(child, indent + ("  " if concurrent else ""))
        case For(var, lower, upper, step, body, kind, idle, apart, lanes):
            mark = "" if kind == "sequential" else f"  # {kind}"
            mark += f" {node.instruction}" if node.instruction else ""
            mark += f" with {idle} idle lanes" if idle else ""
            mark += f" of {lanes} lanes" if lanes else ""
            mark += f", {apart} apart" if apart > 1 else ""
            end = f"min({upper}, {show_expr(node.end)})" if node.end else f"{upper}"
            begin = f"max({lower}, {show_expr(node.begin)})" if node.begin else f"{lower}"
            where = f"{show_expr(node.only)} of " if node.only else ""
            end += f" until {show_expr(node.left)}" if node.left else ""
            yield f"{indent}for {var} in {where}{begin} .. {end} step {step}:{mark}"
            yield from _show(body, indent + "  ")
        case If(condition, then, otherwise):
            yield f"{indent}if {show_condition(condition)}:"
            yield from _show(then, indent + "  ")
            if otherwise:
                yield f"{indent}else:"
                yield from _show(otherwise, indent + "  ")
        case Assign(statement, instance, target, value, _, reduction):
            operator = f"{reduction}=" if reduction else "="
            where = ", ".join(map(str, instance))
            yield (
                f"{indent}{show_element(target)} {operator} {show_expr(value)}"
                f"    # {statement}[{where}]"
            )
        case Transpose(array, _, lanes, rows):
            what = f"interleave {array}[{rows}" if rows else f"transpose {array}[{lanes}"
            yield f"{indent}{what}, {lanes}]"
        case TileShapes(shapes):
            yield f"{indent}tiles of {', '.join(f'{n} x {size} bytes' for n, size in shapes)}"
        case TileMove(kind, register, first):
            yield f"{indent}{kind} tile {register}: {show_element(first)}"
        case TileProduct(instruction, result, a, b):
            yield f"{indent}tile {result} += tile {a} * tile {b}    # {instruction}"
        case Await(pending):
            yield f"{indent}await, at most {pending} products pending"
        case Commit(group):
            yield f"{indent}commit" + (f" boxes as group {group.number}" if group else "")
        case Barrier(pending, group):
            wait = "" if pending is None else f", at most {pending} groups of copies pending"
            wait += f", group {group.number} of boxes arrived" if group else ""
            yield f"{indent}barrier{wait}"


_PLACES = {"stack": "local", "shared": "shared", "register": "registers of a thread"}
