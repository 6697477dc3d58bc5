"""Padding: constants, mirror images, edges, or the other end around an input."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.promotion import convert
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels._extension import compiled
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving import views
from flambeau.kernels.moving.layouts import preserve_channels_last
from flambeau.ops.coercion import as_element
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.out_types import OUT_TYPE, SCALAR_TYPE
from flambeau.ops.view.shape import batch_first, movedim

NETWORK = "nn.functional"


def _padding_by_dim(pad: Any, rank: int) -> list[tuple[int, int]]:
    """Padding before and after each dimension; `pad` starts with the last one."""
    sides = [(0, 0)] * rank
    for i in range(len(pad) // 2):
        sides[rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return sides


# ---- constants -----------------------------------------------------------------------------------


@compiled("constant_pad")
@preserve_channels_last
def _constant_pad_kernel(self: np.ndarray, pad: tuple[int, ...], value: Any) -> np.ndarray:
    sides = _padding_by_dim(pad, self.ndim)
    source = self[tuple([slice(max(-a, 0), n - max(-b, 0)) for (a, b), n
                         in zip(sides, self.shape)])]
    if all(n <= 0 for n in pad):
        return views.copy(source)          # what is cut out lies as the input does
    shape = [n + max(a, 0) + max(b, 0) for (a, b), n in zip(sides, source.shape)]
    if value:
        result = np.empty(shape, self.dtype)
        result[...] = convert(np.asarray(as_element(value, self.dtype)), self.dtype)
    else:
        result = np.zeros(shape, self.dtype)
    result[tuple([slice(max(a, 0), max(a, 0) + n) for (a, _), n
                  in zip(sides, source.shape)])] = source
    return result


def _constant_pad_batched(size: int, dims: Any, self: Tensor, pad: Any, value: Any) -> Any:
    return constant_pad_nd(movedim(self, dims[0], 0), pad, value), 0


def _prepare_constant_pad(input: Tensor, pad: Any, value: Any) -> tuple[Tensor, tuple[int, ...],
                                                                        Any]:
    pad, shape = tuple([int(p) for p in pad]), input._array.shape
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of "
                           f"the input. Pad length is {len(pad)}while the input has {len(shape)}"
                           "dimensions.")
    for n, (a, b) in zip(shape, _padding_by_dim(pad, len(shape))):
        if n + min(a, 0) + min(b, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return input, pad, value


constant_pad_nd = op(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    kernel=_constant_pad_kernel, canonical=_prepare_constant_pad, kernel_checks=True, out=False,
    method=False, batch=_constant_pad_batched,
    d_self=lambda grad, pad: constant_pad_nd(grad, tuple([-p for p in pad])),
    jvp=lambda self_t, pad: constant_pad_nd(self_t, pad),
    doc="""`value` before and after the last dimensions; a negative padding cuts off.

    >>> import flambeau
    >>> flambeau.constant_pad_nd(flambeau.ones(2), (1, 0), 7)
    tensor([7., 1., 1.])
    """)


# ---- what the input itself gives -----------------------------------------------------------------


def _sources(mode: str, n: int, before: int, after: int) -> np.ndarray:
    """Which element of a dimension of `n` stands at each place of the padded one."""
    if mode == "circular":              # the other end of what is left after cutting
        first, left = max(-before, 0), n + min(before, 0) + min(after, 0)
        return np.arange(-max(before, 0), left + max(after, 0)) % max(left, 1) + first
    at = np.arange(-before, n + after)
    if mode == "replicate":
        return at.clip(0, n - 1)
    at = np.abs(at)
    return np.where(at >= n, 2 * (n - 1) - at, at)


def _indices(mode: str, shape: Any, pad: tuple[int, ...]) -> list[tuple[int, np.ndarray]]:
    rank = len(shape)
    return [(d, _sources(mode, shape[d], *side)) for d,
            side in enumerate(_padding_by_dim(pad, rank))
            if side != (0, 0)]


def _margin_sources(mode: str, n: int, before: int, after: int) -> list[tuple[slice, slice]]:
    """Places in a padded dimension, and those of the elements that stand there."""
    end = before + n
    if mode == "replicate":
        sources = slice(before, before + 1), slice(end - 1, end)
    elif mode == "circular":
        sources = slice(n, end), slice(before, before + after)
    else:
        last = end - 2 - after
        sources = slice(2 * before, before, -1), slice(end - 2, last if last >= 0 else None, -1)
    return [(places, source) for places, source
            in zip((slice(0, before), slice(end, end + after)), sources)
            if places.start < places.stop]


def _inner_slices(shape: Any, sides: Any) -> tuple[slice, ...]:
    return tuple([slice(a, a + n) for n, (a, _) in zip(shape, sides)])


def _gather_padding(self: np.ndarray, pad: tuple[int, ...], mode: str) -> np.ndarray:
    sides = _padding_by_dim(pad, self.ndim)
    if min(pad) >= 0:
        result = np.empty([n + a + b for n, (a, b) in zip(self.shape, sides)], self.dtype)
        filled = list(_inner_slices(self.shape, sides))
        result[tuple(filled)] = self
        for d, (n, side) in enumerate(zip(self.shape, sides)):
            for places, source in _margin_sources(mode, n, *side):
                result[(*filled[:d], places, *filled[d + 1:])] = result[
                    (*filled[:d], source, *filled[d + 1:])]
            filled[d] = slice(None)
        return result
    for d, index in _indices(mode, self.shape, pad):
        self = np.take(self, index, d)
    return self


def _scatter_padding(self: np.ndarray, shape: Any, pad: tuple[int, ...], mode: str) -> np.ndarray:
    sides = _padding_by_dim(pad, self.ndim)
    if min(pad) >= 0:
        result, kept = self.copy(), [slice(None)] * self.ndim
        for d in reversed(range(self.ndim)):
            for places, source in _margin_sources(mode, shape[d], *sides[d]):
                margin = result[(*kept[:d], places, *kept[d + 1:])]
                if mode == "replicate":
                    margin = margin.sum(d, keepdims=True)
                result[(*kept[:d], source, *kept[d + 1:])] += margin
            kept[d] = slice(sides[d][0], sides[d][0] + shape[d])
        return result[tuple(kept)].copy()
    for d, index in _indices(mode, shape, pad):
        result = np.zeros((*self.shape[:d], shape[d], *self.shape[d + 1:]), self.dtype)
        every: list[Any] = [slice(None)] * d
        np.add.at(result, (*every, index), self)
        self = result
    return self


@compiled("mirror_pad")
def _pad_mirrored(self: np.ndarray, pad: tuple[int, ...], mode: str) -> np.ndarray:
    return _gather_padding(self, pad, mode) if mode == "circular" else _gathered_alike(self, pad,
                                                                                       mode)


_gathered_alike = preserve_channels_last(_gather_padding)


def _mirror_kernel(mode: str) -> Any:
    return lambda self, pad: _pad_mirrored(self, pad, mode)


def _declare_mirror(name: str, n: int, mode: str) -> Any:
    """The op of one mode in `n` dimensions, and its transpose; gives the function."""
    title, kernel = f"{name}_pad{n}d", _mirror_kernel(mode)
    node = f"{name.capitalize()}Pad{n}DBackward"
    inner: Any = {"method": False, "namespace": "_nn"}
    if mode == "circular":      # PyTorch makes this of other ops, which do not save the input
        title, inner = f"_{title}", {"method": False, "function": False, "out": False}

    def canonical(input: Tensor, padding: Any) -> tuple[Any, ...]:
        _check_mirror(input._array.shape, tuple(padding), mode)
        return input, tuple(padding)

    def fronted(size: int, dims: Any, *tensors_and_pad: Any) -> Any:
        *tensors, pad = tensors_and_pad
        moved = [batch_first(t, d, size) for t, d in zip(tensors, dims)]
        return (forward if len(moved) == 1 else backward).op.call(*moved, pad), 0

    refused: Any = (title, "bUW8") if mode != "circular" else ()
    def transposed(grad: np.ndarray, self: np.ndarray, pad: tuple[int, ...]) -> np.ndarray:
        return _scatter_padding(grad, self.shape, pad, mode)

    backward = op(
        f"{title}_backward(Tensor grad_output, Tensor self, SymInt[{2 * n}] padding) -> Tensor",
        kernel=transposed if mode == "circular" else preserve_channels_last(transposed, 1),
        d_grad_output=lambda grad, padding: forward(grad, padding), batch=fronted,
        jvp=lambda grad_output_t, self, padding: backward(grad_output_t, self, padding),
        node=f"{node}Backward0", **{**inner, "out": False},
        **({"nondiff": "self"} if mode == "circular" else {
            "d_self": lambda grad, self: zeros_like(self)}))
    forward = op(
        f"{title}(Tensor self, SymInt[{2 * n}] padding) -> Tensor", kernel=kernel, kind="linear",
        canonical=canonical, checked_kernel=checked(f"{name}_pad"), refuses=refused,
        node=f"{node}0", batch=fronted, out_type=SCALAR_TYPE if mode == "reflect" else OUT_TYPE,
        autocast="" if mode == "circular" else "full",
        d_self=lambda grad, self, padding: backward(
            grad, self.detach() if mode == "circular" else self, padding), **inner)
    return forward


_MIRRORS = {(mode, n): _declare_mirror(name, n, mode) for name, mode in
            (("reflection", "reflect"), ("replication", "replicate"), ("circular", "circular"))
            for n in (1, 2, 3)}
_EXTENTS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


def _check_mirror(shape: Any, pad: tuple[int, ...], mode: str) -> None:
    rank, n = len(shape), len(pad) // 2
    if rank not in (n + 1, n + 2) or (mode != "circular" and 0 in shape[-n - 1:]):
        raise RuntimeError(f"Expected {_EXTENTS[n]} (batch mode) tensor with possibly 0 batch size "
                           f"and other non-zero dimensions for input, but got: {list(shape)}")
    for d, (a, b) in reversed(list(enumerate(_padding_by_dim(pad, rank)))):
        if mode == "reflect" and (a >= shape[d] or b >= shape[d]) and (a or b):
            place = 2 + 2 * (rank - d)
            raise RuntimeError(
                f"Argument #{place}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({a}, {b}) at dimension {d} of input {list(shape)}")
        if mode == "circular" and (a > shape[d] or b > shape[d]):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "circular" and shape[d] + a + b < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    if mode != "circular":
        _check_room(shape[-n:],
                    [s + a + b for s, (a, b) in zip(shape, _padding_by_dim(pad, rank))][-n:], mode)


def _check_room(sizes: Any, padded: list[int], mode: str) -> None:
    """Is anything left of an image that is padded by negative numbers?"""
    if max(padded) < 1:
        words = ("W: {}", "H: {}, W: {} " if mode == "replicate" else "H: {}, W: {}",
                 "D: {} H: {}, W: {}")
        given = words[len(sizes) - 1].format(*sizes)
        found = " ".join(f"{letter}: {size}" for letter, size in zip("DHW"[-len(sizes):], padded))
        raise RuntimeError(f"input ({given}) is too small. Calculated output {found}")
    if min(padded) < 0:
        raise RuntimeError("Negative padding value is resulting in an empty dimension")


def _pad(input: Tensor, pad: Any, mode: str, value: float | None) -> Tensor:
    rank = input._array.ndim
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * rank:
        raise RuntimeError("Padding length should be less than or equal to two times the input "
                           f"dimension but got padding length {len(pad)} and input of dimension "
                           f"{rank}")
    if mode == "constant":
        return constant_pad_nd(input, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    n = len(pad) // 2
    if not 0 < n < 4 or rank not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {rank}D input tensor.\nSupported "
            "combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads "
            "last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - "
            "4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    return _MIRRORS[mode, n](input, pad)


pad = op(
    'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor',
    body=_pad, namespace="_nn", method=False, out=False, doc="See `nn.functional.pad`.")


def _write_padding(input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
                   ) -> Tensor:
    """`input` with `pad` = (before, after) more elements in the last dimension, then in the one
    before it, and so on: a constant `value`, or by `mode` "reflect", "replicate" or "circular".

    >>> import flambeau
    >>> flambeau.nn.functional.pad(flambeau.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    return padded(input, pad, mode, value)


python_function(_write_padding, namespace=NETWORK, name="pad", of=pad)
padded = pad

__all__ = ["constant_pad_nd", "pad"]
