"""Pooling: the largest element, or the average, of each window.

Averages are linear; their gradients are linear ops, and each other's transposes. What a maximum's
gradient and tangent need is where the maximum was. All ops take any leading dimensions.
"""
from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

import flambeau
from flambeau.core.op import composite, linear, primitive, public
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels import pooling as kernels
from flambeau.kernels.layouts import keeping_layout
from flambeau.kernels.refused import refuse
from flambeau.ops.linalg_support import composed

NETWORK = "nn.functional"


def leading(op: Any) -> Any:
    """The batching rule of ops whose tensors all take the batch as one more leading dimension;
    `op` gives the op when the rule runs."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        tensors = []
        for tensor, dim in zip(canonical, dims):
            if tensor is not None:
                tensor = basis.expand(tensor, (size, *tensor._array.shape)) if dim is None \
                    else basis.movedim(tensor, dim, 0)
            tensors.append(tensor)
        found = op()(*tensors, *canonical[len(dims):])
        return found, 0 if isinstance(found, Tensor) else [0] * len(found)
    return rule


# ---- taking from, and adding to, given places ----------------------------------------------------


@linear(lambda self, indices, dims: kernels.max_unpool_backward(self, indices, dims),
        tensors=("self", "indices"), method=False, namespace=None,
        d_self=lambda grad, indices, self_shape, dims: add_at(grad, indices, self_shape, dims),
        batch=leading(lambda: take_at))
def take_at(input: Tensor, indices: Tensor, dims: int) -> Any:
    """The elements of images, over the last `dims` dimensions, at flat `indices`."""
    return input, indices, dims


@linear(lambda self, indices, shape, dims: kernels.max_pool_backward(self, indices, shape, dims),
        tensors=("self", "indices"), shapes="shape", method=False, namespace=None,
        node_name="MaxPool2DWithIndicesBackwardBackward0",
        d_self=lambda grad, indices, dims: take_at(grad, indices, dims))
def add_at(input: Tensor, indices: Tensor, shape: Any, dims: int) -> Any:
    """The transpose of `take_at`: images of `shape`, zero but where `indices` say."""
    return input, indices, shape, dims


# ---- maxima --------------------------------------------------------------------------------------


def _flat_images(n: int, kernel: Any) -> Any:
    """The kernel; the two-dimensional one keeps channels last, as PyTorch's does."""
    return keeping_layout(kernel) if n == 2 else kernel


def _max_op(name: str, node_name: str, kernel: Any, dims: int, params: tuple[str, ...],
            tensors: tuple[str, ...] = ("self",)) -> Any:
    """An op that gives maxima and their indices."""
    def arguments(input: Tensor, *rest: Any) -> Any:
        return input, *rest

    arguments.__name__ = name
    ops: list[Any] = []
    take = {2: lambda self_t, result1: (take_at(self_t, result1, 2), None),
            3: lambda self_t, result1: (take_at(self_t, result1, 3), None)}[dims]
    ops.append(primitive(
        kernel, tensors=tensors, params=params, returns=tuple, differentiable=(True, False),
        node_name=node_name, method=False, namespace=None, jvp=take, shows=params,
        nondiff=tensors[1:],
        vjp=lambda grad, result1, self_shape: [
            None if grad[0] is None else add_at(grad[0], result1, self_shape, dims),
            *[None] * (len(tensors) - 1)],
        batch=leading(lambda: ops[0]))(arguments))
    return ops[0]


_GEOMETRY = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_MAX = {n: _max_op(f"max_pool{n}d_with_indices", f"MaxPool{n}DWithIndicesBackward0",
                   keeping_layout(kernels.max_pool), n, _GEOMETRY) for n in (2, 3)}
_ADAPTIVE_MAX = {n: _max_op(f"_adaptive_max_pool{n}d", f"AdaptiveMaxPool{n}DBackward0",
                            _flat_images(n, kernels.adaptive_max_pool), n, ("output_size",))
                 for n in (2, 3)}
_FRACTIONAL = {n: _max_op(
    f"_fractional_max_pool{n}d", f"FractionalMaxPool{n}DBackward0",
    lambda self, samples, kernel_size, output_size: kernels.fractional_max_pool(
        self, kernel_size, output_size, samples), n, ("kernel_size", "output_size"),
    ("self", "samples")) for n in (2, 3)}

_WORDS = {2: "two", 3: "three"}


def per_axis(value: Any, n: int, op: str, name: str) -> tuple[int, ...]:
    """A number for each of `n` dimensions, where one stands for all."""
    if type(value) is int:
        return (value,) * n
    if isinstance(value, (tuple, list)):
        given = tuple([index(v) for v in value])
        if len(given) == 1:
            return given * n
        if len(given) == n:
            return given
    elif hasattr(value, "__index__"):
        return (value.__index__(),) * n
    raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of {_WORDS[n]} ints")


def _strides(stride: Any, kernel: tuple[int, ...], op: str) -> tuple[int, ...]:
    if stride is None or (not isinstance(stride, int) and not len(stride)):
        return kernel
    return per_axis(stride, len(kernel), op, "stride")


def _check_windows(x: np.ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any,
                   ceil_mode: bool, name: str) -> None:
    n = len(kernel)
    if min(kernel) <= 0 or min(stride) <= 0:
        raise RuntimeError("stride should not be zero" if 0 in (*stride, *kernel) else
                           f"kernel size and stride should be greater than zero, but got kernel "
                           f"size {list(kernel)} and stride {list(stride)}")
    if min(dilation) <= 0:
        named = " ".join(f"dilation{a}: {d}" for a, d in zip("THW"[-n:], dilation))
        raise RuntimeError(f"dilation should be greater than zero, but got {named}")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (k - 1) * d // 2 + (0 if d > 1 else (k % 2 == 0)):
            raise RuntimeError("pad should be at most half of effective kernel size, but got "
                               f"pad={p}, kernel_size={k} and dilation={d}")
    inner = x.shape[x.ndim - n - 1:]
    if 0 in inner and n == 3:
        raise RuntimeError(f"{name}(): Expected input's non-batch dimensions to have positive "
                           f"length, but input has a shape of {list(x.shape)} and non-batch "
                           f"dimension {inner.index(0)} has length zero!")
    if 0 in inner:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim "
                           f"batch size for input, but got:{list(x.shape)}")
    size = x.shape[-n:]
    out = [kernels.pooled_size(*a, ceil_mode) for a in zip(size, kernel, stride, padding, dilation)]
    if min(out) < 1:
        channels = x.shape[-n - 1]
        raise RuntimeError(f"Given input size: ({_by(channels, size)}). Calculated output size: "
                           f"({_by(channels, [max(o, 0) for o in out])}). Output size is too small")


def _by(channels: int, size: Any) -> str:
    return "x".join(map(str, (channels, *size)))


def _check_rank(x: np.ndarray, n: int) -> None:
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")


def _max_pool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
              ceil_mode: bool) -> tuple[Tensor, Tensor]:
    name = f"max_pool{n}d"
    kernel = per_axis(kernel_size, n, name, "kernel_size")
    stride = _strides(stride, kernel, name)
    padding = per_axis(padding, n, name, "padding")
    dilation = per_axis(dilation, n, name, "dilation")
    x = input._array
    _check_rank(x, n)
    refuse(x, "bUcW8", name)
    _check_windows(x, kernel, stride, padding, dilation, ceil_mode,
                   f"{name}_with_indices_out_cpu_template")
    return _MAX[n](input, kernel, stride, padding, dilation, bool(ceil_mode))


def _single(value: Any, op: str = "", name: str = "") -> int:
    if isinstance(value, int):
        return value
    if len(value) != 1:
        raise RuntimeError(f"{op}() argument '{name}' should contain one int (got {len(value)})")
    return index(value[0])


def _max_pool1d(input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                ceil_mode: bool, indices: bool) -> tuple[Tensor, Tensor]:
    if indices:
        check_one_dimensional(input, "max_pool1d")
    op = "max_pool1d"
    kernel, padding, dilation = (_single(v, op, name) for v, name in (
        (kernel_size, "kernel_size"), (padding, "padding"), (dilation, "dilation")))
    stride = kernel if stride is None or stride == () or stride == [] \
        else _single(stride, op, "stride")
    if not indices:
        refuse(input._array, "bBilUW8", "max_pool1d_impl")
        _check_line(input._array, kernel, stride, padding, dilation, ceil_mode)
    values, where = _max_pool(2, input.unsqueeze(-2), (1, kernel), (1, stride), (0, padding),
                              (1, dilation), ceil_mode)
    return values.squeeze(-2), where.squeeze(-2)


def _check_line(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int,
                ceil_mode: bool) -> None:
    """What `max_pool1d` says of its arguments where nobody asks for indices."""
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                           f"batch size for input, but got:{list(x.shape)}")
    for what, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError("max_pool1d() padding should be at most half of kernel size, but got "
                           f"padding={padding} and kernel_size={kernel}")
    size = kernels.pooled_size(x.shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")


def _max_pooler(n: int, doc: str) -> None:
    pool = _max_pool1d if n == 1 else lambda *args: _max_pool(n, *args[:-1])

    def max_pool_with_indices(input: Tensor, kernel_size: Any, stride: Any = None,
                              padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                              return_indices: bool = False) -> Any:
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    def max_pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        found = pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        return found if return_indices else found[0]

    max_pool.__doc__ = doc
    max_pool_with_indices.__doc__ = f"The maxima of `max_pool{n}d` and where they are."
    composite(max_pool, namespace=(NETWORK, "torch"), name=f"max_pool{n}d")
    composite(max_pool_with_indices, namespace=(NETWORK, "torch") if n == 1 else NETWORK,
              name=f"max_pool{n}d_with_indices")


_max_pooler(1, """The largest element of each window over the last dimension of (n, c, l) or (c, l).

    `stride` is the kernel's size unless given; with `ceil_mode` a last window may overhang; with
    `return_indices`, also where the maxima are.

    >>> import flambeau
    >>> flambeau.max_pool1d(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """)
_max_pooler(2, "The largest element of each window over the last two dimensions; see `max_pool1d`.")
_max_pooler(3, "The largest element of each window over the last three dimensions.")


# ---- averages ------------------------------------------------------------------------------------


def _avg_ops(n: int) -> Any:
    def avg_pool(input: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
                 count_padding: bool, divisor: Any) -> Any:
        return input, kernel, stride, padding, ceil_mode, count_padding, divisor

    def avg_pool_backward(input: Tensor, shape: Any, *geometry: Any) -> Any:
        return input, shape, *geometry

    params = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
              "divisor_override")
    avg_pool.__name__ = f"_avg_pool{n}d"
    avg_pool_backward.__name__ = f"_avg_pool{n}d_backward"
    forward = linear(
        _flat_images(n, kernels.avg_pool), method=False, namespace=None, params=params,
        node_name=f"AvgPool{n}DBackward0", batch=leading(lambda: forward),
        d_self=lambda grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override: backward(grad, self_shape, kernel_size, stride, padding, ceil_mode,
                                   count_include_pad, divisor_override))(avg_pool)
    backward = linear(
        kernels.avg_pool_backward, method=False, namespace=None, shapes="shape",
        params=("shape", *params), node_name=f"AvgPool{n}DBackwardBackward0",
        d_self=lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override: forward(grad, kernel_size, stride, padding, ceil_mode,
                                  count_include_pad, divisor_override))(avg_pool_backward)
    return forward


_AVG = {n: _avg_ops(n) for n in (2, 3)}


def _avg_pool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor_override: Any) -> Tensor:
    name = f"avg_pool{n}d"
    kernel = per_axis(kernel_size, n, name, "kernel_size")
    stride = _strides(stride, kernel, name)
    padding = per_axis(padding, n, name, "padding")
    x = input._array
    if n == 2 and x.ndim < 3:
        raise IndexError("Dimension out of range (expected to be in range of "
                         f"[{-x.ndim}, {x.ndim - 1}], but got -3)")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    _check_rank(x, n)
    refuse(x, "bcW8", name)
    _check_windows(x, kernel, stride, padding, (1,) * n, ceil_mode, name)
    return _AVG[n](input, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad),
                   divisor_override)


@composite(namespace=(NETWORK, "torch"))
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The average of each window over the last dimension of (n, c, l) or (c, l).

    >>> import flambeau
    >>> flambeau.nn.functional.avg_pool1d(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    check_one_dimensional(input, "avg_pool1d")
    kernel = _single(kernel_size)
    stride = kernel if stride is None or stride == () or stride == [] else _single(stride)
    return _avg_pool(2, input.unsqueeze(-2), (1, kernel), (1, stride), (0, _single(padding)),
                     ceil_mode, count_include_pad, None).squeeze(-2)


def check_one_dimensional(input: Tensor, name: str) -> None:
    if input._array.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional "
                           f"tensor for argument #1 'self' (while checking arguments for {name})")


@composed(namespace=NETWORK)
def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Any = None) -> Tensor:
    """The average of each window over the last two dimensions."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


@composed(namespace=NETWORK)
def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Any = None) -> Tensor:
    """The average of each window over the last three dimensions."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


# ---- adaptive pooling ----------------------------------------------------------------------------


def _adaptive_avg_pair(n: int) -> Any:
    forward_name, backward_name = f"_adaptive_avg_pool{n}d", f"_adaptive_avg_pool{n}d_backward"

    def forward(input: Tensor, output_size: Any) -> Any:
        return input, output_size

    def backward(input: Tensor, shape: Any, output_size: Any) -> Any:
        return input, shape, output_size

    forward.__name__, backward.__name__ = forward_name, backward_name
    pool = linear(
        _flat_images(n, kernels.adaptive_avg_pool), params=("output_size",), method=False,
        namespace=None, node_name=f"AdaptiveAvgPool{n}DBackward0", batch=leading(lambda: pool),
        d_self=lambda grad, self_shape, output_size: unpool(grad, self_shape, output_size))(forward)
    unpool = linear(
        lambda self, shape, output_size: kernels.adaptive_avg_pool_backward(self, shape, n),
        method=False, namespace=None, shapes="shape",
        node_name=f"AdaptiveAvgPool{n}DBackwardBackward0",
        d_self=lambda grad, output_size: pool(grad, output_size))(backward)
    return pool


_ADAPTIVE_AVG = {n: _adaptive_avg_pair(n) for n in (2, 3)}


def _adaptive_sizes(n: int, input: Tensor, output_size: Any, name: str) -> tuple[int, ...]:
    """One size for each dimension; None keeps the input's."""
    x, largest = input._array, "max" in name
    if output_size is None or isinstance(output_size, int):
        output_size = (output_size,) * n
    elif x.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got"
                           f"{':' * largest} {list(x.shape)}")
    if len(output_size) != n:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {n}" if largest
                           else f"{name}: output_size must be {n}")
    for d in range(1 if largest else x.ndim - n, x.ndim):
        if not x.shape[d]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch "
                               f"dimensions, but input has sizes {list(x.shape)} with dimension "
                               f"{d} being empty")
    sizes = tuple([x.shape[i - n] if o is None else int(o) for i, o in enumerate(output_size)])
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: "
                           f"{[*x.shape[:-n], *sizes]}" if largest else
                           f"{name}: elements of output_size must be greater than or equal to 0 "
                           f"but received {{{', '.join(map(str, sizes))}}}")
    return sizes


def _adaptive_avg(n: int, input: Tensor, output_size: Any) -> Tensor:
    sizes = _adaptive_sizes(n, input, output_size, f"adaptive_avg_pool{n}d")
    if sizes == (1,) * n:
        return input.mean(tuple(range(-n, 0)), True)
    refuse(input._array, "bBilUcW8", f"adaptive_avg_pool{n}d" + "_cpu" * (n == 3))
    return _ADAPTIVE_AVG[n](input, sizes)


def _adaptive_max(n: int, input: Tensor, output_size: Any) -> Any:
    name = f"adaptive_max_pool{n}d"
    sizes = _adaptive_sizes(n, input, output_size, name)
    refuse(input._array, "bBilUcW8", name + "_cpu" * (n == 3))
    return _ADAPTIVE_MAX[n](input, sizes)


def _one_size(output_size: Any, name: str) -> int:
    if isinstance(output_size, int):
        return output_size
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not "
                        "NoneType")
    if len(output_size) != 1:
        return _single(output_size, name, "output_size")
    return index(output_size[0])


@composite(namespace=(NETWORK, "torch"))
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over `output_size` nearly equal parts of the last dimension."""
    check_one_dimensional(input, "adaptive_avg_pool1d")
    size = _one_size(output_size, "adaptive_avg_pool1d")
    return _adaptive_avg(2, input.unsqueeze(-2), (1, size)).squeeze(-2)


@composite(namespace=NETWORK)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows that part the last two dimensions into `output_size` nearly equal
    parts; None keeps a size.

    >>> import flambeau
    >>> flambeau.nn.functional.adaptive_avg_pool2d(flambeau.ones(1, 4, 6), (2, None)).shape
    torch.Size([1, 2, 6])
    """
    return _adaptive_avg(2, input, output_size)


@composite(namespace=NETWORK)
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows that part the last three dimensions into nearly equal parts."""
    return _adaptive_avg(3, input, output_size)


def _adaptive_max1d(input: Tensor, output_size: Any) -> Any:
    check_one_dimensional(input, "adaptive_max_pool1d")
    size = _one_size(output_size, "adaptive_max_pool1d")
    values, indices = _adaptive_max(2, input.unsqueeze(-2), (1, size))
    return values.squeeze(-2), indices.squeeze(-2)


def _adaptive_max_pooler(n: int) -> None:
    pool = _adaptive_max1d if n == 1 else lambda *args: _adaptive_max(n, *args)

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return pool(input, output_size)

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        found = pool(input, output_size)
        return found if return_indices else found[0]

    adaptive_max_pool.__doc__ = (f"Maxima over windows that part the last {n} dimensions into "
                                 "`output_size` nearly equal parts.")
    with_indices.__doc__ = f"The maxima of `adaptive_max_pool{n}d` and where they are."
    composite(adaptive_max_pool, namespace=NETWORK, name=f"adaptive_max_pool{n}d")
    composite(with_indices, namespace=NETWORK, name=f"adaptive_max_pool{n}d_with_indices")
    if n == 1:
        public["torch"]["adaptive_max_pool1d"] = public[NETWORK]["adaptive_max_pool1d_with_indices"]


for _n in (1, 2, 3):
    _adaptive_max_pooler(_n)


# ---- fractional pooling --------------------------------------------------------------------------


def _fractional(n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
                samples: Any) -> Any:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    x = input._array
    kernel = per_axis(kernel_size, n, name, "kernel_size")
    if output_size is None:
        if len(output_ratio) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of "
                             "Ints.")
        output_size = [int(s * r) for s, r in zip(x.shape[-n:], output_ratio)]
    sizes = per_axis(output_size, n, name, "output_size")
    if samples is None:
        batch = 1 if x.ndim == n + 1 else x.shape[0]
        samples = flambeau.rand(batch, input.size(-n - 1), n, dtype=input.dtype)
    if samples._array.dtype != x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    _check_rank(x, n)
    refuse(x, "bBilUcW8", f"{name}_out_frame")
    out = "_out" if n == 3 else ""
    if 0 in x.shape[-n - 1:]:
        at = x.ndim - n - 1 + x.shape[-n - 1:].index(0)
        raise RuntimeError(f"{name}{out}(): Expected input to have non-zero size for non-batch "
                           f"dimensions, but got{list(x.shape)} with dimension {at} being empty.")
    for axis, k, s, o in zip(("time", "height", "width")[-n:], kernel, x.shape[-n:], sizes):
        if o + k - 1 > s - (n == 3):       # PyTorch leaves a row over in three dimensions
            raise RuntimeError(f"{name}{out}(): pool {axis} {k} too large "
                               f"relative to input {axis} {s}")
    batch = 1 if x.ndim == n + 1 else x.shape[0]
    samples = _checked_samples(samples, batch, x.shape[-n - 1], n)
    return _FRACTIONAL[n](input, samples[0] if x.ndim == n + 1 else samples, kernel, sizes)


def _checked_samples(samples: Tensor, batch: int, channels: int, n: int) -> Tensor:
    shape = samples._array.shape
    if len(shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(shape)}")
    if shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {shape[2]}.")
    return samples[:batch]


def _fractional_pooler(n: int) -> None:
    def fractional_max_pool(input: Tensor, kernel_size: Any, output_size: Any = None,
                            output_ratio: Any = None, return_indices: bool = False,
                            _random_samples: Any = None) -> Any:
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    def with_indices(input: Tensor, kernel_size: Any, output_size: Any = None,
                     output_ratio: Any = None, return_indices: bool = False,
                     _random_samples: Any = None) -> Any:
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    fractional_max_pool.__doc__ = (
        f"Maxima over windows at random steps in the last {n} dimensions, as many as `output_size` "
        "or `output_ratio` say. Graham, Fractional max-pooling, 2014.")
    with_indices.__doc__ = f"The maxima of `fractional_max_pool{n}d` and where they are."
    composite(fractional_max_pool, namespace=NETWORK, name=f"fractional_max_pool{n}d")
    composite(with_indices, namespace=NETWORK, name=f"fractional_max_pool{n}d_with_indices")


_fractional_pooler(2)
_fractional_pooler(3)


# ---- unpooling -----------------------------------------------------------------------------------


def _unpool_op(n: int) -> Any:
    def unpool(input: Tensor, indices: Tensor, output_size: Any) -> Any:
        return input, indices, output_size

    unpool.__name__ = f"_max_unpool{n}d"
    take = {2: lambda grad, indices: take_at(grad, indices, 2),
            3: lambda grad, indices: take_at(grad, indices, 3)}[n]
    op = linear(
        _flat_images(n, kernels.max_unpool), params=("output_size",),
        tensors=("self", "indices"), method=False, namespace=None, batch=leading(lambda: op),
        node_name=f"MaxUnpool{n}DBackward0", d_self=take)(unpool)
    return op


_UNPOOL = {n: _unpool_op(n) for n in (2, 3)}


def _unpool_size(input: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    size, n = input._array.shape[-len(kernel):], len(kernel)
    usual = [(s - 1) * st + k - 2 * p for s, st, k, p in zip(size, stride, kernel, padding)]
    if output_size is None:
        return tuple(usual)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, "
                         "but "
                         f"it has a length of '{len(output_size)}'")
    for d, (o, u, s) in enumerate(zip(output_size, usual, stride)):
        if not u - s < o < u + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between '
                             f"{u - s} and {u + s})")
    return tuple(output_size)


def _max_unpool(n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any,
                padding: Any, output_size: Any) -> Tensor:
    kernel = (kernel_size,) * n if isinstance(kernel_size, int) else tuple(kernel_size)
    stride = kernel if stride is None else (stride,) * n if isinstance(stride, int) \
        else tuple(stride)
    padding = (padding,) * n if isinstance(padding, int) else tuple(padding)
    size = _unpool_size(input, kernel, stride, padding, output_size)
    if n == 1:
        return _unpooled(2, input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)
    return _unpooled(n, input, indices, size)


def _unpooled(n: int, input: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    x, i = input._array, indices._array
    if i.dtype != np.int64:
        raise RuntimeError("elements in indices should be type int64 but got: "
                           f"{type_name(indices.dtype)}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, "
                           "but "
                           f"got a tensor with {x.ndim} dimensions.")
    if x.shape != i.shape:
        raise RuntimeError("Expected shape of indices to be same as that of the input tensor "
                           f"({list(x.shape)}) but got indices tensor with shape: {list(i.shape)}")
    return _UNPOOL[n](input, indices, size)


def _unpooler(n: int) -> None:
    def max_unpool(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None,
                   padding: Any = 0, output_size: Any = None) -> Tensor:
        return _max_unpool(n, input, indices, kernel_size, stride, padding, output_size)

    max_unpool.__doc__ = (f"The maxima that `max_pool{n}d` gave put back to where they were, zeros "
                          "elsewhere; `output_size` where several are possible.")
    composite(max_unpool, namespace=NETWORK, name=f"max_unpool{n}d")


for _n in (1, 2, 3):
    _unpooler(_n)


# ---- power means ---------------------------------------------------------------------------------


def _lp_pooler(n: int) -> None:
    def lp_pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
                ceil_mode: bool = False) -> Tensor:
        name = f"avg_pool{n}d"
        mean = public[NETWORK][name](input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        count = kernel_size if isinstance(kernel_size, int) and n == 1 else 1
        if n > 1:
            for k in (kernel_size,) * n if isinstance(kernel_size, int) else kernel_size:
                count *= k
        elif not isinstance(kernel_size, int):
            count = kernel_size[0]
        return (flambeau.sign(mean) * flambeau.relu(mean.abs())).mul(count).pow(1.0 / norm_type)

    lp_pool.__doc__ = f"(Σ x^p)^(1/p) over each window of the last {n} dimensions, p = `norm_type`."
    composite(lp_pool, namespace=NETWORK, name=f"lp_pool{n}d")


for _n in (1, 2, 3):
    _lp_pooler(_n)
