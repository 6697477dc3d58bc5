"""What a tensor can be asked that computes nothing: its form in memory, its values as Python and
NumPy have them, its hooks, copies of it.

Each class below is a chapter; its members become members of `Tensor`.
"""
from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._support.scopes import within
from flambeau._support.settings import warn_once
from flambeau._support.torch_name import is_named_torch
from flambeau.core import type_info
from flambeau.core.calling import overrides
from flambeau.core.tensor import (
    LAZY,
    LEAF,
    Tensor,
    TensorMeta,
    alias,
    array_offset,
    array_root,
    as_leaf,
    dense_memory,
    plain_types,
    sealed,
    wrap,
)
from flambeau.dispatch.members import member
from flambeau.ops.view import copying
from flambeau.ops.view.splitting import unbind
from flambeau.schema import errors
from flambeau.schema.arguments import bound_by
from flambeau.schema.errors import type_name as type_name_of
from flambeau.transforms.watched_members import watch_class

if TYPE_CHECKING:
    Chapter = Tensor                        # what its methods find in `self`
else:
    Chapter = object


def _is_on(kind: str) -> property:
    def of_that_kind(self: Tensor) -> bool:
        return self._device.type == kind
    return property(of_that_kind, doc=f"Is it on a device of the type `{kind}`?")


def _is_not_of_kind(self: Tensor) -> bool:
    """False: tensors of that kind have classes of their own."""
    return False


class Form(Chapter):
    """How the values lie in memory, and of what kind they are."""

    @property
    def layout(self) -> type_info.layout:
        """How elements lie in memory: `torch.strided`."""
        return type_info.strided

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._array.nbytes

    def untyped_storage(self) -> Any:
        """The memory as a row of bytes, one object for all tensors on it."""
        from flambeau.storage import storage_of
        return storage_of(self)

    def storage(self) -> Any:
        """The memory as a row of numbers of this tensor's dtype."""
        from flambeau.storage import old_storage_of
        return old_storage_of(self)

    def _typed_storage(self) -> Any:
        from flambeau.storage import TypedStorage
        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    def storage_type(self) -> Any:
        """The class of typed storages of this tensor's dtype."""
        from flambeau import storage
        return getattr(storage, self._typed_storage().pickle_storage_type())

    _conjugated = _negated = False      # of what is in memory: conjugate_views
    is_mkldnn = is_nested = is_quantized = is_sparse = is_sparse_csr = property(_is_not_of_kind)
    is_cpu, is_cuda, is_ipu, is_maia, is_meta, is_mps, is_mtia, is_vulkan, is_xla, is_xpu = map(
        _is_on, ("cpu", "cuda", "ipu", "maia", "meta", "mps", "mtia", "vulkan", "xla", "xpu"))

    def _is_view(self) -> bool:
        return self._base is not None


def _real(value: Any, target: str) -> Any:
    """A number that is no complex one, or only by its type."""
    if type(value) is not complex:
        return float(value) if target == "double" else value
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {target} without overflow")
    return value.real


def _of_tensors(method: Any) -> Any:
    """The method as PyTorch has it, in C, where the class is TensorBase."""
    name = method.__name__

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, Tensor):
            raise TypeError(errors.no_instance(name, (self,)))
        if args or kwargs:
            raise TypeError(errors.takes_nothing(name, len(args), bool(kwargs)))
        return method(self)
    return called


class Conversion(Chapter):
    """The values as Python and NumPy have them."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=bool(copy))

    def __array_wrap__(self, array: np.ndarray, context: Any = None,
                       return_scalar: bool = False) -> Tensor:
        """What a function of NumPy has made of this tensor, as a tensor; bools become bytes."""
        array = np.asarray(array)
        return wrap(array.astype(np.uint8) if array.dtype == np.bool_ else array)

    def __dlpack__(self, *, stream: Any = -1, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """The memory as a DLPack capsule, for other array libraries."""
        from flambeau.ops.python.dlpack import to_dlpack
        return to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        from flambeau.ops.python.dlpack import DLDeviceType
        return DLDeviceType.kDLCPU, 0

    @_of_tensors
    def __bool__(self) -> bool:
        array = self._array
        if array.size != 1:
            kind = "more than one value" if array.size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
        return bool(self.item())

    @_of_tensors
    def __float__(self) -> float:
        return _real(self._floating_number(), "double")

    @_of_tensors
    def __int__(self) -> int:
        return int(_real(self._number(), "int64_t"))

    @_of_tensors
    def __complex__(self) -> complex:
        return complex(self._floating_number())

    def _number(self) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def _floating_number(self) -> Any:
        if self.requires_grad:
            warn_once("Converting a tensor with requires_grad=True to a scalar may lead to "
                      "unexpected behavior.\nConsider using tensor.detach() first.")
        return self._number()

    @_of_tensors
    def __index__(self) -> int:
        if self._array.dtype.kind not in "uib" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(unbind(self, 0))

    def _fix_weakref(self) -> None:
        """Nothing: a weak reference holds as long as this object lives."""

    def __reversed__(self) -> Tensor:
        """The rows in reverse, as one tensor."""
        return self.flip(0) if self._array.ndim else self

    def __contains__(self, element: Any, /) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            equal: Any = element == self
            return bool(equal.any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in "
                           f"a {type(element)}.")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from flambeau._support.printing import tensor_repr
        if type(self) not in plain_types and overrides.has_torch_function((self,)):
            return overrides.handle_torch_function(Tensor.__repr__, (self,), self,
                                         tensor_contents=tensor_contents)
        return tensor_repr(self, tensor_contents=tensor_contents)

    def __format__(self, format_spec: str) -> str:
        if self._array.ndim == 0 and (type(self) is Tensor or self._conjugated or self._negated):
            return self.item().__format__(format_spec)
        return object.__format__(self, format_spec)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__} - {"_view"})


class Hooks(Chapter):
    """What is called when gradients arrive."""

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `grad` during backward."""
        from flambeau.core.autograd.hooks import retain_grad
        retain_grad(self)

    @property
    def name(self) -> None:
        """None: tensors have no names."""

    @property
    def retains_grad(self) -> bool:
        """Is it no leaf, and keeps its gradient all the same? See `retain_grad`."""
        return self._retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(grad)` when the gradient of this tensor has been computed; what it returns,
        if anything, replaces the gradient. Returns a handle with `remove()`."""
        from flambeau.core.autograd.hooks import register_tensor_hook
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(self)` after a backward pass has added to the `grad` of this leaf."""
        from flambeau.core.autograd.hooks import register_post_accumulate_hook
        return register_post_accumulate_hook(self, hook)

    @property
    def _backward_hooks(self) -> Any:
        from flambeau.core.autograd.hooks import tensor_hooks_of
        return tensor_hooks_of(self)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        from flambeau.core.autograd.hooks import leaf_hooks
        leaf_hooks(self).tensor = hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("_backward_hooks cannot be deleted; remove hooks by their handles")

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("_grad_fn cannot be deleted; use detach()")

    @property
    def volatile(self) -> bool:
        """Always False: the name is gone."""
        import warnings
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning,
                      stacklevel=2)
        return False

    @property
    def grad_dtype(self) -> Any:
        """The type that gradients of this leaf are cast to; None: whatever arrives."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        found = None if self._hooks is None else self._hooks.grad_dtype
        return self.dtype if found is None else None if found == "any" else found

    @grad_dtype.setter
    def grad_dtype(self, dtype: Any) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        if dtype is not None and self._grad is not None and self._grad.dtype is not dtype:
            raise RuntimeError(f"Cannot set grad_dtype to '{dtype}' because there is already a "
                               f"gradient assigned to the tensor with dtype '{self._grad.dtype}'. "
                               "Please set the gradient to None first.")
        from flambeau.core.autograd.hooks import leaf_hooks
        leaf_hooks(self).grad_dtype = "any" if dtype is None else dtype


# The signatures of the constructors of subclasses, which PyTorch has in C.
_SUBCLASS = """_make_subclass(PyObject cls, Tensor data, bool require_grad=False, *,
    str? dispatch_sizes_strides_policy=None, bool dispatch_device=False, bool dispatch_layout=False,
    Device? device_for_backend_keys=None)"""
_WRAPPER_SUBCLASS = """_make_wrapper_subclass(PyObject cls, SymInt[] size, SymInt[]? strides=None,
    SymInt? storage_offset=None, MemoryFormat? memory_format=None, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False,
    str? dispatch_sizes_strides_policy=None, bool dispatch_device=False, bool dispatch_layout=False,
    PyObject? _extra_dispatch_keys=None, SymInt? storage_size=None)"""


class Copying(Chapter):
    """Copies, pickles, other types."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001")
        if id(self) in memo:
            return memo[id(self)]
        result = object.__new__(type(self))
        result._array = _copy_storage(self._array, memo)
        result._edge = LEAF if self.requires_grad else None
        result._base = result._counter = None
        memo[id(self)] = result
        if self._grad is not None:
            result._grad = copy.deepcopy(self._grad, memo)
        state = {k: v for k, v in self.__dict__.items() if k not in NOT_COPIED}
        result.__dict__.update(copy.deepcopy(state, memo))
        return result

    def __reduce_ex__(self, proto: int) -> tuple[Any, ...]:
        from flambeau._serialization.checkpoint_names import reduce_tensor
        return reduce_tensor(self)              # with all of its storage, as in a file

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    @staticmethod
    @bound_by(_SUBCLASS)
    def _make_subclass(cls: type, data: Tensor, require_grad: bool, *_: Any) -> Any:
        """`data`'s values as an instance of `cls`, outside the graph."""
        _check_type(cls)
        return as_instance(cls, data, require_grad)

    @staticmethod
    @bound_by(_WRAPPER_SUBCLASS)
    def _make_wrapper_subclass(cls: type, *given: Any) -> Any:
        """A tensor without values of its own, whose ops `__torch_dispatch__` takes over."""
        from flambeau.dispatch.aten.subclass import make_wrapper
        _check_type(cls)
        return make_wrapper(cls, *given)

    def index(self, positions: Any, dims: Any) -> Any:
        """The tensor with first-class dimensions in place of positions: `x.index((0, 2), (i, k))`.

        >>> import flambeau
        >>> from flambeau.functorch.dim import dims
        >>> i = dims(1)
        >>> flambeau.ones(2, 3).index(1, i).sum(i)
        tensor([3., 3.])
        """
        from flambeau.functorch.dim import index
        return index(self, positions, dims)

    def as_subclass(self, cls: type) -> Any:
        """The same values, memory and history as an instance of `cls`."""
        _check_type(cls)
        result = within(overrides.subclasses_enabled, False, copying.alias, self)
        if type(result) is cls:
            return result
        other = alias(result._array, cls)
        other._edge, other._base, other._counter = result._edge, result._base, result._counter
        if result._edge is LAZY:
            other._view = result._view
        return other


def as_instance(cls: type, data: Tensor, require_grad: bool) -> Any:
    plain = data.resolve_conj().resolve_neg() if data._conjugated or data._negated else data
    result = alias(plain._array, cls)
    result._counter = data._counter
    if require_grad:
        as_leaf(result)
    return result


def _check_type(cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type_name_of(cls)})")
    if not issubclass(cls, Tensor):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor "
                        "is not possible. Make sure your class inherits from Tensor.")


_enter_type = TensorMeta.__init__


def _init_type(cls: type[Tensor], *args: Any, **kwargs: Any) -> None:
    _enter_type(cls, *args, **kwargs)
    if hasattr(cls, "__torch_dispatch__"):
        from flambeau.dispatch.aten.subclass import install_torch_dispatch
        install_torch_dispatch(cls)
        own = getattr(cls.__torch_function__, "__func__", None)
        if own is vars(Tensor)["__torch_function__"].__func__:      # one of the two is enough
            cls.__torch_function__ = overrides._disabled_torch_function       # type: ignore[assignment]
    if cls.__module__.partition(".")[0] not in ("flambeau", "torch"):
        watch_class(cls)


TensorMeta.__init__ = _init_type                # type: ignore[assignment]


def adopt(*chapters: type) -> None:
    """Make the members of these classes members of `Tensor`."""
    for chapter in chapters:
        for name, value in vars(chapter).items():
            if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
                if isinstance(value, FunctionType):
                    value.__qualname__ = f"Tensor.{name}"       # which errors quote
                setattr(Tensor, name, sealed(name, value))


NOT_COPIED = frozenset({"_hooks", "_accumulator", "_tangents", "_retains_grad", "_grad"})
adopt(Form, Conversion, Hooks, Copying)


# ---- copies and pickles --------------------------------------------------------------------------


def _copy_storage(array: np.ndarray, memo: dict[int, Any]) -> np.ndarray:
    """A copy of `array` in a copy of its memory, so that tensors that share memory still do."""
    root = array_root(array)
    memory = dense_memory(root)
    if memory is None:                          # what others gave has gaps
        return array.copy() if array.flags.c_contiguous else array.copy(order="K")
    fresh = copied_root(root, memo)
    if root is array:
        return fresh
    if not array.size:                          # NumPy checks strides that lead nowhere
        return np.lib.stride_tricks.as_strided(fresh.reshape(-1)[:0], array.shape, array.strides)
    return np.ndarray(array.shape, array.dtype, dense_memory(fresh), array_offset(array),
                      array.strides)


def copied_root(root: np.ndarray, memo: dict[Any, Any]) -> np.ndarray:
    """The one copy that a deep copy makes of an array that owns its memory."""
    key = ("storage", id(root))
    fresh = memo.get(key)
    if fresh is None:
        fresh = memo[key] = root.copy(order="K")
        memo.setdefault("storages", []).append(root)
    return fresh


def _reduce_class(cls: type) -> Any:
    return cls.__qualname__ if cls is not Tensor or is_named_torch() else (_tensor_class, ())


def _tensor_class() -> type:
    """`Tensor`, which says that it is torch's, where torch is another package."""
    return Tensor


copyreg.pickle(TensorMeta, _reduce_class)


for _text in ("retain_grad(Tensor self) -> ()", "untyped_storage(Tensor self) -> Storage",
              "as_subclass(Tensor self, PyObject cls) -> Tensor"):
    _body = vars(Tensor)[_text.partition("(")[0]]
    member(_text, body=_body, function=False, doc=_body.__doc__)
