"""The fake tensor: a tensor on `meta` that knows which device it stands for."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau
from flambeau import Tensor
from flambeau._subclasses.fake_tensor.errors import (
    DataDependentOutputException,
    UnsupportedFakeTensorException,
)
from flambeau.core.tensor import alias
from flambeau.dispatch.aten.subclass import install_torch_dispatch
from flambeau.nn.modules._parse import conversion
from flambeau.ops.sparse.tensors import is_sparse
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from flambeau._subclasses.fake_tensor.mode import FakeTensorMode

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
        return wrap_meta(fake_mode, elem, device, constant)

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
        device, dtype, _, memory_format, copy = conversion(args, kwargs)
        if args and isinstance(args[0], Tensor):
            device, dtype = args[0].device, args[0].dtype
        options = {"copy": True} if copy else {}
        if memory_format is not None:
            options["memory_format"] = memory_format
        found: Any = super().to(dtype or self.dtype, **options)
        if device is None or normalized_device(device) == self.fake_device:
            return found
        found = found.clone() if found is self else found
        found._device = found.fake_device = normalized_device(device)
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


install_torch_dispatch(FakeTensor)


def wrap_meta(mode: FakeTensorMode, meta: Tensor, device: Any, constant: Tensor | None = None
             ) -> FakeTensor:
    """A fake tensor with the geometry of one on `meta`."""
    if is_sparse(meta):
        from flambeau._subclasses.fake_sparse import of_form
        made: Any = of_form(meta)
    else:
        made = like(meta, FakeTensor)
    made._device = made.fake_device = normalized_device(device)
    made.fake_mode, made.constant = mode, constant
    return made


def like(tensor: Tensor, cls: type) -> Any:
    """A tensor of that class with the geometry, and the bits, of one without values."""
    made = alias(tensor._array, cls)
    if tensor._conjugated or tensor._negated:
        made._conjugated, made._negated = tensor._conjugated, tensor._negated
    return made


def normalized_device(device: Any) -> flambeau.device:
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
