"""The part of `torch._C` that public code and PyTorch's own tests reach for.

There is no extension module behind it: these are the functions of `core` under their old names.
"""
from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from flambeau._support.c_functions import matched, type_name
from flambeau.autograd.differentiate import queue_callback
from flambeau.autograd.function import Error
from flambeau.autograd.graph import will_execute
from flambeau.core import modes
from flambeau.core.autograd import engine
from flambeau.core.autograd.engine import current_autograd_node, current_pass
from flambeau.core.autograd.grad_mode import multithreading
from flambeau.core.autograd.graph import AccumulateGrad, Node, accumulator_of
from flambeau.core.autograd.recording import edges_of
from flambeau.core.autograd.saved_hooks import SavedTensor, disabled
from flambeau.core.calling.overrides import (
    _disabled_torch_function as _disabled_torch_function_impl,
)
from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.aten.keys import DispatchKey, DispatchKeySet
from flambeau.schema.function_schema import Argument, FunctionSchema
from flambeau.transforms.function_modes import DisableTorchFunction, DisableTorchFunctionSubclass

for _cls in (Argument, FunctionSchema):
    _cls.__module__ = "torch"

_TensorMeta = type(Tensor)
has_lapack = _has_mkldnn = True
has_mkl = has_cuda = has_mps = has_xpu = has_openmp = False
_has_cuda = False

_task_numbers = itertools.count()


def is_grad_enabled() -> bool:
    return modes.is_grad_enabled()


def _set_grad_enabled(enabled: bool) -> None:
    """Switch recording on or off, for good."""
    modes.grad_mode.set(enabled)


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs on this thread, -1 if there is none."""
    running = engine.current_pass.get()
    if running is None:
        return -1
    state = running.__dict__
    if "task_number" not in state:
        state["task_number"] = next(_task_numbers)
    return state["task_number"]


def _current_graph_task_execution_order() -> list[Node]:
    """The nodes of the running backward pass, in the order in which they will run: newest first,
    and the accumulator of a leaf as soon as all its gradients are there."""
    running = engine.current_pass.get()
    if running is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the "
                           "backward pass")
    if multithreading.get():
        raise RuntimeError("_current_graph_task_execution_order expects the current backward to be "
                           "executed with multithreading disabled, e.g. by running:\n\n"
                           ">>> with torch.autograd.set_multithreading_enabled(False):\n"
                           "...     torch._C._current_graph_task_execution_order()\n")
    nodes = running.reachable()
    orders = [o for o in sorted(nodes) if running.needed is None or o in running.needed]
    edges = [e for o in orders for e in nodes[o].edges]
    left = Counter(id(e) for e in edges if isinstance(e, Tensor))
    found: list[Node] = []
    for order in orders:
        found.append(nodes[order])
        for edge in nodes[order].edges:
            if isinstance(edge, Tensor):
                left[id(edge)] -= 1
                if left[id(edge)] == 0 and (running.captures is None
                                            or id(edge) in running.leaf_targets):
                    found.append(accumulator_of(edge))
    return found


def _current_autograd_node() -> Node | None:
    """The node whose derivative is being computed on this thread."""
    return current_autograd_node()


def _will_engine_execute_node(node: Node) -> bool:
    """Will the running backward pass come to this node?"""
    if not isinstance(node, Node):
        raise RuntimeError("_will_engine_execute_node expects an grad_fn, but got "
                           f"{type_name(node)}")
    running = engine.current_pass.get()
    if running is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward "
                           "pass")
    if isinstance(node, AccumulateGrad):
        if running.captures is not None and not running.accumulate:
            raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are "
                               "currently running autograd.grad(). This is currently not "
                               "supported.")
        return will_execute(running, node.variable)
    return will_execute(running, node if node.part_of is None else node.part_of[0])


def _are_functorch_transforms_active() -> bool:
    """Does `vmap`, `grad` or another transform run?"""
    return bool(modes.levels.get())


def _log_api_usage_once(event: str) -> None:
    """Libraries announce here what is used of them. Nobody listens."""


def _get_tracing_state() -> Any:
    """Whether `jit.trace` runs a function: True or None, as there is no trace to show."""
    from flambeau import jit
    return jit.is_tracing() or None


def _is_tracing() -> bool:
    """Does `jit.trace` run a function?"""
    return _get_tracing_state() is not None


def _queue_callback(callback: Callable[[], None]) -> None:
    queue_callback(callback)


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor):
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._reference() is None


_caching = False


def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Whether `_add_cached_tensor` marks tensors."""
    global _caching
    _caching = bool(enabled)


def _add_cached_tensor(tensor: Tensor) -> None:
    """Mark a tensor as one that a cache holds."""
    if _caching:
        tensor.__dict__["_is_cached"] = True


def _remove_cached_tensor(tensor: Tensor) -> None:
    tensor.__dict__.pop("_is_cached", None)


def _is_cached_tensor(tensor: Tensor) -> bool:
    return _caching and "_is_cached" in tensor.__dict__


def _torch_function_mode_enabled() -> bool:
    return bool(modes.function_modes.get())


def _namespace(name: str, **members: Any) -> types.SimpleNamespace:
    found = types.SimpleNamespace(**members)
    found.__name__ = f"torch._C.{name}"
    return found


class _UndefinedGrad:
    """`UndefinedGrad()(x)`: the identity, whose gradient is undefined."""

    def __call__(self, *tensors: Tensor) -> Any:
        from flambeau.autograd.gradcheck_modes import _Undefined
        found = tuple(_Undefined.apply(t) for t in tensors)
        return found[0] if len(found) == 1 else found


class DelayedError(Error):
    """`DelayedError(message, n)(*tensors)`: the identity, whose backward raises `message`."""

    __slots__ = ()

    def __init__(self, message: str, count: int):
        super().__init__(message)

    def __call__(self, *tensors: Tensor) -> Any:
        results = [t.detach() for t in tensors]
        edges = edges_of(tensors)
        if edges is not None:
            self.record(edges, results)
        return results[0] if len(results) == 1 else tuple(results)


def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Set what the version counters of tensors say."""
    from flambeau._support.source_locations import counter_of
    if isinstance(tensors, Tensor):
        tensors, versions = (tensors,), (versions,)
    for tensor, version in zip(tensors, versions):
        if version < 0:
            raise RuntimeError(f"Cannot set a version counter to a negative value: {version}")
        counter_of(tensor)[0] = version


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    from flambeau.nn.modules._parse import parse_to
    return parse_to(*args, **kwargs)


class _Inner(types.ModuleType):
    """Modules such as `torch._C._nn`: the functions of a public module, by their whole names."""

    def __init__(self, module: str):
        super().__init__(f"{__name__}.{module}")
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        space = self.__name__.rpartition("._")[2]
        short = name.removeprefix(f"{space}_")
        if short != name and short in public.get(space, {}):
            return public[space][short]
        raise AttributeError(f"module 'torch._C._{space}' has no attribute '{name}'")


class _InnerNN(_Inner):
    """`torch._C._nn`: what the functions of `nn.functional` call."""

    def __getattr__(self, name: str) -> Any:
        importlib.import_module("flambeau.nn.functional")       # which declares them
        if name.startswith("_test_"):
            importlib.import_module("flambeau.ops.python.probes")
        for space in ("_nn", "nn.functional"):
            if name in public.get(space, {}):
                return public[space][name]
        from flambeau.dispatch.aten import functions
        if name in functions.INSIDE:
            return functions.inside(name)
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")


def _keeps_graph() -> bool:
    """Does the backward pass that runs keep the graph?"""
    this = current_pass.get()
    return True if this is None else bool(this.retain or this.create_graph)


_nn, _fft = _InnerNN("_nn"), _Inner("_fft")
_linalg, _special = _Inner("_linalg"), _Inner("_special")
_nn.__dict__["_parse_to"] = _parse_to
_functions = _namespace("_functions", AccumulateGrad=AccumulateGrad, UndefinedGrad=_UndefinedGrad,
                        DelayedError=DelayedError)
_autograd = _namespace("_autograd", SavedTensor=SavedTensor,
                       _unsafe_set_version_counter=_unsafe_set_version_counter,
                       _saved_tensors_hooks_is_enabled=lambda: disabled.get() is None,
                       _get_current_graph_task_keep_graph=_keeps_graph)


@matched("(schema: str, allow_typevars: bool = True) -> c10::FunctionSchema")
def parse_schema(schema: str, allow_typevars: bool = True) -> FunctionSchema:
    """A schema, read: `parse_schema("aten::sin(Tensor self) -> Tensor")`."""
    return FunctionSchema(schema, "")


def __getattr__(name: str) -> Any:
    """The rest is imported when it is asked for."""
    if name[0] == "_" and name[:2] != "__" and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _OF_THE_PACKAGE:
        return getattr(sys.modules["flambeau"], name)
    for place in _PLACES:
        module = importlib.import_module(f"flambeau.{place}")
        if name in vars(module) and name[:2] != "__":
            return getattr(module, name)
    raise AttributeError(f"module 'flambeau._C' has no attribute {name!r}")


# Where names are looked for that are asked for by few.
_PLACES = ("dispatch.aten.keys", "_C._jit", "_C._answers", "_C._host", "_C._ir", "schema.types",
           "_C._schema_info", "jit._script", "utils._mode_utils")

# What PyTorch writes in C++ and gives users as names of the package itself.
_OF_THE_PACKAGE = frozenset("""
    AcceleratorError Event FileCheck Future JITException OutOfMemoryError PyTorchFileReader
    Stream Tag autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache finfo
    fork get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
    get_autocast_ipu_dtype get_autocast_xla_dtype get_default_dtype get_num_interop_threads
    get_num_threads has_spectral iinfo import_ir_module import_ir_module_from_buffer
    init_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled
    is_inference_mode_enabled merge_type_from_type_comment parse_ir parse_type_comment
    set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
    set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
    set_autocast_xla_enabled set_flush_denormal set_num_interop_threads set_num_threads
    wait""".split())

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "is_grad_enabled"]
