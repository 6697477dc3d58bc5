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
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._subclasses.fake_tensor.conversion import FakeTensorConverter
from flambeau._subclasses.fake_tensor.errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
)
from flambeau._subclasses.fake_tensor.mode import (
    DispatchCacheInfo,
    FakeTensorMode,
    unset_fake_temporarily,
)
from flambeau._subclasses.fake_tensor.tensor import FakeTensor, is_fake, maybe_get_fake_mode
from flambeau._support.own_methods import adopt
from flambeau.overrides import TorchFunctionMode
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import is_traceable_wrapper_subclass, levels_set_aside

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake", "maybe_get_fake_mode",
           "unset_fake_temporarily"]


@contextlib.contextmanager
def disable_fake_tensor_cache(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Inside, results are not taken from a cache: they never are."""
    yield


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
    with levels_set_aside():
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
    if not is_traceable_wrapper_subclass(subclass):
        out.append(subclass)
        return out
    names, _ = subclass.__tensor_flatten__()
    for name in names:
        get_plain_tensors(getattr(subclass, name), out=out)
    return out


def has_meta(func: Any) -> bool:
    """Can an op run on `meta`?"""
    return func.has_kernel_for_dispatch_key("Meta")

adopt(globals(), "_subclasses.fake_tensor.")
