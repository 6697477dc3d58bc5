"""One batch on several GPUs. flambeau computes on the CPU: a wrapped module is simply called."""

from __future__ import annotations

from typing import Any

from flambeau.nn.modules.module import Module

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


def scatter(inputs, target_gpus, dim: int = 0):
    """Pieces of the inputs on several GPUs."""
    raise AssertionError(_CPU_ONLY.format("Scatter"))


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
