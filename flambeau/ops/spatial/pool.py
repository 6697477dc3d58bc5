"""Pooling: the largest element, or the average, of each window.

Averages are linear; their gradients are linear ops, and each other's transposes. What a maximum's
gradient and tangent need is where the maximum was. All ops take any leading dimensions. What is
declared with ``_nn`` is what the functions of `nn.functional` of that name call.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau._support.settings import alert_not_deterministic
from flambeau.core.autograd.graph import next_order
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import choose_by_flag, python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving.layouts import has_channels_last, preserve_channels_last
from flambeau.kernels.network import pooling as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.node_names import rename
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.spatial.pooling_checks import (
    check_line,
    check_one_dimensional,
    check_rank,
    check_unpooling,
    check_windows,
    fractional_windows,
    per_axis,
    refuse_images,
    single,
    strides,
    unpooled_size,
)
from flambeau.ops.view.copying import in_layout_of
from flambeau.ops.view.shape import batch_leading

NETWORK = "nn.functional"
INNER: dict[str, Any] = {"namespace": "_nn", "method": False}
PART: dict[str, Any] = {"function": False, "method": False, "out": False, "kind": "linear"}


# ---- taking from, and adding to, given places ----------------------------------------------------


take_at = op(
    "take_at(Tensor self, Tensor indices, int dims) -> Tensor",
    kernel=lambda self, indices, dims: kernels.max_unpool_backward(self, indices, dims),
    kind="linear", function=False, method=False,
    d_self=lambda grad, indices, self_shape, dims: add_at(grad, indices, self_shape, dims),
    batch=batch_leading(lambda: take_at),
    doc="The elements of images, over the last `dims` dimensions, at flat `indices`.")
add_at = op(
    "add_at(Tensor self, Tensor indices, SymInt[] shape, int dims) -> Tensor",
    kernel=lambda self, indices, shape, dims: kernels.max_pool_backward(self, indices, shape, dims),
    kind="linear", function=False, method=False, sizes="shape",
    node="MaxPool2DWithIndicesBackwardBackward0",
    d_self=lambda grad, indices, dims: take_at(grad, indices, dims),
    doc="The transpose of `take_at`: images of `shape`, zero but where `indices` say.")


_tied = op(
    "_tied(Tensor self, Tensor other) -> Tensor", kernel=lambda self, other: self,
    d_self=lambda grad: grad, d_other=lambda grad, other_shape: grad.new_zeros(other_shape),
    jvp=lambda self_t: self_t, function=False, method=False, out=False,
    batch=lambda size, dims, self, other: (self, dims[0]),
    doc="The first tensor, in whose history the second has a part, too.")


def of_input(gradient: Tensor, input: Tensor, name: str, laid_out: bool = False) -> Tensor:
    """The gradient by an input on which it does not depend; a node of that name nevertheless lets
    it be differentiated by it, with zeros as in PyTorch. Does it lie in memory as the input does?
    """
    since = next_order()
    if laid_out:
        gradient = in_layout_of(gradient, input)
    if not grad_enabled() or not input.requires_grad:
        return gradient
    gradient = _tied(gradient, input)
    rename(gradient, name, since)
    return gradient


# ---- maxima --------------------------------------------------------------------------------------


def flat_images(n: int, kernel: Any) -> Any:
    """The kernel; the two-dimensional one keeps channels last, as PyTorch's does."""
    return preserve_channels_last(kernel) if n == 2 else kernel


def taking(n: int) -> Any:
    """The tangents of maxima and of where they are: those of the elements that they are."""
    return {2: lambda self_t, result1: (take_at(self_t, result1, 2), None),
            3: lambda self_t, result1: (take_at(self_t, result1, 3), None)}[n]


def _pool_volume(x: Any, *windows: Any) -> Any:
    """Maxima over windows of volumes; one without a batch keeps its layout too."""
    pool = preserve_channels_last(kernels.max_pool)
    if x.ndim == 4 and not x.flags.c_contiguous:
        one = np.lib.stride_tricks.as_strided(x, (1, *x.shape), (x.nbytes, *x.strides))
        return tuple([found[0] for found in pool(one, *windows)])
    return pool(x, *windows)


def _declare_max_pool(n: int) -> Any:
    """`max_pool2d_with_indices` and its gradient, in `n` dimensions; gives the function."""
    name = f"max_pool{n}d"

    def canonical(input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                  ceil_mode: bool) -> tuple[Any, ...]:
        kernel = per_axis(kernel_size, n, name, "kernel_size")
        windows = (kernel, strides(stride, kernel, name), per_axis(padding, n, name, "padding"),
                   per_axis(dilation, n, name, "dilation"), ceil_mode)
        check_rank(input._array, n)
        refuse_images(input._array, "bUcW8", name)
        check_windows(input._array, *windows, f"{name}_with_indices_out_cpu_template")
        return input, *windows

    def gradient(grad_output: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any,
                 dilation: Any, ceil_mode: bool, indices: Tensor) -> Tensor:
        refuse(grad_output._array, "bBilUcW8", f"{name}_backward")
        return of_input(add_at(grad_output, indices, self._array.shape, n), self,
                        f"MaxPool{n}DWithIndicesBackwardBackward0", True)

    backward = op(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, "
        f"int[{n}] stride, int[{n}] padding, int[{n}] dilation, bool ceil_mode, Tensor indices) -> "
        "Tensor", body=gradient, explicit=True, out=False, **INNER)
    pool = op(
        f"{name}_with_indices(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], "
        f"int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        kernel=_pool_volume if n == 3 else preserve_channels_last(kernels.max_pool),
        checked_kernel=checked("max_pool"), canonical=canonical, out_type=OUT_TYPE, **INNER,
        differentiable=(True, False), node=f"MaxPool{n}DWithIndicesBackward0", jvp=taking(n),
        batch=batch_leading(lambda: pool.op.call),
        d_self=lambda grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1:
        backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1))
    return pool


def _declare_max_pools() -> None:
    """`max_pool1d` to `3d` of `torch`, with and without indices, by the ops on images."""
    inner = {n: _declare_max_pool(n) for n in (2, 3)}

    def line(input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> Any:
        found = inner[2](input.unsqueeze(-2), (1, kernel_size), (1, stride), (0, padding),
                         (1, dilation), ceil_mode)
        return found[0].squeeze(-2), found[1].squeeze(-2)

    def line_of(kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        kernel, padding, dilation = [single(value, "max_pool1d", name) for value, name in (
            (kernel_size, "kernel_size"), (padding, "padding"), (dilation, "dilation"))]
        return kernel, single(stride, "max_pool1d", "stride") if stride else kernel, padding, \
            dilation

    def checked_line(input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                     ceil_mode: bool) -> tuple[Any, ...]:
        kernel, stride, padding, dilation = line_of(kernel_size, stride, padding, dilation)
        recorded = input._edge is not None and grad_enabled()       # by the op that gives indices
        refuse(input._array, "bBilUcW8", "max_pool2d" if recorded else "max_pool1d_impl")
        check_line(input._array, kernel, stride, padding, dilation, ceil_mode)
        return input, kernel, stride, padding, dilation, ceil_mode

    def largest(self: np.ndarray, *windows: Any) -> np.ndarray:
        *sizes, ceil_mode = windows
        return kernels.max_pool_values(self, *[(size,) for size in sizes], ceil_mode)

    parameters = "Tensor self, int[{0}] kernel_size, int[{0}] stride=[], int[{0}] padding=0, " \
        "int[{0}] dilation=1, bool ceil_mode=False"

    values = op(f"_max_pool1d_values({parameters.format(1)}) -> Tensor", kernel=largest,
                checked_kernel=checked("max_pool1d"), canonical=checked_line, differentiable=False,
                out=False, function=False, method=False)

    @op(f"max_pool1d({parameters.format(1)}) -> Tensor", method=False, out=False)
    def max_pool1d(self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                   ceil_mode: bool) -> Tensor:
        """The largest element of each window over the last dimension of (n, c, l) or (c, l).

        `stride` is the kernel's size unless given; with `ceil_mode` a last window may overhang.

        >>> import flambeau
        >>> flambeau.max_pool1d(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
        """
        if not interceptors and (self._edge is None or not grad_enabled()):
            return values(self, kernel_size, stride, padding, dilation, ceil_mode)
        return line(*checked_line(self, kernel_size, stride, padding, dilation, ceil_mode))[0]

    @op(f"max_pool1d_with_indices({parameters.format(1)}) -> (Tensor, Tensor)", method=False,
        out=False)
    def max_pool1d_with_indices(self: Tensor, kernel_size: Any, stride: Any, padding: Any,
                                dilation: Any, ceil_mode: bool) -> tuple[Tensor, Tensor]:
        """The maxima of `max_pool1d` and where they are."""
        check_one_dimensional(self, "max_pool1d")
        kernel, stride, padding, dilation = line_of(kernel_size, stride, padding, dilation)
        return line(self, kernel, stride, padding, dilation, ceil_mode)

    def maxima(n: int) -> Any:
        def body(self: Tensor, *windows: Any) -> Tensor:
            return inner[n](self, *windows)[0]
        return op(f"max_pool{n}d({parameters.format(n)}) -> Tensor", body=body, method=False,
                  out=False, doc=f"The largest element of each window over the last {n} "
                                 "dimensions; see `max_pool1d`.")

    _in_functional(1, max_pool1d, max_pool1d_with_indices)
    for n in (2, 3):
        _in_functional(n, maxima(n), inner[n])


def _in_functional(n: int, largest: Any, with_indices: Any) -> None:
    """The functions of `nn.functional`."""
    def max_pool_with_indices(input: Tensor, kernel_size: Any, stride: Any = None,
                              padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                              return_indices: bool = False) -> Any:
        return with_indices(input, kernel_size, [] if stride is None else stride, padding,
                            dilation, ceil_mode)

    def max_pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        return largest(input, kernel_size, [] if stride is None else stride, padding, dilation,
                       ceil_mode)

    max_pool.__doc__ = (f"The largest element of each window over the last {n} dimensions; with "
                        "`return_indices`, also where they are. See `torch.max_pool1d`.")
    max_pool_with_indices.__doc__ = f"The maxima of `max_pool{n}d` and where they are."
    with_or_without_indices(f"max_pool{n}d", 6, max_pool, max_pool_with_indices)


def with_or_without_indices(name: str, place: int, largest: Any, with_indices: Any) -> None:
    """The functions `name` and `name`_with_indices of `nn.functional`: the former is the latter if
    its argument `return_indices`, at that place, is true."""
    choose_by_flag("return_indices", place, python_function(
        largest, namespace=NETWORK, name=name, private=f"_{name}"), python_function(
        with_indices, namespace=NETWORK, name=f"{name}_with_indices"),
        namespace=NETWORK, name=name)


_declare_max_pools()


# ---- averages ------------------------------------------------------------------------------------


def _declare_avg_pool(n: int) -> Any:
    """`avg_pool2d` and its gradient, in `n` dimensions; gives the function."""
    name = f"avg_pool{n}d"
    given = (f"int[{n}] kernel_size, int[{n}] stride{{}}, int[{n}] padding{{}}, "
             "bool ceil_mode{}, bool count_include_pad{}, int? divisor_override{}")

    def canonical(input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                  count_include_pad: bool, divisor_override: Any) -> tuple[Any, ...]:
        kernel = per_axis(kernel_size, n, name, "kernel_size")
        windows = kernel, strides(stride, kernel, name), per_axis(padding, n, name, "padding")
        x = input._array
        if n == 2 and x.ndim < 3:
            input.size(-3)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        if n == 2 and x.ndim > 4:
            raise RuntimeError("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch "
                               f"size for input, but got:{list(x.shape)}")
        check_rank(x, n)
        if n == 2:
            refuse_images(x, "bcW8", name)
        else:
            refuse(x, "bcW8", "avg_pool3d_out_frame" if n == 3 else name)
        check_windows(x, *windows, (1,) * n, ceil_mode, name)
        return input, *windows, ceil_mode, count_include_pad, divisor_override

    def gradient(grad_output: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any,
                 *rest: Any) -> Tensor:
        kernel = per_axis(kernel_size, n, name, "kernel_size")
        found = transposed(grad_output, self._array.shape, kernel, strides(stride, kernel, name),
                           per_axis(padding, n, name, "padding"), *rest)
        return of_input(found, self, f"AvgPool{n}DBackwardBackward0", n == 2)

    transposed = op(
        f"_{name}_backward(Tensor self, int[] shape, {given.format(*[''] * 5)}) -> Tensor",
        kernel=kernels.avg_pool_backward, sizes="shape", node=f"AvgPool{n}DBackwardBackward0",
        d_self=lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override: pool.op.call(grad, kernel_size, stride, padding, ceil_mode,
                                       count_include_pad, divisor_override), **PART)
    backward = op(f"{name}_backward(Tensor grad_output, Tensor self, {given.format(*[''] * 5)}) -> "
                  "Tensor", body=gradient, explicit=True, out=False, **INNER)
    pool = op(
        f"{name}(Tensor self, {given.format('=[]', '=0', '=False', '=True', '=None')}) -> Tensor",
        kernel=flat_images(n, kernels.avg_pool), checked_kernel=checked("avg_pool"),
        canonical=canonical,
        kind="linear", refuses=(name, "BiUW8") if n == 2 else ("avg_pool3d_out_frame", "BiUeW8"),
        namespace=NETWORK, method=False, node=f"AvgPool{n}DBackward0",
        batch=batch_leading(lambda: pool.op.call), out_type=OUT_TYPE, autocast="full" * (n == 3),
        out_device=OUT_DEVICE if n == 2 else "",
        d_self=lambda grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override: backward(grad, self, kernel_size, stride, padding, ceil_mode,
                                   count_include_pad, divisor_override),
        doc=f"The average of each window over the last {n} dimensions.")
    return pool


avg_pool2d, avg_pool3d = _declare_avg_pool(2), _declare_avg_pool(3)


@op("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
    "bool ceil_mode=False, bool count_include_pad=True) -> Tensor", method=False, out=False)
def avg_pool1d(self: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
               count_include_pad: bool) -> Tensor:
    """The average of each window over the last dimension of (n, c, l) or (c, l).

    >>> import flambeau
    >>> flambeau.nn.functional.avg_pool1d(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    check_one_dimensional(self, "avg_pool1d")
    kernel = single(kernel_size, "avg_pool1d", "kernel_size")
    stride = single(stride, "avg_pool1d", "stride") if stride else kernel
    padding = single(padding, "avg_pool1d", "padding")
    return avg_pool2d(self.unsqueeze(-2), (1, kernel), (1, stride), (0, padding), ceil_mode,
                      count_include_pad, None).squeeze(-2)


public[NETWORK]["avg_pool1d"] = avg_pool1d


# ---- fractional pooling --------------------------------------------------------------------------


def _value_per_dim(value: Any, n: int) -> tuple[Any, ...]:
    """A value for each of `n` dimensions, where one stands for all."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def _declare_fractional_max_pool(n: int) -> Any:
    """`fractional_max_pool2d` and its gradient, in `n` dimensions; gives the function."""
    name = f"fractional_max_pool{n}d"

    def gradient(grad_output: Tensor, self: Tensor, kernel_size: Any, output_size: Any,
                 indices: Tensor) -> Tensor:
        return of_input(add_at(grad_output, indices, self._array.shape, n), self,
                        f"FractionalMaxPool{n}DBackwardBackward0")

    backward = op(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, "
        f"int[{n}] output_size, Tensor indices) -> Tensor", body=gradient, explicit=True,
        out=False, **INNER)
    pool = op(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples) "
        "-> (Tensor, Tensor)", differentiable=(True, False), node=f"FractionalMaxPool{n}DBackward0",
        kernel=lambda self, random_samples, kernel_size, output_size: kernels.fractional_max_pool(
            self, kernel_size, output_size, random_samples), **INNER, jvp=taking(n),
        autocast="full",
        canonical=lambda self, random_samples, kernel_size, output_size: fractional_windows(
            self, kernel_size, output_size, random_samples, n),
        batch=batch_leading(lambda: pool.op.call),
        d_self=lambda grad, self, kernel_size, output_size, result1: backward(
            grad, self, kernel_size, output_size, result1))
    return pool


def _fractional_maxima(n: int) -> None:
    """The functions of `nn.functional`."""
    name, pool = f"fractional_max_pool{n}d", _declare_fractional_max_pool(n)

    def with_indices(input: Tensor, kernel_size: Any, output_size: Any = None,
                     output_ratio: Any = None, return_indices: bool = False,
                     _random_samples: Any = None) -> Any:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if n == 2 and len(output_ratio) > n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple "
                                 "of Ints.")
            ratios = _value_per_dim(output_ratio, n)
            output_size = [int(input.size(i - n) * ratios[i]) for i in range(n)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = flambeau.rand(batch, input.size(-n - 1), n, dtype=input.dtype)
        return pool(input, kernel_size, output_size, _random_samples)

    def fractional_max_pool(input: Tensor, kernel_size: Any, output_size: Any = None,
                            output_ratio: Any = None, return_indices: bool = False,
                            _random_samples: Any = None) -> Any:
        return with_indices(input, kernel_size, output_size, output_ratio, True,
                            _random_samples)[0]

    fractional_max_pool.__doc__ = (
        f"Maxima over windows at random steps in the last {n} dimensions, as many as `output_size` "
        "or `output_ratio` say. Graham, Fractional max-pooling, 2014.")
    with_indices.__doc__ = f"The maxima of `{name}` and where they are."
    with_or_without_indices(name, 4, fractional_max_pool, with_indices)


# ---- unpooling -----------------------------------------------------------------------------------


def _declare_max_unpool(n: int) -> Any:
    """`max_unpool2d`, in `n` dimensions."""
    geometry = ", int[3] stride, int[3] padding" * (n == 3)

    def canonical(input: Tensor, indices: Tensor, output_size: Any) -> tuple[Any, ...]:
        alert_not_deterministic(f"max_unpooling{n}d_forward_out")
        if len(output_size) != n:
            count, axes = {2: ("two", "height, width"), 3: ("three", "depth, height, width")}[n]
            raise RuntimeError(f"There should be exactly {count} elements ({axes}) in output_size, "
                               f"but got {len(output_size)} elements.")
        check_unpooling(input, indices, n)
        return input, indices, tuple(output_size)

    def name(self: np.ndarray, *_: Any) -> str:
        by_pixel = n == 2 and self.ndim == 4 and has_channels_last(self)
        return f"max_unpool{n}d" + "_channels_last" * by_pixel

    take: Any = {2: lambda grad, indices: take_at(grad, indices, 2),
                 3: lambda grad, indices: take_at(grad, indices, 3)}[n]
    unpool = op(f"max_unpool{n}d(Tensor self, Tensor indices, SymInt[{n}] output_size{geometry}) "
                "-> Tensor", kernel=flat_images(n, kernels.max_unpool), kind="linear",
                unused="stride padding" if geometry else "", canonical=canonical,
                batch=batch_leading(lambda: unpool.op.call),
                refuses=(name, "bBilUcW8"), node=f"MaxUnpool{n}DBackward0",
                d_self=take, autocast="full", **INNER)
    return unpool


_UNPOOL = {n: _declare_max_unpool(n) for n in (2, 3)}


def _unpooler(n: int) -> None:
    def max_unpool(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None,
                   padding: Any = 0, output_size: Any = None) -> Tensor:
        kernel, padding = _value_per_dim(kernel_size, n), _value_per_dim(padding, n)
        stride = kernel if stride is None else _value_per_dim(stride, n)
        size = unpooled_size(input, kernel, stride, padding, output_size)
        if n == 1:
            return _UNPOOL[2](input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)
        return _UNPOOL[n](input, indices, size, *((stride, padding) if n == 3 else ()))

    max_unpool.__doc__ = (f"The maxima that `max_pool{n}d` gave put back to where they were, zeros "
                          "elsewhere; `output_size` where several are possible.")
    python_function(max_unpool, namespace=NETWORK, name=f"max_unpool{n}d")


# ---- power means ---------------------------------------------------------------------------------


def _unpack_pair(value: Any, n: int) -> None:
    """Raise as Python does where `value` is not as many."""
    if n == 2:
        _, _ = value
    else:
        _, _, _ = value


def _lp_pooler(n: int) -> None:
    averages = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}[n]

    def lp_pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
                ceil_mode: bool = False) -> Tensor:
        if n > 1 and isinstance(kernel_size, Iterable):
            _unpack_pair(tuple(kernel_size), n)
        mean = averages(input.pow(norm_type), kernel_size, [] if stride is None else stride, 0,
                        ceil_mode)
        several = isinstance(kernel_size, (tuple, list))
        count = prod(kernel_size) if several else int(kernel_size) ** n
        return (flambeau.sign(mean) * flambeau.relu(mean.abs())).mul(count).pow(1.0 / norm_type)

    lp_pool.__doc__ = f"(Σ x^p)^(1/p) over each window of the last {n} dimensions, p = `norm_type`."
    python_function(lp_pool, namespace=NETWORK, name=f"lp_pool{n}d")


for _n in (1, 2, 3):
    _unpooler(_n)
    _lp_pooler(_n)
    if _n > 1:
        _fractional_maxima(_n)
