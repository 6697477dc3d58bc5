"""Fourier transforms of short, overlapping pieces of a signal, and the way back."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.refused import characters
from flambeau.ops.coercion import values_below
from flambeau.ops.fft.transforms import BY_N, BY_ROOT, NONE, c2c, c2r, r2c, resized
from flambeau.ops.indexing.basic import slice_backward
from flambeau.ops.pointwise.arithmetic import mul, tensor_class_name
from flambeau.ops.pointwise.complex import view_as_complex, view_as_real
from flambeau.ops.spatial.padding import pad
from flambeau.ops.view.shape import expand, squeeze, transpose, unsqueeze
from flambeau.ops.view.splitting import narrow, unfold, unfold_backward


def _describe_tensor(x: Tensor, braces: bool = False) -> str:
    sizes = list(x._array.shape)
    return f"{tensor_class_name(x)}{{{sizes}}}" if braces else f"{tensor_class_name(x)}{sizes}"


def _window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    """The window, ones by default, in the middle of `n_fft` values."""
    if window is None:
        window = like.new_ones(win_length, dtype=like.real.dtype)
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    return slice_backward(window, (n_fft,), (slice(left, left + win_length),))


_FIRST = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None"
_LAST = "bool normalized=False, bool? onesided=None, bool? return_complex=None, " \
    "bool? align_to_window=None"
_INNER: dict[str, Any] = {"method": False, "out": False, "autocast": "full"}


@op(f"stft({_FIRST}, {_LAST}) -> Tensor", function=False, **_INNER)
def _stft(x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None,
          window: Tensor | None, normalized: bool, onesided: bool | None,
          return_complex: bool | None, align_to_window: bool | None) -> Tensor:
    """`stft` of pieces that begin where the signal does."""
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    is_complex = any(t is not None and t._array.dtype.kind in "cW" for t in (x, window))
    return_complex = _returns_complex(return_complex, is_complex)
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied,which is known "
                  "to cause spectral leakage. Other windows such as torch.hann_window or "
                  "torch.hamming_window are recommended to reduce spectral leakage.To suppress "
                  "this warning and use a rectangular window, explicitly set "
                  "`window=torch.ones(n_fft, device=<device>)`.")
    single = x._array.ndim == 1
    if align_to_window and size < n_fft:
        # the first piece starts where its window does, not where the zeros around that do
        before = (n_fft - size) // 2
        x = pad(x, (before, n_fft - size - before))
    shown = f"normalized={int(normalized)}, onesided={_flag_as_int(onesided)}, " \
        f"return_complex={_flag_as_int(return_complex)}, " \
        f"align_to_window={_flag_as_int(align_to_window)}"
    _check_stft(x, n_fft, hop, size, window, shown)
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if single:
        x = unsqueeze(x, 0)
    pieces = mul(unfold(x, 1, n_fft, hop), _window(window, size, n_fft, x))
    scale = BY_ROOT if normalized else NONE
    if x._array.dtype.char in characters("eW"):
        part = type_name(x.dtype).removeprefix("Complex")
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {part}")
    if is_complex:
        found = c2c(pieces, (2,), scale, True)
    else:
        found = r2c(pieces, (2,), scale, onesided is None or onesided)
    found = found.transpose_(1, 2)
    if single:
        found = found.squeeze_(0)
    return found if return_complex else view_as_real(found)


def _returns_complex(asked: bool | None, is_complex: bool) -> bool:
    """Is the spectrum given as complex numbers? Not to say so is deprecated, for real signals an
    error."""
    if asked is None:
        if not is_complex:
            raise RuntimeError("stft requires the return_complex parameter be given for real "
                               "inputs, and will further require that return_complex=True in a "
                               "future PyTorch release.")
    elif not asked:
        warn_once("stft with return_complex=False is deprecated. In a future pytorch release, stft "
                  "will return complex tensors for all inputs, and return_complex=False will raise "
                  "an error.\nNote: you can still call torch.view_as_real on the complex output to "
                  "recover the old return format.")
    return asked is None or asked


def _check_stft(x: Tensor, n_fft: int, hop: int, size: int, window: Tensor | None,
                flags: str) -> None:
    """Raise unless the pieces fit into the signal, and the window into them."""
    def refused(why: str) -> RuntimeError:
        shown = "None" if window is None else _describe_tensor(window, True)
        return RuntimeError(
            f"stft({_describe_tensor(x)}, n_fft={n_fft}, hop_length={hop}, win_length={size}, "
            f"window={shown}, {flags}) : {why}")
    if x._array.dtype.char in characters("8"):
        x.dtype.to_complex()                # which there is none of
    if x._array.dtype.char not in characters("efcW"):
        raise refused("expected a tensor of floating point or complex values")
    if x._array.ndim not in (1, 2):
        raise refused("expected a 1D or 2D tensor")
    length = x._array.shape[-1]
    if not 0 < n_fft <= length:
        raise refused(f"expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise refused(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < size <= n_fft:
        raise refused(f"expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is not None and window._array.shape != (size,):
        raise refused(f"expected a 1D window tensor of size equal to win_length={size}, but got "
                      f"window with size {list(window._array.shape)}")


def _pad_signals(x: Tensor, n_fft: int, pad_mode: Any) -> Tensor:
    """Signals with half a piece more on both sides."""
    n = x.dim()
    padded = pad(x.view((1,) * (3 - n) + tuple(x.shape)), (n_fft // 2, n_fft // 2), pad_mode)
    return padded.view(*padded._array.shape[3 - n:])


@op(f"stft.center({_FIRST}, bool center=True, str pad_mode='reflect', {_LAST}) -> Tensor",
    overload_of=_stft, **_INNER)
def _stft_centered(x: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Any,
                   center: bool, pad_mode: str, *rest: Any) -> Tensor:
    return _stft(_pad_signals(x, n_fft, pad_mode) if center else x, n_fft, hop_length, win_length,
                 window, *rest)


@python_function(of=_stft)
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
         normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor:
    """X[f, t] = Σ_k window_k input[t · hop + k] exp(-2πi f k / n_fft) of signals (…, time).

    With `center`, time t is the middle of its piece, and the signal is padded on both sides. Real
    signals give n_fft//2 + 1 frequencies unless `onesided` is false.

    >>> import flambeau
    >>> flambeau.stft(flambeau.ones(8), 4, window=flambeau.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        input = _pad_signals(input, n_fft, pad_mode)
    return _stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
                 align_to_window)


def _method_stft(self: Tensor, n_fft: int, hop_length: int | None = None,
                 win_length: int | None = None, window: Tensor | None = None, center: bool = True,
                 pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
                 return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor:
    """`flambeau.stft` of this tensor."""
    return stft(self, n_fft, hop_length, win_length, window, center, pad_mode, normalized,
                onesided, return_complex=return_complex, align_to_window=align_to_window)


def _method_istft(self: Tensor, n_fft: int, hop_length: int | None = None,
                  win_length: int | None = None, window: Tensor | None = None, center: bool = True,
                  normalized: bool = False, onesided: bool | None = None,
                  length: int | None = None, return_complex: bool = False) -> Tensor:
    """`flambeau.istft` of this tensor."""
    return istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                 return_complex=return_complex)


def _flag_as_int(value: Any) -> Any:
    return value if value is None else int(value)


@op("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
    "Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, "
    "int? length=None, bool return_complex=False) -> Tensor", out=False, method=False)
def istft(input: Tensor, n_fft: int, hop_length: int | None, win_length: int | None,
          window: Tensor | None, center: bool, normalized: bool, onesided: bool | None,
          length: int | None, return_complex: bool) -> Tensor:
    """The signal that `stft` gave `input` for: pieces, windowed again, added up, and divided by the
    sum of the squared windows (Griffin and Lim, Signal estimation from modified short-time Fourier
    transform, 1984).

    >>> import flambeau
    >>> x, w = flambeau.arange(16.0), flambeau.hann_window(8)
    >>> y = flambeau.istft(flambeau.stft(x, 8, window=w, return_complex=True), 8, window=w)
    >>> flambeau.allclose(x, y, atol=1e-5)
    True
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied.Please provide "
                  "the same window used by stft to make the inversion lossless.To suppress this "
                  "warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
                  "device=<device>)`.")
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from "
                           "stft with return_complex=True.")

    def refused(why: str) -> RuntimeError:
        shown = "None" if window is None else _describe_tensor(window, True)
        kind = f"CPU{type_name(input.dtype)}Type"
        return RuntimeError(
            f"istft({kind}{list(input._array.shape)}, n_fft={n_fft}, hop_length={hop}, "
            f"win_length={size}, window={shown}, center={int(center)}, "
            f"normalized={int(normalized)}, onesided={_flag_as_int(onesided)}, length={length}, "
            f"return_complex={int(return_complex)}) {why}")
    bins = input._array.shape[-2] if input._array.ndim > 1 else 0
    half = (onesided is None and bins != n_fft) or bool(onesided)
    why = _istft_misfit(input, n_fft, hop, size, window, half)
    if why:
        raise refused(f": {why}")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window._array.dtype.kind in "cW":
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    parts = view_as_real(input)
    if input._array.ndim == 2:
        parts = unsqueeze(parts, 0)
    spectrum = view_as_complex(transpose(parts, 1, 2))
    scale = BY_ROOT if normalized else BY_N
    if return_complex:
        pieces = c2c(spectrum, (2,), scale, False)
    else:
        pieces = c2r(resized(spectrum, 2, n_fft // 2 + 1), (2,), scale, n_fft)
    signal, envelope = _joined(pieces, _window(window, size, n_fft, input), hop)
    start = n_fft // 2 if center else 0
    total = signal._array.shape[1]
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal, envelope = [narrow(x, 1, start, min(end, total) - start) for x in (signal, envelope)]
    if not signal.is_meta and not (np.abs(values_below(envelope)) > 1e-11).all():
        raise refused("window overlap add min: 1\n[ CPUBoolType{} ]")
    signal = signal / envelope
    if end > total:
        import warnings
        warnings.warn("The length of signal is shorter than the length parameter. Result is being "
                      "padded with zeros in the tail. Please check your center and hop_length "
                      "settings.", UserWarning, stacklevel=3)
        signal = resized(signal, 1, end - start)
    return squeeze(signal, 0) if input._array.ndim == 2 else signal


def _istft_misfit(input: Tensor, n_fft: int, hop: int, size: int, window: Tensor | None,
                  half: bool) -> str:
    """Why a spectrum, whose frequencies are one half of all or all, is none of `stft`; "" if it may
    be."""
    if not input._array.size:
        return "input tensor cannot be empty."
    if input._array.ndim not in (2, 3):
        return f"expected a tensor with 3 or 4 dimensions, but got {input._array.ndim + 1}"
    bins, wanted = input._array.shape[-2], n_fft // 2 + 1 if half else n_fft
    if bins != wanted:
        return ("expected the frequency dimension (3rd to the last) of the input tensor to match "
                f"{'n_fft / 2 + 1' if half else 'n_fft'} when onesided={half}, but got {bins}")
    if not 0 < hop <= size:
        return "expected 0 < hop_length <= win_length"
    if not 0 < size <= n_fft:
        return "expected 0 < win_length <= n_fft"
    if window is not None and window._array.shape != (size,):
        return "Invalid window shape. window has to be 1D and length of `win_length`"
    return ""


def _joined(pieces: Tensor, window: Tensor, hop: int) -> tuple[Tensor, Tensor]:
    """The sum of the pieces times the window, and that of the squares of the window."""
    signal = _overlap_add(mul(pieces, window), pieces, hop)
    squares = expand(mul(window, window), pieces._array.shape[1:])
    return signal, _overlap_add(unsqueeze(squares, 0), pieces, hop)


def _overlap_add(pieces: Tensor, like: Tensor, hop: int) -> Tensor:
    """Pieces (batch, count, n) added up where they overlap, each `hop` after the one before."""
    count, n = like._array.shape[1:]
    total = n + hop * (count - 1)
    return unfold_backward(pieces, (pieces._array.shape[0], total), 1, n, hop)


for _name, _method in (("stft", _method_stft), ("istft", _method_istft)):
    _method.__name__, _method.__qualname__ = _name, f"Tensor.{_name}"
    setattr(Tensor, _name, _method)
