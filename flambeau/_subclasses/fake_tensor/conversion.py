"""Fake tensors of real ones; views of one memory stay views of one memory."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

import flambeau
from flambeau import Tensor, nn
from flambeau._subclasses.fake_tensor.errors import UnsupportedFakeTensorException
from flambeau._subclasses.fake_tensor.tensor import FakeTensor, wrap_meta
from flambeau.core.tensor import LEAF, alias
from flambeau.ops.sparse.tensors import is_sparse
from flambeau.ops.view.conjugate_views import below
from flambeau.transforms.meta import MetaTensor, laid_out_as, meta_array
from flambeau.utils._python_dispatch import is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from flambeau._subclasses.fake_tensor.mode import FakeTensorMode

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
            found: Any = wrap_meta(fake_mode, form_of(t), t.device)
        elif t._is_view() and not isinstance(t, FakeTensor) and t._base is not None:
            base = self.from_real_tensor(fake_mode, t._base)
            turned = t._conjugated or t._negated
            found = wrap_meta(fake_mode, _window(base, below(t) if turned else t), t.device)
            if not t.requires_grad:
                found._base = base
        else:
            found = wrap_meta(fake_mode, alias(laid_out_as(t._array), MetaTensor), t.device)
        if t._conjugated or t._negated:
            found._conjugated, found._negated = t._conjugated, t._negated
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
        found = wrap_meta(fake_mode, t, device)
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
