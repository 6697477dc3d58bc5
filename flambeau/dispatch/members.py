"""Members of tensors and functions that ask or tell what a tensor is, and compute nothing:
`x.size()`, `torch.is_floating_point(x)`, `x.item()`.

They have schemas, as ops have, and bind their arguments so; but they are nothing that a graph holds
or a level looks for. Only modes and types that override functions are asked first. So it is with
functions that only hand lists on, one element after the other, to ops.

    @member("size(Tensor self, int? dim=None) -> int[]", function=False)
    def size(self, dim): …

Those that change what their tensor looks at (`x.resize_(3)`, `x.t_()`) are ops to modes that look
below autograd, which are shown the overload: they are declared `explicit`.
"""
from __future__ import annotations

from functools import wraps
from typing import Any

from flambeau._support.scopes import within
from flambeau.core import modes
from flambeau.core.calling import overrides
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import Alias, Declaration, publish
from flambeau.dispatch.function import OWN_TENSOR, Function

_UNASKED = frozenset({"as_subclass"})       # about which PyTorch asks no type and no mode


class MemberFunction(Function):
    """The function, or the method, of a member."""

    tensor_kind = OWN_TENSOR

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (modes.function_modes.get() or overrides.overriding_args(args, kwargs)) \
                and self.name not in _UNASKED:
            return overrides.ask_mode_and_types(self.published, (*args, *kwargs.values()), args,
                                                kwargs, self.takes_nothing)
        overload, values = self.choose(args, kwargs)
        stack = modes.levels.get()
        if stack and stack[-1].makes and overload.op.declaration.explicit:
            return within(modes.levels, stack[:-1], stack[-1].member, overload, values)
        return overload.op.body(*overload.canonical(values))


def _use_class_method(body: Any, name: str) -> Any:
    """A body that leaves a slice of `vmap` to the method of its class, which `Tensor.item(x)` goes
    past."""
    @wraps(body)
    def answer(self: Tensor, *values: Any) -> Any:
        if getattr(self, "_own_members", False):        # it may be None
            own = getattr(type(self), name)
            if own is not getattr(Tensor, name):
                return own(self, *values)
        return body(self, *values)
    return answer


def member(*schemas: str, **declared: Any) -> Any:
    """Declare a member by its schemas and its body, which takes the values of their parameters; see
    `Declaration`."""
    if "body" not in declared:
        return lambda body: member(*schemas, **{"doc": body.__doc__ or "", **declared,
                                                "body": body})
    if declared.get("method", True):
        declared["body"] = _use_class_method(declared["body"], schemas[0].partition("(")[0])
    declaration = Declaration(texts=schemas, out=False, **declared)
    declaration.published = publish(declaration, declaration, MemberFunction)
    for text in declaration.aliases:
        publish(Alias(declaration, [text]), declaration, MemberFunction)
    return declaration.published if declaration.function else vars(Tensor)[declaration.name]


__all__ = ["member"]
