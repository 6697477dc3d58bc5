"""One batch on several GPUs. flambeau computes on the CPU: a wrapped module is simply called."""

from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.nn.modules.module import Module
from flambeau.utils._pytree import tree_map_only

_CPU_ONLY = "{} function not implemented for CPU tensors"


class DataParallel(Module):
    """A module whose batches are split over GPUs; without any, the module itself.

    Example:
        >>> nn.DataParallel(nn.Linear(2, 3))(flambeau.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        self.module = module    # without GPUs PyTorch, too, ignores device_ids
        self.device_ids: list[Any] = []
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def replicate(self, module, device_ids):
        """Copies of a module on several GPUs."""
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments in pieces, one for each GPU."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def gather(self, outputs, output_device):
        """Outputs of several GPUs as one."""
        return gather(outputs, output_device, dim=self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """Call every module with its own inputs; the results in a list."""
        return parallel_apply(replicas, inputs, kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim: int = 0,
                  module_kwargs=None):
    """Call `module` with its batch split over GPUs; without any, simply call it."""
    if device_ids:
        raise NotImplementedError("data_parallel on devices other than the CPU")
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def replicate(network, devices, detach: bool = False):
    """Copies of a module on several GPUs."""
    raise AssertionError(_CPU_ONLY.format("Broadcast"))


def scatter(inputs, target_gpus, dim=0):
    """Pieces of the inputs on several GPUs. What holds no tensors goes to each as it is."""
    def refuse(value):
        raise AssertionError(_CPU_ONLY.format("Scatter"))
    return [tree_map_only(Tensor, refuse, inputs) for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim: int = 0):
    """`scatter` of arguments: for each GPU those by position, and those by name.

    >>> scatter_kwargs((1, 2), {"scale": 3}, [0, 1])
    (((1, 2), (1, 2)), ({'scale': 3}, {'scale': 3}))
    """
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs, target_device, dim: int = 0):
    """Outputs of several GPUs as one."""
    raise AssertionError(_CPU_ONLY.format("Gather"))


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Call every module with its own inputs; the results in a list."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}")
    kwargs_tup = kwargs_tup or ({},) * len(modules)
    return [module(*(args if isinstance(args, (list, tuple)) else (args,)), **kwargs) for module,
            args, kwargs in zip(modules, inputs, kwargs_tup)]


__all__ = ["DataParallel", "data_parallel"]
