"""`custom_op`: a function on tensors as an op, and what can be registered beside it."""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._library import operators
from flambeau._library.infer_schema import infer_schema
from flambeau._support.symbolic_names import Tag

OPDEFS: weakref.WeakValueDictionary[str, CustomOpDef] = weakref.WeakValueDictionary()


class CustomOpDef:
    """What `custom_op` makes of a function."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any],
                 tags: Any = None):
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self.__name__, self.__doc__ = getattr(fn, "__name__", name), fn.__doc__
        old: Any = OPDEFS.get(self._qualname)
        if old is not None:
            operators.forget(old._op)
        given = [tags] if isinstance(tags, Tag) else list(tags or ())
        if Tag.pt2_compliant_tag not in given:
            given.append(Tag.pt2_compliant_tag)
        self._tags = given
        self._op = operators.define(namespace, f"{name}{schema}", given)
        self._op.always_recorded = True
        self._opoverload = self._op.overload
        self._disabled_kernel: set[str] = set()
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _backend_fns(self) -> dict[Any, Callable[..., Any]]:
        return dict(self._op.device_kernels)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Give the op a kernel for devices of some types (all if None); a decorator without `fn`.

        >>> import flambeau
        >>> @flambeau.library.custom_op("doc::halved", mutates_args=(), device_types="cpu")
        ... def halved(x: flambeau.Tensor) -> flambeau.Tensor:
        ...     return x / 2
        >>> _ = halved.register_kernel("cuda", lambda x: x / 2)
        >>> halved(flambeau.ones(1))
        tensor([0.5000])
        """
        def register(fn: Any) -> Any:
            kinds = (device_types,) if isinstance(device_types, (str, type(None))) \
                else tuple(device_types)
            for kind in kinds:
                operators.key_for_device(kind)          # raises for what is no type
                if kind == "meta":
                    self._op.kernels[operators.K.Meta] = fn
                elif kind is None:
                    self._op.kernels[operators.K.CompositeExplicitAutograd] = fn
                else:
                    self._op.device_kernels[kind] = fn
            return fn
        return register if fn is None else register(fn)

    def register_fake(self, fn: Any, /) -> Any:
        """Say what shapes the results have, for tensors on `meta` and fake ones."""
        self._op.fake = fn
        return fn

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Say what a mode or a subclass does with the op; a decorator without `fn`."""
        def register(fn: Any) -> Any:
            self._op.dispatch_rules[torch_dispatch_class] = fn
            return fn
        return register if fn is None else register(fn)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None
                          ) -> None:
        """Give the op a derivative: `backward(ctx, *grads)`, and `setup_context(ctx, inputs,
        output)` that saves what it needs."""
        register_autograd(self._op, backward, setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """Give the op a batching rule: `func(info, in_dims, *args)` gives results and their
        dims."""
        def register(func: Any) -> Any:
            self._op.vmap = func
            return func
        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Say which type the op shall run in under autocast."""
        register_autocast(self._op, device_type, cast_inputs)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Inside, the kernel of a type of devices is or is not used; the other is that which was
        registered for all."""
        kernels = self._op.device_kernels
        found = kernels.get(device_type)
        if not enabled and found is not None:
            everywhere = self._op.kernels.get(operators.K.CompositeExplicitAutograd, self._init_fn)
            kernels[device_type] = everywhere
        try:
            yield
        finally:
            if found is not None:
                kernels[device_type] = found


def register_autograd(op: operators.CustomOp, backward: Callable[..., Any], setup_context: Any
                      ) -> None:
    """Give an op a derivative."""
    if op.schema.is_mutable or any(r.alias_info is not None for r in op.schema.returns):
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator "
                           f"{op.overload} with schema {op.schema}. Please create a functional "
                           "operator and register an autograd formula for that.")
    op.backward, op.setup_context = backward, setup_context


def register_autocast(op: operators.CustomOp, device_type: str, cast_inputs: Any) -> None:
    """Say which type an op shall run in under autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")
    if device_type == "cpu":
        op.autocast_dtype = cast_inputs


def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None,
              schema: str | None = None, tags: Any = None) -> Any:
    """Makes an op, `namespace::name`, of a function on tensors: tracing and vmap see it as one.

    The schema follows from the type annotations. `mutates_args` names the arguments that the
    function writes to; "unknown" stands for all.

    >>> import flambeau
    >>> @custom_op("doc::twice", mutates_args=())
    ... def twice(x: flambeau.Tensor) -> flambeau.Tensor:
    ...     return 2 * x
    >>> twice(flambeau.ones(2)), twice._schema
    (tensor([2., 2.]), '(Tensor x) -> Tensor')
    """
    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, short = name.split("::")
        made = CustomOpDef(namespace, short, text, function, tags)
        if schema is not None:
            _check_mutated(made, mutates_args)
        made.register_kernel(device_types, function)
        return made
    return make if fn is None else make(fn)


def _check_mutated(made: CustomOpDef, mutates_args: Any) -> None:
    """Does a given schema say the same as `mutates_args`?"""
    written = {a.name for a in made._op.schema.arguments if a.is_write}
    if mutates_args != "unknown" and written != set(mutates_args):
        operators.forget(made._op)
        raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                         f"`schema={made._schema}. The schema suggests that the op mutates "
                         f"{written}which is different from what was provided to us in "
                         "`mutates_args`. Please make these consistent.")


__all__ = ["OPDEFS", "CustomOpDef", "custom_op"]
