"""Rounding, and division with a whole quotient or a remainder."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.dtypes import FLOATING, default_float
from flambeau.core.promotion import convert, is_half
from flambeau.core.tensor import Tensor
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.refused import by_one, characters, no_kernel, refuse
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import div, mul, neg, reversed_operator
from flambeau.ops.pointwise.complex import conjugated

# ---- to whole numbers ---------------------------------------------------------------------------


def _declare_rounding(name: str, kernel: Any, doc: str, *aliases: str) -> Any:
    return pointwise(f"{name}(Tensor self) -> Tensor", kernel=kernel, d=0, doc=doc,
                     out_type=FOUND_TYPE,
                     aliases=[f"{other}(Tensor self) -> Tensor" for other in aliases],
                     refuses=(f"{name}_vml_cpu", ""),
                     refused_as={"c": f"{name} is not supported for complex inputs"})


floor = _declare_rounding("floor", kernels.floor, "The greatest whole number that is not greater.")
ceil = _declare_rounding("ceil", kernels.ceil, "The least whole number that is not less.")
trunc = _declare_rounding("trunc", kernels.trunc, "The whole part: rounding towards zero.", "fix")
frac = pointwise("frac(Tensor self) -> Tensor", kernel=kernels.frac, d=1, out_type=FOUND_TYPE,
                 doc="The part after the point: input - trunc(input).")


def _round_decimals(self: np.ndarray, decimals: int) -> np.ndarray:
    if self.dtype not in FLOATING or self.dtype.char in characters("cW8"):
        raise no_kernel("round_cpu" if decimals else "round_vml_cpu", self.dtype)
    if not decimals:
        return kernels.rint(self)
    from flambeau.kernels.pointwise import special  # which few programs need
    return special.round_decimals(self, decimals)


round = pointwise("round(Tensor self) -> Tensor",
                  "round.decimals(Tensor self, *, int decimals) -> Tensor",
                  kernel=lambda self, *decimals: _round_decimals(self, *decimals) if decimals
                  else kernels.rint(self), default_kernel=kernels.rint, d=0,
                  aliases=("special_round(Tensor self, *, int decimals=0) -> Tensor",),
                  refuses=("round_vml_cpu", ""), out_type=FOUND_TYPE,
                  doc="""The nearest whole number, or the nearest with so many `decimals`; halves go
    to the even one.

    >>> import flambeau
    >>> flambeau.round(flambeau.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    """)


# ---- quotients ----------------------------------------------------------------------------------


def _divide_truncated(x: np.ndarray, y: Any) -> np.ndarray:
    if is_half(x.dtype) and x.ndim and not np.ndim(y):      # by one number: rounded once
        return convert(_divide_truncated(convert(x, np.float32), np.float32(y)), x.dtype)
    if x.dtype.kind not in "ui":
        return kernels.trunc(kernels.divide(x, y))
    whole = kernels.floor_divide(x, y)
    if x.dtype.kind == "u":
        return whole
    inexact = kernels.not_equal(kernels.remainder(x, y), 0)
    return np.add(whole, inexact & (whole < 0), dtype=x.dtype)


def _div_mode_kernel(self: np.ndarray, other: np.ndarray, rounding_mode: str | None) -> np.ndarray:
    if rounding_mode is None:
        if self.dtype not in FLOATING:
            self, other = convert(self, default_float()), convert(other, default_float())
        return kernels.divide(self, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")
    name = f"div_{rounding_mode}_cpu"
    refuse(self, "bUcW8", by_one(name, name)(self, other))
    return (kernels.floor_divide if rounding_mode == "floor" else _divide_truncated)(self, other)


def _div_mode_vjp(grad: Tensor, self: Tensor, other: Any, rounding_mode: str | None, needs: Any
                  ) -> Any:
    if rounding_mode is not None:
        return [zeros_like(grad) if n else None for n in needs]
    first = div(grad, conjugated(other) if isinstance(other, Tensor) else other)
    return first, mul(grad, conjugated(neg(self / other / other))) if needs[1] else None


pointwise("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
          "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
          overload_of=div, kernel=_div_mode_kernel, wide=True, vjp=_div_mode_vjp, numbers=True,
          out="Tensor_mode", node="DivBackward2")
floor_divide = pointwise(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    kernel=kernels.floor_divide, wide=True, d_self=0, d_other=0,
    refuses=(by_one("div_floor_cpu", "div_floor_cpu"), "bUcW8"),
    numbers=True, out="", out_reported_as="aten::floor_divide", node="NotImplemented",
    operators="__floordiv__ __ifloordiv__",
    doc="The greatest whole number that is not greater than input / other.")
reversed_operator("__rfloordiv__", floor_divide)

# ---- remainders ---------------------------------------------------------------------------------

remainder = pointwise(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    kernel=kernels.remainder, refuses=("remainder_cpu", "bUcW8"), out="Scalar Tensor",
    d_self=1, d_other=lambda self, other: neg(div(self, other, rounding_mode="floor")),
    operators="__mod__ __imod__",
    doc="""What is left of input after division by other; it has the sign of `other`, as Python's %.

    >>> import flambeau
    >>> flambeau.remainder(flambeau.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """)
fmod = pointwise(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    kernel=kernels.fmod, refuses=("fmod_cpu", "bUcW8"),
    d_self=1, d_other=lambda self, other: neg(div(self, other, rounding_mode="trunc")),
    doc="What is left of input after division by other; it has the sign of `input`, as C's fmod.")
reversed_operator("__rmod__", remainder)

__all__ = ["ceil", "floor", "floor_divide", "fmod", "frac", "round", "trunc"]
