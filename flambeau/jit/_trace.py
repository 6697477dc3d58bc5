"""`trace`: functions and modules that have been called once with example inputs."""
from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau import nn
from flambeau.core.tensor import Tensor
from flambeau.jit._script import ModuleAsScript, as_script, warn_deprecated
from flambeau.jit._state import CompilationUnit, _enabled, _python_cu
from flambeau.utils import _pytree

_tracing = 0


class TracerWarning(Warning):
    """What a tracer warns of: a value that it cannot follow. Nothing here raises it, as the Python
    runs anew in each call."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignore the warnings that come from the library itself."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")
        warnings.filterwarnings("ignore", "torch::jit::fuser::cuda")


class TracingCheckError(Exception):
    """A traced function gave something else than the original."""

    def __init__(self, graph_diff_error: str | None, tensor_compare_error: str | None,
                 extra_msg: str | None = None):
        self.message = "Tracing failed sanity checks!\n" + (f"{extra_msg}\n" if extra_msg else "")
        if graph_diff_error is not None:
            self.message += f"ERROR: Graphs differed across invocations!\n{graph_diff_error}\n"
        if tensor_compare_error is not None:
            self.message += ("ERROR: Tensor-valued Constant nodes differed in value across "
                             f"invocations.\n{tensor_compare_error}\n")
        super().__init__(self.message)


class TracedModule(ModuleAsScript):
    """A module under a traced one."""

    def __init__(self, orig: nn.Module, id_set: set[Any] | None = None,
                 _compilation_unit: Any = None):
        super().__init__(orig)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __repr__(self) -> str:
        return _describe(self._original)


class TopLevelTracedModule(TracedModule):
    """A traced module."""


def _describe(module: nn.Module) -> str:
    """A module and those below it, by the names of their classes."""
    name = getattr(module, "original_name", type(module).__name__)
    lines = [f"({key}): {_describe(child)}".replace("\n", "\n  ")
             for key, child in module._modules.items() if child is not None]
    if not lines:
        return f"{name}(original_name={name})"
    return "\n".join([f"{name}(", f"  original_name={name}", *(f"  {line}" for line in lines), ")"])


class ONNXTracedModule(nn.Module):
    """A module whose call gives the graph of what it does. Not offered: there are no graphs of
    TorchScript."""

    def __init__(self, inner: nn.Module, strict: bool = True, force_outplace: bool = False,
                 return_inputs: bool = False, return_inputs_states: bool = False):
        super().__init__()
        self.inner = inner
        self.strict, self._force_outplace = strict, force_outplace
        self._return_inputs, self._return_inputs_states = return_inputs, return_inputs_states

    def forward(self, *args: Any) -> Any:
        raise NotImplementedError("ONNXTracedModule: flambeau has no graphs of TorchScript")


def is_tracing() -> bool:
    """Is the example call of `trace` running?"""
    return _tracing > 0


def make_tuple(example_inputs: Any) -> tuple[Any, ...]:
    """Example inputs as the positional arguments of a call."""
    if isinstance(example_inputs, (Tensor, dict)):
        return (example_inputs,)
    return tuple(example_inputs)


def _call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    global _tracing
    _tracing += 1
    try:
        return func(*args, **kwargs)
    finally:
        _tracing -= 1


def _as_traced(func: Any) -> Any:
    return TopLevelTracedModule(func) if isinstance(func, nn.Module) and not isinstance(
        func, ModuleAsScript) else as_script(func)


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True,
          check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
          _force_outplace: bool = False, _module_class: Any = None,
          _compilation_unit: CompilationUnit = _python_cu,
          example_kwarg_inputs: dict[str, Any] | None = None, _store_inputs: bool = True) -> Any:
    """A function or module, called once with `example_inputs` so that errors show now.

    PyTorch would write down the ops of that call; here later calls run the Python again, so that
    branches on values are taken anew.
    """
    warn_deprecated("trace")
    if not _enabled:
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if not callable(func):
        raise RuntimeError("Could not get name of python class object")
    if isinstance(func, nn.Module):
        warn_deprecated("trace_method")
    _call(func, make_tuple(example_inputs or () if not isinstance(example_inputs, Tensor)
                           else example_inputs), example_kwarg_inputs or {})
    return _as_traced(func)


def trace_module(mod: nn.Module, inputs: dict[str, Any], optimize: Any = None,
                 check_trace: bool = True, check_inputs: Any = None,
                 check_tolerance: float = 1e-5, strict: bool = True,
                 _force_outplace: bool = False, _module_class: Any = None,
                 _compilation_unit: CompilationUnit = _python_cu,
                 example_inputs_is_kwarg: bool = False,
                 _store_inputs: bool = True) -> Any:
    """A module, each method of which that `inputs` names is called once with those inputs."""
    if not isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    warn_deprecated("trace_method")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        if example_inputs_is_kwarg:
            _call(getattr(mod, name), (), example)
        else:
            _call(getattr(mod, name), example if isinstance(example, tuple) else (example,), {})
    return _as_traced(mod)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that TorchScript compiles when tracing comes by; else it runs as it is."""
    return fn


_script_if_tracing = script_if_tracing


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, strict: bool = True,
                     _force_outplace: bool = False, return_inputs: bool = False,
                     _return_inputs_states: bool = False) -> Any:
    """Not offered: a trace has no graph of TorchScript."""
    raise NotImplementedError("torch.jit._get_trace_graph: flambeau has no graphs of TorchScript; "
                              "torch.export and torch.fx give graphs")


def _unique_state_dict(module: nn.Module, keep_vars: bool = False) -> OrderedDict[str, Any]:
    """The state dict, in which a tensor that several names have comes once."""
    found, seen = OrderedDict(), set()
    for name, value in module.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value if keep_vars else value.detach()
    return found


def _flatten(obj: Any) -> tuple[list[Any], Any]:
    """The tensors in nested tuples, lists and dicts, and what describes the nesting."""
    return _pytree.tree_flatten(obj)


def _clone_inputs(args: Any) -> Any:
    """The inputs of a call, with tensors copied."""
    return _pytree.tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor)
        else copy.copy(x), args)


def verify(model: nn.Module, args: Any, loss_fn: Callable[..., Any] | None = None,
           devices: Any = None) -> None:
    """Raise AssertionError unless two calls give equal results and equal gradients."""
    loss_fn = loss_fn or (lambda x: x.sum())
    args = make_tuple(args)
    state = copy.deepcopy(model.state_dict())

    def run() -> list[Any]:
        model.load_state_dict(state)
        outputs = model(*args)
        tensors = [t for t in _pytree.tree_leaves(outputs) if isinstance(t, Tensor)]
        params = [p for p in model.parameters() if p.requires_grad]
        loss = functools.reduce(lambda a, b: a + b, map(loss_fn, tensors))
        import flambeau
        return [*tensors, *flambeau.autograd.grad(loss, params, allow_unused=True)]

    from flambeau.testing import assert_close
    for first, second in zip(run(), run(), strict=True):
        if first is not None:
            assert_close(first, second)


__all__ = ["ONNXTracedModule", "TopLevelTracedModule", "TracedModule", "TracerWarning",
           "TracingCheckError", "is_tracing", "make_tuple", "script_if_tracing", "trace",
           "trace_module", "verify"]
