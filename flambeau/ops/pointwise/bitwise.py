"""Bits of integers, and truth values by the same operators; divisors and multiples."""
from __future__ import annotations

from typing import Any

from flambeau import kernels
from flambeau.core.dtypes import FLOATING
from flambeau.core.tensor import Tensor, add_members
from flambeau.dispatch.pointwise import pointwise
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import reversed_operator


def _declare(name: str, kernel: Any, symbol: str, doc: str, number: str = "Scalar",
             kinds: str = "", said: str = "") -> Any:
    """A bitwise op with its operator, also reversed and in place; `number` is the overload with a
    number."""
    function = pointwise(f"{name}.Tensor(Tensor self, Tensor other)",
                         f"{name}.{number}(Tensor self, Scalar other)",
                         f"{name}.Scalar_Tensor(Scalar self, Tensor other)",
                         kernel=kernel, operators=f"__{symbol}__ __i{symbol}__",
                         out=f"Tensor {number}", refuses=(said or f"{name}_cpu", kinds), doc=doc,
                         out_reported_as=f"aten::{name}")
    commutes = "shift" not in name
    reversed_operator(f"__r{symbol}__", (lambda other, self: function(self, other)) if commutes
                      else function, of_tensors=commutes)
    return function


bitwise_and = _declare("bitwise_and", kernels.bitwise_and, "and", "The bits set in both.")
bitwise_or = _declare("bitwise_or", kernels.bitwise_or, "or", "The bits set in either.")
bitwise_xor = _declare("bitwise_xor", kernels.bitwise_xor, "xor", "The bits set in exactly one.")
left_shift = _declare("bitwise_left_shift", kernels.left_shift, "lshift",
                      "input · 2^other; 0 where `other` is no position of a bit.",
                      "Tensor_Scalar", "bUefcW8", "lshift_cpu")
right_shift = _declare("bitwise_right_shift", kernels.right_shift, "rshift",
                       "input / 2^other, rounded down.", "Tensor_Scalar", "bUefcW8", "rshift_cpu")
bitwise_not = pointwise("bitwise_not(Tensor self)", kernel=kernels.bitwise_not,
                        refuses=("bitwise_not_cpu", "UefcW8"), out_type=FOUND_TYPE,
                        out_reported_as="aten::bitwise_not", doc="Every bit reversed.")


def __invert__(self: Tensor) -> Tensor:
    if self._array.dtype in FLOATING:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors")
    return bitwise_not(self)


add_members(__invert__=__invert__)
gcd = pointwise("gcd(Tensor self, Tensor other)", kernel=kernels.gcd,
                refuses=("gcd_cpu", "bUefcW8"), out_reported_as="aten::gcd",
                doc="The greatest common divisor.")
lcm = pointwise("lcm(Tensor self, Tensor other)", kernel=kernels.lcm,
                refuses=("lcm_cpu", "bUefcW8"), out_reported_as="aten::lcm",
                doc="The least common multiple.")

__all__ = ["bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "gcd", "lcm"]
