"""vmap: a tensor that stands for one slice, whatever the slice, of a larger one.

A `BatchedTensor` shows users the shape of one example; its `_value` holds them all, along `_bdim`.
While a `BatchLevel` is entered, each op on such a tensor runs once on the whole. How follows from
the op's kind: pointwise ops broadcast; ops with a core shape broadcast their leading dimensions;
ops that name their `dims` and `shapes` shift them by one; others declare `batch`, or are
looped over.

    >>> import flambeau
    >>> level = BatchLevel(3)
    >>> with level:
    ...     x = level.wrap(flambeau.arange(6.).view(3, 2), 0)
    ...     y = x.sum(0) * x
    >>> x.shape, y._value
    (torch.Size([2]), tensor([[ 0.,  1.],
            [10., 15.],
            [36., 45.]]))
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau._support.scopes import within
from flambeau._support.source_locations import bump, counter_of, native
from flambeau.core.autograd.formulas import parameters
from flambeau.core.autograd.recording import record
from flambeau.core.calling import overrides
from flambeau.core.modes import Level, autocast, function_modes, grad_enabled, levels
from flambeau.core.op import Op
from flambeau.core.promotion import result_type
from flambeau.core.shapes import contiguous_strides, wrap_dim
from flambeau.core.tensor import LEAF, Tensor, alias, gradient_edge, plain_types, tensor_types
from flambeau.core.type_info import CHANNELS_LAST, contiguous_format
from flambeau.ops.reduction.sums import sum_over
from flambeau.ops.view.conversion import cast, clone
from flambeau.ops.view.join import stack
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first, expand_to, movedim, permute, select, unsqueeze
from flambeau.ops.view.strided import strided_window
from flambeau.transforms.forward import ForwardLevel, keep_state, named_values
from flambeau.transforms.meta import meta_array
from flambeau.transforms.without_memory import WithoutMemory


class BatchedTensor(WithoutMemory, Tensor):
    """One slice, whatever the slice, of `_value` along `_bdim` (None: the same for all)."""

    _own_members = True
    _value: Tensor
    _bdim: int | None
    _made_from: Any = None              # of a view: what of, and by which op
    _history: Any = None                # changes when what the tensor was computed from does
    _history_of_base: Any = None        # of a view: that of `_made_from` when its own was made
    _level: BatchLevel
    _conjugated = property(lambda self: self._value._conjugated)
    _negated = property(lambda self: self._value._negated)

    def stride(self, dim: int | None = None) -> Any:
        strides, bdim = self._value.stride(), self._bdim
        if bdim is not None:
            strides = strides[:bdim] + strides[bdim + 1:]
        return strides if dim is None else strides[wrap_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        return self._value.storage_offset()

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        if memory_format is not contiguous_format:
            axes = CHANNELS_LAST.get(memory_format, ())
            return len(axes) == self.ndim and permute(self, axes).is_contiguous()
        shape = self._array.shape
        return 0 in shape or all(n == 1 or found == dense for n, found, dense in zip(
            shape, self.stride(), contiguous_strides(shape)))

    def _materialize(self, tensor: Any) -> Any:
        """`tensor`, or copies of it for all slices, so that those can be written."""
        value, bdim = self._level.unwrap(tensor)
        below = self._value
        apart = below._materialize(value) if type(below) is BatchedTensor else value
        if bdim is None and self._bdim is not None:
            return self._level.repeated(apart)
        return tensor if apart is value else self._level.wrap(apart, bdim)

    def become_view(self, view: Callable[[Tensor], Any]) -> None:
        """Let this become a view of what it is."""
        before = self._level.wrap(self._value, self._bdim)
        before.__dict__.update(self.__dict__)
        before._edge, before._counter = self._edge, counter_of(self)
        result = view(before)
        self.__dict__.update(result.__dict__)
        self._array, self._edge = result._array, result._edge
        bump(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        value = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._level.number}, bdim={self._bdim}, value=\n    {value}\n)"


plain_types.discard(BatchedTensor)
overrides.internal_types.add(BatchedTensor)


class BatchLevel(Level):
    """One vmap: the number of slices, and what random ops do."""

    depth = 0
    derives = keeps_memory = True

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness = size, randomness

    def _changes(self) -> Any:
        self.number = 1 + len(levels.get())
        return super()._changes()

    def wrap(self, value: Tensor, bdim: int | None) -> BatchedTensor:
        """One slice of `value` along `bdim`."""
        if type(value) in overrides.own_rules:
            self.__class__ = _LevelOfRules
        shape = value._array.shape
        if bdim is not None:
            shape = shape[:bdim] + shape[bdim + 1:]
        result = alias(meta_array(shape, value._array.dtype), BatchedTensor)
        result._value, result._bdim, result._level = value, bdim, self
        result._device = value._device
        return result

    def repeated(self, one: Tensor) -> Tensor:
        """A tensor of its own for each slice, all with the values of `one`."""
        return self.wrap(clone(expand_to(one, (self.size, *one._array.shape))), 0)

    def unwrap(self, tensor: Any) -> tuple[Any, int | None]:
        """The whole tensor and the position of the slices in it."""
        if type(tensor) is BatchedTensor and tensor._level is self:
            return tensor._value, tensor._bdim
        return tensor, None

    def has_rule(self, op: Op) -> bool:
        return op.batch_rule is not None

    def __call__(self, op: Op, canonical: tuple[Any, ...]) -> Any:
        functional = op.functional if op.inplace else op
        inputs = functional.inputs(canonical)
        pairs = [self.unwrap(t) for t in inputs]
        mine = [type(t) is BatchedTensor and t._level is self for t in inputs]
        if not any(mine):
            return op.call(*canonical)
        if any(type(v) in overrides.own_rules for v, _ in pairs):
            own = overrides.find_override([v for v, _ in pairs])
            from flambeau.dispatch.aten import subclass
            if own is subclass.run:             # shows its type what is done to the whole
                return own(partial(self, op), (canonical,), {})
        for t in inputs:
            if type(t) is BatchedTensor and t._level is self and t._made_from is not None:
                self._renew_history(t)
        if op.inplace:
            if not mine[0] and all(d is None for _, d in pairs):
                self._adopt_unbatched(inputs[0])
                pairs[0] = self.unwrap(inputs[0])
            return self._inplace(op, canonical, inputs, pairs)
        values = [v for v, _ in pairs]
        dims = [d for _, d in pairs]
        if all(d is None for d in dims):
            found = op.call(*op.with_inputs(canonical, values))
            where: Any = None if op.returns is None else [None] * len(found)
        else:
            answer = batch(op, self.size, canonical, inputs, values, dims)
            if answer is NotImplemented:
                return within(levels, (*levels.get(), self), op.parts, *canonical)
            found, where = answer
        if op.returns is None:
            result: Any = self.wrap(found, where)
            wrapped = [result]
            if op.view:
                result._made_from = inputs[0], op, canonical, None
                result._history_of_base = inputs[0]._history
        else:
            wrapped = [self.wrap(f, w) for f, w in zip(found, where)]
            result = op.returns(wrapped) if op.returns in (tuple, list) \
                else tuple.__new__(op.returns, wrapped)
            if op.view:
                for i, one in enumerate(wrapped):
                    one._made_from = inputs[0], op, canonical, i
                    one._history_of_base = inputs[0]._history
        if op.view or op.shares:
            for one in wrapped:
                one._counter = counter_of(inputs[0])
        if op.is_differentiable and grad_enabled():
            edges = tuple([gradient_edge(t) if m and t._edge is not None else None
                           for t, m in zip(inputs, mine)])
            if any(e is not None for e in edges):
                record(op, canonical, edges, result)
                keep_state((result,) if op.returns is None else result)
        return result

    def _adopt_unbatched(self, tensor: Any) -> None:
        """Let a tensor that knows no slices be one that is the same for all: what is written to it
        has its history at this level."""
        base = tensor._base
        if base is None:
            taken = self.wrap(alias(tensor._array, Tensor), None)
            taken._value._edge, taken._value._counter = tensor._edge, counter_of(tensor)
        else:
            shape, strides = tensor._array.shape, tensor.stride()
            offset = tensor.storage_offset() - base.storage_offset()
            if type(base) is not BatchedTensor:
                self._adopt_unbatched(base)
            taken = within(levels, (*levels.get(), self), strided_window, base, shape, strides,
                           offset)
        tensor.__class__ = BatchedTensor
        tensor.__dict__.update(taken.__dict__)
        tensor._array, tensor._edge, tensor._counter = taken._array, taken._edge, taken._counter
        tensor._base = None

    def _inplace(self, op: Op, canonical: Any, inputs: Any, pairs: Any) -> Any:
        """Compute out of place, then copy into the whole tensor."""
        target = inputs[0]
        value, bdim = pairs[0]
        functional = op.functional
        if bdim is None and any(d is not None for _, d in pairs[1:]):
            raise RuntimeError(
                f"vmap: {op.name}(self, *extra_args) is not possible because there exists a Tensor "
                "`other` in extra_args that has more elements than `self`. This happened due to "
                "`other` being vmapped over but `self` not being vmapped over in a vmap. Please "
                "try to use out-of-place operators instead of inplace operators.")
        recorded = grad_enabled() and functional.is_differentiable
        if recorded:                        # a node may save what the tensor was before
            before = self.wrap(clone(value), bdim)
            before._edge = None if target._edge is None else gradient_edge(target)
            canonical = functional.with_inputs(canonical, (before, *inputs[1:]))
        result = self(functional, canonical)
        found, where = self.unwrap(result)
        if where is None:
            value.copy_(found)
        else:
            movedim(value, bdim, 0).copy_(movedim(found, where, 0))
        bump(target)
        if recorded and (result._edge is not None or target._edge is not None):
            if target._edge is LEAF:
                raise RuntimeError("a leaf Variable that requires grad is being used in an "
                                   "in-place operation.")
            self._rewrite_history(target, result)
        return target

    def _rewrite_history(self, target: Any, written: Tensor) -> None:
        """Give `target` the history of what was written to it, and what it is a view of too.

        With v = op(base), linear, the base becomes base - opᵀ(op(base)) + opᵀ(written): outside of
        the view its own history, inside that of the written values. Only the graph matters here;
        the values are in place already.
        """
        old, target._edge = target._edge, written._edge
        target._history = object()
        self.rewritten = True
        if target._made_from is None:
            return
        base, op, canonical, index = target._made_from
        if index is not None:
            raise RuntimeError("Output 0 of " + op.node_name + " is a view and is being modified "
                               "inplace. This view is the output of a function that returns "
                               "multiple views. Such functions do not allow the output views to be "
                               "modified inplace. You should replace the inplace operation by an "
                               "out-of-place one.")
        if base._edge is LEAF:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an "
                               "in-place operation.")
        new = within(levels, (*levels.get(), self), self._base_history, base, op, canonical,
                     written, old is not None or base._edge is not None)
        self._rewrite_history(base, new)
        target._history_of_base = base._history

    def _base_history(self, base: Tensor, op: Op, canonical: Any, written: Tensor,
                      has_history: bool) -> Tensor:
        new = self._transposed(op, canonical, base, written)
        if not has_history:
            return new
        before = self._history_of(base)
        seen = op.call(*op.with_inputs(canonical, (before,)))
        return before - self._transposed(op, canonical, base, seen) + new

    def _renew_history(self, view: Any) -> None:
        """If what `view` was made from has been written to since, make its history again."""
        base, op, canonical, index = view._made_from
        if base._made_from is not None:
            self._renew_history(base)
        if view._history_of_base is base._history:
            return
        view._history_of_base, view._history = base._history, object()
        again = within(levels, (*levels.get(), self), op.call,
                       *op.with_inputs(canonical, (self._history_of(base),)))
        view._edge = (again if index is None else again[index])._edge

    def _history_of(self, tensor: Any) -> Tensor:
        """The tensor as it stands in the graph, apart from what is done to it later."""
        copy = self.wrap(tensor._value, tensor._bdim)
        copy._edge = tensor._edge
        return copy

    def _transposed(self, op: Op, canonical: Any, base: Tensor, value: Tensor) -> Tensor:
        """The reverse rule of a view op, as an op on `value`."""
        values = named_values(op, canonical, value)
        values["grad"] = value
        rule = op.rules["self"]
        return rule(*[values[n] for n in parameters(rule)]) if callable(rule) else value * rule


class _LevelOfRules(BatchLevel):
    """One that has slices of tensors that no kernel may see: the short way in C is not for it."""


def batch(op: Op, size: int, canonical: Any, inputs: Any, values: list[Any],
          dims: list[int | None]) -> tuple[Any, Any]:
    """Run `op` on whole tensors; gives the results and where their slices are. NotImplemented if
    that is left to its parts. A rule that answers so leaves the op to the rules of its kind."""
    if op.batch_rule is not None:
        answer = op.batch_rule(size, dims, *op.with_inputs(canonical, values))
        if answer is not NotImplemented or op.parts is not None:
            return answer
    of_sparse = op.namespace is None and op.batch_rule is not None     # ops/sparse/values.sparse_op
    if op.kind != "pointwise" and not of_sparse \
            and any(type(v) in overrides.sparse_types for v in values):
        return _batch_sparse(op, size, canonical, inputs, values, dims)
    if op.kind == "pointwise" and len(values) == 1 and op.returns is None:
        return op.call(*op.with_inputs(canonical, values)), dims[0]     # wherever its slices are
    if op.kind == "pointwise" or op.core:
        found = _broadcast(op, canonical, inputs, values, dims)
        return found, _all_in_front(op, found)
    if (op.dims or op.shapes) and all(t is None or t._array.ndim or not op.dims for t in inputs):
        fronted = [v if v is None else batch_first(v, d, size) for v, d in zip(values, dims)]
        shifted = _shift_dims(op, size, canonical, inputs)
        found = op.call(*op.with_inputs(shifted, fronted))
        return found, _all_in_front(op, found)
    if op.dims and not op.shapes and size and not op.variadic:
        return _at_least_1d(op, size, canonical, inputs, values, dims)
    return _batch_by_loop(op, size, canonical, values, dims)


def _batch_sparse(op: Op, size: int, canonical: Any, inputs: Any, values: list[Any],
                  dims: list[int | None]) -> tuple[Any, Any]:
    """Run an op along dimensions on whole sparse tensors, by the public function: no kernel may see
    them."""
    if not op.dims or op.namespace is None or any(d for d in dims):
        raise RuntimeError(f"vmap: {op.name} of sparse tensors cannot be batched")
    shifted = _shift_dims(op, size, canonical, inputs)[len(inputs):]
    found = op.function(*values, **dict(zip(op.params, shifted)))
    return found, _all_in_front(op, found)


def _at_least_1d(op: Op, size: int, canonical: Any, inputs: Any, values: list[Any],
                 dims: list[Any]) -> Any:
    """Slices without dimensions have one of extent 1 instead; the shapes are those of the op's
    results for one slice."""
    fronted = [v if v is None else batch_first(v, d, size) for v, d in zip(values, dims)]
    rows = [v if v is None or v._array.ndim > 1 else unsqueeze(v, 1) for v in fronted]
    found = op.call(*op.with_inputs(_shift_dims(op, size, canonical, inputs, 1), rows))
    one = op.call(*op.with_inputs(canonical, [
        v if d is None else select(v, d, 0) for v, d in zip(values, dims)]))
    if op.returns is None:
        return reshape(found, (size, *one._array.shape)), 0
    return [reshape(f, (size, *o._array.shape)) for f, o in zip(found, one)], [0] * len(one)


def _all_in_front(op: Op, found: Any = None) -> Any:
    return 0 if op.returns is None else [0] * len(found) if found is not None else [0]


def _core_ranks(op: Op, count: int) -> list[int]:
    """How many dimensions of each tensor are no leading ones: (m,n),(n)->(m) has 2 and 1."""
    core = getattr(op, "core", "")
    if not core:
        return [0] * count
    inside = core.split("->")[0].split(")")[:-1]
    return [len([n for n in dims.strip("(,").split(",") if n]) for dims in inside]


def _broadcast(op: Op, canonical: Any, inputs: Any, values: list[Any], dims: list[Any]) -> Any:
    """Slices in front, then as many dimensions of 1 as give all the same leading dimensions."""
    tensors = [t for t in inputs if type(t) in tensor_types]
    ranks = _core_ranks(op, len(inputs))
    lead = max(t._array.ndim - r for t, r in zip(inputs, ranks) if type(t) in tensor_types)
    if op.kind == "pointwise" and len({t._array.dtype for t in tensors}) > 1:
        values = _in_one_type(op, inputs, values)
    aligned = []
    for value, bdim, rank in zip(values, dims, ranks):
        if bdim is not None:
            if bdim:
                value = movedim(value, bdim, 0)
            shape = value._array.shape
            missing = lead + rank + 1 - len(shape)
            if missing:
                value = reshape(value, (shape[0], *(1,) * missing, *shape[1:]))
        aligned.append(value)
    return op.call(*op.with_inputs(canonical, aligned))


def _in_one_type(op: Op, inputs: Any, values: list[Any]) -> list[Any]:
    """Values in the type that the slices have together: a slice may have no dimensions, which
    promotes differently."""
    if op.fixed:
        return values
    common = [type(t) in tensor_types and name not in op.conditions for t, name in zip(
        inputs, op.tensors)]
    wanted = result_type([t._array for t, counts in zip(inputs, common) if counts]).numpy
    return [cast(v, wanted) if counts and v._array.dtype != wanted else v
            for v, counts in zip(values, common)]


def _shift_dims(op: Op, size: int, canonical: Any, inputs: Any, least: int = 0) -> tuple[Any, ...]:
    """Dimensions one further, shapes with the slices in front; of at least so many dimensions."""
    shifted = list(canonical)
    first = 1 if op.variadic else len(op.tensors)
    rank = max(least, next(t._array.ndim for t in inputs if t is not None))
    for i, name in enumerate(op.params):
        old = canonical[first + i]
        if name in op.dims:
            if old is None:
                old = tuple(range(rank))
            shifted[first + i] = old + 1 if isinstance(old, int) \
                else tuple([d + 1 for d in old])
        elif name in op.shapes:
            shifted[first + i] = (size, *old)
    return tuple(shifted)


def _zero_slice(value: Tensor, bdim: int) -> Tensor:
    """Zeros in the shape of one slice of a tensor that has none."""
    return cast(sum_over(value, (bdim,), False), value._array.dtype)


def _stack_slices(results: list[Tensor], size: int) -> Tensor:
    return stack(results, 0) if size else expand_to(results[0], (0, *results[0].shape))


def _batch_by_loop(op: Op, size: int, canonical: Any, values: list[Any], dims: list[Any]) -> Any:
    """One call a slice: right for every op, fast for none."""
    calls = []
    for i in range(max(size, 1)):
        slices = [v if d is None else select(v, d, i) if size else _zero_slice(v, d)
                  for v, d in zip(values, dims)]
        calls.append(op.call(*op.with_inputs(canonical, slices)))
    if op.returns is None:
        return _stack_slices(calls, size), 0
    stacked = [_stack_slices(list(column), size) for column in zip(*calls)]
    return stacked, [0] * len(stacked)


def lift(tensor: Any, level: BatchLevel) -> Any:
    """`tensor` as one that lives at `level`, so that a graph over it is recorded there."""
    if type(tensor) is BatchedTensor and tensor._level is level:
        return tensor
    return level.wrap(tensor, None)


def is_batched(tensor: Any, level: Any) -> bool:
    """Do the slices of a level differ in `tensor`?"""
    while type(tensor) is BatchedTensor:
        if tensor._level is level:
            return tensor._bdim is not None
        tensor = tensor._value
    return False


def vmap_backward(function: Callable[[Any], Any], grads: list[Any]) -> list[Any]:
    """`function(grads)` for each slice of the gradients along their first dimension."""
    size = next(g._array.shape[0] for g in grads if g is not None)
    level = BatchLevel(size, "never")
    with level:
        found = function([None if g is None else level.wrap(g, 0) for g in grads])
        results: list[Any] = []
        for f in found:
            if f is None:
                results.append(None)
                continue
            value, bdim = level.unwrap(f)
            results.append(batch_first(value, bdim, size))
    return results


if native is not None:
    native.know_levels(BatchedTensor, BatchLevel, ForwardLevel, levels, function_modes, autocast,
                       batch, _core_ranks, meta_array, movedim, reshape, expand_to)
