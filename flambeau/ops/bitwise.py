"""Bits of integers, and truth values by the same operators; divisors and multiples."""
from __future__ import annotations

from typing import Any

from flambeau import kernels
from flambeau._call_guards import method as as_method
from flambeau.core.dtypes import FLOATING
from flambeau.core.op import pointwise
from flambeau.core.tensor import Tensor
from flambeau.ops.pointwise import number_first, operator

_TWO = ("self", "other")


def _bitwise(name: str, kernel: Any, symbol: str, doc: str) -> Any:
    """A bitwise op with its operator, also reversed and in place."""
    function = pointwise(name, kernel, tensors=_TWO, numbers="any", doc=doc)
    setattr(Tensor, f"__{symbol}__", operator(function))
    setattr(Tensor, f"__i{symbol}__", as_method(function.op.inplace_op.function, True))
    setattr(Tensor, f"__r{symbol}__",
            operator(lambda self, other: function(number_first(other, self), self)))
    return function


bitwise_and = _bitwise("bitwise_and", kernels.bitwise_and, "and", "The bits set in both.")
bitwise_or = _bitwise("bitwise_or", kernels.bitwise_or, "or", "The bits set in either.")
bitwise_xor = _bitwise("bitwise_xor", kernels.bitwise_xor, "xor", "The bits set in exactly one.")
left_shift = _bitwise("bitwise_left_shift", kernels.left_shift, "lshift",
                      "input · 2^other; 0 where `other` is no position of a bit.")
right_shift = _bitwise("bitwise_right_shift", kernels.right_shift, "rshift",
                       "input / 2^other, rounded down.")
left_shift.op.refusal, right_shift.op.refusal = {"": "lshift_cpu"}, {"": "rshift_cpu"}
bitwise_not = pointwise("bitwise_not", kernels.bitwise_not, doc="Every bit reversed.")


def _invert(self: Tensor) -> Tensor:
    if self._array.dtype in FLOATING:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors")
    return bitwise_not(self)


Tensor.__invert__ = _invert



gcd = pointwise("gcd", kernels.gcd, tensors=_TWO, numbers="", doc="The greatest common divisor.")
lcm = pointwise("lcm", kernels.lcm, tensors=_TWO, numbers="", doc="The least common multiple.")

__all__ = ["bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "gcd", "lcm"]
