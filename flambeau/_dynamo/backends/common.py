"""Backends made of `aot_autograd`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._functorch.aot_autograd import aot_module_simplified


class AotAutograd:
    """A backend that gives the graphs of both passes to compilers."""

    def __init__(self, **kwargs: Any):
        self.__name__, self.kwargs = "compiler_fn", kwargs

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        options = {k: v for k, v in self.kwargs.items()
                   if k in ("fw_compiler", "bw_compiler", "partition_fn", "decompositions")}
        return aot_module_simplified(gm, example_inputs, **options)


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """The backend with compilers `fw_compiler` and `bw_compiler`, functions of a graph and inputs.

    >>> import flambeau
    >>> backend = aot_autograd(fw_compiler=lambda gm, inputs: gm)
    >>> backend(flambeau.nn.ReLU(), [flambeau.ones(1)])(-flambeau.ones(1))
    tensor([0.])
    """
    return AotAutograd(**kwargs)


def device_from_inputs(example_inputs: Any) -> Any:
    """The device of the first tensor."""
    return next(x.device for x in example_inputs if hasattr(x, "device"))


def dtype_from_inputs(example_inputs: Any) -> Any:
    """The type of the first tensor."""
    return next(x.dtype for x in example_inputs if hasattr(x, "dtype"))


__all__ = ["AotAutograd", "aot_autograd", "device_from_inputs", "dtype_from_inputs"]
