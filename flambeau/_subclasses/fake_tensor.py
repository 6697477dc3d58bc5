"""Fake tensors: a shape, a type and a device, but no values.

They are tensors on `meta` that know which device they stand for. Inside a `FakeTensorMode`, ops
make fake tensors; an op on them runs on `meta`.

>>> import flambeau
>>> with FakeTensorMode() as mode:
...     x = flambeau.ones(2, 3, device="cuda")
...     y = x @ x.T
>>> x, y.device
(FakeTensor(..., device='cuda:0', size=(2, 3)), device(type='cuda', index=0))
>>> mode.from_tensor(flambeau.ones(4)).sum()
FakeTensor(..., size=())
"""
from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor, nn
from flambeau._library.operators import custom_of
from flambeau._ops import OpOverload
from flambeau._support.scopes import Scope
from flambeau.core import devices, modes
from flambeau.core.symbolic_names import Tag
from flambeau.core.tensor import LEAF, alias
from flambeau.dispatch.aten.subclass import take_over
from flambeau.ops.sparse.tensors import is_sparse, on_meta
from flambeau.overrides import TorchFunctionMode
from flambeau.transforms.meta import MetaTensor, laid_out_as, meta_array
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    modes_set_aside,
)

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake", "maybe_get_fake_mode",
           "unset_fake_temporarily"]

# ---- what cannot be known without values ---------------------------------------------------------


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of a kind that has no fake form."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class _OpException(RuntimeError):
    def __init__(self, func: Any):
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(_OpException):
    """The shape of an op's result depends on values."""


class DataDependentOutputException(_OpException):
    """An op gives a number that depends on values."""


class UnsupportedOperatorException(_OpException):
    """An op has no fake implementation."""


class UnsupportedMutationAliasingException(RuntimeError):
    """An op writes to memory in a way that has no fake form."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors of one call are on several devices."""


class MetadataMismatchError(RuntimeError):
    """A fake result does not look like the real one."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


# ---- FakeTensor ----------------------------------------------------------------------------------


class FakeTensor(Tensor):
    """A tensor without values, which stands for one on `fake_device`."""

    fake_device: flambeau.device
    fake_mode: FakeTensorMode
    constant: Tensor | None = None
    real_tensor: Tensor | None = None

    __torch_function__ = flambeau._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any,
                constant: Tensor | None = None, real_tensor: Tensor | None = None, **_: Any
                ) -> FakeTensor:
        if not elem.is_meta:
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        return _wrapped(fake_mode, elem, device, constant)

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake form of a tensor."""
        return fake_mode.from_tensor(t)

    @property
    def names(self) -> list[str]:
        """Fake tensors have no named dimensions."""
        raise UnsupportedFakeTensorException("torch.compile doesn't support named tensors")

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor with another type, or on another device."""
        device, dtype, _, memory_format = flambeau._C._nn._parse_to(*args, **{
            k: v for k, v in kwargs.items() if k != "copy"})
        if args and isinstance(args[0], Tensor):
            device, dtype = args[0].device, args[0].dtype
        options = {"copy": True} if kwargs.get("copy") else {}
        if memory_format is not None:
            options["memory_format"] = memory_format
        found: Any = super().to(dtype or self.dtype, **options)
        if device is None or _normalized(device) == self.fake_device:
            return found
        found = found.clone() if found is self else found
        found._device = found.fake_device = _normalized(device)
        return found

    def cpu(self, memory_format: Any = flambeau.preserve_format) -> Any:
        """The tensor on the CPU."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False,
             memory_format: Any = flambeau.preserve_format) -> Any:
        """The tensor on a GPU, which need not be there."""
        return self.to("cuda" if device is None else device, memory_format=memory_format)

    def tolist(self) -> Any:
        """Raises, but of known constants: there are no values."""
        if self.constant is not None:
            return self.constant.tolist()
        raise DataDependentOutputException(flambeau.ops.aten._local_scalar_dense.default)

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Raises: there are no values."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        parts = ["..."]
        if self.fake_device.type != "cpu":
            parts.append(f"device='{self.fake_device}'")
        parts.append(f"size={tuple(self.shape)}")
        if self.dtype not in (flambeau.get_default_dtype(), flambeau.bool):
            parts.append(f"dtype={self.dtype}")
        elif self.dtype is flambeau.bool:
            parts.append("dtype=torch.bool")
        if self.grad_fn is not None:
            name = type(self.grad_fn).__name__
            parts.append(f"grad_fn=<{name}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        text = f"FakeTensor({', '.join(parts)})"
        return f"Parameter({text})" if getattr(self, "_is_param", False) else text

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = next(leaf.fake_mode for leaf in _pytree.arg_tree_leaves(*args, **(kwargs or {}))
                    if isinstance(leaf, FakeTensor))
        return mode.dispatch(func, types, args, kwargs or {})


take_over(FakeTensor)


def _wrapped(mode: FakeTensorMode, meta: Tensor, device: Any, constant: Tensor | None = None
             ) -> FakeTensor:
    """A fake tensor with the geometry of one on `meta`."""
    if is_sparse(meta):
        from flambeau._subclasses.fake_sparse import of_form
        made: Any = of_form(meta)
    else:
        made = alias(meta._array, FakeTensor)
    made._device = made.fake_device = _normalized(device)
    made.fake_mode, made.constant = mode, constant
    return made


def _normalized(device: Any) -> flambeau.device:
    found = flambeau.device(device)
    if found.type not in ("cpu", "meta") and found.index is None:
        return flambeau.device(found.type, 0)
    return found


def is_fake(x: Any) -> bool:
    """Does a tensor, or one that it wraps, only stand for another?

    >>> is_fake(flambeau.ones(1))
    False
    """
    if isinstance(x, FakeTensor):
        return True
    if is_traceable_wrapper_subclass(x):
        names, _ = x.__tensor_flatten__()
        inner = [is_fake(getattr(x, name)) for name in names]
        if any(inner) and not all(inner):
            raise AssertionError("got mixed fake and real tensors!")
        return all(inner)
    from flambeau._subclasses.functional_tensor import FunctionalTensor
    return isinstance(x, FunctionalTensor) and is_fake(x.elem)


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor, or of those that a tensor wraps; None if there is none."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if is_traceable_wrapper_subclass(t):
        names, _ = t.__tensor_flatten__()
        found = [maybe_get_fake_mode(getattr(t, name)) for name in names]
        if any(mode is not found[0] for mode in found):
            raise AssertionError("All modes must be the same for all inner tensors")
        return found[0]
    from flambeau._subclasses.functional_tensor import FunctionalTensor
    return maybe_get_fake_mode(t.elem) if isinstance(t, FunctionalTensor) else None


# ---- from real tensors ---------------------------------------------------------------------------


class FakeTensorConverter:
    """Makes fake tensors of others, one of each; views of one memory stay views of one memory."""

    def __init__(self, *, copy_data: bool = False, export: bool = False):
        self.export = export
        self._of: dict[int, tuple[Any, Any]] = {}
        self._memory: dict[int, tuple[Any, np.ndarray]] = {}

    @property
    def tensor_memo(self) -> dict[int, Any]:
        """The fake tensors that have been made, by the identity of the others."""
        return {key: fake for key, (_, fake) in self._of.items()}

    def set_tensor_memo(self, t: Tensor, v: FakeTensor) -> None:
        """Let a fake tensor be that of another tensor."""
        key = id(t)
        memo = self._of

        def forget(_: Any, key: int = key) -> None:
            memo.pop(key, None)
        memo[key] = weakref.ref(t, forget), v

    def _known(self, t: Tensor) -> FakeTensor | None:
        found = self._of.get(id(t))
        return found[1] if found is not None and found[0]() is t else None

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, make_constant: bool = False,
                         shape_env: Any = None, *, source: Any = None, symbolic_context: Any = None,
                         trace: bool = True) -> FakeTensor:
        """The fake form of a tensor; with `make_constant`, it keeps the values."""
        known = self._known(t)
        if known is not None:
            return known
        if t.is_quantized or t.is_nested:
            raise UnsupportedFakeTensorException(
                "meta converter nyi: quantized and nested tensors have no fake form")
        if is_traceable_wrapper_subclass(t):
            from flambeau.utils._python_dispatch import transform_subclass
            return transform_subclass(t, lambda _, inner: fake_mode.from_tensor(inner))
        if is_sparse(t):
            from flambeau._subclasses.fake_sparse import form_of
            found: Any = _wrapped(fake_mode, form_of(t), t.device)
        elif t._is_view() and not isinstance(t, FakeTensor) and t._base is not None:
            base = self.from_real_tensor(fake_mode, t._base)
            found = _wrapped(fake_mode, _window(base, t), t.device)
            if not t.requires_grad:
                found._base = base
        else:
            found = _wrapped(fake_mode, alias(laid_out_as(t._array), MetaTensor), t.device)
        if make_constant:
            found.constant = t
        if t.requires_grad:
            found._edge = LEAF
            if not t.is_leaf:
                with flambeau.enable_grad(), fake_mode:
                    found = found.clone()
        if isinstance(t, nn.Parameter):
            found._is_param = True
        if t.grad is not None and t.is_leaf:
            found.grad = self.from_real_tensor(fake_mode, t.grad)
        self.set_tensor_memo(t, found)
        return found

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device: Any,
                             pytype: Any = None, dispatch_keys: Any = None) -> FakeTensor:
        """The fake tensor of that geometry on a device."""
        known = self._known(t)
        if known is not None:
            return known
        found = _wrapped(fake_mode, t, device)
        self.set_tensor_memo(t, found)
        return found


def _window(base: FakeTensor, view: Tensor) -> Tensor:
    """The part of the hollow memory of `base` that a view of the real one looks at."""
    itemsize = view._array.dtype.itemsize
    first = base._array
    if first.size == 0:
        return alias(laid_out_as(view._array), MetaTensor)
    offset = view.storage_offset() * itemsize - (
        view._base.storage_offset() * view._base._array.dtype.itemsize)
    address = first.__array_interface__["data"][0] + offset
    low = min(0, offset)
    holder: Any = first
    while isinstance(getattr(holder, "base", None), np.ndarray):
        holder = holder.base
    start = holder.__array_interface__["data"][0]
    try:
        found = np.ndarray(view._array.shape, view._array.dtype, holder, address - start + 0 * low,
                           view._array.strides)
    except (TypeError, ValueError):
        found = meta_array(view._array.shape, view._array.dtype, view._array.strides)
    return alias(found, MetaTensor)


# ---- the mode ------------------------------------------------------------------------------------


class FakeTensorMode(TorchDispatchMode):
    """Inside, ops make fake tensors and run on them.

    allow_non_fake_inputs  real tensors among the arguments of an op are made fake; otherwise they
                           are refused
    shape_env              where symbols for sizes come from
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
                 shape_env: Any = None, static_shapes: bool | None = None, export: bool = False):
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self.fake_tensor_converter = FakeTensorConverter(export=export)
        self.epoch, self.nt_tensor_id_counter = 0, 1
        self.cache_enabled = False

    @property
    def stack(self) -> str:
        """Where the mode was made: not kept."""
        return ""

    def is_our_fake(self, t: Any) -> bool:
        """Is it a fake tensor of this mode?"""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, source: Any = None,
                    symbolic_context: Any = None, trace: bool = True) -> Any:
        """The fake form of a tensor, the same for each call."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={tensor.fake_mode} vs "
                                     f"self={self}")
            return tensor
        with unset_fake_temporarily(), _no_dispatch():
            return self.fake_tensor_converter.from_real_tensor(
                self, tensor, shape_env=self.shape_env, source=source,
                symbolic_context=symbolic_context, trace=trace)

    def from_meta(self, tensor: Tensor, device: Any) -> FakeTensor:
        """A fake tensor with the geometry of one on `meta`, which stands for one on `device`."""
        return _wrapped(self, tensor, device)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an op on fake tensors."""
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        leaves = _pytree.arg_tree_leaves(*args, **kwargs)
        others = {type(t) for t in leaves
                  if isinstance(t, Tensor) and not isinstance(t, FakeTensor)} - _KNOWN
        if any(getattr(cls, "__torch_dispatch__", None) is not None for cls in others):
            return NotImplemented               # a wrapper around fake tensors unwraps first
        if func._opname in ("lift_fresh", "lift_fresh_copy", "lift") and leaves \
                and not isinstance(leaves[0], FakeTensor):
            return self._constant(leaves[0])
        constant = self._constants(func, args, kwargs, leaves)
        if constant is not NotImplemented:
            return constant
        if func.namespace == "aten":
            tags = func.tags
            if Tag.data_dependent_output in tags or func._opname == "is_nonzero":
                return self._number(func, leaves)
            if Tag.dynamic_output_shape in tags and func._packet._op.unsized is True:
                return self._sized_by_values(func, args, kwargs)
        args, kwargs = self._all_fake(func, args, kwargs)
        return self._run(func, args, kwargs)

    def _constant(self, value: Tensor) -> FakeTensor:
        """A tensor of the program's own numbers."""
        with _no_dispatch():
            made = _wrapped(self, alias(laid_out_as(value._array), MetaTensor), value.device)
            if value.numel() <= _SMALL:
                made.constant = value.detach().clone()
        return made

    def _constants(self, func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """The result of an op on known numbers, which is known too."""
        fakes: list[Any] = [t for t in leaves if isinstance(t, Tensor)]
        if func.namespace != "aten" or not fakes or not all(
                isinstance(t, FakeTensor) and t.constant is not None for t in fakes):
            for t in fakes:
                if isinstance(t, FakeTensor) and t.constant is not None \
                        and func._schema.is_mutable:
                    t.constant = None
            return NotImplemented
        if func._schema.is_mutable or func._nondeterministic_seeded:
            for t in fakes:
                t.constant = None
            return NotImplemented
        with _no_dispatch():
            real_args, real_kwargs = _pytree.tree_map_only(
                FakeTensor, lambda t: t.constant, (args, kwargs))
            found = func(*real_args, **real_kwargs)
        if not all(isinstance(f, Tensor) and f.numel() <= _SMALL
                   for f in _pytree.tree_leaves(found)):
            return NotImplemented if any(isinstance(f, Tensor) for f in
                                         _pytree.tree_leaves(found)) else found
        args, kwargs = self._all_fake(func, args, kwargs)
        made = self._run(func, args, kwargs)
        for fake, real in zip(_pytree.tree_leaves(made), _pytree.tree_leaves(found)):
            fake.constant = real
        return made

    def _number(self, func: Any, leaves: list[Any]) -> Any:
        if self.shape_env is not None and getattr(self.shape_env, "allow_scalar_outputs", False) \
                and func._opname == "_local_scalar_dense":
            dtype = leaves[0].dtype
            if dtype is flambeau.bool:
                return self.shape_env.create_unbacked_symbool()
            return self.shape_env.create_unbacked_symfloat() if dtype.is_floating_point \
                else self.shape_env.create_unbacked_symint()
        raise DataDependentOutputException(func)

    def _sized_by_values(self, func: Any, args: Any, kwargs: Any) -> Any:
        raise DynamicOutputShapeException(func)

    def _all_fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The arguments with fake tensors for real ones, if those are allowed."""
        def fake(t: Tensor) -> Tensor:
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode} vs "
                                         f"self={self}")
                return t
            if not self.allow_non_fake_inputs and not t.is_meta:
                shown = ", ".join(_shown(a) for a in args)
                raise AssertionError("Please convert all Tensors to FakeTensors first or "
                                     "instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                                     f"Found in {func}({shown})")
            return self.from_tensor(t)
        return _pytree.tree_map_only(Tensor, fake, (args, kwargs))

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an op on `meta`, and let its results be fake tensors on their device."""
        if func._opname in ("detach", "alias") and len(args) == 1 and \
                type(args[0]) is FakeTensor:                # the memory stays the same
            return _wrapped(self, alias(args[0]._array, MetaTensor), args[0].fake_device)
        device = _device_of(func, args, kwargs)
        stand_ins: dict[int, tuple[Tensor, FakeTensor]] = {}
        by_meta: dict[int, FakeTensor] = {}

        def meta(t: Any) -> Tensor:
            if id(t) not in stand_ins:
                made = alias(t._array, MetaTensor) if type(t) is FakeTensor else t.form
                stand_ins[id(t)] = made, t
                by_meta[id(made)] = t
            return stand_ins[id(t)][0]
        args, kwargs = _pytree.tree_map_only(FakeTensor, meta, (args, kwargs))
        kwargs = {key: devices.meta if key == "device" and value is not None else value
                  for key, value in kwargs.items()}
        custom = custom_of(func)
        if custom is None and not stand_ins and _makes_tensors(func):
            kwargs["device"] = devices.meta
        if custom is not None:
            _check_has_fake(custom, func)
        with _no_dispatch(), flambeau.no_grad():
            found = func(*args, **kwargs)
        for made, fake in stand_ins.values():
            if made._array is not fake._array:      # the op has changed its geometry
                fake._array = made._array

        def wrap(t: Tensor) -> Any:
            if id(t) in by_meta:
                return by_meta[id(t)]
            return _wrapped(self, t if t.is_meta else on_meta(t), device)
        return _pytree.tree_map_only(Tensor, wrap, found)

    # ---- kept for programs that ask -------------------------------------------------------------

    @classmethod
    def cache_info(cls) -> Any:
        """What the cache of results has held: there is none."""
        return DispatchCacheInfo(0, 0, {}, 0)

    @classmethod
    def cache_clear(cls) -> None:
        """There is no cache."""

    def reset_nt_tensor_id_counter(self) -> None:
        """Number nested tensors from 1 again."""
        self.nt_tensor_id_counter = 1


_SMALL = 1                       # elements of constants whose values are kept
_KNOWN = {Tensor, nn.Parameter, MetaTensor, nn.Buffer}


def _shown(value: Any) -> str:
    if isinstance(value, Tensor) and not isinstance(value, FakeTensor):
        return f"tensor([...], size={tuple(value.shape)})"
    return repr(value)


def _makes_tensors(func: Any) -> bool:
    return any(a.name == "device" for a in func._schema.arguments)


def _check_has_fake(custom: Any, func: Any) -> None:
    """Can the op run on `meta`?"""
    from flambeau._library.custom_ops import OPDEFS
    from flambeau._library.operators import K
    if custom.fake is not None or {K.Meta, K.CompositeImplicitAutograd} & custom.kernels.keys() \
            or (K.CompositeExplicitAutograd in custom.kernels and not custom.always_recorded):
        return
    definition = OPDEFS.get(custom.qualified_name)
    if definition is None:
        raise UnsupportedOperatorException(func)
    raise RuntimeError(f"There was no fake impl registered for {definition}. This is necessary for "
                       "torch.compile/export/fx tracing to work. Please use "
                       f"`{definition._init_fn.__name__}.register_fake` to add an fake impl.")


def _device_of(func: Any, args: Any, kwargs: Any) -> Any:
    """The device that results of a call are on."""
    if kwargs.get("device") is not None:
        return kwargs["device"]
    schema = func._schema
    for argument, value in zip(schema.arguments, args):
        if argument.name == "device" and value is not None:
            return value
    found: Any = None
    of_number = True
    for t in _pytree.arg_tree_leaves(*args, **kwargs):
        if not isinstance(t, FakeTensor):
            continue
        number = t.ndim == 0 and t.fake_device.type == "cpu"
        if found is None or (of_number and not number):
            found, of_number = t.fake_device, number
        elif not number and t.fake_device != found and "device" not in func._opname:
            raise FakeTensorDeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{found} and {t.fake_device}!")
    return found if found is not None else flambeau.get_default_device()


# ---- around --------------------------------------------------------------------------------------


class _no_dispatch(Scope):
    _changes = ((modes.levels, ()),)
    _gives = None


class unset_fake_temporarily(modes_set_aside):
    """Inside, no fake mode is active; gives the innermost one.

    >>> import flambeau
    >>> with FakeTensorMode(), unset_fake_temporarily():
    ...     flambeau.ones(1)
    tensor([1.])
    """

    kind = FakeTensorMode


@contextlib.contextmanager
def disable_fake_tensor_cache(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Inside, results are not taken from a cache: they never are."""
    yield


class DispatchCacheInfo:
    """What a cache of results has done."""

    def __init__(self, hits: int, misses: int, bypasses: dict[str, int], size: int):
        self.hits, self.misses, self.bypasses, self.size = hits, misses, bypasses, size


class FakeTensorTLS(threading.local):
    """State of a thread: whether other modes override a fake mode's."""

    allow_non_fake_inputs_override: bool | None = None


fake_tensor_tls = FakeTensorTLS()


class FakeTensorConfig:
    """Switches: `debug` keeps where fake tensors were made."""

    debug = False


class FakeCopyMode(TorchFunctionMode):
    """Inside, copies of real tensors are fake tensors: for `copy.deepcopy` of a module."""

    def __init__(self, fake_mode: FakeTensorMode):
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.clone or func is flambeau.clone:
            return func(self.fake_mode.from_tensor(args[0]), **kwargs)
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        with flambeau._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def run_fallback_kernel(fake_mode: FakeTensorMode, func: Any, flat_args: Any, args_spec: Any,
                        orig_not_implemented_exception: Exception) -> Any:
    """Run an op that has no fake form on zeros, for the geometry of its results."""
    def real(t: Any) -> Any:
        return flambeau.zeros(t.shape, dtype=t.dtype) if isinstance(t, FakeTensor) else t
    with _no_dispatch():
        args, kwargs = _pytree.tree_unflatten([real(a) for a in flat_args], args_spec)
        found = func(*args, **kwargs)
    return _pytree.tree_map_only(Tensor, fake_mode.from_tensor, found)


def extract_tensor_metadata(t: Tensor) -> Any:
    """What a tensor looks like."""
    from flambeau.fx.passes.shape_prop import _extract_tensor_metadata
    return _extract_tensor_metadata(t)


def tree_flatten_only(ty: type, tree: Any) -> list[Any]:
    """The leaves of a type."""
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, ty)]


def ordered_set(*items: Any) -> dict[Any, bool]:
    """A set that keeps the order of its items."""
    return dict.fromkeys(items, True)


def get_plain_tensors(subclass: Any, *, out: list[Any]) -> list[Any]:
    """The tensors that a wrapper holds, those of wrappers among them too."""
    names, _ = subclass.__tensor_flatten__()
    for name in names:
        inner = getattr(subclass, name)
        if is_traceable_wrapper_subclass(inner):
            get_plain_tensors(inner, out=out)
        else:
            out.append(inner)
    return out


def has_meta(func: Any) -> bool:
    """Can an op run on `meta`?"""
    return func.has_kernel_for_dispatch_key("Meta")
