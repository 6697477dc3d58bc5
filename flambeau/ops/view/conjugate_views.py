"""Views whose elements are the conjugates, or the negatives, of what lies in memory.

`x.conj()` of a complex tensor computes nothing: it looks at the memory of `x`, and a write to
either shows in both. The imaginary part of such a view is one that negates. As in PyTorch a tensor
knows of these two operations that are still to do (`is_conj`, `is_neg`), and `resolve_conj` and
`resolve_neg` do them.

A `ConjugateView` holds the memory in its slot `_array`, but whoever reads the attribute gets the
elements as they are meant, as a copy that cannot be written to. So code that knows nothing of such
views computes what is right. Public calls come to `dispatch`: views of a view go through to the
memory, writes are turned around on their way there, and all other ops run on the copy, which has
the history of the view.
"""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.source_locations import counter_of
from flambeau.core import dtypes, type_info
from flambeau.core.autograd.recording import replay_of
from flambeau.core.calling import overrides
from flambeau.core.calling.overrides import dispatch_to_levels, intercept_canonical
from flambeau.core.modes import grad_enabled, intercepts_ops, levels, shows_ops
from flambeau.core.shapes import Size
from flambeau.core.tensor import (
    LAZY,
    LEAF,
    SeenAsTensor,
    Tensor,
    gradient_edge,
    new_tensor,
    plain_types,
)
from flambeau.core.views import check_places
from flambeau.dispatch.backend_errors import binder_of, check_fit
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.dispatch.function import Function, InplaceFunction
from flambeau.dispatch.members import MemberFunction
from flambeau.kernels.moving.views import copy_into
from flambeau.ops.coercion import each_result, store
from flambeau.ops.indexing.index import item_at
from flambeau.ops.indexing.values import as_value, assign
from flambeau.ops.inplace import slot, write_result
from flambeau.ops.overlap import allows_internal_overlap
from flambeau.ops.pointwise.arithmetic import neg
from flambeau.ops.pointwise.complex import conjugated, imag, imag_view, real, real_view
from flambeau.ops.view.conversion import clone
from flambeau.transforms.meta import MetaTensor

in_memory: Callable[[Tensor], np.ndarray] = slot
_set_memory: Callable[[Tensor, np.ndarray], None]
_set_memory = Tensor._array.__set__


class ConjugateView(SeenAsTensor, Tensor):
    """A tensor that conjugates, negates, or both. Users see it as `Tensor`."""

    def _read(self) -> np.ndarray:
        array = self._turned(in_memory(self))
        array.flags.writeable = False
        return array

    _array = property(_read, _set_memory)
    _memory = property(in_memory)

    def _turned(self, array: np.ndarray) -> np.ndarray:
        """Memory as elements, or elements as memory, in an array of their own."""
        result = np.empty_like(array)
        if self._conjugated:
            np.conjugate(array, result)
            array = result
        return np.negative(array, result) if self._negated else result

    def _store(self, values: np.ndarray) -> None:
        """Write elements."""
        copy_into(in_memory(self), self._turned(values))

    shape = property(lambda self: Size(in_memory(self).shape))
    ndim = property(lambda self: in_memory(self).ndim)
    dtype = property(lambda self: below(self).dtype)
    itemsize = property(lambda self: in_memory(self).itemsize)
    nbytes = property(lambda self: in_memory(self).nbytes)

    data = property(lambda self: _with_flags_of(self, below(self).data),
                    lambda self, value: vars(Tensor)["data"].__set__(self, value))

    def numpy(self, *, force: bool = False) -> np.ndarray:
        if force:
            return resolved(self).numpy(force=True)
        if self.requires_grad and grad_enabled():
            return Tensor.numpy(self)
        bit, name = ("conjugate", "conj") if self._conjugated else ("negative", "neg")
        raise RuntimeError(f"Can't call numpy() on Tensor that has {bit} bit set. Use "
                           f"tensor.resolve_{name}().numpy() instead.")

    def __dlpack__(self, **options: Any) -> Any:
        if not self.requires_grad:
            raise BufferError("Can't export tensors with the "
                              f"{'conjugate' if self._conjugated else 'negative'} bit set")
        return Tensor.__dlpack__(self, **options)

    def __getitem__(self, index: Any) -> Tensor:
        return dispatch(Tensor.__getitem__, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        part = self[index]
        if type(part) is ConjugateView:
            assign(part, as_value(value, self))
        else:
            changed = clone(self)
            changed[index] = value
            self.copy_(changed)

    @staticmethod
    def _inherited(value: Tensor, heir: Tensor) -> np.ndarray:
        """The array of `value` for `heir`, which becomes a view of its kind, or no view any more;
        one of another class, such as a parameter, gets the elements in memory of their own."""
        if type(heir) not in (Tensor, ConjugateView):
            return resolved(value)._array
        heir.__class__ = type(value) if type(value) is ConjugateView else Tensor
        heir._conjugated, heir._negated = value._conjugated, value._negated
        return in_memory(value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            return Tensor.__deepcopy__(self, memo)      # which says why not
        elements = resolved(self).detach().requires_grad_(self.requires_grad)
        elements.__dict__.update(self._state())
        return copy.deepcopy(elements, memo)

    def _state(self) -> dict[str, Any]:
        """What users and modules have attached."""
        return {k: v for k, v in self.__dict__.items() if not hasattr(Tensor, k)}

    def as_subclass(self, cls: type) -> Any:
        """The values as an instance of `cls`, with their history, on memory of their own."""
        return self if cls in (Tensor, ConjugateView) else Tensor.as_subclass(resolved(self), cls)


ConjugateView.__module__ = "torch"
ConjugateView.__name__ = ConjugateView.__qualname__ = "Tensor"
overrides.internal_types.add(ConjugateView)


def _declare_memory_member(name: str) -> Any:
    member = getattr(Tensor, name)

    def method(self: ConjugateView, *args: Any, **kwargs: Any) -> Any:
        memory = below(self)
        result = member(memory, *args, **kwargs)
        if memory._array is not in_memory(self):
            _set_memory(self, memory._array)
        return self if result is memory else result
    method.__name__, method.__doc__ = name, member.__doc__
    return method


for _name in ("stride", "storage_offset", "data_ptr", "const_data_ptr", "untyped_storage",
              "is_contiguous", "size", "dim", "ndimension", "numel", "nelement", "element_size",
              "dim_order", "is_shared", "share_memory_", "resize_", "set_", "is_set_to"):
    setattr(ConjugateView, _name, _declare_memory_member(_name))


# ---- between the view and its memory -------------------------------------------------------------

def below(view: Tensor) -> Tensor:
    """A plain tensor on the memory of `view`, which has the history of `view`: what commutes with
    conjugation and negation may be done on it."""
    memory = _with_history(view)
    memory._array, memory._base = in_memory(view), view._base
    _toggle_tangents(memory, view._conjugated, view._negated)
    if view._edge is LAZY and memory._edge is not view:
        memory._edge, memory._view = LAZY, view._view
    return memory


def resolved(tensor: Tensor) -> Tensor:
    """The elements that a view shows, in memory of their own, with the history of the view; any
    other tensor itself."""
    if type(tensor) is not ConjugateView:
        return tensor
    base = tensor._base
    if base is not None and base._tangents is not None:
        for level in base._tangents:
            level.tangent(tensor)           # which it has from now on, as its base does
    result = _with_history(tensor)
    result._array, result._base = tensor._turned(in_memory(tensor)), None
    return result


def _with_history(view: Tensor) -> Tensor:
    result = new_tensor()
    result._counter = counter_of(view)
    edge = view._edge
    result._edge = edge if edge is None or not grad_enabled() else gradient_edge(view)
    if result._edge is LEAF or (edge is LAZY and view._view.node is LEAF):
        result._edge = view                 # which gets its gradients
    elif result._edge is LAZY:
        result._edge = None
    if view._tangents is not None:
        result._tangents = view._tangents
    return result


def _with_flags_of(view: Tensor, result: Tensor) -> Tensor:
    """`result`, which looks at the memory of `view`, as it does."""
    return _as_view(result, view._conjugated, view._negated)


def _as_view(result: Tensor, conjugated: bool, negated: bool) -> Tensor:
    if conjugated or negated:
        result.__class__ = ConjugateView
        result._conjugated, result._negated = conjugated, negated
        _toggle_tangents(result, conjugated, negated)
    return result


def _toggle_tangents(tensor: Tensor, conjugated: bool, negated: bool) -> None:
    """Tangents look at their memory as `tensor` does from now on: a write shows in both."""
    if tensor._tangents is None:
        return
    turned = dict(tensor._tangents)
    for level, tangent in turned.items():
        if tangent is not None:
            if conjugated:
                tangent = conj(tangent)
            turned[level] = neg_view(tangent) if negated else tangent
    tensor._tangents = turned


# ---- the two views -------------------------------------------------------------------------------

_conj_view = op(
    "conj_view(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self[...], kind="linear",
    function=False, method=False, node="ConjBackward0", d_self=lambda grad: conjugated(grad),
    batch=lambda size, dims, self: (conj(self), dims[0]),
    aten=(AtenForm("_conj(Tensor(a) self) -> Tensor(a)"),),
    doc="The memory of `self` as a view that is to show the conjugates.")
_negative_view = op(
    "negative_view(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self[...], kind="linear",
    function=False, method=False, node="NegViewBackward0", d_self=-1,
    batch=lambda size, dims, self: (neg_view(self), dims[0]),
    aten=(AtenForm("_neg_view(Tensor(a) self) -> Tensor(a)"),),
    doc="The memory of `self` as a view that is to show the negatives.")


def _toggle_flags(function: Any, view: Any, input: Tensor, conjugated: bool,
                  negated: bool) -> Tensor:
    source = below(input) if type(input) is ConjugateView else input
    result = view(source)
    if hasattr(result, "_bdim"):            # its slices are turned
        return result
    conjugated ^= input._conjugated
    negated ^= input._negated
    if type(result) is MetaTensor:          # nobody reads its elements
        result._conjugated, result._negated = conjugated, negated
        return result
    if result._base is source:
        result._base = input
    if result._edge is LAZY:
        result._view.replay = replay_of(function.op, input, (input,), True)
    return _as_view(result, conjugated, negated)


def _needs_values(input: Tensor) -> bool:
    """Must the operation be done at once? A level has no memory that others could look at."""
    if not all(level.keeps_memory for level in levels.get()):
        return True
    return type(input) not in plain_types and type(input) not in (ConjugateView, MetaTensor) \
        and not hasattr(input, "_bdim")


@op("conj(Tensor(a) self) -> Tensor(a)", aliases=("_conj(Tensor(a) self) -> Tensor(a)",))
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, as a view of the same memory; a real tensor is its own.

    >>> import flambeau
    >>> x = flambeau.tensor([1 + 2j])
    >>> y = x.conj()
    >>> y.imag.fill_(3.0)
    tensor([3.])
    >>> x
    tensor([1.-3.j])
    """
    if not input.dtype.is_complex:
        return input
    if shows_ops():
        return _conj_view(input)
    return conjugated(input) if _needs_values(input) else _toggle_flags(conj, _conj_view, input,
                                                                        True, False)


@op("_neg_view(Tensor(a) self) -> Tensor(a)")
def neg_view(input: Tensor) -> Tensor:
    """The negative, as a view of the same memory."""
    if shows_ops():
        return _negative_view(input)
    if _needs_values(input):
        return neg(input)
    return _toggle_flags(neg_view, _negative_view, input, False, True)


@op("is_conj(Tensor self) -> bool", out=False)
def is_conj(input: Tensor) -> bool:
    """Is this a view that conjugates what is in memory?"""
    return input._conjugated


@op("is_neg(Tensor self) -> bool", out=False)
def is_neg(input: Tensor) -> bool:
    """Is this a view that negates what is in memory?"""
    return input._negated


@op("resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(input: Tensor) -> Tensor:
    """The values with no conjugation left to do: a copy, or a tensor that has none itself."""
    return clone(input) if input._conjugated else input


@op("resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve_neg(input: Tensor) -> Tensor:
    """The values with no negation left to do: a copy, or a tensor that has none itself."""
    return clone(input) if input._negated else input


# ---- calls with such views -----------------------------------------------------------------------

# ops that look at memory in another way, besides those that are declared as views
_LOOK = frozenset("""detach as_strided broadcast_to chunk dsplit expand expand_as flatten getitem
    hsplit moveaxis movedim narrow permute ravel reshape reshape_as split squeeze swapaxes
    swapdims tensor_split unflatten view view_as vsplit""".split())
# what is made of others that look
_BODIES = frozenset("""_neg_view adjoint atleast_1d atleast_2d atleast_3d broadcast_tensors conj
    imag is_conj is_neg meshgrid real resolve_conj resolve_neg""".split())


def _views_in(values: Any) -> list[Any]:
    found = []
    for value in values:
        if type(value) is ConjugateView:
            found.append(value)
        elif type(value) in (list, tuple):
            found += _views_in(value)
    return found


def _all_resolved(values: Any, originals: dict[int, Any]) -> Any:
    """Arguments with copies for the views, which `originals` has by the copies' identity."""
    if type(values) is ConjugateView:
        result = resolved(values)
        originals[id(result)] = values, result
        return result
    if type(values) in (list, tuple):
        return type(values)([_all_resolved(v, originals) for v in values])
    return values


def _on_copies(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    originals: dict[int, Any] = {}
    args = _all_resolved(args, originals)
    kwargs = {k: _all_resolved(v, originals) for k, v in kwargs.items()}

    def kept(r: Tensor) -> Tensor:
        if id(r) in originals:
            return originals[id(r)][0]
        if id(r._base) in originals:        # nobody else has what it looks at
            r._base, r._edge = None, gradient_edge(r)
        return r
    return each_result(function(*args, **kwargs), kept)


def _on_memory(function: Any, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What looks at the memory of `view`, as views like it; None if something was copied."""
    memory = below(view)
    result = function(memory, *args, **kwargs)
    copied: list[Tensor] = []

    def seen(r: Tensor) -> Tensor:
        if r is memory:
            return view
        if type(r) is not Tensor or (r._array.size and not np.may_share_memory(
                r._array, memory._array)):
            copied.append(r)
            return r
        if r._base is memory:
            r._base = view
        return _with_flags_of(view, r)

    result = each_result(result, seen)
    return None if copied else result


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with views that conjugate or negate among its arguments."""
    declared = getattr(function, "op", None)
    name = declared.name if declared is not None else function.__name__
    if name[:2] == "__":
        name = name.strip("_")          # Python's operators
    if name in _BODIES:
        return declared.direct(*args, **kwargs)
    if shows_ops():                     # as it is: what runs below reads the view
        binder = binder_of(function)
        if name == "getitem":
            return item_at(*args)
        if not isinstance(binder, (InplaceFunction, MemberFunction)) and declared is not None:
            return dispatch_to_levels(binder.seen if isinstance(binder, Function) else declared,
                                      args, kwargs)
    if declared is real_view.op:
        return real(*args)
    if declared is imag_view.op:
        return imag(*args)
    if name == "contiguous":
        return _contiguous(*args, **kwargs)
    if _views_in((kwargs.get("out"),)):
        check_fit(function, args, kwargs)
        out = kwargs.pop("out")
        return store(out, declared, function(*args, **kwargs), args)
    first = args[0] if args else None
    if type(first) is ConjugateView:
        if _is_view_op(name, declared):
            _check_reinterpreted(name, first, args[1:], kwargs)
            result = _on_memory(function, first, args[1:], kwargs)
            if result is not None:
                return result
        elif declared is not None and declared.inplace:
            check_fit(function, args, kwargs)
            if not allows_internal_overlap(declared.functional):
                check_places(below(first))
            if intercepts_ops():
                return _in_levels(declared, first, args[1:], kwargs)
            rest, named = _all_resolved((args[1:], list(kwargs.values())), {})
            return write_result(declared, first, rest, dict(zip(kwargs, named)), True)
        elif name.endswith("_") and not name.endswith("__"):
            changed = clone(first)
            function(changed, *args[1:], **kwargs)
            return first.copy_(changed)
    return _on_copies(function, args, kwargs)


def _in_levels(declared: Any, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """A write that levels take part in: to tangents, of slices."""
    if declared.composite or declared.binder is None:
        changed = declared.functional.function(clone(view), *args, **kwargs)
        return changed if declared.name == "copy_" else view.copy_(changed)
    rest, named = _all_resolved((args, list(kwargs.values())), {})
    bound, canonical, _ = declared.binder.bind((view, *rest), dict(zip(kwargs, named)))
    return intercept_canonical(bound, canonical)


def _is_view_op(name: str, op: Any) -> bool:
    """Does the op look at memory in another way?"""
    if op is not None and (op.view or op.namespace == "nn.functional"):
        return op.view
    return name in _LOOK


def _contiguous(view: Any, memory_format: Any = type_info.contiguous_format) -> Tensor:
    """The view itself where its memory is in order; that of a copy may be though this is not."""
    return view if view.is_contiguous(memory_format=memory_format) \
        else clone(view, memory_format=memory_format)


def _check_reinterpreted(name: str, view: Any, args: Any, kwargs: Any) -> None:
    """Bytes as another type would not be what the view shows."""
    if name == "view_as_real" and view._conjugated:
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors.  To "
                           "resolve the conjugate tensor so you can view it as real, use "
                           "self.resolve_conj(); however, be warned that the resulting tensor will "
                           "NOT alias the original.")
    if name == "view" and any(isinstance(a, dtypes.dtype) and a is not view.dtype
                              for a in (*args, *kwargs.values())):
        what = "conjugate view tensors" if view._conjugated else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a "
                           "different dtype.")


overrides.own_rules[ConjugateView] = dispatch
__all__ = ["ConjugateView", "below", "conj", "in_memory", "neg_view", "resolved"]
