"""Ops as fewer kinds of ops, and programs that write to nothing.

A decomposition is a function with the op's arguments that calls other ops; it is written down as
the program was. An op that writes to its argument becomes the one that does not, and what was
written to is replaced by the result in all that follows.
"""
from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau import Tensor, nn
from flambeau.export._trace import capture, overloads
from flambeau.export._trace.build import Builder, Explained, Inputs, Program, Sizes
from flambeau.export._trace.sizes import Expression, Symbol
from flambeau.export.graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec
from flambeau.fx.node import map_arg
from flambeau.utils import _pytree

if TYPE_CHECKING:
    from flambeau.export.exported_program import ExportedProgram

_table: dict[str, Callable[..., Any]] = {}


def _decomposes(*names: str) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _table[name] = function
        return function
    return register


def core_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file, by overload."""
    return {overloads.target(*name.split(".")): function for name, function in _table.items()}


def _emit(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an overload, by its name."""
    base, overload = name.split(".")
    target = overloads.target(base, overload)
    if capture.current.get() is None:           # a program calls the function itself
        return target(*args, **kwargs)
    call = overloads.Call(base, overload, args, kwargs)
    return capture.record_now(call, lambda: target(*args, **kwargs))


# ---- products -----------------------------------------------------------------------------------

@_decomposes("linear.default")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    turned = weight.permute(1, 0)
    if input.ndim == 2:
        return input.mm(turned) if bias is None else flambeau.addmm(bias, input, turned)
    rows = input.view(-1 if input.numel() else input.shape[:-1].numel(), input.shape[-1])
    found = rows.mm(turned).view(*input.shape[:-1], weight.shape[0])
    return found if bias is None else found + bias


@_decomposes("matmul.default")
def _matmul(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim == 2 and b.ndim == 2:
        return a.mm(b)
    if a.ndim == 1 and b.ndim == 1:
        return a.dot(b)
    if b.ndim == 1:
        return (a * b).sum(-1)
    if a.ndim == 1:
        return _matmul(a.unsqueeze(0), b).squeeze(-2)
    if b.ndim == 2:
        return a.view(-1, a.shape[-1]).mm(b).view(*a.shape[:-1], b.shape[-1])
    shape = flambeau.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = a.expand(*shape, *a.shape[-2:]).reshape(-1, *a.shape[-2:])
    right = b.expand(*shape, *b.shape[-2:]).reshape(-1, *b.shape[-2:])
    return left.bmm(right).view(*shape, a.shape[-2], b.shape[-1])


def _convolution(n: int, transposed: bool) -> Callable[..., Any]:
    def forward(input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
                dilation: Any = 1, groups: int = 1) -> Tensor:
        sizes = [[v] * n if isinstance(v, int) else list(v) for v in (stride, padding, dilation)]
        return _emit("convolution.default", input, weight, bias, *sizes, False, [0] * n, groups)

    def backward(input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
        sizes = [[v] * n if isinstance(v, int) else list(v)
                 for v in (stride, padding, dilation, output_padding)]
        return _emit("convolution.default", input, weight, bias, *sizes[:3], True, sizes[3],
                     groups)
    return backward if transposed else forward


for _n in (1, 2, 3):
    _table[f"conv{_n}d.default"] = _convolution(_n, False)
    _table[f"conv_transpose{_n}d.{'default' if _n == 1 else 'input'}"] = _convolution(_n, True)


# ---- shapes -------------------------------------------------------------------------------------

@_decomposes("t.default", "numpy_T.default")
def _turned(x: Tensor) -> Tensor:
    return x.permute(*reversed(range(x.ndim))) if x.ndim > 1 else x


@_decomposes("transpose.int", "swapaxes.default")
def _transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    dims = list(range(x.ndim))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return x.permute(*dims)


@_decomposes("mT.default")
def _matrix_turned(x: Tensor) -> Tensor:
    return _transpose(x, -2, -1)


@_decomposes("reshape.default")
def _reshape(x: Tensor, shape: Any) -> Tensor:
    if _viewable(x, shape):
        return x.view(*shape)
    return _emit("clone.default", x, memory_format=flambeau.contiguous_format).view(*shape)


def _viewable(x: Tensor, shape: Any) -> bool:
    with capture.current.get().unseen():
        try:
            x.detach().view(*shape)
        except RuntimeError:
            return False
    return True


@_decomposes("flatten.using_ints")
def _flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if x.ndim < 2:
        return x if x.ndim else x.view(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    if start == end:
        return x
    return _reshape(x, [*x.shape[:start], x.shape[start:end + 1].numel(), *x.shape[end + 1:]])


@_decomposes("unflatten.int")
def _unflatten(x: Tensor, dim: int, sizes: Any) -> Tensor:
    dim %= x.ndim
    return x.view(*x.shape[:dim], *sizes, *x.shape[dim + 1:])


@_decomposes("contiguous.default")
def _contiguous(x: Tensor, memory_format: Any = flambeau.contiguous_format) -> Tensor:
    return x if x.is_contiguous() else _emit("clone.default", x, memory_format=memory_format)


@_decomposes("expand_as.default")
def _expand_as(x: Tensor, other: Tensor) -> Tensor:
    return x.expand(*other.shape)


@_decomposes("view_as.default")
def _view_as(x: Tensor, other: Tensor) -> Tensor:
    return x.view(*other.shape)


@_decomposes("narrow.default")
def _narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return _emit("slice.Tensor", x, dim, start, start + length)


@_decomposes("chunk.default")
def _chunk(x: Tensor, chunks: int, dim: int = 0) -> Any:
    return _split(x, -(-x.shape[dim] // chunks), dim)


@_decomposes("split.Tensor")
def _split(x: Tensor, size: int, dim: int = 0) -> Any:
    full, rest = divmod(x.shape[dim], size)
    return list(_emit("split_with_sizes.default", x, [size] * full + [rest] * bool(rest),
                      *([dim] if dim else [])))


@_decomposes("stack.default")
def _stack(tensors: Any, dim: int = 0) -> Tensor:
    dim %= tensors[0].ndim + 1
    if dim:
        return flambeau.cat([t.unsqueeze(dim) for t in tensors], dim)
    return flambeau.cat(tensors).view(len(tensors), *tensors[0].shape)


@_decomposes("lift_fresh_copy.default")
def _lift(x: Tensor) -> Tensor:
    return _emit("clone.default", x)


@_decomposes("detach.default")
def _detach(x: Tensor) -> Tensor:
    return _emit("alias.default", x)


# ---- element by element -------------------------------------------------------------------------

@_decomposes("rsub.Scalar")
def _rsub(x: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return _emit("sub.Tensor", other, x, **({} if alpha == 1 else {"alpha": alpha}))


@_decomposes("square.default")
def _square(x: Tensor) -> Tensor:
    return x.pow(2)


@_decomposes("silu.default")
def _silu(x: Tensor) -> Tensor:
    return x * x.sigmoid()


@_decomposes("relu6.default")
def _relu6(x: Tensor) -> Tensor:
    return _emit("hardtanh.default", x, 0, 6)


@_decomposes("softplus.default")
def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    scaled = x if beta == 1 else x * beta
    found = scaled.exp().log1p()
    return flambeau.where(scaled > threshold, x, found if beta == 1 else found / beta)


@_decomposes("mish.default")
def _mish(x: Tensor) -> Tensor:
    return x * _softplus(x).tanh()


@_decomposes("glu.default")
def _glu(x: Tensor, dim: int = -1) -> Tensor:
    dim %= x.ndim
    half = x.shape[dim] // 2
    first = _emit("slice.Tensor", x, dim, 0, half)
    return first * _emit("slice.Tensor", x, dim, half, 2 * half).sigmoid()


@_decomposes("hardswish.default")
def _hardswish(x: Tensor) -> Tensor:
    return x * (x + 3).clamp(0).clamp(None, 6) / 6


@_decomposes("clamp_min.default")
def _clamp_min(x: Tensor, min: Any) -> Tensor:
    return x.clamp(min)


@_decomposes("clamp_max.default")
def _clamp_max(x: Tensor, max: Any) -> Tensor:
    return x.clamp(None, max)


@_decomposes("floor_divide.default")
def _floor_divide(x: Tensor, other: Any) -> Tensor:
    return flambeau.div(x, other, rounding_mode="floor")


@_decomposes("__and__.Tensor")
def _and(x: Tensor, other: Tensor) -> Tensor:
    return flambeau.bitwise_and(x, other)


@_decomposes("__or__.Tensor")
def _or(x: Tensor, other: Tensor) -> Tensor:
    return flambeau.bitwise_or(x, other)


@_decomposes("to.dtype")
def _to_dtype(x: Tensor, dtype: Any, non_blocking: bool = False, copy: bool = False,
              memory_format: Any = None) -> Tensor:
    if x.dtype is dtype and not copy:
        return x
    return _emit("_to_copy.default", x, dtype=dtype)


@_decomposes("type_as.default")
def _type_as(x: Tensor, other: Tensor) -> Tensor:
    return _to_dtype(x, other.dtype)


# ---- layers -------------------------------------------------------------------------------------

@_decomposes("softmax.int")
def _softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _emit("_softmax.default", x if dtype is None else _to_dtype(x, dtype), dim, False)


@_decomposes("log_softmax.int")
def _log_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _emit("_log_softmax.default", x if dtype is None else _to_dtype(x, dtype), dim, False)


@_decomposes("dropout.default")
def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        return _emit("clone.default", x)
    return _emit("native_dropout.default", x, p, True)[0]


@_decomposes("layer_norm.default")
def _layer_norm(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn_enable: bool = True) -> Tensor:
    return _emit("native_layer_norm.default", x, shape, weight, bias, eps)[0]


@_decomposes("batch_norm.default")
def _batch_norm(x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
                momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    if not training:
        return _emit("_native_batch_norm_legit_no_training.default", x, weight, bias, mean, var,
                     momentum, eps)[0]
    if mean is None:
        return _emit("_native_batch_norm_legit.no_stats", x, weight, bias, True, momentum, eps)[0]
    found = _emit("_native_batch_norm_legit_functional.default", x, weight, bias, mean, var, True,
                  momentum, eps)
    _Decomposing.current.rebind(mean, found[3])
    _Decomposing.current.rebind(var, found[4])
    return found[0]


@_decomposes("max_pool2d.default")
def _max_pool2d(x: Tensor, *args: Any) -> Tensor:
    return _emit("max_pool2d_with_indices.default", x, *args)[0]


@_decomposes("mse_loss.default")
def _mse_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    found = (x - target).pow(2)
    return (found, found.mean(), found.sum())[reduction] if not reduction else \
        found.mean() if reduction == 1 else found.sum()


# ---- the program --------------------------------------------------------------------------------

class _Decomposing(nn.Module):
    """Runs a program's graph with decompositions, and writes to nothing."""

    current: Any = None

    def __init__(self, program: ExportedProgram, table: dict[Any, Callable[..., Any]]):
        super().__init__()
        self.program, self.table = program, table
        self.specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        source = program.module(check_guards=False)
        self._parameters, self._buffers = dict(source._parameters), dict(source._buffers)
        self._modules = {k: v for k, v in source._modules.items() if v is not None}
        self._non_persistent_buffers_set = source._non_persistent_buffers_set
        self.mutated: list[tuple[OutputKind, str]] = []
        self._env: dict[Any, Any] = {}

    def _state(self, spec: Any) -> Any:
        if spec.kind is InputKind.CONSTANT_TENSOR:
            return self.program.constants[spec.target]
        *path, last = spec.target.split(".")
        holder: nn.Module = self
        for part in path:
            holder = getattr(holder, part)
        return getattr(holder, last)

    def rebind(self, old: Tensor, new: Tensor) -> None:
        """Let `new` stand wherever `old` stood."""
        if old._is_view():
            raise NotImplementedError("run_decompositions: the program writes to a view")
        for node, value in self._env.items():
            if value is old:
                self._env[node] = new

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What is written to, and what the program gives."""
        leaves = iter(_pytree.tree_leaves((args, kwargs)))
        env = self._env = {}
        type(self).current = self
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                spec = self.specs[node.name]
                env[node] = next(leaves) if spec.kind is InputKind.USER_INPUT \
                    else self._state(spec)
            elif node.op == "output":
                results = map_arg(node.args[0], lambda n: env[n])
            else:
                self._step(node)
        return self._written() + tuple(results)

    def _written(self) -> tuple[Tensor, ...]:
        kinds = {InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
                 InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
                 InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION}
        self.mutated, found = [], []
        for name, spec in self.specs.items():
            node = next(n for n in self._env if n.name == name)
            if node in self._replaced and spec.kind in kinds:
                self.mutated.append((kinds[spec.kind], spec.target or name))
                found.append(self._env[node])
        return tuple(found)

    @property
    def _replaced(self) -> set[Any]:
        return {node for node in self._env if node.op == "placeholder"
                and isinstance(self._env[node], Tensor)
                and capture.is_result(self._env[node])}

    def _step(self, node: Any) -> None:
        env = self._env
        args = map_arg(node.args, lambda n: env[n])
        kwargs = map_arg(node.kwargs, lambda n: env[n])
        target = node.target
        if target in (operator.getitem, operator.mul, operator.add, operator.floordiv):
            env[node] = target(*args)
            return
        name, overload = target.__name__.split(".")
        if name == "sym_size":
            env[node] = args[0].shape[args[1]]
        elif name == "detach_":
            env[node] = args[0]
        elif name.endswith("_") and not name.endswith("__"):
            found = self._functional(name[:-1], overload, args, kwargs)
            self.rebind(args[0], found)
            env[node] = found
        elif target in self.table:
            env[node] = self.table[target](*args, **kwargs)
        else:
            env[node] = _emit(target.__name__, *args, **kwargs)

    def _functional(self, name: str, overload: str, args: Any, kwargs: Any) -> Any:
        if name in ("zero", "fill"):
            return flambeau.full_like(args[0], args[1] if len(args) > 1 else 0)
        target = overloads.target(name, overload)
        if target in self.table:
            return self.table[target](*args, **kwargs)
        return _emit(f"{name}.{overload}", *args, **kwargs)


class _KnownInputs(Inputs):
    """The inputs of a program that has been exported."""

    def __init__(self, program: ExportedProgram):
        args, kwargs = program.example_inputs
        self.args, self.kwargs = args, kwargs
        self.leaves, self.spec = _pytree.tree_flatten((args, kwargs))
        self.names = [s.arg.name for s in program.graph_signature.input_specs
                      if s.kind is InputKind.USER_INPUT]


class _KnownSizes(Sizes):
    """The dynamic sizes of a program that has been exported."""

    def __init__(self, program: ExportedProgram, inputs: Inputs):
        self.inputs, self.ranges = inputs, dict(program.range_constraints)
        self.flexible, self.hinted, self.of, self.sources = set(), {}, {}, {}
        nodes = {n.name: n for n in program.graph.find_nodes(op="placeholder")}
        self.names = {s: s.name for s in self.ranges}
        for i, name in enumerate(inputs.names):
            for dim, size in enumerate(nodes[name].meta.get("sizes", ())):
                if isinstance(size, (Symbol, Expression)):
                    self.of[i, dim] = size


def decomposed(program: ExportedProgram, table: dict[Any, Callable[..., Any]] | None
               ) -> ExportedProgram:
    """The program after decompositions."""
    if program.example_inputs is None:
        raise NotImplementedError("run_decompositions of a program without example inputs")
    module = _Decomposing(program, core_decompositions() if table is None else table)
    inputs = _KnownInputs(program)
    runnable = Program(module, inputs)
    runnable.constants = {id(v): k for k, v in program.constants.items()}
    builder = Builder(runnable, Explained(runnable, _KnownSizes(program, inputs)))
    builder.build()
    for node in reversed(list(builder.graph.nodes)):
        if node.target is operator.getitem and not node.users:
            builder.graph.erase_node(node)
    specs = builder.output_specs
    for spec, (kind, target) in zip(list(specs), module.mutated):
        specs[specs.index(spec)] = OutputSpec(kind, spec.arg, target)
    made = type(program)(
        nn.Module(), builder.graph, ExportGraphSignature(builder.input_specs, specs),
        program.state_dict, dict(program.range_constraints),
        copy.deepcopy(program.module_call_graph), program.example_inputs, program.constants)
    made._dialect = "ATEN"
    return made
