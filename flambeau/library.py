"""Ops of the user's own, and other kernels for those that are there.

>>> import flambeau
>>> @custom_op("doc::scale", mutates_args=())
... def scale(x: flambeau.Tensor, by: float = 2.0) -> flambeau.Tensor:
...     return x * by
>>> scale.register_autograd(lambda ctx, grad: (grad * ctx.by, None),
...                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
>>> x = flambeau.ones(2, requires_grad=True)
>>> flambeau.ops.doc.scale(x, 3.0).sum().backward()
>>> x.grad
tensor([3., 3.])
"""
from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._library import custom_ops, operators, replaced
from flambeau._library.custom_ops import CustomOpDef, custom_op
from flambeau._library.fake_impl import get_ctx
from flambeau._library.infer_schema import infer_schema
from flambeau._library.opcheck import opcheck  # noqa: F401
from flambeau._library.triton import triton_op, wrap_triton
from flambeau._ops import OpOverload, ops
from flambeau._support.c_functions import incompatible
from flambeau._support.own_methods import adopt
from flambeau._support.symbolic_names import Tag

_pending: dict[str, list[Callable[[operators.CustomOp], None]]] = {}
_reserved_namespaces = ["prim"]


def _apply(name: str, change: Callable[[operators.CustomOp], None]) -> None:
    """Change the op of that name; if it is not there yet, when it is defined."""
    try:
        op = operators.lookup(name)
    except AttributeError:
        _pending.setdefault(name.removesuffix(".default"), []).append(change)
    else:
        change(op)


def _apply_to(op: Any, change: Callable[[operators.CustomOp], None]) -> None:
    if isinstance(op, str):
        operators.check_qualname(op)
        _apply(op, change)
    else:
        change(operators.lookup(op))


def _check_op(function: str, op: Any) -> None:
    """Is it something that means an op: a name, an overload or what `custom_op` gives?"""
    if not isinstance(op, str | OpOverload | CustomOpDef):
        raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")
    if isinstance(op, str):
        operators.check_qualname(op)


def _define(namespace: str, schema: str, tags: Any = ()) -> operators.CustomOp:
    given = [tags] if isinstance(tags, Tag) else list(tags)
    op = operators.define(namespace, schema, given)
    for change in _pending.pop(op.overload.name(), []):
        change(op)
    return op


# ---- Library ------------------------------------------------------------------------------------

class Library:
    """Ops of a namespace: `DEF` makes it, `FRAGMENT` adds to it, `IMPL` gives kernels.

    Kernels for ops of `aten` take the place of flambeau's own, below autograd, until the library
    is destroyed.

    >>> import flambeau
    >>> library = Library("doc2", "DEF")
    >>> library.define("double(Tensor x) -> Tensor")
    'double'
    >>> library.impl("double", lambda x: 2 * x, "CPU")
    >>> flambeau.ops.doc2.double(flambeau.ones(1))
    tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _reserved_namespaces and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with "
                             "another name.")
        if not isinstance(ns, str):
            raise incompatible("_dispatch_library", [
                "(kind: str, name: str, dispatch: str, file: str = '/dev/null', linenum: "
                "typing.SupportsInt | typing.SupportsIndex = 0) -> object"],
                (kind, ns, dispatch_key), {})
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._made: list[operators.CustomOp] = []
        self._given: list[tuple[operators.CustomOp, Any]] = []
        self._replaced: list[Any] = []
        if kind == "DEF":
            space = getattr(ops, ns)
            if ns == "aten" or space._owner is not None:
                raise RuntimeError("Only a single TORCH_LIBRARY can be used to register the "
                                   f"namespace {ns}; please put all of your definitions in a "
                                   "single TORCH_LIBRARY block.")
            space._owner = self

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Add an op, `name(Tensor x) -> Tensor`; gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("Library.define: a library of kind IMPL defines no ops")
        op = _define(self.ns, schema, tags)
        self._made.append(op)
        return op.name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: Any = "", *,
             with_keyset: bool = False, allow_override: bool = True) -> None:
        """Give an op a kernel: a function of tensors, for devices of a key ("CPU"), for the graph
        ("Autograd"), or for all ("CompositeImplicitAutograd", which is the default).

        Raises:
            RuntimeError: there is a kernel for that key, and it is not to be overridden.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type "
                            f"{type(fn)}")
        key = operators.parse_key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        if not isinstance(name, str):
            raise RuntimeError("impl should be passed either a name or an OpOverload object as the "
                               "first argument")
        if self.ns == "aten":
            self._replaced.append(replaced.replace(name, fn, key.name))
            return
        if fn is fallthrough_kernel:
            return
        if with_keyset:
            plain = fn
            fn = lambda *args, **kwargs: plain(*args, **kwargs)
            fn.takes_keyset = True              # type: ignore[attr-defined]

        def give(op: operators.CustomOp) -> None:
            if key in op.kernels and not allow_override:
                raise RuntimeError(
                    "This is not allowed since there's already a kernel registered from python "
                    f"overriding {op.name}'s behavior for {key.name} dispatch key and {self.ns} "
                    "namespace.")
            op.kernels[key] = fn
            self._given.append((op, key))
        _apply(name if "::" in name else f"{self.ns}::{name}", give)

    def _impl_with_aoti_compile(self, op_name: Any, dispatch_key: str = "") -> None:
        raise NotImplementedError("Library._impl_with_aoti_compile: there is no compiler")

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, *,
                       allow_override: bool = True) -> None:
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        _apply(name, lambda op: setattr(op, "fake", fn))

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type,
                                      fn: Callable[..., Any]) -> None:
        _apply(f"{self.ns}::{op_name}",
               lambda op: op.dispatch_rules.__setitem__(torch_dispatch_class, fn))

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Not offered: one kernel for all ops of a key."""
        if self.ns != "_":
            raise RuntimeError("Fallback can only be registered using library fragment on the "
                               f"global namespace \"_\" but it is {self.ns}")
        raise NotImplementedError("Library.fallback: one kernel for all ops of a key")

    def m(self) -> Any:
        """Not offered: the library in C++."""
        raise NotImplementedError("Library.m: libraries in C++")

    def _destroy(self) -> None:
        for made in self._replaced:
            replaced.restore(made)
        self._replaced.clear()
        for op, key in self._given:
            op.kernels.pop(key, None)
        self._given.clear()
        for op in self._made:
            operators.forget(op)
        self._made.clear()
        space = getattr(ops, self.ns)
        if getattr(space, "_owner", None) is self:
            space._owner = None


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


# ---- the functions ------------------------------------------------------------------------------

_NAMELESS = re.compile(r"\(.*\) -> .*", re.DOTALL)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Add an op: its qualified name, and "(Tensor x) -> Tensor".

    >>> import flambeau
    >>> define("doc::negated", "(Tensor x) -> Tensor")
    >>> impl("doc::negated", "cpu", lambda x: -x)
    >>> flambeau.ops.doc.negated(flambeau.ones(1))
    tensor([-1.])
    """
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got "
                         f"{type(qualname)}")
    namespace, name = _qualname(qualname)
    if not _NAMELESS.fullmatch(schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor'
                         f' x) -> Tensor" but got "{schema}"')
    if lib is None:
        _define(namespace, name + schema, tags)
    else:
        lib.define(name + schema, tags=tags)


def _qualname(name: str) -> tuple[str, str]:
    space, separator, rest = name.partition("::")
    if not separator:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {name}.'
                         " The qualname passed to the torch.library APIs must consist of a "
                         "namespace and a name, e.g. aten::sin")
    return space, rest


def impl(qualname: str | Library, types: Any, func: Any = None, *, lib: Library | None = None
         ) -> Any:
    """Give an op a kernel for devices of some types ("cpu", "default" for all) or for a dispatch
    key; a decorator without `func`. Of a `Library`, `impl(library, name, key)` does it."""
    if isinstance(qualname, Library):
        return _library_impl(qualname, types, func or "")
    keys = [operators.key_for_device(kind)
            for kind in ((types,) if isinstance(types, str) else types)]
    namespace, _ = _qualname(qualname)

    def register(function: Callable[..., Any]) -> Any:
        for key in keys:
            if namespace == "aten" or lib is not None:
                (lib or Library(namespace, "IMPL")).impl(qualname.partition("::")[2], function,
                                                         key.name)
            else:
                _apply(qualname, lambda op, key=key:  # type: ignore[misc]
                       op.kernels.__setitem__(key, function))
    return register if func is None else register(func)


def _library_impl(library: Library, name: str, key: str) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(name, function, key)
        return function
    return register


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None,
                  _stacklevel: int = 1, allow_override: bool = True) -> Any:
    """Say what shapes an op's results have, for tensors on `meta`; a decorator without `func`."""
    _check_op("register_fake", op)

    def register(function: Any) -> Any:
        try:
            found = operators.lookup(op)
        except AttributeError:
            raise RuntimeError(f"operator {op} does not exist") from None
        found.fake = function
        return function
    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Any = None, *, lib: Library | None = None,
                  _stacklevel: int = 1) -> Any:
    """The former name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an op a kernel for devices of some types; a decorator without `func`."""
    _check_op("register_kernel", op)
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    name = op if isinstance(op, str) else operators.lookup(op).overload.name()
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None,
                      lib: Library | None = None) -> None:
    """Give an op a derivative: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`."""
    _check_op("register_autograd", op)
    found = operators.lookup(op)
    custom_ops.register_autograd(found, backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an op a batching rule, `func(info, in_dims, *args)`; a decorator without `func`."""
    _check_op("register_vmap", op)
    found = operators.lookup(op)

    def register(function: Any) -> None:
        found.vmap = function
    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Say which type an op shall run in under autocast."""
    _check_op("register_autocast", op)
    custom_ops.register_autocast(operators.lookup(op), device_type, cast_inputs)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *,
                            lib: Any = None) -> Any:
    """Say what a mode or a subclass does with an op, instead of its `__torch_dispatch__`:
    `func(mode or class, func, types, args, kwargs)`; a decorator without `func`."""
    _check_op("register_torch_dispatch", op)

    def register(function: Any) -> Any:
        _apply_to(op, lambda found: found.dispatch_rules.__setitem__(torch_dispatch_class,
                                                                     function))
        return function
    return register if func is None else register(func)


def fallthrough_kernel() -> None:
    """Stands for "no kernel here, ask the next"."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class _SafeKernelFunction:
    """A kernel that was looked up by key."""

    def __init__(self, function: Callable[..., Any], op: Any):
        self._function, self.op_handle = function, op

    def call_boxed(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"SafeKernelFunction(op='{self.op_handle.name()}')"


def get_kernel(op: Any, dispatch_key: Any) -> _SafeKernelFunction:
    """The kernel of an op for a dispatch key.

    >>> import flambeau
    >>> kernel = get_kernel("aten::sin", "CPU")
    >>> kernel.call_boxed(None, flambeau.zeros(1))
    tensor([0.])
    """
    key = operators.parse_key(dispatch_key)
    if isinstance(op, CustomOpDef):
        overload = op._opoverload
    else:
        overload = op if isinstance(op, OpOverload) else operators.overload_named(op)
    custom = operators.custom_of(overload)
    if custom is None:
        if not overload.has_kernel_for_dispatch_key(key):
            raise RuntimeError(f"no kernel of {overload.name()} for {key}")
        return _SafeKernelFunction(overload, overload)
    if key in custom.kernels:
        return _SafeKernelFunction(custom.kernels[key], overload)
    if key.name == "CPU" and "cpu" in custom.device_kernels:
        return _SafeKernelFunction(custom.device_kernels["cpu"], overload)
    raise RuntimeError(f"no kernel of {overload.name()} for {key}")


__all__ = ["Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
           "impl_abstract", "infer_schema", "register_autocast", "register_fake",
           "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]

adopt(globals(), "_library.")
