"""The mode that writes down the ops that run while it is entered."""
from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._library.higher_order import HigherOrderOperator
from flambeau._support.scopes import Scope
from flambeau._support.source_locations import memory_of
from flambeau._support.symbolic_names import Tag
from flambeau.fx import Graph, Proxy, Tracer
from flambeau.fx import traceback as fx_traceback
from flambeau.fx.experimental._tracked import (
    TracingMode,
    _ProxyTensor,
    _SymNodeDict,
    disable_proxy_modes_tracing,
    extract_val,
    fetch_object_proxy,
    get_proxy_slot,
    py_sym_types,
    set_proxy_slot,
    track_tensor_tree,
)
from flambeau.fx.proxy import GraphAppendingTracer
from flambeau.utils import _pytree as pytree
from flambeau.utils._python_dispatch import (
    _get_current_dispatch_mode_stack,
    levels_set_aside,
)

CONSTANT_NUMEL_LIMIT = 1
_NO_TABLE: Mapping[Any, Any] = types.MappingProxyType({})
CURRENT_DECOMPOSITION_TABLE: ContextVar[Mapping[Any, Any]] = ContextVar("decompositions",
                                                                       default=_NO_TABLE)
ORIGINAL_ATEN: ContextVar[Any] = ContextVar("original_aten", default=None)


# ---- tracers -------------------------------------------------------------------------------------


def _init_proxy_trackers(tracer: Any) -> None:
    tracer.tensor_tracker = {}
    tracer.script_object_tracker = {}
    tracer.opaque_tracker = {}
    tracer.symnode_tracker = _SymNodeDict()
    tracer.sympy_expr_tracker = {}
    tracer.torch_fn_metadata = None
    tracer.torch_fn_counts = {}
    tracer.enable_thunkify = False


class PythonKeyTracer(Tracer):
    """The tracer of `make_fx`: no module is a step, tensors from outside are attributes."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        _init_proxy_trackers(self)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
            return self._noted(self.create_node("get_attr", name, (), {}), a)
        if isinstance(a, Tensor):
            return self._noted(super().create_arg(a), a)
        if isinstance(a, py_sym_types):
            symbol: Any = a
            return a if symbol.node.constant is None else symbol.node.constant
        return super().create_arg(a)

    def _noted(self, node: Any, value: Tensor) -> Any:
        node.meta["val"] = extract_val(value)
        return node

    def unwrap_proxy(self, e: Any) -> Any:
        """The proxy of a value that is tracked; the value itself otherwise."""
        if isinstance(e, Tensor):
            return get_proxy_slot(e, self, e, lambda slot: slot.proxy)
        if isinstance(e, py_sym_types):
            return get_proxy_slot(e, self, e, lambda slot: slot.force())
        return e


class _GraphAppendingTracerEx(GraphAppendingTracer):
    """Adds nodes to a graph that is there, and knows tensors."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        _init_proxy_trackers(self)


# ---- decompositions ------------------------------------------------------------------------------


class decompose(Scope):
    """Inside, ops in the table are traced as what their entries do."""

    def __init__(self, decomposition_table: Mapping[Any, Any] | None):
        self._gives = decomposition_table or {}
        self._changes = ((CURRENT_DECOMPOSITION_TABLE, self._gives),)


def maybe_handle_decomp(proxy_mode: ProxyTorchDispatchMode, op: Any, args: Any, kwargs: Any) -> Any:
    """What the table's entry for an op gives; NotImplemented if there is none."""
    table = proxy_mode.decomposition_table or CURRENT_DECOMPOSITION_TABLE.get()
    if op not in table:
        return NotImplemented
    with proxy_mode:
        proxy_mode.decomp_layers += 1
        try:
            return table[op](*args, **kwargs)
        finally:
            proxy_mode.decomp_layers -= 1


class set_original_aten_op(Scope):
    """Inside, nodes that are made say that they come from this op."""

    _gives = None

    def __init__(self, func: Any):
        self.func = func

    def _changes(self) -> Any:
        if ORIGINAL_ATEN.get() is not None or not fx_traceback.has_preserved_node_meta():
            return ()
        meta = fx_traceback.current_meta
        meta.setdefault("original_aten", None)
        return (ORIGINAL_ATEN, self.func), (meta, "original_aten", self.func)


# ---- one op --------------------------------------------------------------------------------------

_LIFTS = frozenset({"lift_fresh", "lift_fresh_copy", "lift"})


def proxy_call(proxy_mode: ProxyTorchDispatchMode, func: Any, pre_dispatch: bool, args: Any,
               kwargs: dict[str, Any]) -> Any:
    """Run an op, and write it down."""
    tracer = proxy_mode.tracer
    if func._opname == "graph_alias":       # what `grad` differentiates by is the tensor itself
        with disable_proxy_modes_tracing():
            out = func(*args, **kwargs)
        slot = get_proxy_slot(args[0], tracer, None)
        if slot is not None:
            set_proxy_slot(out, tracer, slot)
        return out
    flat, spec = pytree.tree_flatten((args, kwargs))
    tracked = [fetch_object_proxy(tracer, v) if isinstance(v, (Tensor, *py_sym_types)) else v
               for v in flat]
    if not pre_dispatch:
        found = maybe_handle_decomp(proxy_mode, func, args, kwargs)
        if found is not NotImplemented:
            return found
        found = _of_inner_ops(proxy_mode, func, args, kwargs)
        if found is not NotImplemented:
            return found
    tensors = [t for t, v in zip(tracked, flat) if isinstance(v, Tensor)]
    all_constant = all(not isinstance(t, _ProxyTensor) or t.constant is not None for t in tensors)
    if Tag.data_dependent_output in func.tags or func._opname in ("_local_scalar_dense", "equal"):
        return _number(proxy_mode, func, flat, tracked, spec, all_constant)
    proxies = [t.proxy if isinstance(t, _ProxyTensor) else t for t in tracked]
    proxy_args, proxy_kwargs = pytree.tree_unflatten(proxies, spec)
    shown = flambeau.ops.aten.lift_fresh_copy.default if func._opname == "lift_fresh" else func
    proxy_out = tracer.create_proxy(
        "call_function", shown, proxy_args, proxy_kwargs,
        name=tracer.graph._target_to_str(shown._packet.__name__))
    with disable_proxy_modes_tracing():     # an outer tracer does not see this one's work
        out = shown(*args, **kwargs)        # a constant that is written to stays as it was
    if isinstance(out, Tensor) and not func._schema.is_mutable and any(
            isinstance(v, Tensor) and memory_of(v) is memory_of(out) for v in flat):
        out._array = out._array[...]        # `detach` gives a value of its own
    if func._packet.__name__.endswith("_") and not func._packet.__name__.startswith("_"):
        _written(tracer, args[0], proxy_out)
    constant = _constant_of(proxy_mode, func, flat, tracked, spec, tensors, all_constant)
    track_tensor_tree(out, proxy_out, constant=constant, tracer=tracer)
    return out


def _of_inner_ops(proxy_mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """The result of a composite of the program's own, whose ops are written down instead."""
    if func._run is None or getattr(func._run, "is_composite", False) is False:
        return NotImplemented
    with proxy_mode:
        return func._run.run(func._run.kernels[_COMPOSITE],
                             tuple(func._schema.bound(args, kwargs)))


_COMPOSITE = flambeau._C.DispatchKey.CompositeImplicitAutograd


def _written(tracer: Any, target: Any, proxy: Any) -> None:
    """Let a tensor that an op has written to be known by that op's node."""
    slots = target if isinstance(target, (list, tuple)) else (target,)
    for i, tensor in enumerate(slots):
        slot = get_proxy_slot(tensor, tracer, None) if isinstance(tensor, Tensor) else None
        if slot is not None:
            slot.proxy.node.meta.setdefault("tensor_meta", None)
            slot.proxy = proxy if target is tensor else proxy[i]


def _constant_of(proxy_mode: Any, func: Any, flat: Any, tracked: Any, spec: Any, tensors: Any,
                 all_constant: bool) -> Any:
    """The known value of an op's result, if it is known and small."""
    def value(v: Any) -> Any:
        slot = fetch_object_proxy(proxy_mode.tracer, v) if isinstance(v, Tensor) else v
        return slot.constant if isinstance(slot, _ProxyTensor) else slot
    if func._opname in _LIFTS:
        given = flat[0]
        if not isinstance(tracked[0], _ProxyTensor) and given.numel() <= CONSTANT_NUMEL_LIMIT:
            with levels_set_aside():
                return given.clone()
        return None
    if func._schema.is_mutable:
        for slot in tensors:
            if isinstance(slot, _ProxyTensor):
                slot.constant = None
        return None
    if not tensors or not all_constant or func._nondeterministic_seeded:
        return None
    from flambeau._subclasses.fake_tensor import FakeTensor
    values = [value(v) for v in flat]
    if any(isinstance(v, FakeTensor) or (isinstance(v, Tensor) and (
            v.is_meta or v.numel() > CONSTANT_NUMEL_LIMIT)) for v in values):
        return None
    with levels_set_aside():
        args, kwargs = pytree.tree_unflatten(values, spec)
        found = func(*args, **kwargs)
    small = all(not isinstance(f, Tensor) or f.numel() <= CONSTANT_NUMEL_LIMIT
                for f in pytree.tree_leaves(found))
    return found if small else None


def _number(proxy_mode: Any, func: Any, flat: Any, tracked: Any, spec: Any, all_constant: bool
            ) -> Any:
    """The number that an op gives, if it is known; it cannot be written down."""
    if all_constant:
        values = [t.constant if isinstance(t, _ProxyTensor) else t for t in tracked]
        with levels_set_aside():
            args, kwargs = pytree.tree_unflatten(values, spec)
            return func(*args, **kwargs)
    if not proxy_mode._error_on_data_dependent_ops:
        args, kwargs = pytree.tree_unflatten(flat, spec)
        return func(*args, **kwargs)
    raise RuntimeError(_DATA_DEPENDENT.format(func))


_DATA_DEPENDENT = (
    "It appears that you're trying to get value out of a tracing tensor with {} - erroring out! "
    "It's likely that this is caused by data-dependent control flow or similar.  It may be "
    "possible to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your "
    "make_fx call.")


# ---- the mode ------------------------------------------------------------------------------------


class ProxyTorchDispatchMode(TracingMode):
    """Writes down the ops that run while it is entered."""

    supports_higher_order_operators = True

    def __init__(self, tracer: Any, tracing_mode: str, pre_dispatch: bool = False,
                 _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
                 decomposition_table: Mapping[Any, Any] | None = None):
        super().__init__()
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self._allow_fake_constant = _allow_fake_constant
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.decomposition_table = decomposition_table
        self.enable_tracing, self.decomp_layers, self.emulate_precision_casts = True, 0, False
        self.enter_stack: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with set_original_aten_op(func):
            if isinstance(func, HigherOrderOperator):
                return func(*args, **(kwargs or {}))
            foreign = {cls for cls in types if getattr(cls, "__torch_dispatch__", None) is not None
                       and cls.__name__ not in ("FakeTensor",)}
            if foreign:
                return NotImplemented
            return proxy_call(self, func, self.pre_dispatch, tuple(args), dict(kwargs or {}))


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost tracer that is at work; None if there is none."""
    return next((m for m in reversed(_get_current_dispatch_mode_stack())
                 if isinstance(m, ProxyTorchDispatchMode)), None)
