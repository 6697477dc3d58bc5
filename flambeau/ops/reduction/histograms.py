"""Histograms: of numbers, and of points in several dimensions."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau.core.promotion import c_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels import quiet
from flambeau.kernels.reduction import searching as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import as_element
from flambeau.ops.factory.ranges import arange
from flambeau.ops.indexing.masked import take
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, batch_first, movedim

_TYPES = ("torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
          "{c_found} and hist {c_out}")


@quiet
def _histc_rows_kernel(self: np.ndarray, bins: int, min: float, max: float) -> np.ndarray:
    """A histogram of each row; places are computed in the numbers' own type, as in PyTorch."""
    limits = (min, max)
    if not len(self):
        return np.zeros((0, bins), self.dtype)
    return np.stack([kernels.count_in_bins(row, bins, *limits) for row in self])


def _histc_batched(size: int, dims: Any, self: Tensor, *rest: Any) -> Any:
    return histc_rows(batch_as_rows(self, dims[0], size), *rest), 0


def _histc_rows_batched(size: int, dims: Any, self: Tensor, bins: int, *rest: Any) -> Any:
    moved = movedim(self, dims[0], 0)
    count, extent = moved._array.shape[1:]
    found = histc_rows(reshape(moved, (size * count, extent)), bins, *rest)
    return reshape(found, (size, count, bins)), 0


histc_rows = op(
    "histc_rows(Tensor self, int bins, Scalar min, Scalar max) -> Tensor",
    kernel=_histc_rows_kernel, batch=_histc_rows_batched, function=False, method=False, out=False)


def _check_histc(self: np.ndarray, bins: int, min: float, max: float) -> None:
    refuse(self, "b", "linspace_cpu")
    refuse(self, "UW8" if min or max else "UcW8",
           "linspace_cpu" if min or max else "aminmax_cpu")
    refuse(self, "Bilc", "histogram_cpu")
    if bins < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")


def _histc_kernel(self: np.ndarray, bins: int, min: Any, max: Any) -> np.ndarray:
    min, max = (as_element(v, np.dtype(float)) for v in (min, max))
    if self.dtype.char not in "fd" or bins < 1:
        _check_histc(self, bins, min, max)
    return kernels.count_in_bins(self, bins, min, max)


histc = op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", kernel=_histc_kernel,
    batch=_histc_batched,
    out_type=_TYPES, out_reported_as=False, overlap="anywhere",
    doc="How many elements fall into each of `bins` equal parts of [min, max] (0, 0: all "
        "elements).")


def _histogram_kernel(points: np.ndarray, weight: np.ndarray | None, *given: Any) -> Any:
    """The histogram of the rows of `points`, the bin of each (-1: none), the edges of each axis.

    Either the edges of each axis are given or how many bins it has, in the range `limits`.
    """
    *edges, counts, limits = given
    x = points.reshape(-1, max(len(edges), 1))
    edges = [e.copy() if e is not None else kernels.bin_edges(
                 x, i, counts[i], None if limits is None else limits[2 * i:2 * i + 2])
             for i, e in enumerate(edges)]
    total, place = kernels.count_in_grid(x, weight, tuple(edges))
    return [total, place, *edges]


def _histogram_vjp(grad: Any, needs: Any, weight: Tensor | None, result1: Tensor) -> list[Any]:
    """Each weight counts in its bin; where the points lie changes nothing until they leave it."""
    found: list[Any] = [None] * len(needs)
    if needs[1] and weight is not None and grad[0] is not None:
        counted = take(grad[0], where(result1 < 0, 0, result1))
        found[1] = reshape(where(result1 < 0, 0, counted), weight._array.shape)
    return found


@quiet
def _histograms_kernel(points: np.ndarray, weight: np.ndarray | None, *given: Any) -> Any:
    """The histograms of the points of each slice; all tensors have the slices in front."""
    *edges, counts, limits = given
    each = [_histogram_kernel(x, None if weight is None else weight[i],
                              *[e if e is None else e[i] for e in edges], counts, limits)
            for i, x in enumerate(points)]
    return [np.stack(column) for column in zip(*each)]


def _histograms_vjp(grad: Any, needs: Any, weight: Tensor | None, result1: Tensor
                    ) -> list[Any]:
    """The slices' histograms are one, whose cells are those of the first, of the second, …"""
    total = grad[0]
    if total is None or weight is None:
        return [None] * len(needs)
    size, cells = total._array.shape[0], int(np.prod(total._array.shape[1:]))
    first = reshape(arange(size), (size, 1)) * cells
    return _histogram_vjp(grad, needs, weight, where(result1 < 0, result1, result1 + first))


def _slices_histogrammed(axes: int) -> Any:
    """The batching rule of one histogram: there are no loops above the kernel."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        tensors = [t if t is None else batch_first(t, d, size) for t, d in zip(canonical, dims)]
        found = _declare_histograms(axes)(*tensors, *canonical[len(dims):])
        return list(found), [0] * len(found)
    return rule


def _more_slices_histogrammed(axes: int) -> Any:
    """The batching rule of several: their slices are taken together."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        tensors = [t if t is None else batch_first(t, d, size) for t, d in zip(canonical, dims)]
        count = tensors[0]._array.shape[1]
        merged = [t if t is None else reshape(t, (size * count, *t._array.shape[2:]))
                  for t in tensors]
        found = _declare_histograms(axes)(*merged, *canonical[len(dims):])
        return [reshape(f, (size, count, *f._array.shape[1:])) for f in found], [0] * len(found)
    return rule


def _declared(name: str, axes: int, **rules: Any) -> Any:
    edges = "".join([f", Tensor? edges{i}" for i in range(axes)])
    results = ", ".join(["Tensor"] * (axes + 2))
    return op(f"{name}_{axes}d(Tensor points, Tensor? weight{edges}, object counts, "
              f"object limits) -> ({results})", returns=tuple,
              differentiable=(True, False, *[False] * axes), node="HistogramBackward0",
              function=False, method=False, out=False, **rules)


@cache
def _declare_histogram(axes: int) -> Any:
    """The op for points with so many coordinates."""
    return _declared("histogram_of", axes, kernel=quiet(_histogram_kernel), vjp=_histogram_vjp,
                     batch=_slices_histogrammed(axes))


@cache
def _declare_histograms(axes: int) -> Any:
    """The op for several sets of them."""
    return _declared("histograms_of", axes, kernel=_histograms_kernel, vjp=_histograms_vjp,
                     batch=_more_slices_histogrammed(axes))


def _compute_histogram(input: Tensor, bins: Any, limits: Any, weight: Tensor | None,
                       density: bool) -> tuple[Tensor, ...]:
    """The histogram of points with one element of `bins` for each coordinate."""
    axes = len(bins)
    refuse(input._array, "bBilUcW8",
           "histogramdd" if limits is None and not isinstance(bins[0], Tensor) else "histogram_cpu")
    for i, each in enumerate(bins):
        _check_bins(input, each, i)
    if weight is not None:
        points = input._array.shape if axes == 1 else input._array.shape[:-1]
        if weight._array.shape != points:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as "
                "the input tensor excluding its innermost dimension, but got input with shape "
                f"{[*points, axes]} and weight with shape {list(weight._array.shape)}")
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
                f"should have the same dtype, but got input({c_name(input.dtype)}), and "
                f"weight({c_name(weight.dtype)})")
    _check_limits(limits, axes)
    if limits is not None:
        limits = tuple([float(v) for v in limits])
    edges = [b if isinstance(b, Tensor) else None for b in bins]
    counts = tuple([None if isinstance(b, Tensor) else int(b) for b in bins])
    total, _, *edges = _declare_histogram(axes)(input, weight, *edges, counts, limits)
    if density:
        total = total / total.sum()
        for axis, e in enumerate(edges):
            total = total / reshape(e.diff(), [-1 if i == axis else 1 for i in range(axes)])
    return (total, *edges)


def _check_limits(limits: Any, axes: int) -> None:
    if limits is not None and len(limits) != 2 * axes:
        raise RuntimeError(f"torch.histogramdd: for a {axes}-dimensional histogram range "
                           f"should have {2 * axes} elements, but got {len(limits)}")


def _check_bins(input: Tensor, bins: Any, i: int) -> None:
    if isinstance(bins, Tensor):
        if bins.dtype is not input.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the "
                               f"same dtype, but got input with dtype {c_name(input.dtype)} and "
                               f"bins for dimension {i} with dtype {c_name(bins.dtype)}")
        if bins._array.ndim != 1:
            raise RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                               f"{bins._array.ndim} dimensions in the bins tensor for dimension "
                               f"{i}")
        bins = bins._array.size - 1
    if bins < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {i}")


_REST = ("Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)")


@op(f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_REST}",
    f"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_REST}", explicit=True,
    out_reported_as="aten::histogram", out_type=_TYPES)
def histogram(input: Tensor, bins: Any, weight: Tensor | None, density: bool, range: Any) -> Any:
    """A histogram with `bins` equal bins in `range`, or with the given edges: (hist, bin_edges).

    >>> import flambeau
    >>> flambeau.histogram(flambeau.tensor([1.0, 2.0, 1.0]), 4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    refuse(input._array, "e", "histogramdd")
    return _compute_histogram(input, (bins,), range, weight, density)


@op(*[f"histogramdd{name}(Tensor self, {kind} bins, float[]? range=None, Tensor? weight=None, "
      "bool density=False) -> (Tensor hist, Tensor[] bin_edges)" for name, kind in (
          ("", "int[]"), (".int_bins", "int"), (".TensorList_bins", "Tensor[]"))],
    out=False, method=False)
def histogramdd(input: Tensor, bins: Any, range: Any, weight: Tensor | None,
                density: bool) -> Any:
    """The histogram of points, the rows of the last dimension: (hist, bin_edges of each axis)."""
    refuse(input._array, "e", "histogramdd")
    if input._array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    axes = input._array.shape[-1]
    bins = [bins] * axes if isinstance(bins, int) else list(bins)
    _check_axes(input, bins, axes, range)
    total, *edges = _compute_histogram(input, bins, range, weight, density)
    return total, tuple([b if isinstance(b, Tensor) else e for b, e in zip(bins, edges)])


def _check_axes(input: Tensor, bins: list[Any], axes: int, limits: Any) -> None:
    if len(bins) == axes:
        return
    if bins and isinstance(bins[0], Tensor):
        raise RuntimeError(f"torch.histogramdd: expected {axes} sequences of bin edges for a "
                           f"{axes}-dimensional histogram but got {len(bins)}")
    if limits is None:
        refuse(input._array, "bBilUcW8", "histogramdd")
    _check_limits(limits, axes)
    raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension "
                       "of the input.")


__all__ = ["histc", "histogram", "histogramdd"]
