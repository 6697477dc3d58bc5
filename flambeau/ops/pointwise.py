"""Ops that work element by element: arithmetic, comparison, elementary functions.

A derivative is the formula `d`: what a change of the argument is multiplied by.
"""
from __future__ import annotations

from typing import Any

from flambeau import kernels
from flambeau.core import overrides
from flambeau.core.modes import intercept, interceptors
from flambeau.core.op import pointwise, public, publish
from flambeau.core.tensor import Tensor, basis, plain

# ---- arithmetic ---------------------------------------------------------------------------------

add = pointwise("add", kernels.add, d_self=1, d_other=1, dunder="__add__ __radd__")
sub = pointwise("sub", kernels.subtract, d_self=1, d_other=-1, dunder="__sub__", reject="b",
                aliases=("subtract",))
mul = pointwise("mul", kernels.multiply, d_self=lambda other: other, d_other=lambda self: self,
                dunder="__mul__ __rmul__", aliases=("multiply",))
true_divide = pointwise(
    "div", kernels.divide, floating=True, d_self=lambda other: _reciprocal(other),
    d_other=lambda self, other: neg(self / other / other), dunder="__truediv__ __div__")
neg = pointwise("neg", kernels.negative, d=-1, dunder="__neg__", aliases=("negative",), reject="b")
reciprocal = pointwise("reciprocal", kernels.reciprocal, floating=True,
                       d=lambda result: neg(result * result))


def _reciprocal(value: Any) -> Any:
    return reciprocal(value) if isinstance(value, Tensor) else 1 / value if value else value + float(
        "inf")


def scaled_second(function: Any) -> Any:
    """`add` and `sub` as users call them: with `alpha`, which multiplies the second argument."""
    op = function.op

    def call(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
        if type(alpha) is int and alpha == 1:
            return function(input, other) if out is None else function(input, other, out=out)
        if interceptors or type(input) not in plain:
            kwargs = {"alpha": alpha} if out is None else {"alpha": alpha, "out": out}
            if overrides.has_torch_function((input, other)):
                return overrides.handle_torch_function(call, (input, other), input, other,
                                                       **kwargs)
        check_alpha(input, alpha)
        scaled = mul(other, alpha) if isinstance(other, Tensor) else other * alpha
        return function(input, scaled, out=out)

    def write(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        inplace = op.inplace_op.function
        if type(alpha) is int and alpha == 1:
            return inplace(input, other)
        check_alpha(input, alpha)
        return inplace(input, mul(other, alpha) if isinstance(other, Tensor) else other * alpha)

    write.op, write.__name__ = op.inplace_op, f"{op.name}_"
    return call, write


def check_alpha(input: Tensor, alpha: Any) -> None:
    if isinstance(alpha, bool) and input.dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and input.dtype.kind in "bui":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point "
                           "number.")


for _op, _aliases in ((add, ()), (sub, ("subtract",))):
    _call, _write = scaled_second(_op)
    publish(_op.op, _call, True, _aliases)
    for _name in (_op.op.name, *_aliases):
        setattr(Tensor, f"{_name}_", _write)


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha · input."""
    return sub(other, input if alpha == 1 else mul(input, alpha))


public["torch"]["rsub"] = rsub
Tensor.__rsub__ = lambda self, other: sub(other, self)
Tensor.__rtruediv__ = Tensor.__rdiv__ = lambda self, other: mul(reciprocal(self), other)
Tensor.__iadd__, Tensor.__isub__ = add.op.inplace_op.function, sub.op.inplace_op.function
Tensor.__imul__ = mul.op.inplace_op.function
Tensor.__itruediv__ = Tensor.__idiv__ = true_divide.op.inplace_op.function
__all__ = ["add", "intercept", "mul", "neg", "reciprocal", "rsub", "sub", "true_divide"]

# ---- elementary functions -------------------------------------------------------------------------

exp = pointwise("exp", kernels.exp, floating=True, d=lambda result: result)
log = pointwise("log", kernels.log, floating=True, d=lambda self: reciprocal(self))
sqrt = pointwise("sqrt", kernels.sqrt, floating=True, d=lambda result: reciprocal(2 * result))
sin = pointwise("sin", kernels.sin, floating=True, d=lambda self: cos(self))
cos = pointwise("cos", kernels.cos, floating=True, d=lambda self: neg(sin(self)))
tanh = pointwise("tanh", kernels.tanh, floating=True, d=lambda result: 1 - result * result)
sigmoid = pointwise("sigmoid", kernels.sigmoid, floating=True,
                    d=lambda result: (1 - result) * result)
relu = pointwise("relu", kernels.relu,
                 vjp=lambda grad, result: threshold_backward(grad, result))
threshold_backward = pointwise(
    "threshold_backward", kernels.relu_backward, vjp=lambda grad, other, needs: (
        threshold_backward(grad, other) if needs[0] else None, None),
    tensors=("self", "other"), method=False, inplace=False)

# ---- comparison -----------------------------------------------------------------------------------

eq = pointwise("eq", kernels.equal, tensors=("self", "other"), dunder="__eq__")
ne = pointwise("ne", kernels.not_equal, tensors=("self", "other"), dunder="__ne__",
               aliases=("not_equal",))
lt = pointwise("lt", kernels.less, tensors=("self", "other"), dunder="__lt__", aliases=("less",))
le = pointwise("le", kernels.less_equal, tensors=("self", "other"), dunder="__le__",
               aliases=("less_equal",))
gt = pointwise("gt", kernels.greater, tensors=("self", "other"), dunder="__gt__",
               aliases=("greater",))
ge = pointwise("ge", kernels.greater_equal, tensors=("self", "other"), dunder="__ge__",
               aliases=("greater_equal",))

basis.add, basis.mul, basis.neg = add, mul, neg
