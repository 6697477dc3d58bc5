"""Images sampled at the points of grids, and the grids of affine maps."""
from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import flambeau
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.parts import CompositeBackward
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.network import resampling as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.node_names import one_node

NETWORK = "nn.functional"


def _unnormalize(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
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
    place = _unnormalize(coordinate, size, align_corners)
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


def _grid_sampler_parts(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
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
        position: Any = 0
        inside: Any = True
        weight: Any = 1
        for (index, w), s in zip(corner, size):
            inside = (index >= 0) & (index < s) & inside
            position = position * s + index.clamp(0, s - 1)
            weight = weight * w
        out = position._array.shape[1:]
        values = flat.gather(2, position.reshape(n, 1, -1).expand(n, c, -1))
        total = total + values.reshape(n, c, *out) * flambeau.where(
            inside, weight, 0).unsqueeze(1)
    return total


def _grid_sampler_gradients_parts(grad: Tensor, input: Tensor, grid: Tensor, *modes: Any) -> Any:
    through = CompositeBackward(_grid_sampler_parts, ("input", "grid"), ("interpolation_mode",))
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
        parts=_grid_sampler_gradients_parts, node=f"{node}Backward0", function=False, method=False,
        out=False)

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
        checked_kernel=checked("grid_sampler"), parts=_grid_sampler_parts, out=False, method=False,
        node=f"{node}0", autocast="full",
        vjp=lambda grad, needs, input, grid, interpolation_mode, padding_mode, align_corners: back(
            grad, input, grid, interpolation_mode, padding_mode, align_corners, list(needs)),
        doc=f"`grid_sampler` in {dims} dimensions.")


def _check_sampling(input: Tensor, grid: Tensor, interpolation_mode: int) -> None:
    x, g = input._array.shape, grid._array.shape
    dims = len(x) - 2
    if not x or not g:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if x[:1] != g[:1]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but "
                           f"got input with sizes {list(x)} and grid with sizes {list(g)}")
    if g[-1] != dims:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {dims} in last dimension, "
                           f"but got grid with sizes {list(g)}")
    if dims not in (2, 3) or len(g) != len(x):
        wanted = f"{len(x)}D" if dims in (2, 3) else "4D or 5D"
        raise RuntimeError(f"grid_sampler(): expected {wanted} input and grid with same number of "
                           f"dimensions, but got input with sizes {list(x)} and grid with sizes "
                           f"{list(g)}")
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
                         f"or 'bicubic', but got: '{mode}'")
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
    if align_corners is None:
        _warn_of_corners("affine_grid")
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {size}.")
    shape = theta._array.shape
    if len(shape) != 3 or shape[1:] != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape "
                         f"Nx{dims}x{dims + 1} for size {size}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
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
