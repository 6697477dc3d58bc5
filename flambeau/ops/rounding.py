"""Rounding, and division with a whole quotient or a remainder."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._call_guards import method as as_method
from flambeau.core import fast, overrides
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import interceptors
from flambeau.core.op import composite, pointwise, primitive, publish
from flambeau.core.promotion import convert, is_half, type_name
from flambeau.core.tensor import Tensor, basis, plain
from flambeau.ops.node_names import number_nodes
from flambeau.ops.pointwise import neg, number_first, operator, true_divide

# ---- to whole numbers ---------------------------------------------------------------------------


def _rounding(name: str, kernel: Any, doc: str, aliases: tuple[str, ...] = ()) -> Any:
    function = pointwise(name, kernel, d=0, doc=doc, aliases=aliases)
    function.op.refusal = {"c": f"{name} is not supported for complex inputs",
                           "": f"{name}_vml_cpu"}
    return function


floor = _rounding("floor", kernels.floor, "The greatest whole number that is not greater.")
ceil = _rounding("ceil", kernels.ceil, "The least whole number that is not less.")
trunc = _rounding("trunc", kernels.trunc, "The whole part: rounding towards zero.", ("fix",))
frac = pointwise("frac", kernels.frac, d=1, doc="The part after the point: input - trunc(input).")


def _round_decimals(self: np.ndarray, decimals: int) -> np.ndarray:
    wide = kernels.cast(self, np.float32) if self.dtype.itemsize < 4 else self
    scale = wide.dtype.type(10.0 ** abs(decimals))
    if decimals < 0:
        result = kernels.multiply(kernels.rint(kernels.divide(wide, scale)), scale)
    else:
        result = kernels.divide(kernels.rint(kernels.multiply(wide, scale)), scale)
    return kernels.cast(result, self.dtype)


_round = pointwise("round", kernels.rint, d=0, method=False, namespace=None, inplace=False)

_round.op.refusal = {"": "round_vml_cpu"}


@primitive(_round_decimals, kind="pointwise", d_self=0, node_name="RoundBackward1", method=False,
           namespace=None)
def _round_to(input: Tensor, decimals: int) -> Any:
    if input._array.dtype not in FLOATING or input._array.dtype.kind in "cW":
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{type_name(input.dtype)}'")
    return input, decimals


@composite(method=True, inplace=True, namespace=("torch", "special"))
def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Tensor:
    """The nearest whole number, or the nearest with so many decimals; halves go to the even one.

    >>> import flambeau
    >>> flambeau.round(flambeau.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    """
    result = _round_to(input, decimals) if decimals else _round(input)
    return result if out is None else basis.into(out, round.op, result, (input,))


# ---- quotients ----------------------------------------------------------------------------------


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if is_half(x.dtype) and x.ndim and not y.ndim:      # by one number: rounded once, at the end
        return convert(_truncated(convert(x, np.float32), convert(y, np.float32)), x.dtype)
    if x.dtype.kind not in "ui":
        return kernels.trunc(kernels.divide(x, y))
    whole = kernels.floor_divide(x, y)
    if x.dtype.kind == "u":
        return whole
    inexact = kernels.not_equal(kernels.remainder(x, y), 0)
    return np.add(whole, inexact & (whole < 0), dtype=x.dtype)


floor_divide = pointwise("floor_divide", kernels.floor_divide, d_self=0, d_other=0, numbers="any",
                         wide=True,
                         doc="The greatest whole number that is not greater than input / other.")
floor_divide.op.Backward.name = lambda self: "torch::autograd::NotImplemented"
_MODES = {
    "floor": pointwise("div_floor", kernels.floor_divide, numbers="any", d_self=0, d_other=0,
                       wide=True, method=False, namespace=None, inplace=False,
                       node_name="DivBackward2"),
    "trunc": pointwise("div_trunc", _truncated, numbers="any", d_self=0, d_other=0, wide=True,
                       method=False, namespace=None, inplace=False, node_name="DivBackward2"),
}
for _mode, _function in _MODES.items():
    _function.op.saved_as = {"rounding_mode": _mode}
true_divide.op.saved_as = {"rounding_mode": None}


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """The quotient input / other; with `rounding_mode` "floor" or "trunc" a whole number.

    Without a mode integers are divided as floating-point numbers.

    >>> import flambeau
    >>> flambeau.div(flambeau.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])
    """
    if rounding_mode is None:
        return true_divide(input, other) if out is None else true_divide(input, other, out=out)
    if (interceptors or type(input) not in plain) and overrides.has_torch_function((input, other)):
        kwargs = {"rounding_mode": rounding_mode} | ({} if out is None else {"out": out})
        return overrides.handle_torch_function(div, (input, other), input, other, **kwargs)
    if rounding_mode not in _MODES:
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")
    return _MODES[rounding_mode](input, other, out=out)


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide this tensor in place."""
    if rounding_mode is None:
        return true_divide.op.inplace_op.function(self, other)
    return _divided(self, other, rounding_mode)


@composite(name="div_rounded", namespace=None, inplace=True)
def _divided_functional(input: Tensor, other: Any, rounding_mode: str) -> Tensor:
    return div(input, other, rounding_mode=rounding_mode)


_divided = _divided_functional.op.inplace_op.function
true_divide.op.doc = div.__doc__
div = fast.callable_of("closure", true_divide.op, div)
div_ = fast.callable_of("closure", true_divide.op.inplace_op, div_)
publish(true_divide.op, div, True, ("divide",))
div_.op = true_divide.op.inplace_op
for _name in ("div_", "divide_"):
    setattr(Tensor, _name, as_method(div_))
floor_divide.op.refusal = {"": "div_floor_cpu"}
for _mode, _function in _MODES.items():
    _function.op.refusal = {"": f"div_{_mode}_cpu"}
Tensor.__floordiv__ = as_method(floor_divide, True)
Tensor.__ifloordiv__ = floor_divide.op.inplace_op.function
Tensor.__rfloordiv__ = operator(lambda self, other: floor_divide(number_first(other, self), self))

# ---- remainders ---------------------------------------------------------------------------------

_remainder = pointwise(
    "remainder", kernels.remainder, d_self=1, numbers="any", node_name="RemainderBackward1",
    d_other=lambda self, other: neg(_MODES["floor"](self, other)),
    doc="""What is left of input after division by other; it has the sign of `other`, as Python's %.

    >>> import flambeau
    >>> flambeau.remainder(flambeau.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """)
fmod = pointwise(
    "fmod", kernels.fmod, d_self=1, node_name="FmodBackward1",
    d_other=lambda self, other: neg(_MODES["trunc"](self, other)),
    doc="What is left of input after division by other; it has the sign of `input`, as C's fmod.")
_remainder = number_nodes(_remainder.op, "RemainderBackward0")
fmod = number_nodes(fmod.op, "FmodBackward0")
Tensor.__mod__ = operator(_remainder)
Tensor.__imod__ = _remainder.op.inplace_op.function
Tensor.__rmod__ = operator(lambda self, other: _remainder(number_first(other, self), self))

__all__ = ["ceil", "div", "floor", "floor_divide", "fmod", "frac", "round", "trunc"]
