"""`_foreach_*`: one op on every tensor of a list.

The second operand is one for all (a number or a tensor of one element) or a list with one for each.
Each function exists as it is, giving a tuple of new tensors, and with `_` at its end, writing in
place. All follow one rule: they are loops over a method of the tensors, whose arguments are an
element of each list, or the one value for all; derivatives and transforms are that method's. Some
that write in place are one kernel call, where nothing is recorded.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from flambeau.core.autograd.graph import next_order
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled
from flambeau.core.op import class_name, public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.members import member
from flambeau.ops.node_names import rename
from flambeau.ops.python import list_updates
from flambeau.ops.python.list_updates import take

Tensors = Sequence[Tensor]
_requires_grad = attrgetter("requires_grad")


def _name_nodes(name: str, nodes: str, results: tuple[Tensor, ...], since: int,
                given: dict[str, Any]
                ) -> None:
    """Give the nodes of results the names that they have in PyTorch: `nodes` lists their endings,
    for an operand that is a number, a list of them, a list of tensors, or one tensor."""
    if not any(map(_requires_grad, results)):
        return
    endings = nodes.split()
    operand = next((given[n] for n in _DECIDING if given.get(n) is not None), None)
    several = isinstance(operand, list | tuple)
    kind = 2 * isinstance(operand[0], Tensor) or 1 if several else 3 * isinstance(operand, Tensor)
    ending = endings[min(kind, len(endings) - 1)]
    if name == "pow" and not isinstance(given["self"], list | tuple):
        ending = "2"
    shown = {} if len(ending) > 1 or name not in ("maximum", "minimum") else {
        "scalars": tuple(operand)} if several else {"scalar": operand}
    title = "Foreach" + class_name(name).replace("Log1p", "Log1P").removesuffix("0")
    for result in results:
        rename(result, title + ending, since, **shown)


_DECIDING = ("scalar", "scalars", "other", "exponent", "weight", "weights", "value")


def _checked(tensors: Any) -> list[Tensor]:
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _operand_per_tensor(tensors: list[Tensor], other: Any, of_tensors: bool) -> list[Any]:
    """The operand for each tensor."""
    if isinstance(other, tuple | list):
        if len(other) != len(tensors):
            if of_tensors:
                raise RuntimeError("Tensor lists must have the same number of tensors, got "
                                   f"{len(tensors)} and {len(other)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(other)
    if isinstance(other, Tensor) and other.ndim:
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions "
                           f"and {other.numel()} elements.")
    return [other] * len(tensors)


# ---- the rule ------------------------------------------------------------------------------------

_OF_NUMBERS = ("scalars", "weight")       # where lists hold numbers
_KEYWORDS = {"alpha": "alpha", "value": "value", "dtype": "dtype",
             "memory_format": "memory_format"}


def _unpacked(tensors: list[Tensor], packed: Tensor) -> list[Any]:
    """The numbers that a tensor holds for each one of a list."""
    if packed.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {packed.ndim} "
                           "instead.")
    if len(packed) != len(tensors):
        raise RuntimeError("Expected length of scalars to match input of length "
                           f"{len(tensors)} but got {len(packed)} instead.")
    return packed.tolist()


def _arguments(tensors: list[Tensor], given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The operands for each tensor, by position and by name."""
    operands, named = [], {}
    for name, value in given.items():
        if value is None or (name == "alpha" and value == 1) or name in ("self", "non_blocking"):
            continue
        if "tensor1" in given and name == "scalars":
            values = _unpacked(tensors, value) if isinstance(value, Tensor) else value
            named["value"] = _operand_per_tensor(tensors, values, False)
        elif name in _KEYWORDS:
            named.setdefault(name, [value] * len(tensors))
        else:
            operands.append(_operand_per_tensor(tensors, value, name not in _OF_NUMBERS))
    return operands, named


def _recorded_together(tensors: list[Tensor], operands: list[Any]) -> list[Tensor]:
    """A list is one node to PyTorch: where one of its tensors requires grad, all results do."""
    if not grad_enabled():
        return tensors
    others = [t for row in operands if isinstance(row[0], Tensor) for t in row]
    if not any(map(_requires_grad, tensors)) and not any(map(_requires_grad, others)):
        return tensors
    return [t if t.requires_grad or t._array.dtype not in FLOATING else t.detach().requires_grad_()
            for t in tensors]


def _loop_over_tensors(name: str, parameters: list[str], method: Callable[..., Tensor],
                       nodes: str = "0",
                       rule: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function of lists that calls a `method` of each tensor, or a kernel with a `rule`."""
    inplace, alone = name.endswith("_"), len(parameters) == 1

    def loop(*values: Any) -> Any:
        tensors, since, given = _checked(values[0]), next_order(), dict(zip(parameters, values))
        operands, named = ([], {}) if alone else _arguments(tensors, given)
        if rule is not None and take(rule, tensors, operands, named):
            return tensors
        if not inplace:
            tensors = _recorded_together(tensors, operands)
        if alone:
            results = [method(tensor) for tensor in tensors]
        else:
            rows = zip(tensors, *operands)
            results = [method(*row, **{k: v[i] for k, v in named.items()})
                       for i, row in enumerate(rows)] if named else [method(*row) for row in rows]
        if inplace:
            return results
        _name_nodes(name, nodes, tuple(results), since, given)
        return tuple(results)
    return loop


def _method(name: str) -> Callable[..., Tensor]:
    """The method of that name, looked up when it is called."""
    def call(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(tensor, name)(*args, **kwargs)
    return call


def _declare(name: str, overloads: dict[str, str], function: Any = None, nodes: str = "0",
             rule: Callable[..., Any] | None = None) -> None:
    """Declare `_foreach_<name>` by the parameters of its overloads beside the list of tensors."""
    inplace = name.endswith("_")
    own, result = ("Tensor(a!)[] self", "()") if inplace else ("Tensor[] self", "Tensor[]")
    texts, names = [], ["self"]
    for overload, more in overloads.items():
        title = f"_foreach_{name}" + f".{overload}" * bool(overload)
        texts.append(f"{title}({own}{', ' * bool(more)}{more}) -> {result}")
        names += [n for n in (p.partition("=")[0].split()[-1] for p in more.split(", ") if p)
                  if n not in ("*", *names)]
    member(*texts, method=False, explicit=True,
           body=_loop_over_tensors(name, names, function or _method(name), nodes, rule),
           doc=f"`{name}` {'on' if inplace else 'of'} each tensor, with its operands.")


def _declare_with_inplace(name: str, overloads: dict[str, str], function: Any = None,
                          write: Any = None,
                          nodes: str = "0", rule: Callable[..., Any] | None = None) -> None:
    """… and the form that writes in place."""
    _declare(name, overloads, function, nodes)
    _declare(f"{name}_", overloads, write, rule=rule)


# ---- the functions -------------------------------------------------------------------------------

_ALONE = {"": ""}


def _greatest(tensor: Tensor) -> Tensor:
    if not tensor.numel():
        raise RuntimeError("_foreach_max cannot compute the maximum of an empty tensor; max over "
                           "zero elements is undefined.")
    return tensor.max()


_NUMBERS = {"Scalar": "Scalar scalar", "List": "Tensor[] other", "ScalarList": "Scalar[] scalars"}
_SCALED = {**_NUMBERS, "List": "Tensor[] other, *, Scalar alpha=1"}
_THREE = "Tensor[] tensor1, Tensor[] tensor2"

for _name in ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
              "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal",
              "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"):
    _declare_with_inplace(_name, _ALONE)
_declare("zero_", _ALONE, rule=list_updates.fill_zero)
_declare("clone", {"": "*, MemoryFormat? memory_format=None"})
_declare("max", _ALONE, _greatest, nodes="1")
_declare("copy_", {"": "Tensor[] src, bool non_blocking=False"},
         rule=list_updates.copy)
_declare("mm", {"": "Tensor[] mat2"})
_declare_with_inplace("add", {**_SCALED, "Tensor": "Tensor other, *, Scalar alpha=1"},
                      nodes="1Scalar 1ScalarList 0List 1Scalar", rule=list_updates.add)
_declare_with_inplace("sub", _SCALED, nodes="1Scalar 1ScalarList 0List 1Scalar")
_declare_with_inplace("mul", {**_NUMBERS, "Tensor": "Tensor other"},
                      nodes="1Scalar 1ScalarList 0List 0Tensor", rule=list_updates.scale)
_declare_with_inplace("div", {**_NUMBERS, "Tensor": "Tensor other"},
                      nodes="1Scalar 1ScalarList 0 0Tensor")
for _name, _bound, _nodes in (
        ("maximum", "min", "0 1 0List 0"), ("minimum", "max", "0 1 0List 0"),
        ("clamp_min", "min", "0Scalar 0ScalarList 1List 0Scalar"),
        ("clamp_max", "max", "0Scalar 0ScalarList 1List 0Scalar")):
    _declare_with_inplace(_name, _NUMBERS, lambda t, o, b=_bound: t.clamp(**{b: o}),
                          lambda t, o, b=_bound: t.clamp_(**{b: o}), _nodes,
                          list_updates.bound_below if _bound == "min" else list_updates.bound_above)
for _name in ("addcmul", "addcdiv"):
    _declare_with_inplace(_name, {"Scalar": f"{_THREE}, Scalar value=1",
                                  "Tensor": f"{_THREE}, Tensor scalars",
                                  "ScalarList": f"{_THREE}, Scalar[] scalars"},
                          nodes="0Scalar 0ScalarList 0ScalarList 0Tensor")
_declare_with_inplace("lerp", {"List": "Tensor[] tensors1, Tensor[] weights",
                               "Scalar": "Tensor[] tensors1, Scalar weight",
                               "ScalarList": "Tensor[] tensors1, Scalar[] weight"},
                      nodes="0Scalar 0ScalarList 1List 0Scalar", rule=list_updates.lerp)

_POWERS = {"List": "Tensor[] exponent", "Scalar": "Scalar exponent",
           "ScalarList": "Scalar[] exponent"}
_declare("pow_", _POWERS)


def _pow(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    if isinstance(self, tuple | list):
        return _powers(self, exponent)
    since = next_order()
    results = tuple([public["torch"]["pow"](self, e) for e in _checked(exponent)])
    _name_nodes("pow", _POW_NODES, results, since, {"self": self, "exponent": exponent})
    return results


_POW_NODES = "0Scalar 1 0 0Scalar"
_powers = _loop_over_tensors("pow", ["self", "exponent"], _method("pow"), _POW_NODES)
member(*[f"_foreach_pow.{overload}({own}, {more}) -> Tensor[]" for own, overload, more in (
    *[("Tensor[] self", overload, more) for overload, more in _POWERS.items()],
    ("Scalar self", "ScalarAndTensor", "Tensor[] exponent"))], method=False, explicit=True,
       body=_pow, doc="Each tensor (or one number) to the power of its exponent.")


def _norm(tensor: Tensor, ord: Any, dtype: Any = None) -> Tensor:
    from flambeau.ops.reduction.statistics import vector_norm
    if not tensor.numel() and ord == math.inf:
        raise RuntimeError("_foreach_norm cannot compute the infinity norm on an empty tensor "
                           "because the operation does not have an identity")
    return vector_norm(tensor, ord, dtype=dtype)


_ORDER = {"Scalar": "Scalar ord=2, ScalarType? dtype=None"}
_declare("norm", _ORDER, _norm)
_declare("powsum", _ORDER, lambda t, ord, dtype=None: t.abs().pow(ord).sum(dtype=dtype))
