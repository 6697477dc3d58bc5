"""The convolutions of PyTorch's dispatcher that name their algorithm: each checks what it is given
in its own words, and is computed as any."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.devices.backends import has_no_kernel
from flambeau.dispatch.aten.functions import defines
from flambeau.dispatch.aten.schemas import recorded_overload


def _check_lengths(n: int, **lists: Sequence[int]) -> None:
    for name, values in lists.items():
        if len(values) != n:
            raise RuntimeError(f"It is expected {name} equals to {n}, but got size {len(values)}")


def _check_positive(what: str, values: Sequence[int], given: str) -> None:
    if min(values) < 1:
        raise RuntimeError(f"{what} should be greater than zero, but got{given.format(*values)}")


def _check_shape(shape: Sequence[int], rank: int, place: int, size: int) -> None:
    if len(shape) != rank or shape[place] != size:
        raise RuntimeError(f"Expected a tensor of dimension {rank} and tensor.size[{place}] == "
                           f"{size} but got: dimension {len(shape)} and tensor.size[{place}] = "
                           f"{shape[place] if len(shape) > place else 0}")


def _refuse_sparse(name: str, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.is_sparse:
            known = recorded_overload(*name.partition(".")[::2]) \
                or recorded_overload(name, "default")
            raise has_no_kernel(name, "SparseCPU", known.facts if known else ())


def _in_full(weight: Tensor, channels: int, kernel_size: Sequence[int]) -> Tensor:
    """A weight whose rows are kernels, flat, as the kernels that they are."""
    return weight.reshape(weight.size(0), -1 if weight.numel() else channels, *kernel_size) \
        if weight.dim() == 2 else weight


@defines("thnn_conv2d", "_slow_conv2d_forward")
def _on_images(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None,
               stride: Any = (1, 1), padding: Any = (0, 0)) -> Tensor:
    _refuse_sparse("_slow_conv2d_forward", self, weight)
    for name, values in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if len(values) != 2:
            raise RuntimeError(f"2D {name} expected")
    _check_positive("kernel size", kernel_size, " kernel_height: {} kernel_width: {}")
    _check_positive("stride", stride, " stride_height: {} stride_width: {}")
    shape, kernels = self.shape, weight.shape
    if not weight.numel() or len(kernels) not in (2, 4):
        raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {list(kernels)}")
    if bias is not None:
        _check_shape(bias.shape, 1, 0, kernels[0])
    if len(shape) != 4:
        raise RuntimeError(f"Expected 4D input tensor, but got: {list(shape)}")
    channels = kernels[1] // (1 if len(kernels) == 4 else math.prod(kernel_size))
    _check_shape(shape, 4, 1, channels)
    return flambeau.nn.functional.conv2d(self, _in_full(weight, channels, kernel_size), bias,
                                         stride, padding)


@defines("slow_conv3d", "slow_conv3d_forward")
def _on_volumes(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None,
                stride: Any = (1, 1, 1), padding: Any = (0, 0, 0)) -> Tensor:
    _refuse_sparse("slow_conv3d_forward.output", self, weight)
    _check_lengths(3, kernel_size=kernel_size, padding=padding, stride=stride)
    weight.size(1)
    if weight.dim() in (4, 5) or min(kernel_size) < 1:
        _check_positive("kernel size", kernel_size, ": {} x {} x {} (TxHxW)")
    if self.dim() != 5:
        raise RuntimeError(f"non-empty 5D input tensor expected but got: {list(self.shape)}")
    return flambeau.nn.functional.conv3d(self, _in_full(weight, self.size(1), kernel_size), bias,
                                         stride, padding)


def _dilated(name: str, n: int) -> None:
    @defines(name)
    def convolve(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None,
                 stride: Any = (1,) * n, padding: Any = (0,) * n, dilation: Any = (1,) * n
                 ) -> Tensor:
        _refuse_sparse(name, self, weight)
        for what, values in (("kernel sizes", kernel_size), ("strides", stride),
                             ("dilations", dilation), ("pads", padding)):
            if len(values) != n:
                raise RuntimeError(f"{what} length should be {n}, but got {len(values)}")
        for what, values in (("kernel size", kernel_size), ("stride", stride),
                             ("dilation", dilation)):
            _check_positive(what, values, f" {list(values)}")
        shape, kernels = self.shape, weight.shape
        if len(shape) not in (n + 1, n + 2):
            raise RuntimeError(f"input must be 4D or 5D tensor but got {len(shape)}D tensor")
        if len(kernels) != n + 2:
            raise RuntimeError(f"weight must be {n + 2}D tensor but got {len(kernels)}D tensor dim="
                               f"{len(kernels)}")
        if list(kernels[2:]) != list(kernel_size):
            raise RuntimeError(f"weight[2:] shape {list(kernels[2:])} must be equal to kernel_size "
                               f"{list(kernel_size)}")
        if shape[-n - 1] != kernels[1]:
            raise RuntimeError(f"Need input of dimension {n + 2} and input.size[1] == {kernels[1]} "
                               f"but got input to be of shape {[1] * (n + 2 - len(shape))}"
                               f"{list(shape)}".replace("][", ", "))
        if bias is not None and bias.dim() != 1:
            raise RuntimeError(f"bias must be 1D tensor but got {bias.dim()}D tensor")
        function = getattr(flambeau.nn.functional, f"conv{n}d")
        return function(self, weight, bias, stride, padding, dilation)


_dilated("slow_conv_dilated2d", 2)
_dilated("slow_conv_dilated3d", 3)


def _transposed(name: str, n: int) -> None:
    @defines(name)
    def convolve(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None,
                 stride: Any = (1,) * n, padding: Any = (0,) * n, output_padding: Any = (0,) * n,
                 dilation: Any = (1,) * n) -> Tensor:
        _refuse_sparse(name, self, weight)
        _check_lengths(n, kernel_size=kernel_size, dilation=dilation, padding=padding,
                       stride=stride, output_padding=output_padding)
        if weight.dim() not in (2, n + 2) and n == 2:
            raise RuntimeError("non-empty 2D or 4D weight tensor expected, but got: "
                               f"{list(weight.shape)}")
        if self.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for "
                               f"input, but got: {list(self.shape)}")
        function = getattr(flambeau.nn.functional, f"conv_transpose{n}d")
        full = _in_full(weight, self.size(-n - 1), kernel_size)
        return function(self, full, bias, stride, padding, output_padding, 1, dilation)


_transposed("slow_conv_transpose2d", 2)
_transposed("slow_conv_transpose3d", 3)


__all__: list[str] = []
