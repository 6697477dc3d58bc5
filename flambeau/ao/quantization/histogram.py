"""`HistogramObserver`: the range whose quantisation loses least, found from a histogram."""
from __future__ import annotations

import bisect
import warnings
from typing import Any

import flambeau
from flambeau import Tensor, quint8
from flambeau.ao.quantization.observer import _EPS, UniformQuantizationObserverBase
from flambeau.ao.quantization.utils import TENSOR_SCHEMES

_STEP = 1e-5                    # of the numbers, that a step of the search leaves out at one end


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all numbers seen; the range is narrowed while the squared error falls.

    >>> from flambeau.ao.quantization import HistogramObserver
    >>> observer = HistogramObserver()
    >>> _ = observer(flambeau.linspace(-1, 1, 1000))
    >>> observer.calculate_qparams()
    (tensor([0.0078]), tensor([128], dtype=torch.int32))
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor
    _schemes: tuple[Any, ...] = TENSOR_SCHEMES

    def __init__(self, bins: int = 2048, dtype: Any = quint8,
                 qscheme: Any = flambeau.per_tensor_affine, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None,
                 factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", flambeau.zeros(bins))
        self.register_buffer("min_val", flambeau.tensor(float("inf")))
        self.register_buffer("max_val", flambeau.tensor(-float("inf")))
        self.dst_nbins = 2 ** (8 * dtype.itemsize)
        self.upsample_rate = 16

    def reset_histogram(self, x: Tensor, min_val: Tensor, max_val: Tensor) -> None:
        """Forget what has been seen; begin with `x`, counted between the two."""
        if min_val.numel() != 1 or max_val.numel() != 1:
            raise AssertionError("histogram min/max values must be scalar.")
        self.min_val, self.max_val = min_val.clone(), max_val.clone()
        self.histogram = self._count(x, min_val, max_val)

    def _count(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return flambeau.histc(x, self.bins, min=low.item(), max=high.item())

    def forward(self, x_orig: Tensor) -> Tensor:
        if not x_orig.numel():
            return x_orig
        x = x_orig.detach()
        low, high = flambeau.aminmax(x)
        if low == -float("inf") or high == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if not x.numel():
                return x_orig
            low, high = flambeau.aminmax(x)
        if self.min_val == float("inf") or self.max_val == -float("inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        low, high = flambeau.minimum(self.min_val, low), flambeau.maximum(self.max_val, high)
        self.histogram = self._count(x, low, high) + self._spread(low, high)
        self.min_val, self.max_val = low, high
        return x_orig

    def _spread(self, low: Tensor, high: Tensor) -> Tensor:
        """The histogram so far, in bins of the wider range [low, high].

        Each bin counts as several numbers, evenly spaced.
        """
        if low == self.min_val and high == self.max_val:
            return self.histogram
        if self.min_val == self.max_val:
            return self._count(self.min_val, low, high) * self.histogram.sum()
        parts = self.bins * self.upsample_rate
        weights = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        half = 0.5 * ((self.max_val - self.min_val) / parts)
        middles = flambeau.linspace(self.min_val.item(), self.max_val.item(), parts + 1)[:-1] + half
        edges = flambeau.linspace(low.item(), high.item(), self.bins + 1)
        place = flambeau.bucketize(middles, edges, right=True) - 1
        return flambeau.bincount(place.clamp(0, self.bins - 1), weights=weights,
                                 minlength=self.bins)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        if self.min_val == float("inf") and self.max_val == -float("inf"):
            return self._calculate_qparams(self.min_val.reshape(-1), self.max_val.reshape(-1))
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of "
                                 "bins supplied while making this observer")
        first, last = self._search()
        width = (self.max_val - self.min_val) / self.bins
        low = self.min_val + width * first
        high = self.min_val + width * (last + 1)
        return self._calculate_qparams(low.reshape(-1), high.reshape(-1))

    def _search(self) -> tuple[int, int]:
        """The first and the last bin of the best range.

        At every step the end gives way where leaving out a few numbers saves more bins, until the
        error grows.
        """
        total = self.histogram.sum().item()
        below = flambeau.cumsum(self.histogram, 0).tolist()
        left_out, kept = 0.0, 1.0                   # shares of the numbers
        first, last = 0, self.bins - 1
        least = float("inf")
        while left_out < kept:
            low_share, high_share = left_out + _STEP, kept - _STEP
            bounds = flambeau.tensor([low_share * total, high_share * total]).tolist()
            left = bisect.bisect_left(below, bounds[0], first, last)
            right = bisect.bisect_right(below, bounds[1], first + 1, last + 1) - 1
            if left - first > last - right:
                left_out, narrowed = low_share, (left, last)
            else:
                kept, narrowed = high_share, (first, right)
            if narrowed == (first, last):
                continue
            error = self._error(*narrowed)
            if error > least:
                break
            least, (first, last) = error, narrowed
        return first, last

    def _error(self, first: int, last: int) -> float:
        """The squared error if the bins from `first` to `last` are the range.

        The numbers of a bin lie evenly between its ends; each goes to the middle of one of
        `dst_nbins` intervals, that of the bin's begin, that of its end, or one between.
        """
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        wide = width * (last - first + 1) / self.dst_nbins
        if wide == 0:
            return 0.0
        begin = (flambeau.arange(self.bins) - first) * width
        end = begin + width
        at_begin, at_end = (
            flambeau.div(edge, wide, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
            for edge in (begin, end))
        density = self.histogram / width
        half = flambeau.tensor(wide / 2)
        error = _moment(begin - (at_begin + 0.5) * wide, half.expand(self.bins), density)
        error = error + (at_end - at_begin - 1) * _moment(-half, half, density)
        error = error + _moment(-half, end - (at_end * wide + wide / 2), density)
        return error.sum().item()

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _moment(begin: Tensor, end: Tensor, density: Tensor) -> Tensor:
    """density · ∫ x² dx from begin to end."""
    return density * ((end * end * end - begin * begin * begin) / 3)
