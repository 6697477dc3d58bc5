"""Pooling over windows that part images into as many as are asked for."""
from __future__ import annotations

from typing import Any

from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import channels_last, channels_last_3d
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving.layouts import has_channels_last
from flambeau.kernels.network import pooling as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.spatial.pool import (
    INNER,
    NETWORK,
    PART,
    add_at,
    flat_images,
    of_input,
    taking,
    with_or_without_indices,
)
from flambeau.ops.spatial.pooling_checks import (
    adaptive_sizes,
    check_not_empty,
    check_one_dimensional,
    refuse_images,
    single,
    sizes_or_own,
)
from flambeau.ops.view.shape import batch_leading
from flambeau.schema.arguments import is_index


def _declare_adaptive_avg_pool(n: int) -> Any:
    """`_adaptive_avg_pool2d`, its gradient, and `adaptive_avg_pool2d`, in `n` dimensions; gives the
    last."""
    name = f"adaptive_avg_pool{n}d"

    def canonical(input: Tensor, output_size: Any) -> tuple[Any, ...]:
        sizes = adaptive_sizes(n, input, output_size, name)
        if n == 3:
            refuse(input._array, "bBilUcW8", name + "_cpu")
        else:
            refuse_images(input._array, "bBilUcW8" if input._array.size else "b", name)
        return input, sizes

    def gradient(grad_output: Tensor, self: Tensor) -> Tensor:
        check_not_empty(grad_output, f"{name}_backward")
        found = transposed(grad_output, self._array.shape, grad_output._array.shape[-n:])
        return of_input(found, self, f"AdaptiveAvgPool{n}DBackwardBackward0", n == 2)

    transposed = op(
        f"__{name}_backward(Tensor self, int[] shape, int[] output_size) -> Tensor",
        kernel=lambda self, shape, output_size: kernels.adaptive_avg_pool_backward(self, shape, n),
        sizes="shape", node=f"AdaptiveAvgPool{n}DBackwardBackward0",
        d_self=lambda grad, output_size: inner.op.call(grad, output_size), **PART)
    backward = op(f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor", body=gradient,
                  explicit=True, out=False, method=False)
    inner = op(
        f"_{name}(Tensor self, SymInt[{n}] output_size) -> Tensor", method=False, out=False,
        kernel=flat_images(n, kernels.adaptive_avg_pool),
        checked_kernel=checked("adaptive_avg_pool"), canonical=canonical, kind="linear",
        node=f"AdaptiveAvgPool{n}DBackward0", batch=batch_leading(lambda: inner.op.call),
        d_self=lambda grad, self: backward(grad, self))

    single = (1,) * n

    def body(self: Tensor, output_size: Any) -> Tensor:
        if output_size != single:
            if len(output_size) != n:
                adaptive_sizes(n, self, output_size, name)      # says what is wrong
            return inner(self, output_size)
        result = self.mean(tuple(range(-1, -n - 1, -1)), True)
        last = {2: channels_last, 3: channels_last_3d}[n]
        if self.ndim == n + 2 and not self.is_contiguous() and self.is_contiguous(
                memory_format=last) and has_channels_last(self._array):
            return result.as_strided(result.shape, (m := result.shape[1], 1) + (m,) * n)
        return result

    return op(f"{name}(Tensor self, SymInt[{n}] output_size) -> Tensor", body=body,
              out_type="expected dtype {c_found} for `output` but got dtype {c_out}",
              autocast="full" * (n == 3), **INNER)


def _declare_adaptive_max_pool(n: int) -> Any:
    """`adaptive_max_pool2d` and its gradient, in `n` dimensions; gives the function."""
    name = f"adaptive_max_pool{n}d"

    def canonical(input: Tensor, output_size: Any) -> tuple[Any, ...]:
        sizes = adaptive_sizes(n, input, output_size, name)
        if n == 3:
            refuse(input._array, "bBilUcW8", name + "_cpu")
        else:
            refuse_images(input._array, "bBilUcW8", name)
        return input, sizes

    def gradient(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        check_not_empty(grad_output, f"{name}_backward")
        return of_input(add_at(grad_output, indices, self._array.shape, n), self,
                        f"AdaptiveMaxPool{n}DBackwardBackward0", n == 2)

    backward = op(f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
                  body=gradient, explicit=True, out=False, **INNER)
    pool = op(f"{name}(Tensor self, int[{n}] output_size) -> (Tensor, Tensor)",
              kernel=flat_images(n, kernels.adaptive_max_pool), canonical=canonical,
              checked_kernel=checked("adaptive_max_pool"), autocast="full" * (n == 3),
              out_type=OUT_TYPE,
              differentiable=(True, False), node=f"AdaptiveMaxPool{n}DBackward0", jvp=taking(n),
              batch=batch_leading(lambda: pool.op.call), **INNER,
              d_self=lambda grad, self, result1: backward(grad, self, result1))
    return pool


_ADAPTIVE_AVG = {n: _declare_adaptive_avg_pool(n) for n in (2, 3)}
_ADAPTIVE_MAX = {n: _declare_adaptive_max_pool(n) for n in (2, 3)}


@op("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", method=False, out=False)
def adaptive_avg_pool1d(self: Tensor, output_size: Any) -> Tensor:
    """Averages over `output_size` nearly equal parts of the last dimension."""
    check_one_dimensional(self, "adaptive_avg_pool1d")
    size = single(output_size, "adaptive_avg_pool1d", "output_size")
    return _ADAPTIVE_AVG[2](self.unsqueeze(-2), (1, size)).squeeze(-2)


@op("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", method=False,
    out=False)
def adaptive_max_pool1d(self: Tensor, output_size: Any) -> Any:
    """The largest element of each of `output_size` nearly equal parts of the last dimension, and
    where it is."""
    check_one_dimensional(self, "adaptive_max_pool1d")
    size = single(output_size, "adaptive_max_pool1d", "output_size")
    shape = self._array.shape
    for dim in range(1, len(shape)):
        if not shape[dim]:
            raise RuntimeError("adaptive_max_pool1d(): Expected input to have non-zero size for "
                               f"non-batch dimensions, but input has sizes {list(shape)} with "
                               f"dimension {dim} being empty")
    values, indices = _ADAPTIVE_MAX[2](self.unsqueeze(-2), (1, size))
    return values.squeeze(-2), indices.squeeze(-2)


public[NETWORK]["adaptive_avg_pool1d"] = adaptive_avg_pool1d
_ADAPTIVE_MAX[1] = adaptive_max_pool1d


@python_function(namespace=NETWORK)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows that part the last two dimensions into `output_size` nearly equal
    parts; None keeps a size.

    >>> import flambeau
    >>> flambeau.nn.functional.adaptive_avg_pool2d(flambeau.ones(1, 4, 6), (2, None)).shape
    torch.Size([1, 2, 6])
    """
    return _ADAPTIVE_AVG[2](input, sizes_or_own(output_size, input))


@python_function(namespace=NETWORK)
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows that part the last three dimensions into nearly equal parts."""
    return _ADAPTIVE_AVG[3](input, sizes_or_own(output_size, input))


def _adaptive_maxima(n: int) -> None:
    """The functions of `nn.functional`."""
    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = output_size if n == 1 else sizes_or_own(output_size, input)
        if n > 1 and not isinstance(sizes, int) and len(sizes) != n and all(map(is_index, sizes)):
            adaptive_sizes(n, input, sizes, f"adaptive_max_pool{n}d")
        return _ADAPTIVE_MAX[n](input, sizes)

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return with_indices(input, output_size)[0]

    adaptive_max_pool.__doc__ = (f"Maxima over windows that part the last {n} dimensions into "
                                 "`output_size` nearly equal parts.")
    with_indices.__doc__ = f"The maxima of `adaptive_max_pool{n}d` and where they are."
    with_or_without_indices(f"adaptive_max_pool{n}d", 2, adaptive_max_pool, with_indices)


for _n in (1, 2, 3):
    _adaptive_maxima(_n)
