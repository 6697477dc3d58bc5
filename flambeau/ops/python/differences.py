"""Differences of neighbours and the integrals that undo them."""
from __future__ import annotations

from typing import Any

from flambeau.core.shapes import wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import refuse
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.node_names import over, times
from flambeau.ops.pointwise.comparison import ne
from flambeau.ops.reduction.scan import cumsum
from flambeau.ops.view.join import cat
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.splitting import cut, narrow


def _pairs(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All elements along `dim` but the first, and all but the last."""
    n = input._array.shape[dim]
    return cut(input, dim, 1, n), cut(input, dim, 0, n - 1)


def _speaker_of_differences(input: Tensor, n: int, *rest: Any) -> str | None:
    return ("logical_xor" if input._array.dtype.kind == "b" else "sub") if n else None


@op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out_reported_as=_speaker_of_differences, out_type=lambda read, out, found:
    "" if read[1] else "expected scalar_type {found} but found {out}", overlap="element")
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([1, 4, 9]).diff()
    tensor([3, 5])
    """
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, input._array.ndim)
    parts = [input] if prepend is append is None else [
        t for t in (prepend, input, append) if t is not None]
    if len(parts) > 1 and any(t._array.ndim != input._array.ndim for t in parts):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for part in parts if len(parts) > 1 else ():
        for d, (n_own, n_part) in enumerate(zip(input._array.shape, part._array.shape)):
            if d != dim and n_own != n_part:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({d}) = {n_own}, but got "
                    f"tensor.size({d}) = {n_part}")
    if n == 0:
        return zeros_like(input).copy_(input)
    result = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, result._array.shape[dim])):
        later, earlier = _pairs(result, dim)
        result = ne(later, earlier) if result._array.dtype.kind == "b" else later - earlier
    return result


# ---- integrals ----------------------------------------------------------------------------------


def _check_samples(name: str, y: Tensor, x: Any, dim: int, dx: Any) -> int:
    """The dimension along which to integrate."""
    if not y._array.ndim:
        dim = dim if x is None else wrap_dim(dim, 0)
        raise IndexError("slice() cannot be applied to a 0-dim tensor." if name[0] == "c" else
                         f"Dimension specified as {dim} but tensor has no dimensions")
    if type(dx) in (bool, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    dim = wrap_dim(dim, y._array.ndim)
    if y._array.shape[dim]:
        if y._array.dtype.kind == "b" or (x is not None and x._array.dtype.kind == "b"):
            which = "`y`" if x is None else "`x` or `y`"
            raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not "
                               "supported")
        refuse(y._array, "U", "add_stub")
    return dim


def _sample_widths(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """How far the samples are apart."""
    if x._array.ndim == 1 and y._array.ndim > 1:
        if x._array.shape[0] != y._array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = reshape(x, [-1 if i == dim else 1 for i in range(y._array.ndim)])
    elif x._array.ndim == 1 and x._array.shape != y._array.shape:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    else:
        x = x if x._array.ndim else reshape(x, (1,))
        if x._array.ndim < y._array.ndim:
            dim -= y._array.ndim
    far, near = _pairs(x, dim % x._array.ndim if dim < 0 else dim)
    return far - near


def _declare_integral(name: str, dx: str = "Scalar dx=1") -> Any:
    return op(f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
              f"{name}.dx(Tensor y, *, {dx}, int dim=-1) -> Tensor", method=False, out=False)


def _trapezoid(y: Tensor, x: Tensor | None, dim: int, dx: Any) -> Tensor:
    dim = _check_samples("trapezoid", y, x, dim, dx)
    if not y._array.shape[dim]:
        shape = y._array.shape
        import flambeau
        return flambeau.empty(shape[:dim] + shape[dim + 1:], dtype=y.dtype).zero_()
    if x is not None:
        later, earlier = _pairs(y, dim)
        return over(((later + earlier) * _sample_widths("trapezoid", y, x, dim)).sum(dim), 2.0)
    ends = y.select(dim, 0) + y.select(dim, -1)
    return times(y.sum(dim) - times(ends, 0.5), dx)


@_declare_integral("trapezoid")
def trapezoid(y: Tensor, x: Tensor | None, dim: int, dx: Any) -> Tensor:
    """The integral along `dim` by the trapezoidal rule: of samples y at x, or `dx` apart.

    >>> import flambeau
    >>> flambeau.trapezoid(flambeau.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _trapezoid(y, x, dim, dx)


@_declare_integral("trapz", "float dx=1")
def trapz(y: Tensor, x: Tensor | None, dim: int, dx: Any) -> Tensor:
    """The older name of `trapezoid`."""
    return _trapezoid(y, x, dim, dx)


@_declare_integral("cumulative_trapezoid")
def cumulative_trapezoid(y: Tensor, x: Tensor | None, dim: int, dx: Any) -> Tensor:
    """The integrals from the first sample to each later one, by the trapezoidal rule."""
    dim = _check_samples("cumulative_trapezoid", y, x, dim, dx)
    if not y._array.shape[dim]:
        return cumsum(times(y, 0.5), dim)
    later, earlier = _pairs(y, dim)
    if x is None:
        return cumsum(times(later + earlier, dx / 2), dim)
    return over(cumsum((later + earlier) * _sample_widths("cumulative_trapezoid", y, x, dim), dim),
                2.0)


# ---- derivatives --------------------------------------------------------------------------------


_GRID = (("scalarint", "Scalar? spacing=None, int? dim=None"),
         ("scalararray", "Scalar spacing, int[] dim"), ("array", "int[] dim"),
         ("scalarrayint", "Scalar[] spacing, int? dim=None"),
         ("scalarrayarray", "Scalar[] spacing, int[] dim"),
         ("tensorarrayint", "Tensor[] spacing, int? dim=None"),
         ("tensorarray", "Tensor[] spacing, int[] dim"))


@op(*[f"gradient.{name}(Tensor self, *, {grid}, int edge_order=1) -> Tensor[]"
      for name, grid in _GRID], method=False, out=False)
def gradient(input: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    """The derivative along each dimension by second-order differences, of samples on a grid.

    `spacing` is the distance of the samples: one number, one a dimension, or their coordinates.

    >>> import flambeau
    >>> flambeau.gradient(flambeau.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = tuple(range(input._array.ndim)) if dim is None else wrap_dims(dim, input._array.ndim)
    spacing = 1 if spacing is None else spacing
    if input._array.dtype == "u1":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    devices = [input.device, *[s.device for s in steps if isinstance(s, Tensor)]]
    other = next((d for d in devices if d != devices[0]), None)
    if other is not None:
        raise RuntimeError("torch.gradient expected each tensor to be on the same device, but got "
                           f"devices {devices[0]} and {other}!")
    if len(steps) != len(dims):
        expected = "torch.gradient expected spacing to be unspecified, a scalar"
        raise RuntimeError(
            f"{expected}, or a list of length equal to 'self.dim() = {len(dims)}', since dim "
            f"argument was not given, but got a list of length {len(steps)}" if dim is None else
            f"{expected} or it's spacing and dim arguments to have the same length, but got a "
            f"spacing argument of length {len(steps)} and a dim argument of length {len(dims)}.")
    for d in dims:
        if input._array.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least "
                               "edge_order+1")
    return tuple([_gradient_along(input, d, step, edge_order) for d, step in zip(dims, steps)])


def _gradient_along(input: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    n = input._array.shape[dim]

    def at(start: int, count: int = 1, of: Tensor = input) -> Tensor:
        return narrow(of, dim, start, count)

    def mixed(start: int, count: int, weights: Any) -> Tensor:
        return sum((at(start + k, count) * w for k, w in enumerate(weights[1:], 1)),
                   at(start, count) * weights[0])

    if not isinstance(step, Tensor) or not step._array.ndim:
        start, end = (at(1) - at(0)) / step, (at(n - 1) - at(n - 2)) / step
        middle = (at(2, n - 2) - at(0, n - 2)) / (step * 2)
        if edge_order == 2:
            start = mixed(0, 1, (-1.5, 2, -0.5)) / step
            end = mixed(n - 3, 1, (0.5, -2, 1.5)) / step
        return cat([start, middle, end], dim)
    gaps = reshape(diff(step), [-1 if i == dim else 1 for i in range(input._array.ndim)])
    after, before = _pairs(gaps, dim)           # the gaps on both sides of each inner point
    middle = mixed(0, n - 2, _parabola_slope(before, after)[1])
    start = (at(1) - at(0)) / at(0, of=gaps)
    end = (at(n - 1) - at(n - 2)) / at(n - 2, of=gaps)
    if edge_order == 2:
        start = mixed(0, 1, _parabola_slope(at(0, of=gaps), at(1, of=gaps))[0])
        end = mixed(n - 3, 1, _parabola_slope(at(n - 3, of=gaps), at(n - 2, of=gaps))[2])
    return cat([start, middle, end], dim)


def _parabola_slope(g: Tensor, h: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    """The slope of the parabola through three points, `g` and then `h` apart, at each of them: the
    weights of their values."""
    both = g + h
    return ((-(g * 2 + h) / (g * both), both / (g * h), -g / (h * both)),
            (-h / (g * both), (h - g) / (g * h), g / (h * both)),
            (h / (g * both), -both / (g * h), (h * 2 + g) / (h * both)))


__all__ = ["diff", "gradient", "trapezoid"]
