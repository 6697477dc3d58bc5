"""`Tensor`: an array, and what autograd and aliasing need to know about it.

Five slots are read or written by every op; all else (`grad`, hooks, names) is rare, has a default
on the class and lives in `__dict__` once set.

    _array    the numpy.ndarray that holds the values
    _edge     where a gradient goes: None (nowhere), a Node or one Output of a Node, LEAF (it
              arrives at this tensor), LAZY (this is a view: `gradient_edge` knows), or another
              tensor (this stands in for that leaf while it is written to: `ops/inplace`)
    _base     of a view, the tensor that it looks at; else None
    _counter  [writes, place of the last]: one list for all tensors on the same memory, None until
              somebody cares
    _view     of a view, a `View` (below); read only when `_edge` is LAZY
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from flambeau._support.c_functions import type_name as type_name_of
from flambeau.core import devices, dtypes, late_bound
from flambeau.core.calling.overrides import (
    handle_torch_function,
    has_torch_function,
    is_disabled,
    plain_types,
)
from flambeau.core.dtypes import FROM_NUMPY, from_numpy_dtype
from flambeau.core.modes import is_inference_mode_enabled
from flambeau.core.promotion import c_name, type_name
from flambeau.core.shapes import Size, as_size
from flambeau.kernels.moving.views import array_offset as array_offset
from flambeau.kernels.moving.views import array_root as array_root
from flambeau.kernels.moving.views import array_strides as array_strides

if TYPE_CHECKING:
    from flambeau.core.methods import Methods  # a stub: what ops/ give to Tensor
else:
    Methods = object


class Marker:
    """One of the two special values of `Tensor._edge`."""

    def __init__(self, name: str):
        self.name = name


LEAF, LAZY = Marker("LEAF"), Marker("LAZY")
tensor_types: set[type] = set()      # all subclasses of Tensor


class TensorMeta(type):
    """The type of Tensor, which PyTorch has a name for: `torch._C._TensorMeta`.

    Subclasses are entered here: a class may have an `__init_subclass__` that calls no other.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any],
                 **options: Any) -> None:
        super().__init__(name, bases, members)
        if any(isinstance(base, TensorMeta) for base in bases):
            tensor_types.add(cls)
            if is_disabled(cast(Any, cls).__torch_function__):
                plain_types.add(cls)


class Tensor(Methods, metaclass=TensorMeta):
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
    _array: Any
    _edge: Any
    _base: Tensor | None
    _counter: Any
    _view: Any
    __array_priority__ = 1000             # so that ndarray + Tensor asks Tensor

    _grad: Tensor | None = None
    _hooks: Any = None                    # hooks.LeafHooks of a leaf
    _accumulator: Any = None              # the AccumulateGrad node that stands for a leaf
    _tangents: dict[Any, Tensor] | None = None      # forward-mode derivatives, by level
    _device = devices.cpu
    _names: Any = None
    _retains_grad = False
    _detached = False                     # was its history cut off in place?
    _own_members = False                  # does `Tensor.item(x)` ask the class of `x`?
    _renewed: Any = None                  # by `set_`: the order before which this was another leaf

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return late_bound.legacy_constructor(cls, args, kwargs)

    # ---- what it holds --------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extent of each dimension."""
        return as_size(Size, self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

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

    def __hash__(self) -> int:
        return id(self)

    # ---- autograd -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Will ops on this tensor be recorded, and gradients for it computed?"""
        if self._edge is not LAZY:
            return self._edge is not None
        view = self._view
        if view.version == self._counter[0]:
            return view.node is not None
        return view.node is LEAF or (self._array.dtype in dtypes.FLOATING
                                     and self._base.requires_grad)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag is not True and flag is not False:
            raise RuntimeError("requires_grad must be a bool")
        if not self.is_leaf:
            if flag:
                return
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables."
                + (" If you want to use a computed variable in a subgraph that "
                   "doesn't require differentiation use var_no_grad = var.detach()."))
        if flag and self._array.dtype not in dtypes.FLOATING:
            raise RuntimeError("only Tensors of floating point and complex dtype can require "
                               "gradients")
        if flag and self._inference and not is_inference_mode_enabled():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside "
                               "InferenceMode is not allowed.")
        if self._base is not None:          # a view, which its base may still give a history
            self._view.node = LEAF if flag else None
            self._view.version = unrecorded(self._counter[0])
        else:
            self._edge = LEAF if flag else None

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @property
    def is_leaf(self) -> bool:
        """Was this made by the user (or does it need no gradient), not by a recorded op?"""
        edge = self._edge
        if edge is LAZY:
            edge = gradient_edge(self)
        return edge is None or edge is LEAF or edge is self

    @property
    def grad_fn(self) -> Any:
        """The node that computed this tensor; None for a leaf."""
        edge = gradient_edge(self)
        return None if edge is None or type(edge) in tensor_types else edge.node.seen(edge.index)[0]

    @property
    def output_nr(self) -> int:
        """Which result of its `grad_fn` this tensor is, counted from 0."""
        edge = self._edge
        if edge is None or edge is LEAF:
            return 0
        edge = gradient_edge(self)
        return 0 if edge is None or type(edge) in tensor_types else edge.node.seen(edge.index)[1]

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
                "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.", UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def _inference(self) -> bool:
        return type(self._counter) is Untracked

    @_inference.setter
    def _inference(self, flag: bool) -> None:
        self._counter = Untracked([0, None]) if flag else None

    @property
    def _version(self) -> int:
        """How often this memory has been written to in place."""
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        # `detach_` counts, for the nodes that saved the tensor, and is not seen to
        return 0 if self._counter is None else self._counter[0] - (
            getattr(self, "_detached", False) is True)

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """Add the derivative of this tensor to the `grad` of every leaf it depends on.

        `gradient` (default 1, for a single element) weights the elements. `retain_graph` keeps
        saved values for another pass; `create_graph` records the pass itself, for higher
        derivatives; `inputs` restricts where gradients are accumulated.
        """
        if type(self) not in plain_types and has_torch_function((self,)):
            return handle_torch_function(
                Tensor.backward, (self,), self, gradient=gradient, retain_graph=retain_graph,
                create_graph=create_graph, inputs=inputs)
        late_bound.backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        return None

    @property
    def data(self) -> Tensor:
        """The same values on the same memory, unknown to autograd: writes are not counted."""
        result = late_bound.detach(self)
        result._counter = Untracked([0, None]) if self._inference else None
        if result._edge is LAZY:
            result._base = result._edge = None
        if type(self) is not Tensor and type(result) is Tensor and type(self) in plain_types:
            result = alias(self._array, Tensor)
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type_name_of(value)}")
        if value.layout is not self.layout:
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                               "`tensor` have incompatible tensor type.")
        if value.dtype is not self.dtype and self._edge is not None:
            if value._array.dtype not in dtypes.FLOATING:
                raise RuntimeError("data set to a tensor that requires gradients must be floating "
                                   "point or complex dtype")
        self._array = late_bound.memory_of(value, self)
        if value._device is not self._device:
            self._device = value._device

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Run `func` and give its results this subclass. Subclasses override this."""
        return late_bound.default_torch_function(cls, func, types, args, kwargs or {})

Tensor.__module__ = "torch"
tensor_types.add(Tensor)
plain_types.add(Tensor)
def as_leaf(tensor: Tensor) -> Tensor:
    """A tensor that has just been made, as one whose gradients are wanted."""
    if tensor._array.dtype not in dtypes.FLOATING:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if tensor._base is None:
        tensor._edge = LEAF             # a class that watches its members is not asked
    else:
        Tensor.requires_grad.__set__(tensor, True)      # type: ignore[attr-defined]
    return tensor


set_class: Callable[[Any, type], None]
set_class = vars(object)["__class__"].__set__


class SeenAsTensor:
    """For classes of ours that PyTorch's users know as `Tensor`: instances say so."""

    __slots__ = ()

    def _seen(self) -> type:
        cls = type(self)
        return Tensor if SeenAsTensor in cls.__bases__ else cls

    __class__ = property(_seen, set_class)


new_tensor: Callable[[], Tensor] = partial(object.__new__, Tensor)


def _check_grad(tensor: Tensor, grad: Any) -> None:
    """Raise if `grad` cannot be the gradient of `tensor`: its type, device or shape is wrong."""
    if not isinstance(grad, Tensor):
        raise TypeError("assigned grad expected to be a Tensor or None but got grad of type "
                        f"{type_name_of(grad)}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = None if tensor._hooks is None else tensor._hooks.grad_dtype
    if wanted != "any" and grad.dtype is not (wanted or tensor.dtype):
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{c_name(grad.dtype)}' to a "
            f"tensor with grad_dtype '{type_name(wanted or tensor.dtype)}'. The gradient must "
            "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
            "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
            "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
            "downstream systems that assume they match.")
    if grad.device != tensor.device:
        raise RuntimeError(f"attempting to assign a gradient with device type '{grad.device.type}' "
                           f"to a tensor with device type '{tensor.device.type}'. Please ensure "
                           "that the gradient and the tensor are on the same device")
    if grad._array.shape != tensor._array.shape:
        raise RuntimeError(f"attempting to assign a gradient of size '{list(grad._array.shape)}' "
                           f"to a tensor of size '{list(tensor._array.shape)}'. Please ensure that "
                           "the gradient and the tensor are the same size")


class Untracked(list):
    """The counter of tensors made in inference mode, which autograd refuses."""


class View:
    """What a view must know to find its history when its base is written to.

    node      the history, as far as `version` says that it holds
    version   how many writes the memory had when `node` was found: it holds until the next. STALE:
              a new one is to be found. `unrecorded(writes)`, which is no count: `node` was not
              found but set, to None for what was made while nothing was recorded, or by the user,
              to LEAF; then the view is on its own until the next write
    replay    `replay(base)` makes the view again, where strides on the base cannot say it (a change
              of dtype)
    made      how the view came about ("no_grad", "custom", …), since some forbid in-place writes
    """

    __slots__ = ("made", "node", "replay", "version")
    made: str
    node: Any
    replay: Any
    version: int


new_view: Callable[[], View] = partial(object.__new__, View)
STALE = -1          # no count, and after a write none is its complement


def unrecorded(writes: int) -> int:
    """The `version` of a view whose node was set when its memory had that many writes."""
    return ~writes


def gradient_edge(tensor: Tensor) -> Any:
    """Where a gradient of `tensor` goes: a Node, an Output, the tensor itself (a leaf), or None.

    A view whose memory was written to since its node was made gets a new node: the write may have
    changed the history of the base.
    """
    edge = tensor._edge
    if edge is LAZY:
        view = tensor._view
        if view.version == tensor._counter[0]:
            return view.node
        return late_bound.regenerate(tensor, view)
    return tensor if edge is LEAF else edge


def wrap(array: Any, requires_grad: bool = False) -> Tensor:
    """A plain tensor that holds `array`."""
    tensor = new_tensor()
    tensor._array = array if type(array) is np.ndarray else np.asarray(array)
    tensor._edge = LEAF if requires_grad else None
    tensor._base = tensor._counter = None
    return tensor


def alias(array: np.ndarray, cls: type) -> Any:
    """A tensor of type `cls` on `array`, with no history."""
    tensor: Any = object.__new__(cls)
    tensor._array = array
    tensor._edge = tensor._base = tensor._counter = None
    return tensor


def sealed(name: str, member: Any) -> Any:
    """`member`; of a property that nobody may write to, one that says so as PyTorch does."""
    if type(member) is not property or member.fset is not None:
        return member

    def refuse(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")
    return property(member.fget, refuse, member.fdel or refuse, member.__doc__)


def add_members(**members: Any) -> None:
    """Make functions methods of `Tensor`, and properties its attributes."""
    for name, member in members.items():
        setattr(Tensor, name, sealed(name, member))


add_members(**{name: member for name, member in vars(Tensor).items() if type(member) is property})


def arrays_of(tensors: Iterable[Tensor]) -> list[np.ndarray]:
    """The arrays of many tensors, for kernels that take lists."""
    return [t._array for t in tensors]


def dense_memory(root: np.ndarray) -> np.ndarray | None:
    """An array that owns its memory, with its dimensions in the order in which they lie there; None
    if that leaves gaps."""
    if root.flags.c_contiguous:
        return root
    ordered = root.transpose(np.argsort([-stride for stride in root.strides], kind="stable"))
    return ordered if ordered.flags.c_contiguous else None
