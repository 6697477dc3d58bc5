"""`_foreach_*`: one op on every tensor of a list.

The second operand is one for all (a number or a tensor of one element) or a list with one for each.
Each function exists as it is, giving a tuple of new tensors, and with `_` at its end, writing in
place. They are loops over ordinary ops, so that derivatives and transforms are those ops'.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.core.graph import next_order
from flambeau.core.op import class_name, public
from flambeau.core.tensor import Tensor
from flambeau.ops.node_names import rename

Tensors = Sequence[Tensor]


# The endings of nodes' names, for an operand that is a number, a list of them, a list of tensors,
# or one tensor.
_NODES = {
    **dict.fromkeys(("add", "sub"), ("1Scalar", "1ScalarList", "0List", "1Scalar")),
    "mul": ("1Scalar", "1ScalarList", "0List", "0Tensor"),
    "div": ("1Scalar", "1ScalarList", "0", "0Tensor"),
    **dict.fromkeys(("maximum", "minimum"), ("0", "1", "0List", "0")),
    **dict.fromkeys(("clamp_min", "clamp_max"),
                    ("0Scalar", "0ScalarList", "1List", "0Scalar")),
    "pow": ("0Scalar", "1", "0", "0Scalar"),
    **dict.fromkeys(("addcmul", "addcdiv"), ("0Scalar", "0ScalarList", "0ScalarList", "0Tensor")),
    "lerp": ("0Scalar", "0ScalarList", "1List", "0Scalar"), "max": ("1",)}
_OPERAND = {"addcmul": 3, "addcdiv": 3, "lerp": 2}


def _named(name: str, function: Any) -> Any:
    """`function`, whose results' nodes have the names that PyTorch gives them."""
    endings = _NODES.get(name, ("0",))
    title = "Foreach" + class_name(name).replace("Log1p", "Log1P").removesuffix("0")
    place = _OPERAND.get(name, 1)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        since = next_order()
        results = function(*args, **kwargs)
        if not any(r.requires_grad for r in results):
            return results
        operand = args[place] if len(args) > place else next(iter(kwargs.values()), None)
        several = isinstance(operand, list | tuple)
        kind = 2 * isinstance(operand[0], Tensor) or 1 if several \
            else 3 * isinstance(operand, Tensor)
        if name == "pow" and not isinstance(args[0], list | tuple):
            kind, ending = 0, "2"
        else:
            ending = endings[min(kind, len(endings) - 1)]
        shown = {} if len(ending) > 1 or name not in ("maximum", "minimum") else {
            "scalars": tuple(operand)} if several else {"scalar": operand}
        for result in results:
            rename(result, title + ending, since, **shown)
        return results
    return run


def _publish(name: str, function: Any, doc: str) -> None:
    if not name.endswith("_"):
        function = _named(name, function)
    function.__name__ = function.__qualname__ = f"_foreach_{name}"
    function.__module__, function.__doc__ = "torch", doc
    public["torch"][f"_foreach_{name}"] = function


def _checked(tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError("argument 'self' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _each(tensors: list[Tensor], other: Any) -> list[Any]:
    """The operand for each tensor."""
    if isinstance(other, (tuple, list)):
        if len(other) != len(tensors):
            if other and isinstance(other[0], Tensor):
                raise RuntimeError("Tensor lists must have the same number of tensors, got "
                                   f"{len(tensors)} and {len(other)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(other)
    if isinstance(other, Tensor) and other.numel() != 1:
        raise RuntimeError("scalar tensor expected to have only 1 element but got "
                           f"{other.numel()} elements.")
    return [other.reshape(()) if isinstance(other, Tensor) else other] * len(tensors)


def _method(name: str) -> Callable[..., Any]:
    """The method of that name, looked up when it is called."""
    return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)


# ---- one operand --------------------------------------------------------------------------------


def _unary(name: str) -> None:
    apply, write = _method(name), _method(f"{name}_")

    def functional(self: Tensors) -> tuple[Tensor, ...]:
        return tuple([apply(t) for t in _checked(self)])

    def inplace(self: Tensors) -> list[Tensor]:
        return [write(t) for t in _checked(self)]
    _publish(name, functional, f"`{name}` of each tensor.")
    _publish(f"{name}_", inplace, f"`{name}_` on each tensor.")


for _name in ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
              "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal",
              "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"):
    _unary(_name)


def _zero_(self: Tensors) -> list[Tensor]:
    return [t.zero_() for t in _checked(self)]


def _clone(self: Tensors) -> tuple[Tensor, ...]:
    return tuple([t.clone() for t in _checked(self)])


def _max(self: Tensors) -> tuple[Tensor, ...]:
    return tuple([t.max() for t in _checked(self)])


def _norm(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    from flambeau.ops.reduction.statistics import vector_norm
    return tuple([vector_norm(t, ord, dtype=dtype) for t in _checked(self)])


def _powsum(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    return tuple([t.abs().pow(ord).sum(dtype=dtype) for t in _checked(self)])


_publish("zero_", _zero_, "Each tensor filled with zeros, in place.")
_publish("clone", _clone, "A copy of each tensor.")
_publish("max", _max, "The largest element of each tensor.")
_publish("norm", _norm, "The norm of each tensor.")
_publish("powsum", _powsum, "Σ |x|^ord over each tensor.")

# ---- two operands -------------------------------------------------------------------------------


def _binary(name: str, apply: Any, write: Any, alpha: bool = False) -> None:
    """`apply(tensor, operand)` and `write`, its in-place form."""
    def options(given: Any) -> dict[str, Any]:
        return {"alpha": given} if alpha and given != 1 else {}

    if alpha:
        def functional(self: Tensors, other: Any, *, alpha: Any = 1) -> tuple[Tensor, ...]:
            tensors = _checked(self)
            more = options(alpha)
            return tuple([apply(t, o, **more) for t, o in zip(tensors, _each(tensors, other))])

        def inplace(self: Tensors, other: Any, *, alpha: Any = 1) -> list[Tensor]:
            tensors = _checked(self)
            more = options(alpha)
            return [write(t, o, **more) for t, o in zip(tensors, _each(tensors, other))]
    else:
        def functional(self: Tensors, other: Any) -> tuple[Tensor, ...]:
            tensors = _checked(self)
            return tuple([apply(t, o) for t, o in zip(tensors, _each(tensors, other))])

        def inplace(self: Tensors, other: Any) -> list[Tensor]:
            tensors = _checked(self)
            return [write(t, o) for t, o in zip(tensors, _each(tensors, other))]
    _publish(name, functional, f"`{name}` of each tensor and its operand.")
    _publish(f"{name}_", inplace, f"`{name}_` on each tensor with its operand.")


for _name in ("add", "sub"):
    _binary(_name, _method(_name), _method(f"{_name}_"), alpha=True)
for _name in ("mul", "div"):
    _binary(_name, _method(_name), _method(f"{_name}_"))
for _name, _bound in (("maximum", "min"), ("minimum", "max"), ("clamp_min", "min"),
                      ("clamp_max", "max")):
    _binary(_name, lambda t, o, b=_bound: t.clamp(**{b: o}),
            lambda t, o, b=_bound: t.clamp_(**{b: o}))


def _pow(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    if isinstance(self, (int, float, complex)):
        return tuple([public["torch"]["pow"](self, e) for e in _checked(exponent)])
    tensors = _checked(self)
    return tuple([t.pow(e) for t, e in zip(tensors, _each(tensors, exponent))])


def _pow_(self: Tensors, exponent: Any) -> list[Tensor]:
    tensors = _checked(self)
    return [t.pow_(e) for t, e in zip(tensors, _each(tensors, exponent))]


def _copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> list[Tensor]:
    tensors = _checked(self)
    return [t.copy_(s) for t, s in zip(tensors, _each(tensors, src))]


def _mm(self: Tensors, mat2: Tensors) -> tuple[Tensor, ...]:
    tensors = _checked(self)
    return tuple([t.mm(m) for t, m in zip(tensors, _each(tensors, mat2))])


_publish("pow", _pow, "Each tensor (or one number) to the power of its exponent.")
_publish("pow_", _pow_, "Each tensor to the power of its exponent, in place.")
_publish("copy_", _copy_, "Each tensor overwritten with its source.")
_publish("mm", _mm, "The matrix products of corresponding tensors.")

# ---- three operands -----------------------------------------------------------------------------


def _values(tensors: list[Tensor], value: Any, scalars: Any) -> list[Any]:
    if scalars is None:
        return [value] * len(tensors)
    if isinstance(scalars, Tensor):
        scalars = scalars.tolist()
    return _each(tensors, scalars)


def _ternary(name: str) -> None:
    apply, write = _method(name), _method(f"{name}_")

    def functional(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Any = None, *,
                   value: Any = 1) -> tuple[Tensor, ...]:
        tensors = _checked(self)
        scalars, value = _number_or_list(scalars, value)
        return tuple([apply(t, a, b, value=v) for t, a, b, v in zip(
            tensors, _each(tensors, tensor1), _each(tensors, tensor2),
            _values(tensors, value, scalars))])

    def inplace(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Any = None, *,
                value: Any = 1) -> list[Tensor]:
        tensors = _checked(self)
        scalars, value = _number_or_list(scalars, value)
        return [write(t, a, b, value=v) for t, a, b, v in zip(
            tensors, _each(tensors, tensor1), _each(tensors, tensor2),
            _values(tensors, value, scalars))]
    _publish(name, functional, f"`{name}` of corresponding tensors, with a value for all or each.")
    _publish(f"{name}_", inplace, f"`{name}_` on each tensor.")


def _number_or_list(scalars: Any, value: Any) -> tuple[Any, Any]:
    """`value` may also be given by position."""
    return (None, scalars) if isinstance(scalars, (int, float, complex)) else (scalars, value)


_ternary("addcmul")
_ternary("addcdiv")


def _lerp(self: Tensors, tensors1: Tensors, weight: Any) -> tuple[Tensor, ...]:
    tensors = _checked(self)
    return tuple([t.lerp(e, w) for t, e, w in zip(tensors, _each(tensors, tensors1),
                                                  _each(tensors, weight))])


def _lerp_(self: Tensors, tensors1: Tensors, weight: Any) -> list[Tensor]:
    tensors = _checked(self)
    return [t.lerp_(e, w) for t, e, w in zip(tensors, _each(tensors, tensors1),
                                             _each(tensors, weight))]


_publish("lerp", _lerp, "Each tensor moved towards its partner by a weight.")
_publish("lerp_", _lerp_, "Each tensor moved towards its partner, in place.")
