"""`Tensor`: an array, and what autograd and aliasing need to know about it.

Five slots are read or written by every op; all else (`grad`, hooks, names) is rare, has a default
on the class and lives in `__dict__` once set.

    _array    the numpy.ndarray that holds the values
    _edge     where a gradient goes: None (nowhere), a Node or one Output of a Node, LEAF (it
              arrives at this tensor), LOOKUP (this is a view: `gradient_edge` knows), or another
              tensor (this stands in for that leaf)
    _base     of a view, the tensor that it looks at; else None
    _counter  [writes]: one list for all tensors on the same memory, None until somebody cares
    _view     of a view, a `views.View`; read only when `_edge` is LOOKUP
"""
from __future__ import annotations

import copy
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from flambeau.core import devices, dtypes
from flambeau.core.dtypes import FROM_NUMPY, from_numpy_dtype
from flambeau.core.modes import grad_enabled, is_inference_mode_enabled, set_grad_mode
from flambeau.core.shapes import Size, contiguous_strides


class Marker:
    """One of the two special values of `Tensor._edge`."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


LEAF, LOOKUP = Marker("LEAF"), Marker("LOOKUP")
plain: set[type] = set()             # the types whose tensors an op may take without asking anybody
tensor_types: set[type] = set()      # all subclasses of Tensor
basis: Any = type("basis", (), {})   # the ops that core itself calls; ops/ puts them here


class _TensorMeta(type):
    """Lets `ops` attach methods while `Tensor` stays an ordinary class."""


class Tensor(metaclass=_TensorMeta):
    """A multi-dimensional array of numbers of one type that can record how it was computed.

    `Tensor(2, 3)` and `Tensor([1.0, 2.0])` are the historical constructors; `flambeau.tensor`,
    `flambeau.zeros` and their kind are the ones to use.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_base", "_counter", "_edge", "_view")
    __array_priority__ = 1000             # so that ndarray + Tensor asks Tensor

    _grad: Tensor | None = None
    _hooks: Any = None                    # graph.LeafHooks of a leaf
    _accumulator: Any = None              # the AccumulateGrad node that stands for a leaf
    _inference = False
    _tangents: dict[Any, Tensor] | None = None      # forward-mode derivatives, by level
    _device = devices.cpu
    _names: Any = None
    _retains_grad = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return basis.legacy_constructor(cls, args, kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tensor_types.add(cls)
        function = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
        if function is _disabled_torch_function:
            plain.add(cls)

    # ---- what it holds --------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extent of each dimension."""
        return Size(self._array.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
        shape = self._array.shape
        if dim is None:
            return Size(shape)
        if not -len(shape) <= dim < len(shape):
            from flambeau.core.shapes import wrap_dim
            wrap_dim(dim, len(shape))
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        return shape[dim]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        d = self._array.dtype
        try:
            return FROM_NUMPY[d]
        except KeyError:
            return from_numpy_dtype(d)

    @property
    def device(self) -> devices.device:
        """Where the elements live."""
        return self._device

    @property
    def layout(self) -> dtypes.layout:
        return dtypes.strided

    @property
    def itemsize(self) -> int:
        return self._array.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    def stride(self, dim: int | None = None) -> Any:
        """How many elements of memory lie between neighbours along each (or one) dimension."""
        strides = array_strides(self._array)
        if dim is None:
            return strides
        from flambeau.core.shapes import wrap_dim
        return strides[wrap_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """The position of the first element in the underlying memory, in elements."""
        return array_offset(self._array) // self._array.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return 0 if self._device is not devices.cpu else self._array.__array_interface__["data"][0]

    def untyped_storage(self) -> Any:
        """The memory as a row of bytes, one object for all tensors on it."""
        from flambeau.storage import storage_of
        return storage_of(self)

    def storage(self) -> Any:
        """The memory as a row of numbers of this tensor's dtype."""
        from flambeau.storage import TypedStorage
        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    _typed_storage = storage

    def storage_type(self) -> Any:
        """The class of typed storages of this tensor's dtype."""
        from flambeau import storage
        return getattr(storage, self.storage().pickle_storage_type())

    def is_contiguous(self, memory_format: Any = dtypes.contiguous_format) -> bool:
        """Do the elements lie in memory in the order of their indices?"""
        if memory_format is dtypes.contiguous_format:
            return self._array.flags.c_contiguous
        order = {dtypes.channels_last: (0, 2, 3, 1), dtypes.channels_last_3d: (0, 2, 3, 4, 1)}
        axes = order.get(memory_format)
        return (axes is not None and self.ndim == len(axes)
                and self._array.transpose(axes).flags.c_contiguous)

    is_cuda = is_mps = is_xpu = is_mkldnn = is_quantized = is_sparse = is_sparse_csr = False
    is_nested = is_ipu = is_xla = is_maia = is_mtia = is_vulkan = False

    @property
    def is_meta(self) -> bool:
        return self._device.type == "meta"

    @property
    def is_cpu(self) -> bool:
        return self._device.type == "cpu"

    def is_floating_point(self) -> bool:
        """Are the elements of a floating (not complex) type?"""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._array.dtype.kind == "c"

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Was this made under `inference_mode`?"""
        return self._inference

    def get_device(self) -> int:
        return -1

    def _is_view(self) -> bool:
        return self._base is not None

    # ---- to Python and NumPy --------------------------------------------------------------------

    def item(self) -> Any:
        """The one element, as a Python number."""
        array = self._array
        if array.size != 1 or self._device is not devices.cpu:
            if array.size == 1:
                raise RuntimeError("Tensor.item() cannot be called on meta tensors")
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        return array.item()

    def tolist(self) -> Any:
        """The elements as a Python number or nested lists."""
        if self._device is not devices.cpu:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        array = self._array
        if array.dtype.kind not in "biufc" or array.dtype.name == "bfloat16":
            array = array.astype(np.float32)
        return array.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The elements as an array on the same memory; `force` detaches and copies if needed."""
        if not force and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                               "tensor.detach().numpy() instead.")
        if self._device is not devices.cpu:
            raise TypeError("can't convert meta tensor to numpy: it has no data")
        if self._array.dtype.kind not in "biufc" or self.dtype.numpy.name == "bfloat16":
            raise TypeError(f"Got unsupported ScalarType {self.dtype.name.replace('bf', 'BF')}")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=bool(copy))

    def __bool__(self) -> bool:
        array = self._array
        if array.size != 1:
            kind = "more than one value" if array.size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def _number(self) -> Any:
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to "
                               "Scalar")
        return self.item()

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
        return iter(basis.unbind(self, 0))

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((element == self).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in "
                           f"a {type(element)}.")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from flambeau.printing import tensor_repr
        if type(self) not in plain and has_torch_function((self,)):
            from flambeau.core.overrides import handle_torch_function
            return handle_torch_function(Tensor.__repr__, (self,), self,
                                         tensor_contents=tensor_contents)
        return tensor_repr(self, tensor_contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and type(self) in plain:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    # ---- autograd -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Will ops on this tensor be recorded, and gradients for it computed?"""
        edge = self._edge
        return edge is not None and (edge is not LOOKUP or gradient_edge(self) is not None)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not self.is_leaf:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables."
                + ("" if flag else " If you want to use a computed variable in a subgraph that "
                   "doesn't require differentiation use var_no_grad = var.detach()."))
        if flag and self._array.dtype not in dtypes.FLOATING:
            raise RuntimeError("only Tensors of floating point and complex dtype can require "
                               f"gradients, not {self.dtype}")
        if flag and self._inference and not is_inference_mode_enabled():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside "
                               "InferenceMode is not allowed.")
        if not flag:
            self._edge = None if self._base is None else LOOKUP
        elif self._edge is not LEAF:
            self._edge = LEAF

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` in place; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Was this made by the user (or does it need no gradient), not by a recorded op?"""
        edge = self._edge
        return edge is None or edge is LEAF or (edge is LOOKUP and gradient_edge(self) is None)

    @property
    def grad_fn(self) -> Any:
        """The node that computed this tensor; None for a leaf."""
        edge = self._edge
        if edge is None or edge is LEAF:
            return None
        edge = gradient_edge(self)
        return None if edge is None or type(edge) in tensor_types else edge.node

    @property
    def output_nr(self) -> int:
        edge = self._edge
        if edge is None or edge is LEAF:
            return 0
        edge = gradient_edge(self)
        return 0 if edge is None or type(edge) in tensor_types else edge.index

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated here."""
        if self._grad is None and self._edge is not LEAF and not self._retains_grad \
                and not self.is_leaf:
            import warnings
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                "non-leaf Tensor.", UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of "
                                f"type {type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value.dtype is not self.dtype:
                raise RuntimeError(f"assigned grad has data of a different type: {value.dtype}, "
                                   f"expected {self.dtype}")
            if value.device != self.device:
                raise RuntimeError(f"assigned grad has data located on a different device: "
                                   f"{value.device}, expected {self.device}")
            if value._array.shape != self._array.shape:
                raise RuntimeError(f"assigned grad has data of a different size: "
                                   f"{list(value._array.shape)}, expected "
                                   f"{list(self._array.shape)}")
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def _version(self) -> int:
        """How often this memory has been written to in place."""
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._counter is None else self._counter[0]

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """Add the derivative of this tensor to the `grad` of every leaf it depends on.

        `gradient` (default 1, for a single element) weights the elements. `retain_graph` keeps
        saved values for another pass; `create_graph` records the pass itself, for higher
        derivatives; `inputs` restricts where gradients are accumulated.
        """
        if type(self) not in plain and has_torch_function((self,)):
            from flambeau.core.overrides import handle_torch_function
            return handle_torch_function(
                Tensor.backward, (self,), self, gradient=gradient, retain_graph=retain_graph,
                create_graph=create_graph, inputs=inputs)
        basis.backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        return None

    def detach(self) -> Tensor:
        """The same values on the same memory, outside the graph."""
        return basis.detach(self)

    @property
    def data(self) -> Tensor:
        """The same values on the same memory, unknown to autograd: writes are not counted."""
        result = basis.detach(self)
        result._counter = None
        if type(self) is not Tensor and type(result) is Tensor and type(self) in plain:
            result = alias(self._array, Tensor)
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if value.dtype is not self.dtype and self._edge is not None:
            if value._array.dtype not in dtypes.FLOATING:
                raise RuntimeError("data set to a tensor that requires gradients must be floating "
                                   "point or complex dtype")
        self._array = value._array
        if value._device is not self._device:
            self._device = value._device

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `grad` during backward."""
        from flambeau.core.graph import retain_grad
        retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        return self._retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(grad)` when the gradient of this tensor has been computed; what it returns,
        if anything, replaces the gradient. Returns a handle with `remove()`."""
        from flambeau.core.graph import register_tensor_hook
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(self)` after a backward pass has added to the `grad` of this leaf."""
        from flambeau.core.graph import register_post_accumulate_hook
        return register_post_accumulate_hook(self, hook)

    @property
    def _backward_hooks(self) -> Any:
        from flambeau.core.graph import tensor_hooks_of
        return tensor_hooks_of(self)

    # ---- copying --------------------------------------------------------------------------------

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
        result._edge = LEAF if self._edge is LEAF else None
        result._base = result._counter = None
        memo[id(self)] = result
        if self._grad is not None:
            result._grad = copy.deepcopy(self._grad, memo)
        state = {k: v for k, v in self.__dict__.items() if k not in _NOT_COPIED}
        result.__dict__.update(copy.deepcopy(state, memo))
        return result

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user can be pickled: this "
                               "one was computed by a recorded op; detach() it first")
        state = {k: v for k, v in self.__dict__.items() if k not in _NOT_COPIED and k != "_grad"}
        return _rebuild, (type(self), self._array, self._edge is LEAF, state)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Run `func` and give its results this subclass. Subclasses override this."""
        from flambeau.core.overrides import default_torch_function
        return default_torch_function(cls, func, types, args, kwargs or {})

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, require_grad: bool = False, **_: Any) -> Any:
        """`data`'s values as an instance of `cls`, outside the graph."""
        result = alias(data._array, cls)
        result._counter = data._counter
        if require_grad:
            result.requires_grad = True
        return result

    def as_subclass(self, cls: type) -> Any:
        """The same values, memory and history as an instance of `cls`."""
        result = basis.alias(self)
        if type(result) is cls:
            return result
        other = alias(result._array, cls)
        other._edge, other._base, other._counter = result._edge, result._base, result._counter
        if result._edge is LOOKUP:
            other._view = result._view
        return other


Tensor.__module__ = "torch"
_NOT_COPIED = frozenset({"_hooks", "_accumulator", "_tangents", "_retains_grad", "_grad"})
tensor_types.add(Tensor)
plain.add(Tensor)
new_tensor: Callable[[], Tensor] = partial(object.__new__, Tensor)


def _disabled_torch_function(cls: Any, func: Any, types: Any, args: Any = (),
                             kwargs: dict[str, Any] | None = None) -> Any:
    """A subclass whose `__torch_function__` is this takes no part in overriding."""
    return NotImplemented


disabled_torch_function = classmethod(_disabled_torch_function)


def has_torch_function(relevant: tuple[Any, ...]) -> bool:
    from flambeau.core.overrides import has_torch_function as check
    return check(relevant)


class View:
    """What a view must know to find its history when its base is written to.

    `version` is that of the memory when `node` was made; `replay(base)` makes the view again where
    strides on the base cannot say it (a change of dtype); `made` says how the view came about,
    since some views forbid in-place writes.
    """

    __slots__ = ("made", "node", "replay", "version")


new_view: Callable[[], View] = partial(object.__new__, View)


def gradient_edge(tensor: Tensor) -> Any:
    """Where a gradient of `tensor` goes: a Node, an Output, the tensor itself (a leaf), or None.

    A view whose memory was written to since its node was made gets a new node: the write may have
    changed the history of the base.
    """
    edge = tensor._edge
    if edge is LOOKUP:
        view = tensor._view
        if view.version == tensor._counter[0]:
            return view.node
        return _regenerate(tensor, view)
    return tensor if edge is LEAF else edge


def _regenerate(tensor: Tensor, view: View) -> Any:
    base = tensor._base
    view.version = tensor._counter[0]
    if gradient_edge(base) is None:
        view.node = None
        return None
    previous = grad_enabled()
    set_grad_mode(True)
    try:
        if view.replay is not None:
            again = view.replay(base)
        else:
            array = tensor._array
            again = basis.as_strided(base, array.shape, array_strides(array),
                                     tensor.storage_offset())
    finally:
        set_grad_mode(previous)
    view.node = again._view.node
    return view.node


def wrap(array: Any, requires_grad: bool = False) -> Tensor:
    """A plain tensor that holds `array`."""
    tensor = new_tensor()
    tensor._array = array if type(array) is np.ndarray else np.asarray(array)
    tensor._edge = LEAF if requires_grad else None
    tensor._base = tensor._counter = None
    return tensor


def alias(array: np.ndarray, cls: type) -> Any:
    """A tensor of type `cls` on `array`, with no history."""
    tensor = object.__new__(cls)
    tensor._array = array
    tensor._edge = tensor._base = tensor._counter = None
    return tensor


def counter_of(tensor: Tensor) -> list[int]:
    """The write counter of the tensor's memory, made on first demand."""
    counter = tensor._counter
    if counter is None:
        counter = tensor._counter = [0]
    return counter


def arrays_of(tensors: list[Tensor]) -> list[np.ndarray]:
    """The arrays of many tensors, for kernels that take lists."""
    return [t._array for t in tensors]


def mark_written(tensors: list[Tensor]) -> None:
    """Count a write to each tensor, after a kernel has changed their arrays."""
    for tensor in tensors:
        counter = tensor._counter
        if counter is None:
            tensor._counter = [1]
        else:
            counter[0] += 1


def array_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements, as torch counts them."""
    if array.flags.c_contiguous or not array.size:
        return contiguous_strides(array.shape)
    size = array.itemsize
    return tuple([s // size for s in array.strides])


def array_root(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory that `array` looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def array_offset(array: np.ndarray) -> int:
    """Bytes between the start of the memory and the first element."""
    root = array_root(array)
    if root is array:
        return 0
    return (array.__array_interface__["data"][0] - root.__array_interface__["data"][0])


def _copy_storage(array: np.ndarray, memo: dict[int, Any]) -> np.ndarray:
    """A copy of `array` in a copy of its memory, so that tensors that share memory still do."""
    root = array_root(array)
    if root is array or not root.flags.c_contiguous or root.dtype != array.dtype:
        return array.copy() if array.flags.c_contiguous else array.copy(order="K")
    key = ("storage", id(root))
    fresh = memo.get(key)
    if fresh is None:
        fresh = memo[key] = root.copy()
        memo.setdefault("storages", []).append(root)
    return np.ndarray(array.shape, array.dtype, fresh, array_offset(array), array.strides)


def _rebuild(cls: type, array: np.ndarray, requires_grad: bool, state: dict[str, Any]) -> Tensor:
    tensor = alias(array, cls)
    if requires_grad:
        tensor._edge = LEAF
    tensor.__dict__.update(state)
    return tensor
