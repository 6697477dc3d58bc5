"""`opcheck`: does an op do what it has been registered as?"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._library import operators
from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau.utils import _pytree


class OpCheckError(Exception):
    """An op does not do what it has been registered as."""


def _tensors(values: Any) -> list[Tensor]:
    return [v for v in _pytree.tree_leaves(values) if isinstance(v, Tensor)]


def _copied(values: Any) -> Any:
    """The same values in memory of their own; what requires grad does so again."""
    return _pytree.tree_map(lambda v: v.detach().clone().requires_grad_(v.requires_grad)
                            if isinstance(v, Tensor) else v, values)


def _test_schema(op: OpOverload, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    """Is only written to, and shared, what the schema says?"""
    before = _copied((args, kwargs))
    with flambeau.no_grad():
        args, kwargs = _copied((args, kwargs))
        result = op(*args, **kwargs)
    schema = op._schema
    given = schema.bound(args, kwargs)
    found = schema.bound(*before)
    for argument, after, old in zip(schema.arguments, given, found):
        for a, b in zip(_tensors(after), _tensors(old)):
            if not argument.is_write and not flambeau.equal(a, b) and not (a.isnan().any()):
                raise OpCheckError(f"Argument {argument.name} is not defined as mutable but was "
                                   "mutated")
    shared = {t.untyped_storage().data_ptr() for argument, value in zip(schema.arguments, given)
              if argument.alias_info is None for t in _tensors(value) if t.numel()}
    for tensor in _tensors(result):
        if tensor.numel() and tensor.untyped_storage().data_ptr() in shared:
            raise OpCheckError("Argument is not defined to alias output but was aliasing")


def _test_autograd_registration(op: OpOverload, args: Any, kwargs: Any,
                                tolerance: dict[str, Any]) -> None:
    """Is a gradient that some argument wants there?"""
    custom = operators.custom_of(op)
    wanted = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    if custom is None or not wanted or custom.is_composite:
        return
    if custom.backward is None and not any(
            operators.K[key] in custom.kernels for key in ("Autograd", "AutogradCPU")) \
            and not custom.always_recorded:
        raise OpCheckError(
            f"The operator {op.name()} has an input that requires grad, but no autograd "
            "registration: its kernel is not to be differentiated through. Please use "
            "torch.library.register_autograd.")


def _test_faketensor(op: OpOverload, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    """Has the fake implementation results like the kernel's?"""
    with flambeau.no_grad():
        real = op(*_copied(args), **_copied(kwargs))
        fake = op(*_on_meta(args), **_on_meta(kwargs))
    flat_real, flat_fake = _pytree.tree_leaves(real), _pytree.tree_leaves(fake)
    if len(flat_real) != len(flat_fake):
        raise OpCheckError(f"the op gives {len(flat_real)} results, its fake implementation "
                           f"{len(flat_fake)}")
    for a, b in zip(flat_real, flat_fake):
        if not isinstance(a, Tensor):
            continue
        for fact in ("shape", "dtype", "stride"):
            x, y = getattr(a, fact), getattr(b, fact)
            x, y = (x(), y()) if callable(x) else (x, y)
            if x != y:
                raise OpCheckError(f"{fact} of a result: the kernel gives {x}, the fake "
                                   f"implementation {y}")


def _on_meta(values: Any) -> Any:
    return _pytree.tree_map(lambda v: v.detach().to("meta") if isinstance(v, Tensor) else v, values)


def _test_aot_dispatch(op: OpOverload, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    """Does a trace of the op, and its gradients, give what the op gives?"""
    from flambeau.fx.experimental.proxy_tensor import make_fx
    given, spec = _pytree.tree_flatten((args, kwargs))

    def called(*flat: Any) -> Any:
        a, k = _pytree.tree_unflatten(list(flat), spec)
        result = op(*a, **k)
        outputs = [t for t in _tensors(result) if t.requires_grad]
        wanted = [t for t in flat if isinstance(t, Tensor) and t.requires_grad]
        if not outputs or not wanted:
            return _tensors(result)
        grads = flambeau.autograd.grad([t.sum() for t in outputs], wanted, allow_unused=True)
        return [*_tensors(result), *grads]
    traced = make_fx(called)(*_copied(given))
    for a, b in zip(called(*_copied(given)), traced(*_copied(given))):
        flambeau.testing.assert_close(a, b, **tolerance)


_TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _test_schema, "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor, "test_aot_dispatch_static": _test_aot_dispatch,
    "test_aot_dispatch_dynamic": _test_aot_dispatch}
_DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor",
            "test_aot_dispatch_dynamic")


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
            test_utils: str | Sequence[str] = _DEFAULT, raise_exception: bool = True,
            atol: float | None = None, rtol: float | None = None) -> dict[str, Any]:
    """Test an op on sample arguments: is what has been registered about it true?

    test_schema                  it writes to and shares what its schema says
    test_autograd_registration   a gradient that is wanted is there
    test_faketensor              the fake implementation gives results like the kernel's
    test_aot_dispatch_dynamic    a trace of it, with gradients, gives what it gives

    >>> import flambeau
    >>> @flambeau.library.custom_op("doc::tripled", mutates_args=())
    ... def tripled(x: flambeau.Tensor) -> flambeau.Tensor:
    ...     return 3 * x
    >>> opcheck(tripled, (flambeau.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    if isinstance(op, OpOverloadPacket):
        op = op.default
    if not isinstance(op, OpOverload) and not hasattr(op, "_opoverload"):
        raise ValueError("opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
                         f"torch.ops.aten.sin.default, got {type(op)}")
    overload = op if isinstance(op, OpOverload) else op._opoverload
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(chosen) - set(_TESTS)
    if unknown:
        raise ValueError(f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be "
                         f"subset of {tuple(_TESTS)} but it was not")
    tolerance = {} if atol is None and rtol is None else {"atol": atol, "rtol": rtol}
    results: dict[str, Any] = {}
    for name in chosen:
        try:
            _TESTS[name](overload, args, kwargs or {}, tolerance)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for "
                                   "stack trace)") from error
            results[name] = error
    return results


__all__ = ["OpCheckError", "opcheck"]
