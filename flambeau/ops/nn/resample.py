"""Resampling images: interpolation to another size, and sampling at given points."""
from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np

import flambeau
from flambeau.core.op import public
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, basis
from flambeau.dispatch.declaration import op
from flambeau.dispatch.parts import ThroughParts
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels import resampling as kernels
from flambeau.kernels.layouts import keeping_layout
from flambeau.kernels.network import checked
from flambeau.kernels.refused import refuse
from flambeau.ops.node_names import one_node

NETWORK = "nn.functional"


def folded(call: Any) -> Any:
    """The batching rule of ops whose tensors all have a batch in front: the two become one."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        n = len(dims)
        tensors = []
        for tensor, dim in zip(canonical, dims):
            t = basis.expand(tensor, (size, *tensor._array.shape)) if dim is None \
                else basis.movedim(tensor, dim, 0)
            shape = t._array.shape
            tensors.append(basis.reshape(t, (size * shape[1], *shape[2:])))
        result = call()(*tensors, *canonical[n:])
        shape = result._array.shape
        return basis.reshape(result, (size, shape[0] // size, *shape[1:])), 0
    return rule


# ---- interpolation -------------------------------------------------------------------------------

_NODES = {"nearest": "UpsampleNearest", "nearest-exact": "UpsampleNearestExact",
          "linear": "UpsampleLinear", "bilinear": "UpsampleBilinear",
          "trilinear": "UpsampleTrilinear", "bicubic": "UpsampleBicubic",
          "bilinear-antialias": "UpsampleBilinear2DAa", "bicubic-antialias": "UpsampleBicubic2DAa"}
_COMPILED = {"nearest": "nearest", "nearest-exact": "nearest_exact", "linear": "linear",
             "bilinear": "linear", "trilinear": "linear"}
_DIMS = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,),
         "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "bilinear-antialias": (2,),
         "bicubic-antialias": (2,)}
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _named(formula: Any, *names: str) -> Any:
    """A formula, given values of these names."""
    formula.names = names
    return formula


def _declare_upsampling(kind: str, n: int) -> Any:
    """The op of one mode in so many dimensions, and its transpose; gives the function."""
    mode, antialias, aligns = kind.removesuffix("-antialias"), "antialias" in kind, \
        not kind.startswith("nearest")
    name = f"{'_' * (antialias or 'exact' in kind)}upsample_" \
           f"{mode.replace('-', '_')}{n}d{'_aa' * antialias}"
    node = _NODES[kind] if antialias else f"{_NODES[kind]}{n}D"
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
        refuse(input._array, "bBilUcW8" if mode in ("linear", "trilinear") else "bilUcW8",
               _kernel_name(n, mode, antialias))
        return input, tuple(size), *rest

    def unfolded(size: int, dims: Any, grad: Tensor, out: Any, shape: Any, *rest: Any) -> Any:
        return folded(lambda: backward.op.call)(
            size, dims, grad, out, (size * shape[0], *shape[1:]), *rest)

    backward = op(
        f"{name}_backward(Tensor grad_output, SymInt[{n}] output_size, SymInt[{n + 2}] input_size, "
        f"{given}) -> Tensor", kernel=transposed, kind="linear", out=False, **inner, batch=unfolded,
        node=f"{node}BackwardBackward0", d_grad_output=_named(
            lambda grad, size, *rest: forward(grad, size, *rest), "grad", "output_size", *saved))
    forward = op(
        f"{name}(Tensor self, SymInt[{n}] output_size, {given}) -> Tensor",
        kernel=keeping_layout(resized), canonical=canonical, kind="linear", **inner,
        quick=checked(f"upsample_{_COMPILED[mode]}") if kind in _COMPILED else None,
        batch=folded(lambda: forward.op.call), node=f"{node}Backward0", d_self=_named(
            lambda grad, shape, size, *rest: backward(grad, size, shape, *rest),
            "grad", "self_shape", "output_size", *saved))

    def of_factors(input: Tensor, output_size: Any, *rest: Any) -> Tensor:
        *own, factors = rest
        size = _size_of(input._array.shape[2:], output_size, factors)
        scales = [None] * n if factors is None else factors
        return forward(input, size, *own, **dict(zip(names, scales)))

    op(f"{name}.vec(Tensor input, SymInt[]? output_size, {corners}float[]? scale_factors) -> "
       "Tensor", joins=forward, body=of_factors, out=False, **inner)
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
                           f"({named[0]}) output ({named[1]})")
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


def _sizes(spatial: list[int], size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """The sizes, or the factors, that were asked for, one for each dimension."""
    n = len(spatial)
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
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: "
                             "linear | bilinear | bicubic | trilinear")
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
    if isinstance(size, Tensor):
        size = size.tolist()
    spatial = input.shape[2:]
    n = len(spatial)
    sizes, factors = _sizes(spatial, size, scale_factor) if n > 0 or size is None else (None, None)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes, factors = [math.floor(float(s) * f) for s, f in zip(spatial, factors)], None
    _check_mode(n + 2, mode, align_corners, antialias)
    if mode == "area":
        if sizes is None:
            sizes = [math.floor(float(s) * f) for s, f in zip(spatial, factors)]
        return public[NETWORK][f"adaptive_avg_pool{n}d"](input, sizes)
    upsample = _UPSAMPLING[f"{mode}-antialias" if antialias else mode, n]
    corners: tuple[Any, ...] = ()
    if not mode.startswith("nearest"):
        corners = (False if align_corners is None else align_corners,)
    if n > 1 and _NUMBERS.issuperset(map(type, sizes or factors)) and corners in _CORNERS:
        size = sizes or [math.floor(float(s) * f) for s, f in zip(spatial, factors)]
        return upsample(input, size, *corners, *(factors or (None,) * n))
    return upsample(input, sizes, *corners, factors)


_NUMBERS, _CORNERS = frozenset({int, float}), ((), (True,), (False,))


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


# ---- sampling at points --------------------------------------------------------------------------


def _place(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    """A coordinate from -1 to 1 as a place among `size` elements."""
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2


def _brought_in(place: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """A place outside of the image as one inside, by the padding's rule."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, span = (0, size - 1) if align_corners else (-0.5, size)
        if span <= 0:
            return place * 0
        offset = (place - low).abs()
        extra = offset - span * (offset.detach() / span).floor()
        odd = (offset.detach() / span).floor() % 2 == 1
        place = flambeau.where(odd, span - extra, extra) + low
    outside = (place <= 0) | (place >= size - 1)
    return flambeau.where(outside, place.detach().clamp(0, size - 1), place)


def _cubic(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Weights of the four neighbours of a point a fraction t past the second (Keys, 1981)."""
    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _taps(coordinate: Tensor, size: int, mode: str, padding: str,
          align_corners: bool) -> list[tuple[Tensor, Tensor]]:
    """Along one axis: the neighbours' indices and weights."""
    place = _place(coordinate, size, align_corners)
    if mode != "bicubic":
        place = _brought_in(place, size, padding, align_corners)
    fixed = place.detach().nan_to_num(-1e9).clamp(-1e9, 1e9)
    if mode == "nearest":
        return [(fixed.round().long(), flambeau.ones_like(place))]
    low = fixed.floor()
    t, first = place - low, low.long()
    if mode == "bilinear":
        return [(first, 1 - t), (first + 1, t)]
    return [(_brought_in(low + (k - 1), size, padding, align_corners).long(), weight)
            for k, weight in enumerate(_cubic(t))]


_SAMPLING, _PADDING = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _sampled(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
             align_corners: bool) -> Tensor:
    """An image sampled at the points of a grid, made of other ops."""
    mode, padding = _SAMPLING[interpolation_mode], _PADDING[padding_mode]
    shape = input._array.shape
    n, c, size = shape[0], shape[1], shape[2:]
    dims = len(size)
    flat = input.reshape(n, c, -1)
    tables = [_taps(grid[..., dims - 1 - axis], size[axis], mode, padding, align_corners)
              for axis in range(dims)]
    total: Any = 0
    for corner in product(*tables):
        position, inside, weight = 0, True, 1
        for (index, w), s in zip(corner, size):
            inside = (index >= 0) & (index < s) & inside
            position = position * s + index.clamp(0, s - 1)
            weight = weight * w
        out = position._array.shape[1:]
        values = flat.gather(2, position.reshape(n, 1, -1).expand(n, c, -1))
        total = total + values.reshape(n, c, *out) * flambeau.where(
            inside, weight, 0).unsqueeze(1)
    return total


def _sampling_gradients(grad: Tensor, input: Tensor, grid: Tensor, *modes: Any) -> Any:
    through = ThroughParts(_sampled, ("input", "grid"), ("interpolation_mode",))
    return tuple(through(grad, [True, True], input, grid, *modes))


def _declare_grid_sampler(dims: int) -> Any:
    """`grid_sampler_2d` and its gradient, in `dims` dimensions; gives the function."""
    name, node = f"grid_sampler_{dims}d", f"GridSampler{dims}DBackward"
    modes = "int interpolation_mode, int padding_mode, bool align_corners"

    def canonical(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                  align_corners: bool) -> tuple[Any, ...]:
        _check_sampling(input, grid, interpolation_mode)
        return input, grid, interpolation_mode, padding_mode, align_corners

    gradients = op(
        f"_{name}_gradients(Tensor grad_output, Tensor input, Tensor grid, {modes}) -> "
        "(Tensor, Tensor)", kernel=lambda grad, input, grid, mode, padding, align:
        kernels.grid_sample_backward(grad, input, grid, _SAMPLING[mode], _PADDING[padding], align),
        parts=_sampling_gradients, node=f"{node}Backward0", function=False, method=False, out=False)

    def backward(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int,
                 padding_mode: int, align_corners: bool, output_mask: Any) -> tuple[Any, ...]:
        found = gradients(grad_output, input, grid, interpolation_mode, padding_mode,
                          align_corners)
        return tuple([each if wanted else None for each, wanted in zip(found, output_mask)])

    back = op(f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {modes}, "
              "bool[2] output_mask) -> (Tensor, Tensor)", body=backward, explicit=True,
              function=False, method=False, out=False)
    return op(
        f"{name}(Tensor input, Tensor grid, {modes}) -> Tensor", canonical=canonical,
        kernel=lambda input, grid, mode, padding, align: kernels.grid_sample(
            input, grid, _SAMPLING[mode], _PADDING[padding], align),
        quick=checked("grid_sampler"), parts=_sampled, out=False, method=False, node=f"{node}0",
        autocast="full",
        vjp=lambda grad, needs, input, grid, interpolation_mode, padding_mode, align_corners: back(
            grad, input, grid, interpolation_mode, padding_mode, align_corners, list(needs)),
        doc=f"`grid_sampler` in {dims} dimensions.")


def _check_sampling(input: Tensor, grid: Tensor, interpolation_mode: int) -> None:
    x, g = input._array.shape, grid._array.shape
    dims = len(x) - 2
    if x[:1] != g[:1]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but "
                           f"got input with sizes {list(x)} and grid with sizes {list(g)}")
    if dims not in (2, 3) or len(g) != len(x):
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of "
                           f"dimensions, but got input with sizes {list(x)} and grid with sizes "
                           f"{list(g)}")
    if g[-1] != dims:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {dims} in last dimension, "
                           f"but got grid with sizes {list(g)}")
    for d, n in enumerate(x[2:]):
        if n < 1:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial "
                               f"dimensions, but input has sizes {list(x)} with dimension {d + 2} "
                               "being empty")
    if dims == 3 and _SAMPLING[interpolation_mode] == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input._array.dtype != grid._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found "
                           f"{type_name(grid.dtype)}")
    refuse(input._array, "bBilUcW8",
           "grid_sampler_2d_cpu_kernel_impl" if dims == 2 else "grid_sampler3d_cpu")


_SAMPLERS = {4: _declare_grid_sampler(2), 5: _declare_grid_sampler(3)}


@op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners) -> Tensor", out=False, method=False, autocast="full")
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample` with its modes as numbers."""
    sampler = _SAMPLERS.get(input._array.ndim)
    if sampler is None:
        _check_sampling(input, grid, interpolation_mode)
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@python_function(namespace=NETWORK)
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """`input` (n, c, h, w) at the points of `grid` (n, h', w', 2), or the same in three dimensions.

    Coordinates run from -1 to 1, the last axis of `input` first. Jaderberg et al., 2015.
    """
    if mode not in _SAMPLING:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         "or "
                         f"'bicubic', but got: '{mode}'")
    if padding_mode not in _PADDING:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")
    if align_corners is None:
        _warn_of_corners("grid_sample")
    return grid_sampler(input, grid, _SAMPLING.index(mode), _PADDING.index(padding_mode),
                        False if align_corners is None else align_corners)


def _warn_of_corners(name: str) -> None:
    warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False "
                  "since 1.3.0. Please specify align_corners=True if the old behavior is desired. "
                  "See the documentation of grid_sample for details.", stacklevel=4)


@python_function(namespace=NETWORK)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that maps an output of `size` through the matrices `theta`
    (n, 2, 3), or (n, 3, 4) in three dimensions."""
    size = tuple(size)
    if align_corners is None:
        _warn_of_corners("affine_grid")
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {list(size)}.")
    shape = theta._array.shape
    if len(shape) != 3 or shape[1:] != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape "
                         f"Nx{dims}x{dims + 1} "
                         f"for size {list(size)}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    return affine_grid_generator(theta, size, False if align_corners is None else align_corners)


@op("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    explicit=True, out=False, method=False)
@one_node
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid` without its checks."""
    spatial = tuple(size)[2:]
    axes = []
    for n in reversed(spatial):
        at = flambeau.linspace(-1, 1, n, dtype=theta.dtype) if n > 1 \
            else flambeau.zeros(1, dtype=theta.dtype)
        axes.append(at if align_corners else at * (n - 1) / n)
    shaped = [a.reshape(*(1,) * (len(axes) - 1 - i), -1, *(1,) * i).expand(spatial)
              for i, a in enumerate(axes)]
    points = flambeau.stack([*shaped, flambeau.ones(spatial, dtype=theta.dtype)], -1)
    flat = points.reshape(-1, len(axes) + 1)
    return (flat @ theta.transpose(1, 2)).reshape(theta._array.shape[0], *spatial, len(axes))
