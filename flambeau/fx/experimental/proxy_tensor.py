"""`make_fx`: the graph of the ops that a function runs, below autograd and below Python.

A mode sees each op of PyTorch's dispatcher; tensors are known by the nodes that gave them.

>>> import flambeau
>>> print(make_fx(lambda x: flambeau.nn.functional.silu(x) + 1)(flambeau.ones(2)).code.strip())
def forward(self, x_1):
    silu = torch.ops.aten.silu.default(x_1);  x_1 = None
    add = torch.ops.aten.add.Tensor(silu, 1);  silu = None
    return add
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import adopt
from flambeau._support.scopes import Scope
from flambeau.fx import Graph, GraphModule, Interpreter, Proxy, Tracer
from flambeau.fx._lazy_graph_module import _make_graph_module
from flambeau.fx._symbolic_trace import PH
from flambeau.fx.experimental._proxy_mode import (  # noqa: F401
    _DATA_DEPENDENT,
    CONSTANT_NUMEL_LIMIT,
    CURRENT_DECOMPOSITION_TABLE,
    ORIGINAL_ATEN,
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    _GraphAppendingTracerEx,
    decompose,
    disable_proxy_modes_tracing,
    get_proxy_mode,
    maybe_handle_decomp,
    proxy_call,
    set_original_aten_op,
)
from flambeau.fx.experimental._tracked import (  # noqa: F401
    _NoDefault,
    _ProxyTensor,
    _SymNodeDict,
    extract_val,
    fetch_object_proxy,
    fetch_sym_proxy,
    get_proxy_slot,
    has_proxy_slot,
    is_sym_node,
    no_default,
    py_sym_types,
    set_meta,
    set_proxy_slot,
    snapshot_fake,
    track_tensor,
    track_tensor_tree,
)
from flambeau.utils import _pytree as pytree
from flambeau.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    levels_set_aside,
)

_TracingMode = Literal["real", "fake", "symbolic"]
_CURRENT_MAKE_FX_TRACER: Any = None


get_innermost_proxy_mode = get_proxy_mode


def get_torch_dispatch_modes() -> list[TorchDispatchMode]:
    """The modes that are entered, the innermost last."""
    return _get_current_dispatch_mode_stack()


@contextlib.contextmanager
def disable_autocast_cache() -> Iterator[None]:
    """Inside, autocast keeps no casts of weights, which would belong to another trace."""
    before = flambeau.is_autocast_cache_enabled()
    flambeau.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        flambeau.set_autocast_cache_enabled(before)


@contextlib.contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """Inside, nodes of sizes are made at once: they always are."""
    yield


maybe_enable_thunkify = maybe_disable_thunkify


def handle_sym_dispatch(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Compute with symbolic numbers."""
    with disable_proxy_modes_tracing():
        return func(*args, **kwargs)


# ---- tracing -------------------------------------------------------------------------------------


def fake_signature(fn: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    """A function of `nargs` named arguments that does what one of `*args` does."""
    names = ", ".join(f"arg{i}" for i in range(nargs))
    return eval(f"lambda {names}: fn({names})", {"fn": fn})


def dispatch_trace(root: Any, tracer: Tracer, concrete_args: Any = None) -> GraphModule:
    """The graph module of a function that has been made ready by `wrap_key`."""
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


def wrap_key(f: Callable[..., Any], tensors: tuple[Any, ...], tracer: Any, pre_dispatch: bool
             ) -> Callable[..., Any]:
    """A function of proxies that calls `f` with tensors, which are known by these."""
    flat_tensors, _ = pytree.tree_flatten(tensors)

    @functools.wraps(f)
    def wrapped(*proxies: Any, **unused: Any) -> Any:
        flat_proxies, _ = pytree.tree_flatten(proxies)
        assert len(flat_proxies) == len(flat_tensors)
        with disable_proxy_modes_tracing():
            track_tensor_tree(flat_tensors, flat_proxies, constant=None, tracer=tracer)
        out = f(*tensors)

        def proxy_of(t: Any) -> Any:
            slot = get_proxy_slot(t, tracer, None)
            return t if slot is None else slot.proxy if isinstance(slot, _ProxyTensor) else slot
        return pytree.tree_map_only((Tensor, *py_sym_types), proxy_of, out)
    return wrapped


class _MakefxTracer:
    """What a call of `make_fx(...)` does."""

    def __init__(self, decomposition_table: Mapping[Any, Any] | None, tracing_mode: str,
                 _allow_non_fake_inputs: bool, pre_dispatch: bool, record_module_stack: bool,
                 _allow_fake_constant: bool, _error_on_data_dependent_ops: bool,
                 record_stack_traces: bool = False, parent_tracer: Any = None,
                 proxy_module_inputs: bool = False, **_: Any):
        if tracing_mode not in ("real", "fake", "symbolic"):
            raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
        self.decomposition_table = dict(decomposition_table or {})
        self.decomposition_table.setdefault(
            flambeau.ops.aten.sym_numel.default, lambda x: x.numel())
        self.tracing_mode, self.pre_dispatch = tracing_mode, pre_dispatch
        self._allow_non_fake_inputs = _allow_non_fake_inputs
        self.record_module_stack = record_module_stack
        self.record_stack_traces = record_stack_traces
        self._allow_fake_constant = _allow_fake_constant
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.fx_tracer: Any = None
        self.fake_tensor_mode: Any = None

    def trace(self, f: Callable[..., Any], *args: Any) -> GraphModule:
        """The graph module of a call with these arguments."""
        if self.tracing_mode == "symbolic":
            from flambeau.fx.experimental._sizes_by_example import trace_sizes
            return trace_sizes(self, f, args)
        return self.trace_once(f, args)

    def trace_once(self, f: Callable[..., Any], args: tuple[Any, ...]) -> GraphModule:
        """The graph module of a call, with the sizes that its arguments have."""
        placeholders = pytree.tree_map(lambda _: PH, args)
        function, plain = f, inspect.unwrap(f)
        if isinstance(f, nn.Module) or not hasattr(plain, "__code__") \
                or plain.__code__.co_flags & inspect.CO_VARARGS:
            function = fake_signature(f, len(args))
        self.fx_tracer = PythonKeyTracer()
        self.fx_tracer.record_stack_traces = self.record_stack_traces
        self.fake_tensor_mode, args = self._inputs(args)
        mode = ProxyTorchDispatchMode(
            self.fx_tracer, self.tracing_mode, self.pre_dispatch, self._allow_fake_constant,
            self._error_on_data_dependent_ops)
        name = getattr(f, "__name__", None) or type(f).__name__
        wrapped = wrap_key(function, args, self.fx_tracer, self.pre_dispatch)
        wrapped.__name__ = name
        from flambeau.fx.experimental._pre_dispatch import PreDispatchTorchFunctionMode
        above = PreDispatchTorchFunctionMode(self.fx_tracer, mode) if self.pre_dispatch \
            else contextlib.nullcontext()
        from flambeau.fx.experimental._sizes_by_example import SlicesOfAnySize
        indexing = SlicesOfAnySize() if self.tracing_mode == "symbolic" \
            else contextlib.nullcontext()
        with decompose(self.decomposition_table), disable_autocast_cache(), _set_make_fx_tracer(
                self), self.fake_tensor_mode or contextlib.nullcontext(), mode, above, \
                _numbers_watched(mode), indexing, \
                _module_stack(self.fx_tracer, f, self.record_module_stack):
            made = dispatch_trace(wrapped, tracer=self.fx_tracer, concrete_args=placeholders)
        if self.tracing_mode == "real" or not self.fake_tensor_mode:
            made.meta.setdefault("fake_mode", None)
        return made

    def _inputs(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The fake mode to trace in, if any, and the arguments for it."""
        if self.tracing_mode == "real":
            return None, args
        from flambeau._guards import detect_fake_mode
        from flambeau._subclasses.fake_tensor import FakeTensorMode
        mode = detect_fake_mode(args) or FakeTensorMode(
            allow_fallback_kernels=True, allow_non_fake_inputs=self._allow_non_fake_inputs)
        return mode, pytree.tree_map_only(Tensor, mode.from_tensor, args)

    def trace_subgraph(self, f: Callable[..., Any], *args: Any) -> GraphModule:
        """The graph of a function that is an argument of a traced op."""
        inner = _MakefxTracer(self.decomposition_table, "real", self._allow_non_fake_inputs,
                              self.pre_dispatch, False, self._allow_fake_constant,
                              self._error_on_data_dependent_ops, parent_tracer=self)
        with disable_proxy_modes_tracing():
            return inner.trace_once(f, args)


_READERS = ("__bool__", "__int__", "__float__", "__index__", "__complex__", "item")


@contextlib.contextmanager
def _numbers_watched(mode: ProxyTorchDispatchMode) -> Iterator[None]:
    """Inside, the program cannot turn a tensor that it computes into a number unnoticed."""
    from flambeau._subclasses.fake_tensor import FakeTensor
    own = [(cls, name, vars(cls)[name]) for cls in (Tensor, FakeTensor) for name in _READERS
           if name in vars(cls)]
    packet = flambeau.ops.aten._local_scalar_dense

    def watch(cls: type, name: str, original: Any) -> None:
        def reader(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if get_proxy_mode() is not mode or not has_proxy_slot(self, mode.tracer):
                return original(self, *args, **kwargs)
            slot = get_proxy_slot(self, mode.tracer)
            if slot.constant is not None or not mode._error_on_data_dependent_ops:
                with levels_set_aside():
                    return original(self if slot.constant is None else slot.constant,
                                    *args, **kwargs)
            raise RuntimeError(_DATA_DEPENDENT.format(packet.default))
        setattr(cls, name, reader)
    try:
        for each in own:
            watch(*each)
        yield
    finally:
        for cls, name, original in own:
            setattr(cls, name, original)


class _set_make_fx_tracer(Scope):
    _gives = None

    def __init__(self, tracer: _MakefxTracer):
        self._changes = ((globals(), "_CURRENT_MAKE_FX_TRACER", tracer),)


@contextlib.contextmanager
def _module_stack(tracer: Any, function: Any, wanted: bool) -> Iterator[None]:
    """Inside, nodes say which modules they were made in, of what `torch.compile` has wrapped."""
    root = getattr(function, "_orig_mod", None)
    if not wanted or not isinstance(root, nn.Module):
        yield
        return
    from flambeau.nn.modules.module import (
        register_module_forward_hook,
        register_module_forward_pre_hook,
    )
    names = {id(module): name for name, module in root.named_modules()}

    def enter(module: nn.Module, inputs: Any) -> None:
        name, cls = names.get(id(module)), type(module)
        if name is not None:
            tracer.module_stack[name] = name, f"{cls.__module__}.{cls.__qualname__}"

    def leave(module: nn.Module, inputs: Any, output: Any) -> None:
        tracer.module_stack.pop(names.get(id(module)), None)
    hooks = [register_module_forward_pre_hook(enter),
             register_module_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def make_fx(f: Callable[..., Any],
            decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
            tracing_mode: _TracingMode = "real", _allow_non_fake_inputs: bool = False, *,
            pre_dispatch: bool = False, record_module_stack: bool = False,
            _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
            record_stack_traces: bool = False, proxy_module_inputs: bool = False,
            _disable_torch_fn_metadata_mode: bool = False) -> Callable[..., GraphModule]:
    """A function that, called with arguments for `f`, gives the graph of what `f` does with them.

    decomposition_table  functions that are traced in place of ops, by overload
    tracing_mode         "real" runs the ops; "fake" runs them on tensors without values;
                         "symbolic" also finds out how numbers follow from the sizes of the inputs,
                         by tracing with several, and lets the graph compute them
    pre_dispatch         write down the ops above autograd: `linear`, not what it is made of

    >>> import flambeau
    >>> graph = make_fx(lambda x: x.reshape(-1) * x.shape[0], tracing_mode="symbolic")
    >>> graph(flambeau.ones(2, 3))(flambeau.ones(5, 2))
    tensor([5., 5., 5., 5., 5., 5., 5., 5., 5., 5.])
    """
    tracer = _MakefxTracer(decomposition_table, tracing_mode, _allow_non_fake_inputs, pre_dispatch,
                           record_module_stack, _allow_fake_constant, _error_on_data_dependent_ops,
                           record_stack_traces or sys.flags.dev_mode, None, proxy_module_inputs,
                           _disable_torch_fn_metadata_mode=_disable_torch_fn_metadata_mode)

    @functools.wraps(f) if isinstance(f, types.FunctionType) else lambda g: g
    def wrapped(*args: Any) -> GraphModule:
        return tracer.trace(f, *args)
    return wrapped


def wrapper_and_args_for_make_fx(func: Callable[..., Any], args: tuple[Any, ...],
                                 kwargs: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of one flat list, and that list, for a call with keyword arguments."""
    flat, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(flat_args: list[Any]) -> Any:
        given, named = pytree.tree_unflatten(flat_args, spec)
        return func(*given, **named)
    return wrapped, flat


def get_isolated_graphmodule(func: Callable[..., Any], args: tuple[Any, ...],
                             kwargs: dict[str, Any], tracing_mode: _TracingMode = "real",
                             decomposition_table: Mapping[Any, Any] | None = None) -> GraphModule:
    """The graph of a call, traced as if no tracer were at work."""
    wrapped, flat = wrapper_and_args_for_make_fx(func, args, kwargs)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table=decomposition_table,
                       tracing_mode=tracing_mode)(flat)


# ---- tracing graphs again ------------------------------------------------------------------------


class DecompositionInterpreter(Interpreter):
    """Runs a graph into another, with the ops of a table taken apart."""

    def __init__(self, module: GraphModule, new_graph: Graph,
                 decomposition_table: Mapping[Any, Any] | None = None, **kwargs: Any):
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = _GraphAppendingTracerEx(new_graph)
        self.decomposition_table = dict(decomposition_table or {})
        self.mode = ProxyTorchDispatchMode(self.tracer, tracing_mode="real")

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        out = super().placeholder(target, args, kwargs)
        track_tensor_tree(out, Proxy(self.new_graph.placeholder(target), self.tracer),
                          constant=None, tracer=self.tracer)
        return out

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        out = super().get_attr(target, args, kwargs)
        track_tensor_tree(out, Proxy(self.new_graph.get_attr(target), self.tracer), constant=None,
                          tracer=self.tracer)
        return out

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        out = super().output(target, args, kwargs)

        def node_of(t: Any) -> Any:
            slot = get_proxy_slot(t, self.tracer, None)
            return t if slot is None else slot.proxy.node
        with disable_proxy_modes_tracing():
            self.new_graph.output(pytree.tree_map_only(Tensor, node_of, out))
        return out

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph with the table and the tracer at work."""
        with decompose(self.decomposition_table), self.mode:
            return super().run(*args, **kwargs)


class _SelectiveDecomposeInterpreter(Interpreter):
    """Runs a graph; only the nodes that `should_decompose` accepts are taken apart."""

    def __init__(self, module: GraphModule, should_decompose: Callable[[Any], bool],
                 decomposition_table: Mapping[Any, Any] | None, **kwargs: Any):
        super().__init__(module, **kwargs)
        self.should_decompose = should_decompose
        self.decomposition_table = decomposition_table or {}

    def run_node(self, n: Any) -> Any:
        """Run a node."""
        with decompose(self.decomposition_table if self.should_decompose(n) else {}):
            return super().run_node(n)


def selective_decompose(joint_gm: GraphModule, *args: Any, decomposition: Mapping[Any, Any] | None,
                        should_decompose: Callable[[Any], bool], trace_joint_graph: bool
                        ) -> GraphModule:
    """A graph in which the nodes that `should_decompose` accepts are taken apart."""
    def run(*values: Any) -> Any:
        return _SelectiveDecomposeInterpreter(joint_gm, should_decompose,
                                              decomposition).run(*values)
    return make_fx(run)(*args)


__all__ = ["DecompositionInterpreter", "PythonKeyTracer", "dispatch_trace",
           "get_innermost_proxy_mode", "get_proxy_mode", "handle_sym_dispatch", "make_fx",
           "maybe_disable_thunkify", "maybe_enable_thunkify", "py_sym_types", "selective_decompose"]

adopt(globals(), "fx.experimental._")
