"""Ops of programs by the functions that came before `torch.library.custom_op`.

They register the same ops, step by step: a schema, a kernel, a rule for shapes, and a derivative in
two parts, one that says what to save and one that uses it.

>>> import flambeau
>>> @custom_op("doc3::scale")
... def scale(x: flambeau.Tensor, by: float) -> flambeau.Tensor: ...
>>> @impl("doc3::scale")
... def scale_cpu(x, by):
...     return x * by
>>> _ = impl_save_for_backward("doc3::scale")(lambda inputs, output: inputs.by)
>>> _ = impl_backward("doc3::scale")(lambda ctx, saved, grad: {"x": grad * saved})
>>> x = flambeau.ones(2, requires_grad=True)
>>> flambeau.ops.doc3.scale(x, 3.0).sum().backward()
>>> x.grad
tensor([3., 3.])
"""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flambeau import Tensor, library
from flambeau._library import operators
from flambeau._library.fake_impl import get_ctx
from flambeau._library.infer_schema import infer_schema

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward",
           "impl_save_for_backward"]

_NEEDED = {"backward": "save_for_backward", "save_for_backward": "backward"}


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Make an op of a schema, `"(Tensor x) -> Tensor"`, or of the signature of a function, whose
    body is not used."""
    if "::" not in qualname:
        raise ValueError(f"Expected there to be a namespace in {qualname}, i.e. The operator name "
                         "should look something like ns::foo")

    def make(function: Any) -> Any:
        given = isinstance(function, str)
        library.define(qualname, function if given else infer_schema(function, mutates_args=()))
        operators.lookup(qualname).always_recorded = True
        return None if given else function
    return make if func_or_schema is None else make(func_or_schema)


def _registered(qualname: str) -> operators.CustomOp:
    try:
        return operators.lookup(qualname)
    except (RuntimeError, AttributeError):
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have "
                         "already registered the operator and (if registered from C++) loaded it "
                         "via torch.ops.load_library.") from None


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"),
         func: Any = None) -> Any:
    """Give an op a kernel for devices of some types; a decorator without `func`."""
    op = _registered(qualname)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in (device_types,) if isinstance(device_types, str) else device_types:
            key = operators.key_for_device(kind)
            if key in op.kernels:
                raise RuntimeError(f"Attempting to register a {kind} impl for operator {qualname} "
                                   f"that already has a {kind} impl. This is not supported.")
            op.kernels[key] = function
        return function
    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Say what shapes the results have, for tensors on `meta`; a decorator without `func`."""
    return library.register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Say what the derivative needs: `func(inputs, output)` returns it; `inputs` has the arguments
    by name. A decorator without `func`."""
    return _rule(qualname, "save_for_backward", func)


def impl_backward(qualname: str, output_differentiability: Sequence[bool] | None = None, *,
                  func: Any = None) -> Any:
    """Give an op a derivative: `func(ctx, saved, *grads)` returns the gradient of each tensor by
    its name. A decorator without `func`."""
    return _rule(qualname, "backward", func, output_differentiability)


def _rule(qualname: str, part: str, func: Any, differentiable: Any = None) -> Any:
    op = _registered(qualname)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if op.backward is None:
            op.backward = _Derivative(op)
            op.setup_context = op.backward.save
        op.backward.parts[part] = function
        if differentiable is not None:
            op.backward.differentiable = list(differentiable)
        return function
    return register if func is None else register(func)


class _Derivative:
    """The two parts of the derivative of an op, as one rule for `library.register_autograd`."""

    def __init__(self, op: operators.CustomOp):
        self.op = op
        self.parts: dict[str, Callable[..., Any]] = {}
        self.differentiable: list[bool] | None = None
        self.names = [a.name for a in op.schema.arguments]
        self.inputs: Any = namedtuple(f"{op.name}_args", self.names)  # type: ignore[misc]

    def part(self, name: str) -> Callable[..., Any]:
        """One of the two functions; without both, an error."""
        if name not in self.parts:
            raise RuntimeError(
                f"We found a '{_NEEDED[name]}' registration for {self.op.qualified_name} but were "
                f"unable to find a '{name}' registration. To use the CustomOp API to register a "
                "backward formula, please provide us both a backward function and a 'save for "
                "backward' function via `impl_backward` and `impl_save_for_backward` respectively.")
        return self.parts[name]

    def save(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """What runs after the kernel."""
        self.part("backward")
        ctx.tensors = [name for name, value in zip(self.names, inputs) if isinstance(value, Tensor)]
        if self.differentiable is not None:
            ctx.mark_non_differentiable(*(
                r for r, wanted in zip(output, self.differentiable) if not wanted))
        ctx.saved = self.part("save_for_backward")(self.inputs(*inputs), output)

    def __call__(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        found = self.part("backward")(ctx, ctx.saved, *grads)
        if not isinstance(found, dict) or set(found) != set(ctx.tensors):
            got = found.keys() if isinstance(found, dict) else type(found)
            raise RuntimeError(
                f"In the backward function defined for {self.op.qualified_name} using the CustomOp "
                f"API, expected the returned grad_input dict to have keys {set(ctx.tensors)} but "
                f"got {got}. The backward function must return a gradient (can be None) for each "
                "arg to the CustomOp that may be a Tensor or Sequence[Tensor].")
        return tuple(found.get(name) for name in self.names)
