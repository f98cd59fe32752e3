"""PyTorch in: a module by `from_torch`, and a backend of torch.compile.

    model = polyc.from_torch(module, (x,))
    y = model(x)                                  # tensors in, tensors out

    fast = torch.compile(module, backend="polyc", dynamic=True)

Both go through torch.export and PyTorch's exporter to ONNX. For inference: parameters and buffers
are constants, as they are when the module is compiled, and gradients are not computed. Needs the
extra `polyc[torch]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from polyc.api import from_torch
from polyc.errors import PolycError, ShapeError
from polyc.run.torch_model import TorchModel


def backend(
    module: GraphModule, examples: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Callable[..., Sequence[torch.Tensor]]:
    """A backend of torch.compile; its `options` are the arguments of `polyc.compile`, by name.

    Sizes that torch.compile leaves open (dynamic=True) are open here as well: the graph is compiled
    once for all of them. Where that cannot be, it is compiled for those of each call.
    """
    graph = _Graph(module, examples, dict(options or {}))
    if not graph.sizes and all(_is_constant(e) or isinstance(e, torch.Tensor) for e in examples):
        graph(*examples)  # errors while compiling, not in the first call
    return graph


@dataclass
class _Graph:
    """What torch.compile calls: a graph whose inputs are constants, tensors, sizes and numbers.

    fixed: parameters and buffers. sizes: inputs that are sizes of others, each with the position of
    such a tensor and the dimension. open: the dimensions of each tensor that are open.
    """

    module: GraphModule
    examples: Sequence[Any]
    options: Mapping[str, Any]
    fixed: dict[int, Any] = field(init=False)
    sizes: dict[int, tuple[int, int]] = field(init=False)
    open: dict[int, list[int]] = field(init=False)
    compiled: dict[tuple[Any, ...], TorchModel] = field(default_factory=dict)
    closed: set[tuple[Any, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fixed = {k: e for k, e in enumerate(self.examples) if _is_constant(e)}
        meant = [n.meta.get("example_value") for n in _inputs(self.module)]
        shapes = {
            k: v.shape
            for k, v in enumerate(meant)
            if isinstance(v, torch.Tensor) and k not in self.fixed
        }
        self.open = {
            k: [d for d, size in enumerate(shape) if _is_open(size)] for k, shape in shapes.items()
        }
        places = {str(shapes[k][d]): (k, d) for k, dims in self.open.items() for d in dims}
        self.sizes = {
            k: places[str(v)] for k, v in enumerate(meant) if _is_open(v) and str(v) in places
        }

    def __call__(self, *args: Any) -> Sequence[torch.Tensor]:
        known = {k: a for k, a in enumerate(args) if k in self.fixed or self._is_number(k, a)}
        given = [k for k in range(len(args)) if k not in known and k not in self.sizes]
        tensors = [args[k] for k in given]
        numbers = tuple(
            a.item() if isinstance(a, torch.Tensor) else a
            for k, a in known.items()
            if k not in self.fixed
        )
        found = self._run_open(numbers, known, given, tensors)
        if found is None:
            key = (numbers, *((t.shape, t.dtype) for t in tensors))
            if key not in self.compiled:
                sizes = {k: int(args[k]) for k in self.sizes}
                self.compiled[key] = self._compile({**known, **sizes}, {}, tensors, None)
            found = self.compiled[key](*tensors)
        return _refuse_gradients(list(found), tensors, self.fixed.values())

    def _run_open(
        self,
        numbers: tuple[Any, ...],
        known: Mapping[int, Any],
        given: Sequence[int],
        tensors: Sequence[torch.Tensor],
    ) -> Any:
        """What the graph gives that is compiled for open sizes; None if there are none, or is none.

        PyTorch's exporter may find that a size cannot be open; then those of a call may not fit.
        """
        if numbers in self.closed or not any(self.open.get(k) for k in given):
            return None
        try:
            if numbers not in self.compiled:
                auto = torch.export.Dim.AUTO
                dims = tuple(dict.fromkeys(self.open.get(k, ()), auto) for k in given)
                self.compiled[numbers] = self._compile(known, self.sizes, tensors, dims)
            return self.compiled[numbers](*tensors)
        except ShapeError:
            return None
        except PolycError:
            self.closed.add(numbers)
            return None

    def _compile(
        self,
        known: Mapping[int, Any],
        sizes: Mapping[int, tuple[int, int]],
        tensors: Sequence[torch.Tensor],
        dynamic: Any,
    ) -> TorchModel:
        whole = _with_constants(self.module, {**known, **self.fixed}, sizes)
        return from_torch(whole, tensors, dynamic_shapes=dynamic, **self.options)

    def _is_number(self, position: int, value: Any) -> bool:
        """Whether an argument is a number of Python's, which torch.compile may wrap in a tensor."""
        if position in self.sizes:
            return False
        return not isinstance(value, torch.Tensor) or (value.ndim == 0 and not value.is_cuda)


def _is_constant(value: Any) -> bool:
    """Whether torch.compile passes a parameter or a buffer, which stays what it is."""
    marked = getattr(value, "_dynamo_static_input_type", None) is not None
    return isinstance(value, torch.nn.Parameter) or marked


def _is_open(size: Any) -> bool:
    """Whether torch.compile knows a size by a name alone."""
    return isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None


def _inputs(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _with_constants(
    module: GraphModule, values: Mapping[int, Any], sizes: Mapping[int, tuple[int, int]]
) -> GraphModule:
    """The graph with some of its inputs as buffers or numbers, and some as sizes of others."""
    graph, whole = torch.fx.Graph(), torch.nn.Module()
    inputs = _inputs(module)
    known = {inputs[k]: value for k, value in values.items()}
    renamed: dict[Node, Any] = {}
    for position, node in enumerate(inputs):
        if position not in sizes and node not in known:
            renamed[node] = graph.node_copy(node)
    for position, (tensor, dimension) in sizes.items():
        size = (renamed[inputs[tensor]], dimension)
        renamed[inputs[position]] = graph.call_function(torch.ops.aten.sym_size.int, size)
    for node in module.graph.nodes:
        if node.target == "item" and node.args[0] in known:  # a number of Python's, unwrapped
            renamed[node] = known[node.args[0]].item()
        elif node in renamed:
            continue
        elif node not in known:
            renamed[node] = graph.node_copy(node, lambda n: renamed[n])
            if node.op == "get_attr":
                _copy_attribute(module, whole, str(node.target))
        elif isinstance(known[node], torch.Tensor):
            whole.register_buffer(node.name, known[node].detach())
            renamed[node] = graph.get_attr(node.name)
        else:
            renamed[node] = known[node]
    for name, child in module.named_children():
        if not hasattr(whole, name):
            whole.add_module(name, child)
    return GraphModule(whole, graph)


def _copy_attribute(source: torch.nn.Module, target: torch.nn.Module, name: str) -> None:
    first, _, _ = name.partition(".")
    if not hasattr(target, first):
        setattr(target, first, getattr(source, first))


class _NoGradient(torch.autograd.Function):
    """A result from which nobody can go back; it says so where somebody tries."""

    @staticmethod
    def forward(context: Any, result: torch.Tensor, *wanted: torch.Tensor) -> torch.Tensor:
        return result

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError(
            "this graph was compiled by polyc, for inference: it has no gradients; train the "
            "module without torch.compile, or with another backend"
        )


def _refuse_gradients(
    results: list[torch.Tensor], tensors: Sequence[Any], fixed: Any
) -> Sequence[torch.Tensor]:
    """The results, of which a backward pass that would need gradients says that there are none."""
    if not torch.is_grad_enabled():
        return results
    wanted = [t for t in (*tensors, *fixed) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not wanted:
        return results
    return [_NoGradient.apply(r, wanted[0]) if r.is_floating_point() else r for r in results]
