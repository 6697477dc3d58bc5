"""Which node gave a value: what tracers below Python know of tensors and symbolic numbers."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.source_locations import memory_of
from flambeau._support.symbolic_names import SymBool, SymFloat, SymInt
from flambeau.fx import Proxy
from flambeau.utils._python_dispatch import TorchDispatchMode, modes_set_aside
from flambeau.utils._thunk import Thunk

py_sym_types = (SymInt, SymFloat, SymBool)


class TracingMode(TorchDispatchMode):
    """A mode that writes down the ops that run."""


class disable_proxy_modes_tracing(modes_set_aside):
    """Inside, nothing is written down; gives the tracer that was at work."""

    kind = TracingMode


class _NoDefault:
    """Stands for "there is no default"."""


no_default = _NoDefault()


class _ProxyTensor:
    """What stands for a tensor, and its value if that is known."""

    def __init__(self, proxy: Proxy, constant: Tensor | None):
        self.proxy, self.constant = proxy, constant

    def __repr__(self) -> str:
        return f"_ProxyTensor(proxy={self.proxy}, constant={self.constant})"


def thunkify(tracer: Any, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Thunk:
    """A call that is made when its value is first asked for."""
    return Thunk(lambda: f(*args, **kwargs))


class _SymNodeDict:
    """Symbolic numbers to what stands for them; equal expressions are one."""

    def __init__(self) -> None:
        self.sym_node_dict: dict[Any, Any] = {}

    @staticmethod
    def _key(key: Any) -> Any:
        return key.node.expr if hasattr(key.node, "expr") else id(key.node)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.sym_node_dict[self._key(key)] = value

    def __getitem__(self, key: Any) -> Any:
        return self.sym_node_dict[self._key(key)]

    def __contains__(self, key: Any) -> bool:
        return self._key(key) in self.sym_node_dict

    def get(self, key: Any, default: Any = None) -> Any:
        """What stands for a number, or `default`."""
        return self.sym_node_dict.get(self._key(key), default)

    def __len__(self) -> int:
        return len(self.sym_node_dict)

    def __iter__(self) -> Any:
        raise NotImplementedError


# ---- slots ---------------------------------------------------------------------------------------


def set_proxy_slot(obj: Any, tracer: Any, proxy: Any) -> None:
    """Let `proxy` stand for a value."""
    if isinstance(obj, Tensor):
        memory, tracker = memory_of(obj), tracer.tensor_tracker
        key = id(memory)

        def forget(gone: Any) -> None:
            if key in tracker and tracker[key][0] is gone:
                del tracker[key]
        tracker[key] = weakref.ref(memory, forget), proxy
    elif isinstance(obj, py_sym_types):
        if obj not in tracer.symnode_tracker:
            tracer.symnode_tracker[obj] = proxy
    else:
        tracer.opaque_tracker[id(obj)] = obj, proxy


def get_proxy_slot(obj: Any, tracer: Any, default: Any = no_default,
                   transform: Callable[[Any], Any] = lambda x: x) -> Any:
    """What stands for a value; `default` if nothing does, KeyError without one."""
    if isinstance(obj, py_sym_types):
        found = tracer.symnode_tracker.get(obj)
    else:
        if isinstance(obj, Tensor):
            memory = memory_of(obj)
            entry = tracer.tensor_tracker.get(id(memory))
            entry = entry if entry is not None and entry[0]() is memory else None
        else:
            entry = tracer.opaque_tracker.get(id(obj))
        found = None if entry is None else entry[1]
    if found is None:
        if isinstance(default, _NoDefault):
            raise RuntimeError(f"{obj} is not tracked with proxy for {tracer}")
        return default
    return transform(found)


def has_proxy_slot(obj: Tensor, tracer: Any) -> bool:
    """Does anything stand for a tensor?"""
    return bool(get_proxy_slot(obj, tracer, False, lambda _: True))


def fetch_object_proxy(tracer: Any, t: Any) -> Any:
    """What stands for a value, or the value."""
    if isinstance(t, py_sym_types):
        return fetch_sym_proxy(tracer)(t)
    return get_proxy_slot(t, tracer, t)


def fetch_sym_proxy(tracer: Any) -> Callable[[Any], Any]:
    """A function that gives what stands for a symbolic number, or the number if it is known."""
    def fetch(e: Any) -> Any:
        if e.node.constant is not None:
            return e.node.constant
        found = get_proxy_slot(e, tracer, e)
        return found.force() if isinstance(found, Thunk) else found
    return fetch


# ---- what nodes say of their values --------------------------------------------------------------


def snapshot_fake(val: Tensor, include_real: bool = False) -> Tensor | None:
    """A fake tensor as it is now, whatever is written to it later."""
    return val.detach()


def extract_val(val: Any, include_real: bool = False) -> Any:
    """What a node keeps of its value: tensors without values, numbers, containers of these."""
    from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
    if isinstance(val, FakeTensor):
        with disable_proxy_modes_tracing(), flambeau._C.DisableTorchFunction(), \
                flambeau.no_grad(), val.fake_mode:
            return snapshot_fake(val)
    if isinstance(val, py_sym_types) or val is None or isinstance(val, (int, float, bool, complex)):
        return val
    if isinstance(val, (list, tuple)):
        return type(val)([extract_val(v) for v in val]) if type(val) in (list, tuple) \
            else tuple([extract_val(v) for v in val])
    if isinstance(val, dict):
        return {k: extract_val(v) for k, v in val.items()}
    if not isinstance(val, Tensor) or val.layout is not flambeau.strided or val.is_quantized:
        return None
    with disable_proxy_modes_tracing(), unset_fake_temporarily():
        mode = FakeTensorMode(allow_fallback_kernels=True)
        with mode, flambeau._C.DisableTorchFunction():
            return flambeau.empty_strided(tuple(val.shape), val.stride(), dtype=val.dtype,
                                          device=val.device)


def set_meta(proxy: Proxy, val: Any) -> Proxy:
    """Note on a proxy's node what its value looks like."""
    from flambeau.fx.passes.shape_prop import _extract_tensor_metadata
    node = proxy.node
    node.meta["val"] = extract_val(val)
    if isinstance(val, Tensor) and val.layout is flambeau.strided and not val.is_quantized:
        node.meta["tensor_meta"] = _extract_tensor_metadata(val)
    return proxy


def track_tensor(tensor: Tensor, proxy: Proxy, *, constant: Tensor | None, tracer: Any) -> None:
    """Let a proxy stand for a tensor, and for its symbolic sizes."""
    for i, size in enumerate(tensor.shape):
        if isinstance(size, py_sym_types):
            set_proxy_slot(size, tracer, Thunk(
                lambda i=i, size=size:  # type: ignore[misc]
                set_meta(flambeau.ops.aten.sym_size.int(proxy, i), size)))
    set_proxy_slot(tensor, tracer, _ProxyTensor(proxy, constant))


def track_tensor_tree(inner_res: Any, proxy_res: Any, *, constant: Any, tracer: Any) -> Any:
    """Let a proxy, or a container of them, stand for a result; parts of it get nodes of their own.
    Gives the result."""
    def wrap(value: Any, proxy: Any, known: Any) -> None:
        if isinstance(value, Tensor):
            track_tensor(value, proxy, constant=known, tracer=tracer)
            if isinstance(proxy, Proxy):
                set_meta(proxy, value)
        elif isinstance(value, py_sym_types):
            set_meta(proxy, value)
            set_proxy_slot(value, tracer, Thunk(lambda: proxy))
        elif isinstance(value, (tuple, list)):
            if isinstance(proxy, Proxy):
                set_meta(proxy, value)
            for i, each in enumerate(value):
                wrap(each, proxy[i], None if known is None else known[i])
        elif isinstance(value, dict):
            if isinstance(proxy, Proxy):
                set_meta(proxy, value)
            for key, each in value.items():
                wrap(each, proxy[key], None)
    wrap(inner_res, proxy_res, constant)
    return inner_res


def is_sym_node(node: Any) -> bool:
    """Is the value of a node a symbolic number?"""
    assert hasattr(node, "meta"), "All nodes traced with proxy_tensor should have meta"
    return "val" in node.meta and isinstance(node.meta["val"], py_sym_types)


__all__ = ["Thunk", "fetch_object_proxy", "fetch_sym_proxy", "get_proxy_slot", "set_proxy_slot",
           "thunkify", "track_tensor", "track_tensor_tree"]
