"""The mode in which ops make fake tensors and run on them."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._library.operators import custom_of
from flambeau._ops import OpOverload
from flambeau._subclasses.fake_tensor.conversion import FakeTensorConverter
from flambeau._subclasses.fake_tensor.errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    UnsupportedOperatorException,
)
from flambeau._subclasses.fake_tensor.tensor import FakeTensor, like, wrap_meta
from flambeau._support.symbolic_names import Tag
from flambeau.core import devices
from flambeau.core.tensor import alias
from flambeau.ops.sparse.tensors import on_meta
from flambeau.transforms.meta import MetaTensor, NoNonzero, laid_out_as
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import TorchDispatchMode, levels_set_aside, modes_set_aside


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
        with unset_fake_temporarily(), levels_set_aside():
            return self.fake_tensor_converter.from_real_tensor(
                self, tensor, shape_env=self.shape_env, source=source,
                symbolic_context=symbolic_context, trace=trace)

    def from_meta(self, tensor: Tensor, device: Any) -> FakeTensor:
        """A fake tensor with the geometry of one on `meta`, which stands for one on `device`."""
        return wrap_meta(self, tensor, device)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func: Any, types: Any, args: Any = (),
                 kwargs: Any = {}) -> Any:
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
        with levels_set_aside():
            made = wrap_meta(self, alias(laid_out_as(value._array), MetaTensor), value.device)
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
        with levels_set_aside():
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
            return wrap_meta(self, like(args[0], MetaTensor), args[0].fake_device)
        device = _device_of(func, args, kwargs)
        stand_ins: dict[int, tuple[Tensor, FakeTensor]] = {}
        by_meta: dict[int, FakeTensor] = {}

        def meta(t: Any) -> Tensor:
            if id(t) not in stand_ins:
                made = like(t, MetaTensor) if type(t) is FakeTensor else t.form
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
        with levels_set_aside(), flambeau.no_grad():
            try:
                found = func(*args, **kwargs)
            except NoNonzero:
                raise DynamicOutputShapeException(flambeau.ops.aten.nonzero.default) from None
        for made, fake in stand_ins.values():
            if made._array is not fake._array:      # the op has changed its geometry
                fake._array = made._array

        def wrap(t: Tensor) -> Any:
            if id(t) in by_meta:
                return by_meta[id(t)]
            return wrap_meta(self, t if t.is_meta else on_meta(t), device)
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


class unset_fake_temporarily(modes_set_aside):
    """Inside, no fake mode is active; gives the innermost one.

    >>> import flambeau
    >>> with FakeTensorMode(), unset_fake_temporarily():
    ...     flambeau.ones(1)
    tensor([1.])
    """

    kind = FakeTensorMode


class DispatchCacheInfo:
    """What a cache of results has done."""

    def __init__(self, hits: int, misses: int, bypasses: dict[str, int], size: int):
        self.hits, self.misses, self.bypasses, self.size = hits, misses, bypasses, size
