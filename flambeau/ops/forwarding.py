"""What PyTorch's functions that are written in Python hand on to its functions in C++.

Those check the types of their arguments, and a wrong one is reported by their name and position:

>>> import flambeau
>>> flambeau.unique(flambeau.ones(2), return_counts=1)
Traceback (most recent call last):
TypeError: _unique2(): argument 'return_counts' must be bool, not int

A rule takes what the function takes and says which call that leads to; where it raises itself, it
has nothing to say. Rules look at types, at `None` and at flags, for a call is checked once for the
types of its arguments.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import dtypes, type_info

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class _Inner:
    """Makes `c.name(...)` a description of that call, `c[name](...)` too."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        return lambda *args, **kwargs: (name, args, kwargs)

    __getitem__ = __getattr__


c = _Inner()
REDUCTION = 0                       # what stands for a reduction, once it has become a number


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _repeated(n: int) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, (tuple, list)) else (value,) * n


_pair = _repeated(2)


def _softened(name: str) -> Any:
    """Of an activation that is computed by a method of its input."""
    def rule(input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None) -> Call | None:
        if dim is None or not hasattr(input, "ndim"):
            return None
        return c[f".{name}"](input, dim, **({} if dtype is None else {"dtype": dtype}))
    return rule


def _dropped(name: str, train: bool = True) -> Any:
    return lambda input, p=0.5, training=train, inplace=False: \
        c[f"{name}_" if inplace else name](input, p, training)


def _interpolated(input: Any, size: Any = None, scale_factor: Any = None, mode: Any = "nearest",
                  align_corners: Any = None, recompute_scale_factor: Any = None,
                  antialias: Any = False) -> Call | None:
    n = input.ndim - 2
    names = {"nearest": f"upsample_nearest{n}d", "nearest-exact": f"_upsample_nearest_exact{n}d",
             "linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d",
             "trilinear": "upsample_trilinear3d", "bicubic": "upsample_bicubic2d"}
    several = isinstance(size, (tuple, list))
    if recompute_scale_factor or antialias or not 1 <= n <= 3 or (size is None) == (
            scale_factor is None) or (several and any(type(s) is not int for s in size)):
        return None
    sizes, scales = [None if value is None else value if isinstance(value, (list, tuple))
                     else [value] * n for value in (size, scale_factor)]
    if mode.startswith("nearest"):
        return c[names[mode]](input, sizes, scales)
    return c[names[mode]](input, sizes, _given(align_corners, False), scales)


def _resized(mode: str, align: Any = None) -> Any:
    return lambda input, size=None, scale_factor=None: _interpolated(
        input, size, scale_factor, mode, align)


def _normed(input: Any, p: Any = "fro", dim: Any = None, keepdim: Any = False, out: Any = None,
            dtype: Any = None) -> Call:
    dims = [dim] if type(dim) is int else dim
    more = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    if p == "fro" and (dim is None or type(dim) is int or len(dim) <= 2):
        return c.linalg_vector_norm(input, 2, dims, keepdim, **more)
    if isinstance(p, str):
        return c.linalg_matrix_norm(input, p, [*range(input.ndim)] if dims is None else dims,
                                    keepdim, **more)
    return c.linalg_vector_norm(input, 2.0 if p is None else p, dims, keepdim, **more)


def _normalized(input: Any, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12, out: Any = None) -> Call:
    return _normed(input, p, dim, True)


def _split(tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> Call:
    one = not isinstance(split_size_or_sections, (tuple, list)) and (
        not hasattr(split_size_or_sections, "numel") or split_size_or_sections.numel() == 1)
    return c["split" if one else "split_with_sizes"](
        tensor, int(split_size_or_sections) if one else split_size_or_sections, dim)


def _window(single: bool) -> Any:
    """Of a window; is one of a `single` value made apart?"""
    def rule(M: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: Any = False, **own: Any) -> Call | None:
        more = {"dtype": dtypes.float32, "layout": type_info.strided, "device": device,
                "requires_grad": requires_grad}
        if M < 0:
            return None
        if M == 0 or (M == 1 and single):
            return c["ones" if M else "empty"]((int(M),), **more)
        return c.linspace(start=0.0, end=1.0, steps=M, **more)
    return rule


RULES: dict[str, Any] = {
    # of `torch`
    "norm": _normed,
    "split": _split,
    "stft": lambda input, n_fft, hop_length=None, win_length=None, window=None, center=True,
    pad_mode="reflect", normalized=False, onesided=None, return_complex=None, align_to_window=None:
        c.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
               align_to_window),
    "unique": lambda input, sorted=True, return_inverse=False, return_counts=False, dim=None:
        c._unique2(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
        if dim is None else
        c.unique_dim(input, dim, sorted=sorted, return_inverse=return_inverse,
                     return_counts=return_counts),
    "unique_consecutive": lambda input, return_inverse=False, return_counts=False, dim=None:
        c.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts,
                             dim=dim),
    **{f"signal.windows.{name}": _window(name not in ("cosine", "exponential", "gaussian"))
       for name in ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
                    "general_hamming", "hamming", "hann", "kaiser", "nuttall")},
    # of sparse tensors
    "sparse.mm": lambda mat1, mat2, *reduce, **more: c._sparse_mm(mat1, mat2, *reduce, **more),
    "sparse.addmm": lambda *args, **named: c._sparse_addmm(*args, **named),
    "sparse.sampled_addmm": lambda *args, **named: c.sparse_sampled_addmm(*args, **named),
    "sparse.sum": lambda input, dim=None, dtype=None: c._sparse_sum(
        input, *([] if dim is None else [dim]), **({} if dtype is None else {"dtype": dtype})),
    "sparse.softmax": lambda *args, **named: c._sparse_softmax(*args, **named),
    "sparse.log_softmax": lambda *args, **named: c._sparse_log_softmax(*args, **named),
    **{f"nn.functional.{name}": _softened(inner) for name, inner in {
        "softmax": "softmax", "softmin": "softmax", "log_softmax": "log_softmax"}.items()},
    # dropout
    "nn.functional.dropout": _dropped("dropout"),
    "nn.functional.alpha_dropout": _dropped("alpha_dropout", False),
    "nn.functional.feature_alpha_dropout": _dropped("feature_alpha_dropout", False),
    **{f"nn.functional.dropout{n}d": _dropped("feature_dropout") for n in (1, 2, 3)},
    # embeddings
    "nn.functional.embedding": lambda input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
    scale_grad_by_freq=False, sparse=False:
        c.embedding_renorm_(weight, input, max_norm, norm_type)
        if type(max_norm) not in (float, int, type(None)) else
        c.embedding(weight, input, _given(padding_idx, -1), scale_grad_by_freq, sparse),
    "nn.functional.embedding_bag": lambda input, weight, offsets=None, max_norm=None, norm_type=2,
    scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None:
        c.embedding_bag(weight, input, _given(offsets, input), scale_grad_by_freq, 0,
                        sparse, per_sample_weights, include_last_offset, padding_idx),
    # normalization
    "nn.functional.batch_norm": lambda input, running_mean, running_var, weight=None, bias=None,
    training=False, momentum=0.1, eps=1e-5:
        c.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True),
    "nn.functional.instance_norm": lambda input, running_mean=None, running_var=None, weight=None,
    bias=None, use_input_stats=True, momentum=0.1, eps=1e-5:
        c.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                        eps, True),
    "nn.functional.layer_norm": lambda input, normalized_shape, weight=None, bias=None, eps=1e-5:
        c.layer_norm(input, normalized_shape, weight, bias, eps, True),
    "nn.functional.rms_norm": lambda input, normalized_shape, weight=None, eps=None:
        c.rms_norm(input, normalized_shape, weight, eps),
    "nn.functional.group_norm": lambda input, num_groups, weight=None, bias=None, eps=1e-5:
        c.group_norm(input, num_groups, weight, bias, eps, True),
    "nn.functional.normalize": _normalized,
    # images
    "nn.functional.interpolate": _interpolated,
    "nn.functional.upsample_nearest": _resized("nearest"),
    "nn.functional.upsample_bilinear": _resized("bilinear", True),
    "nn.functional.grid_sample": lambda input, grid, mode="bilinear", padding_mode="zeros",
    align_corners=None: c.grid_sampler(input, grid, 0, 0, _given(align_corners, False)),
    "nn.functional.affine_grid": lambda theta, size, align_corners=None:
        c.affine_grid_generator(theta, size, _given(align_corners, False)),
    "nn.functional.pad": lambda input, pad, mode="constant", value=None:
        c.pad(input, pad, mode, value),
    "nn.functional.unfold": lambda input, kernel_size, dilation=1, padding=0, stride=1:
        c.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)),
    "nn.functional.fold": lambda input, output_size, kernel_size, dilation=1, padding=0, stride=1:
        c.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding),
                 _pair(stride)),
}
