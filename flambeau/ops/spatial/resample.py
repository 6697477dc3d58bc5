"""Resampling images: interpolation to another size."""
from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from flambeau.core.modes import interceptors
from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving.layouts import preserve_channels_last
from flambeau.kernels.network import resampling as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.out_types import OUT_TYPE, python_on_meta
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first

NETWORK = "nn.functional"


def folded(call: Any) -> Any:
    """The batching rule of ops whose tensors all have a batch in front: the two become one."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        n = len(dims)
        tensors = []
        for tensor, dim in zip(canonical, dims):
            t = batch_first(tensor, dim, size)
            shape = t._array.shape
            tensors.append(reshape(t, (size * shape[1], *shape[2:])))
        result = call()(*tensors, *canonical[n:])
        shape = result._array.shape
        return reshape(result, (size, shape[0] // size, *shape[1:])), 0
    return rule


# ---- interpolation -------------------------------------------------------------------------------

_COMPILED = {"nearest": "nearest", "nearest-exact": "nearest_exact", "linear": "linear",
             "bilinear": "linear", "trilinear": "linear"}
_DIMS = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,),
         "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "bilinear-antialias": (2,),
         "bicubic-antialias": (2,)}
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _with_values(formula: Any, *names: str) -> Any:
    """A formula, given values of these names."""
    formula.names = names
    return formula


def _declare_upsampling(kind: str, n: int) -> Any:
    """The op of one mode in so many dimensions, and its transpose; gives the function."""
    mode, antialias, aligns = kind.removesuffix("-antialias"), "antialias" in kind, \
        not kind.startswith("nearest")
    name = f"{'_' * (antialias or 'exact' in kind)}upsample_" \
           f"{mode.replace('-', '_')}{n}d{'_aa' * antialias}"
    title = "".join([word.capitalize() for word in mode.split("-")])
    node = f"Upsample{title}{n}D{'Aa' * antialias}"
    names = ["scales"] if n == 1 else [f"scales_{axis}" for axis in "dhw"[3 - n:]]
    corners = "bool align_corners, " * aligns
    given = corners + ", ".join([f"float? {each}=None" for each in names])
    saved = ("align_corners", *names) if aligns else names
    inner: Any = {"method": False, "namespace": "_nn"}

    def parted(rest: Any) -> tuple[bool, Any]:
        """Are corners aligned? And the factors that were asked for."""
        own, scales = (rest[0], rest[1:]) if aligns else (False, rest)
        return own, None if scales == (None,) * n else scales

    def resized(self: np.ndarray, size: Any, *rest: Any) -> np.ndarray:
        own, scales = parted(rest)
        return kernels.interpolate(self, size, mode, own, scales, antialias)

    def transposed(grad: np.ndarray, size: Any, shape: Any, *rest: Any) -> np.ndarray:
        own, scales = parted(rest)
        return kernels.interpolate_backward(grad, shape, mode, own, scales, antialias)

    def canonical(input: Tensor, size: Any, *rest: Any) -> tuple[Any, ...]:
        _check_resizing(input, size, n)
        refuse(input._array, "bBilUcW8" if mode in ("linear", "trilinear") else
               "bilUcW8" + "e" * antialias, _kernel_name(n, mode, antialias))
        return input, tuple(size), *rest

    def unfolded(size: int, dims: Any, grad: Tensor, out: Any, shape: Any, *rest: Any) -> Any:
        return folded(lambda: backward.op.call)(
            size, dims, grad, out, (size * shape[0], *shape[1:]), *rest)

    keeps = mode == "trilinear" or (n == 2 and mode != "bicubic")
    backward = op(
        f"{name}_backward(Tensor grad_output, SymInt[{n}] output_size, SymInt[{n + 2}] input_size, "
        f"{given}) -> Tensor", kind="linear", out=False, **inner, batch=unfolded,
        kernel=preserve_channels_last(transposed) if keeps else transposed,
        refuses=(f"{name.strip('_')}_backward_cpu", "bBilUecW8") if antialias else (),
        shape=lambda grad, size, shape, *rest: tuple(shape),
        node=f"{node}BackwardBackward0", d_grad_output=_with_values(
            lambda grad, size, *rest: forward(grad, size, *rest), "grad", "output_size", *saved))
    forward = op(
        f"{name}(Tensor self, SymInt[{n}] output_size, {given}) -> Tensor",
        kernel=preserve_channels_last(resized), canonical=canonical, kind="linear", **inner,
        out_type=OUT_TYPE if aligns else python_on_meta(OUT_TYPE),
        shape=lambda self, size, *rest: (*self._array.shape[:2], *size),
        checked_kernel=checked(f"upsample_{_COMPILED[mode]}") if kind in _COMPILED else None,
        batch=folded(lambda: forward.op.call), node=f"{node}Backward0", d_self=_with_values(
            lambda grad, shape, size, *rest: backward(grad, size, shape, *rest),
            "grad", "self_shape", "output_size", *saved))

    def of_factors(input: Tensor, output_size: Any, *rest: Any) -> Tensor:
        *own, factors = rest
        size = _size_of(input._array.shape[2:], output_size, factors)
        scales = [None] * n if factors is None else factors
        return forward(input, size, *own, **dict(zip(names, scales)))

    op(f"{name}.vec(Tensor input, SymInt[]? output_size, {corners}float[]? scale_factors) -> "
       "Tensor", overload_of=forward, body=of_factors, out=False, **inner)
    return forward


def _size_of(spatial: Any, size: Any, factors: Any) -> tuple[int, ...]:
    """The size that was asked for, or that factors give."""
    if (size is None) == (factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    for name, values in (("output_size", size), ("scale_factors", factors)):
        if values is not None and len(values) != len(spatial):
            raise RuntimeError(
                f"Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, "
                "but got false.  (Could this error message be improved?  If so, please report an "
                "enhancement request to PyTorch.)")
    return tuple(size) if factors is None else tuple([
        math.floor(float(n) * f) for n, f in zip(spatial, factors)])


def _check_resizing(input: Tensor, size: Any, n: int) -> None:
    shape = input._array.shape
    for what, values, expected in (("output_size", size, n), ("input_size", shape, n + 2)):
        if len(values) != expected:
            raise RuntimeError(f"It is expected {what} equals to {expected}, but got size "
                               f"{len(values)}")
    if min((*size, *shape[2:])) <= 0:
        named = [", ".join(f"{a}: {s}" for a, s in zip("DHW"[-n:], group))
                 for group in (shape[2:], size)]
        raise RuntimeError("Input and output sizes should be greater than 0, but got input "
                           f"({named[0]}) {'and ' * (n == 1)}output ({named[1]})")
    if not shape[1]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes "
                           f"{list(shape)}")


def _kernel_name(n: int, mode: str, antialias: bool) -> str:
    """What PyTorch calls the kernel that would interpolate."""
    if antialias:
        return "compute_index_ranges_weights"
    stem = mode.removeprefix("bi").removeprefix("tri").removesuffix("-exact")
    return f"compute_indices_weights_{stem}" if n != 2 or stem == "cubic" else \
        f"upsample_{mode.removesuffix('-exact')}2d_channels_last"


_UPSAMPLING = {(kind, n): _declare_upsampling(kind, n) for kind, dims in _DIMS.items()
               for n in dims}


def _sizes(n: int, spatial: list[int], size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """The sizes, or the factors, that were asked for, one for each of `n` dimensions."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * n, None
        if len(size) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {spatial} and output size of {size}. Please provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, "
                "...,oK) format.")
        if not all(hasattr(s, "__index__") for s in size):
            raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                            "Tuple[int, int, int], but got size with types "
                            f"{[type(s) for s in size]}")
        return size, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * n
    if len(scale_factor) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {spatial} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format.")
    return None, scale_factor


_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def _check_mode(rank: int, mode: str, align_corners: Any, antialias: bool) -> None:
    if antialias and not (mode in ("bilinear", "bicubic") and rank == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
                         "and requires a 4-D tensor as input")
    if rank not in (3, 4, 5) or not isinstance(mode, str) or (mode not in _RANKS and mode not in
                                 ("nearest", "area", "nearest-exact")):
        raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got "
                                  f"{rank}D) for the modes: {_MODES} (got {mode})")
    if mode in _RANKS and rank != _RANKS[mode]:
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {_RANKS[mode]}D input")


@python_function(namespace=NETWORK)
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """`input` (n, c, ...) with its spatial dimensions resized to `size`, or by `scale_factor`.

    Modes: "nearest", "nearest-exact", "linear" (3-D), "bilinear", "bicubic" (4-D), "trilinear"
    (5-D), "area". `align_corners`: the corner elements' centres, not the corners, stay in place.

    >>> import flambeau
    >>> flambeau.nn.functional.interpolate(flambeau.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: "
                         "linear | bilinear | bicubic | trilinear")
    n = input.dim() - 2
    spatial = [*input.shape[2:]]
    sizes, factors = _sizes(n, spatial, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor or (mode == "area" and sizes is None):
        sizes, factors = [int(s * f) for s, f in zip(spatial, factors)], None
    _check_mode(n + 2, mode, align_corners, antialias)
    if mode == "area":
        return public[NETWORK][f"adaptive_avg_pool{n}d"](input, sizes)
    upsample = _UPSAMPLING[f"{mode}-antialias" if antialias else mode, n]
    corners: tuple[Any, ...] = ()
    if not mode.startswith("nearest"):
        corners = (False if align_corners is None else align_corners,)
    if n > 1 and not interceptors and corners in _CORNERS \
            and (_WHOLE.issuperset(map(type, sizes)) if sizes else
                 _NUMBERS.issuperset(map(type, factors))):          # one step, if nobody watches
        size = sizes or [math.floor(float(s) * f) for s, f in zip(spatial, factors)]
        return upsample(input, size, *corners, *(factors or (None,) * n))
    return upsample(input, sizes, *corners, factors)


_WHOLE, _NUMBERS, _CORNERS = frozenset({int}), frozenset({int, float}), ((), (True,), (False,))


def _deprecated(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=3)


@python_function(namespace=NETWORK)
def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """The old name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@python_function(namespace=NETWORK)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in mode "nearest", by its old name."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@python_function(namespace=NETWORK)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in mode "bilinear" with aligned corners, by its old name."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
