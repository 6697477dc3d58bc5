"""Automatic differentiation: `backward`, `grad`, modes, and functions with own derivatives.
"""
from __future__ import annotations

import importlib
from typing import Any

import flambeau as torch
from flambeau._support.source_locations import counter_of
from flambeau.core.autograd import engine
from flambeau.core.autograd.grad_mode import *
from flambeau.core.autograd.grad_mode import _force_original_view_tracking, is_view_replay_enabled
from flambeau.core.autograd.graph import AccumulateGrad
from flambeau.core.autograd.saved_hooks import SavedTensor as SavedTensor
from flambeau.core.tensor import Tensor

_LAZY = ("_functions", "anomaly_mode", "forward_ad", "function", "functional", "grad_mode",
         "gradcheck", "graph", "profiler", "profiler_legacy", "profiler_util", "variable")
_FROM = {"backward": "differentiate", "grad": "differentiate", "Function": "function",
         "NestedIOFunction": "function", "Node": "graph",
         "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
         "gradcheck": "gradcheck", "gradgradcheck": "gradcheck",
         "kineto_available": "profiler", "Variable": "variable", "_profiler_enabled": "profiler",
         "_disable_profiler": "profiler", "_disable_profiler_legacy": "profiler",
         "DeviceType": "profiler_util"}
_ELSEWHERE = {"ProfilerActivity": "flambeau.profiler",
              **dict.fromkeys(("ProfilerConfig", "ProfilerState"), "flambeau._C._profiler"),
              **dict.fromkeys(("handle_torch_function", "has_torch_function", "is_tensor_like"),
                              "flambeau.overrides")}


class _unsafe_preserve_version_counter:
    """Inside, writes to these tensors are not counted."""

    def __init__(self, tensors: Any):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        for tensor, version in zip(self.tensors, self.versions):
            counter_of(tensor)[0] = version


def _is_checkpoint_valid() -> bool:
    """May a checkpoint compute its forward pass now: is this no backward pass of `grad`, or of
    `backward` with `inputs`, which skips parts of the graph?"""
    running = engine.current_pass.get()
    return running is None or running.captures is None


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of its gradient, as they are compared."""
    from flambeau.autograd.graph import GradientEdge
    if not isinstance(output, GradientEdge):
        shape = output._nested_tensor_size() if output.is_nested else output.shape
    else:
        shape = output.node._input_metadata[output.output_nr].shape
    own = grad._nested_tensor_size() if grad.is_nested else grad.shape
    return shape, own[1:] if is_grads_batched else own


def __getattr__(name: str) -> Any:
    """The rest is imported when it is first used."""
    if name in _FROM:
        value = getattr(importlib.import_module(f"flambeau.autograd.{_FROM[name]}"), name)
        globals()[name] = value
        return value
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    if name in _LAZY:
        return importlib.import_module(f"flambeau.autograd.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM, *_LAZY})


__all__ = ["Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad",
           "enforce_grad_layout_policy", "grad", "grad_mode", "gradcheck", "gradgradcheck",
           "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
           "set_multithreading_enabled", "variable"]
