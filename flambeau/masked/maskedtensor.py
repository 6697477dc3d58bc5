"""A tensor with a mask: elements where it is False neither take part nor are shown.

A `MaskedTensor` carries its data, an ordinary tensor with its history, and hands public calls
to the rule of their kind: elementwise ops run on the data, moves on data and mask, reductions on
what the mask selects. Gradients flow through the data; where the mask is False they are 0.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.c_functions import type_name
from flambeau._support.lazy.modules import parts
from flambeau.autograd.function import Function
from flambeau.masked import reductions
from flambeau.overrides import resolve_name

# Run on the data alone, element by element.
_UNARY = frozenset("""abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan
    arctan atanh arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc
    erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit logical_not invert i0
    isfinite isinf isnan isneginf isposinf nan_to_num neg negative positive pow rad2deg reciprocal
    relu round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc to type float
    double half bfloat16 int long short char byte bool detach fill zero""".split())
_BINARY = frozenset("""add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift div divide eq equal float_power floor_divide fmax fmin fmod ge gt greater
    greater_equal le less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt
    maximum minimum mul multiply ne nextafter not_equal pow remainder rsub sub subtract true_divide
    """.split())
_MOVE = frozenset("""broadcast_to cat clone chunk concat contiguous diagonal expand expand_as
    flatten flip getitem index_select movedim narrow permute ravel repeat reshape reshape_as roll
    select split squeeze stack swapaxes t take_along_dim tile transpose unbind unflatten unfold
    unsqueeze view view_as gather T mT""".split())
_REDUCE = frozenset("sum mean amin amax argmin argmax prod norm var std median".split())
_ALONG = frozenset("softmax log_softmax softmin cumsum cumprod".split())


class _Gate(Function):
    """The identity, whose gradient is 0 where the mask is False."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
        ctx.mask = mask
        return data.view_as(data)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return flambeau.where(ctx.mask, grad, 0), None


class MaskedTensor(Tensor):
    """`data` with the mask `mask`; see `masked_tensor` and `as_masked_tensor`, which make them."""

    _data: Tensor
    _mask: Tensor

    @staticmethod
    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        data, mask = _checked(data, mask)
        return _make(data.detach(), mask).requires_grad_(requires_grad)

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False):
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        return _dispatch(func, args, kwargs or {})

    def get_data(self) -> Tensor:
        """The data, also where the mask is False."""
        return self._data

    def get_mask(self) -> Tensor:
        """The mask: True where an element counts."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """An ordinary tensor with `value` where the mask is False."""
        return flambeau.where(self._mask, self._data, flambeau.tensor(value,
                                                                      dtype=self._data.dtype))

    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("masked tensors with sparse layouts")

    def to_dense(self) -> MaskedTensor:
        """This tensor: its layout is dense."""
        return self

    @property
    def requires_grad(self) -> bool:
        return self._data.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self._data.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        self._data.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._data.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._data.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient of the data, with the same mask."""
        found = self._data.grad
        return None if found is None else _make(found, self._mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._data.grad = value.get_data() if is_masked_tensor(value) else value

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """`Tensor.backward` of the data."""
        if is_masked_tensor(gradient):
            gradient = gradient.to_tensor(0)
        self._data.backward(gradient, retain_graph, create_graph, inputs)

    def item(self) -> Any:
        return self._data.item()

    def tolist(self) -> Any:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        data, mask = self._data.detach(), self._mask
        if not data.ndim:
            return f"MaskedTensor({_text(data.item()) if mask.item() else '--'}, {mask.item()})"
        shown = [(_text(value), here) for value, here in zip(data.reshape(-1).tolist(),
                                                             mask.reshape(-1).tolist())]
        return f"MaskedTensor(\n{_block(shown, tuple(data.shape), '  ')}\n)"


def _text(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _block(texts: list[tuple[str, bool]], shape: tuple[int, ...], indent: str) -> str:
    if len(shape) == 1:
        width = max([8, *[len(text) for text, _ in texts]])
        return f"{indent}[{', '.join(t if here else '--'.rjust(width) for t, here in texts)}]"
    step = len(texts) // shape[0] if shape[0] else 0
    rows = [_block(texts[i * step:(i + 1) * step], shape[1:], indent + "  ")
            for i in range(shape[0])]
    return f"{indent}[\n" + ",\n".join(rows) + f"\n{indent}]"


_PROTOTYPE = ("The PyTorch API of MaskedTensors is in prototype stage and will change in the near "
              "future. Please open a Github issue for features requests and see our documentation "
              "on the torch.masked module for further information about the project.")
_WITH_GRADIENTS = ("It is not recommended to create a MaskedTensor with a tensor that "
                   "requires_grad. To avoid this, you can use data.detach().clone()")


def _make(data: Tensor, mask: Tensor) -> MaskedTensor:
    warnings.warn(_PROTOTYPE, UserWarning, stacklevel=3)
    if data.requires_grad:
        warnings.warn(_WITH_GRADIENTS, UserWarning, stacklevel=3)
    result: Any = data.detach().as_subclass(MaskedTensor)
    result._data, result._mask = data, mask
    return result


def _checked(data: Any, mask: Any) -> tuple[Tensor, Tensor]:
    if is_masked_tensor(data) or not isinstance(data, Tensor):
        raise TypeError("data must be a Tensor")
    if is_masked_tensor(mask) or not isinstance(mask, Tensor):
        raise TypeError("mask must be a Tensor")
    if data.requires_grad:
        warnings.warn(_WITH_GRADIENTS, UserWarning, stacklevel=3)
    if data.layout is not flambeau.strided or mask.layout is not flambeau.strided:
        raise NotImplementedError("masked tensors with sparse layouts")
    if mask.dtype is not flambeau.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")
    if data.dtype.is_complex:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    return data, mask


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A new leaf: a copy of `data` with a mask.

    >>> from flambeau.masked import masked_tensor
    >>> x = masked_tensor(flambeau.tensor([1.0, 2.0]), flambeau.tensor([True, False]), True)
    >>> (x * x).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  2.0000,       --]
    )
    """
    data, mask = _checked(data, mask)
    if not isinstance(requires_grad, bool):
        raise TypeError("_make_wrapper_subclass(): argument 'requires_grad' must be bool, not "
                        f"{type_name(requires_grad)}")
    return _make(data.detach().clone(), mask.clone()).requires_grad_(requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """`data` itself with a mask: gradients flow to it."""
    data, mask = _checked(data, mask)
    return _make(_Gate.apply(data, mask) if data.requires_grad else data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Is this a `MaskedTensor`?"""
    return isinstance(obj, MaskedTensor)


# ---- rules of calls -----------------------------------------------------------------------------

def _each(args: Any, change: Callable[[MaskedTensor], Any]) -> Any:
    if is_masked_tensor(args):
        return change(args)
    if isinstance(args, list | tuple) and not isinstance(args, flambeau.Size):
        return type(args)([_each(a, change) for a in args])
    return {k: _each(v, change) for k, v in args.items()} if type(args) is dict else args


def _masked_in(args: Any) -> list[MaskedTensor]:
    found: list[MaskedTensor] = []
    _each(args, found.append)
    return found


def _together(data: Any, mask: Any) -> Any:
    if isinstance(data, Tensor):
        return _make(data, mask)
    return type(data)([_together(d, m) for d, m in zip(data, mask)])


def _dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    op = getattr(func, "op", None)
    title = op.name if op is not None else getattr(func, "__name__", "")
    name = title.strip("_")
    name = {"rtruediv": "rdiv", "truediv": "div", "radd": "add", "rmul": "mul",
            "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}.get(name, name)
    masks = _masked_in((args, kwargs))
    first = masks[0]

    called = getattr(Tensor, title) if hasattr(func, "takes_more") else func    # as a method was

    def run(change: Callable[[MaskedTensor], Any]) -> Any:
        return called(*_each(args, change), **_each(kwargs, change))

    if name in _UNARY or name in _BINARY or name in ("rdiv", "rpow"):
        if any(not flambeau.equal(other._mask, first._mask) for other in masks[1:]):
            raise ValueError("Input masks must match. If you need support for this, please open an "
                             "issue on Github.")
        data = run(lambda t: t._data)
        if not isinstance(data, Tensor):
            return data
        if title.endswith("_") and not title.endswith("__") and is_masked_tensor(args[0]):
            return args[0]                  # written in place
        return _make(data, first._mask.expand(data.shape))
    if name in _MOVE:
        return _together(run(lambda t: t._data), run(lambda t: t._mask))
    if name == "where":
        plain = [a._mask if is_masked_tensor(a) else a for a in args]
        return _make(run(lambda t: t._data), flambeau.where(*plain))
    if name in _REDUCE:
        return _reduced(name, *args, **kwargs)
    if name in _ALONG:
        given = {k: v for k, v in kwargs.items() if k in ("dim", "dtype")}
        return _make(getattr(reductions, name)(first._data, *args[1:2], mask=first._mask, **given),
                     first._mask)
    if name == "all":
        filled = flambeau.where(first._mask, first._data.to(flambeau.bool), True)
        return _make(flambeau.all(filled, *args[1:], **kwargs),
                     flambeau.any(first._mask, *args[1:], **kwargs))
    if name in _PLAIN:
        return run(lambda t: t._data)
    raise TypeError(f"no implementation found for {resolve_name(func) or name!r} on types that "
                    "implement __torch_function__: MaskedTensor")


_PLAIN = frozenset("""size dim ndimension numel nelement is_floating_point is_complex is_signed
    stride is_contiguous element_size get_device is_same_size storage_offset is_inference is_conj
    is_neg is_distributed result_type""".split())


def _reduced(name: str, input: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    if name == "norm" and "p" in kwargs:
        kwargs["ord"] = kwargs.pop("p")
    for old, new in (("axis", "dim"), ("keepdims", "keepdim")):
        if old in kwargs:
            kwargs[new] = kwargs.pop(old)
    given = list(args)
    if len(given) == 2 and name != "norm":
        kwargs["keepdim"] = given.pop()
    result = getattr(reductions, name)(input._data, *given, mask=input._mask, **kwargs)
    position = 1 if name == "norm" else 0
    dim = given[position] if len(given) > position else kwargs.get("dim")
    dims = reductions._dims(dim, input.ndim)
    return _make(result, input._mask.sum(dims, keepdim=bool(kwargs.get("keepdim"))) > 0)


__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

parts(__name__, {
    "core": "MaskedTensor is_masked_tensor",
    "creation": "as_masked_tensor masked_tensor"})
