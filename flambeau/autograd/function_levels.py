"""`Function`, and what forward mode and vmap make of a call."""
from __future__ import annotations

import inspect
import warnings
from collections import namedtuple
from typing import Any

from flambeau._support.scopes import within
from flambeau.autograd.function_calls import _SingleLevelFunction, call, finish, observers
from flambeau.core.autograd.graph import save_input
from flambeau.core.modes import grad_enabled, interceptors, levels
from flambeau.core.tensor import Tensor, gradient_edge, tensor_types
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.view.conversion import clone
from flambeau.ops.view.shape import expand_to, movedim
from flambeau.transforms.batching import BatchedTensor, BatchLevel
from flambeau.transforms.forward import ForwardLevel

_MORE = ("For more details, please see https://pytorch.org/docs/main/notes/extending.func.html")
VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])


class Function(_SingleLevelFunction):
    """An op with a derivative of the user's own: subclass it and call `apply`.

    `forward(ctx, *args)` computes; `backward(ctx, *grad_outputs)` gives a gradient for each
    argument of `forward` (None for those that have none). `ctx.save_for_backward` keeps tensors
    between them. Or `forward(*args)` without a context, and `setup_context(ctx, inputs, output)`.
    `jvp(ctx, *tangents)` is the rule of forward mode, `vmap(info, in_dims, *args)` that of
    batching; `generate_vmap_rule = True` makes the latter from the others.

    >>> import flambeau
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = flambeau.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward(); x.grad
    tensor(6.)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are "
                      "all static, so you should invoke them on the class itself. Instantiating an "
                      "autograd function will raise an error in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. "
                           "Please use new-style autograd function with static forward method. "
                           "(Example: https://pytorch.org/docs/stable/autograd.html"
                           "#torch.autograd.Function)")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Outputs for all slices at once, and where the slices are in them."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override "
                                  "the vmap staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if kwargs or cls.setup_context is not Function.setup_context:
            args = _bind(cls, args, kwargs)
        if interceptors and levels.get():
            answer = apply_under_level(cls, args)
            if answer is not NotImplemented:
                return answer
        return call(cls, args)


def _bind(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, as `backward` counts them. `setup_context` is shown those that
    have their default too; else those after the last that was given are left to `forward`."""
    bare = cls.setup_context is not Function.setup_context
    signature, code = inspect.signature(cls.forward), getattr(cls.forward, "__code__", None)
    if not kwargs and code is not None and code.co_argcount == len(args):
        return args
    bound = signature.bind(*args, **kwargs) if bare else signature.bind(None, *args, **kwargs)
    for name in bound.kwargs:
        known = signature.parameters.get(name)
        if name not in kwargs or known is None or known.kind is not _BY_EITHER:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    last = list(signature.parameters).index(list(bound.arguments)[-1])
    bound.apply_defaults()
    return bound.args if bare else bound.args[1:max(last, len(args)) + 1]


_BY_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


# ---- levels --------------------------------------------------------------------------------------

def apply_under_level(cls: Any, args: tuple[Any, ...]) -> Any:
    """What the innermost level of this thread makes of a call; NotImplemented if nothing."""
    stack = levels.get()
    level = stack[-1]
    if isinstance(level, ForwardLevel):
        return _forward(cls, args, level, stack)
    if isinstance(level, BatchLevel):
        mine = [type(a) is BatchedTensor and a._level is level for a in args]
        if not any(mine):
            return _apply_below(cls, args, stack)
        if cls.generate_vmap_rule:
            if _has_vmap(cls):
                raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both "
                                   "generate_vmap_rule=True and an overridden vmap staticmethod. "
                                   "Please set generate_vmap_rule=False or delete the overridden "
                                   f"vmap staticmethod to avoid ambiguity. {_MORE}")
            return _generated(cls, args, level, stack)
        if not _has_vmap(cls):
            if cls.setup_context is Function.setup_context:
                raise RuntimeError("In order to use an autograd.Function with functorch transforms "
                                   "(vmap, grad, jvp, jacrev, ...), it must override the "
                                   f"setup_context staticmethod. {_MORE}")
            raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap "
                               "support. Please override and implement the vmap staticmethod or "
                               f"set generate_vmap_rule=True. {_MORE}")
        return _batched(cls, args, level, stack)
    return NotImplemented


def _has_vmap(cls: Any) -> bool:
    return cls.vmap is not Function.vmap


def _apply_below(cls: Any, args: tuple[Any, ...], stack: Any) -> Any:
    return within(levels, stack[:-1], cls.apply, *args)


def _generated(cls: Any, args: tuple[Any, ...], level: BatchLevel, stack: Any) -> Any:
    """The batching rule made of the Function itself: one level down runs a Function whose rules
    are those of `cls`, with the level entered around them."""
    pairs = [level.unwrap(a) for a in args]
    kept: list[Any] = []
    whole = _function_of_whole(cls, level, [d for _, d in pairs], kept)
    output = within(levels, stack[:-1], within, observers, None, whole.apply,
                    *[v for v, _ in pairs])
    outputs = output if isinstance(output, tuple) else (output,)
    outputs = tuple(level.wrap(o, 0) if isinstance(o, Tensor) else o for o in outputs)
    needed = grad_enabled() and any(e is not None for e in edges_of(args, level))
    if needed or observers.get() is not None:
        outputs = _recorded(cls, args, outputs, level, needed, *kept[0])
    return outputs if isinstance(output, tuple) else outputs[0]


def _function_of_whole(cls: Any, level: BatchLevel, dims: list[Any], kept: list[Any]) -> Any:
    """The Function of the values that all slices have together, which runs `cls` on the slices. A
    call puts into `kept` the inner context and what that saved: an argument's number, or a tensor
    and the place of its slices; and which outputs have no gradient."""
    size = level.size

    class Whole(Function):
        generate_vmap_rule = True       # for the level around this one

        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            inner = ctx.inner = cls._backward_cls()
            inner.needs_input_grad = ctx.needs_input_grad
            with BatchLevel(size, level.randomness) as slices:
                given = _sliced(slices, values, dims)
                if cls.setup_context is Function.setup_context:
                    output = cls.forward(inner.context, *given)
                else:
                    output = cls.forward(*given)
                    cls.setup_context(inner.context, tuple(given), output)
            if inner.dirty_tensors:
                raise NotImplementedError("mark_dirty in a Function with generate_vmap_rule=True: "
                                          "write a vmap staticmethod for it")
            ctx.single = not isinstance(output, tuple)
            outputs = (output,) if ctx.single else output
            without = {id(t) for t in inner.non_differentiable}
            whole = [_batch_in_front(slices, o) for o in outputs]
            ctx.mark_non_differentiable(*[w for w, o in zip(whole, outputs) if id(o) in without])
            ctx.set_materialize_grads(inner.materialize_grads)
            saved = [slices.unwrap(t) for t in inner.to_save]
            ctx.save_for_backward(*[v for v, _ in saved])
            ctx.saved_dims = [d for _, d in saved]
            forward = [slices.unwrap(t) for t in inner.saved_for_forward or ()]
            ctx.save_for_forward(*[v for v, _ in forward])
            ctx.forward_dims = [d for _, d in forward]
            position = {id(t): i for i, t in reversed([*enumerate((*given, *outputs))])}
            places, forward_places = (
                [position.get(id(t), pair) for t, pair in zip(tensors or (), pairs)]
                for tensors, pairs in ((inner.to_save, saved), (inner.saved_for_forward, forward)))
            kept.append((inner, places, forward_places,
                         [i for i, o in enumerate(outputs) if id(o) in without]))
            return whole[0] if ctx.single else tuple(whole)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            inner = ctx.inner
            with BatchLevel(size, level.randomness) as slices:
                saved = _sliced(slices, ctx.saved_tensors, ctx.saved_dims)
                inner._in_forward = False
                inner.saved = tuple([None if t is None else save_input(t) for t in saved])
                inner.saved_kinds = ("tensor",) * len(saved)
                rule = cls.vjp if cls.vjp is not Function.vjp else cls.backward
                given = _sliced(slices, grads, [0] * len(grads))
                found = rule(inner.context, *given)
                found = found if isinstance(found, tuple) else (found,)
                return tuple(None if g is None else _gathered(slices, g, d)
                             for g, d in zip(found, dims))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            inner = ctx.inner
            with BatchLevel(size, level.randomness) as slices:
                inner._in_forward = True
                inner.saved_for_forward = tuple(_sliced(slices, ctx.saved_tensors,
                                                        ctx.forward_dims))
                found = cls.jvp(inner.context, *_sliced(slices, tangents, dims))
                found = found if isinstance(found, tuple) else (found,)
                return tuple([_batch_in_front(slices, t) for t in found])

    Whole.__name__ = Whole.__qualname__ = cls.__name__
    Whole._backward_cls.__name__ = cls._backward_cls.__name__
    return Whole


def edges_of(args: Any, level: BatchLevel) -> list[Any]:
    """Where gradients of the tensor arguments go at this level itself."""
    return [gradient_edge(a) if type(a) is BatchedTensor and a._level is level
            and a._edge is not None else None for a in args if type(a) in tensor_types]


def _recorded(cls: Any, args: Any, outputs: Any, level: BatchLevel, needed: bool, inner: Any,
              saved: Any, forward: Any, without: list[int]) -> tuple[Any, ...]:
    """The outputs with the node that the graph at this level, or forward mode, has for the call."""
    node = cls._backward_cls()
    node.__dict__.update({k: v for k, v in inner.__dict__.items() if k != "_context"})
    node.context.__dict__.update(inner.context.__dict__)
    edges = edges_of(args, level)
    node.edges, node.saved = tuple(edges), ()
    node.is_tensor_input = [type(a) in tensor_types for a in args]
    found = iter(edges)
    node.needs_input_grad = tuple([next(found) is not None if t else False
                                   for t in node.is_tensor_input])
    known, live = (*args, *outputs), levels.get()
    for value, _ in (s for s in (*saved, *forward) if not isinstance(s, int)):
        if type(value) is BatchedTensor and value._level not in live:
            raise NotImplementedError(f"nested vmap over {cls.__name__}, which saves a tensor that "
                                      "is neither an input nor an output")
    node.to_save, node.saved_for_forward = (
        tuple([known[s] if isinstance(s, int) else s[0] if s[1] is None else level.wrap(*s)
               for s in places]) for places in (saved, forward))
    node.dirty_tensors, node.non_differentiable = (), tuple([outputs[i] for i in without])
    finished = finish(node, args, outputs, needed)
    seen = observers.get()
    if seen is not None:
        seen.append((node, set(), {id(finished[i]) for i in without}))
    return tuple(finished)


def _sliced(slices: BatchLevel, values: Any, dims: Any) -> list[Any]:
    """What the level sees of whole values whose slices lie along `dims`."""
    return [v if v is None or d is None else slices.wrap(v, d) for v, d in zip(values, dims)]


def _batch_in_front(slices: BatchLevel, output: Any) -> Any:
    """An output with its slices in front."""
    if not isinstance(output, Tensor):
        return output
    value, bdim = slices.unwrap(output)
    if bdim is None:
        return clone(expand_to(value, (slices.size, *value.shape)))
    return value if bdim == 0 else movedim(value, bdim, 0)


def _gathered(slices: BatchLevel, grad: Tensor, dim: int | None) -> Tensor:
    """A gradient in the form of the whole input: summed if all slices share it."""
    value = _batch_in_front(slices, grad)
    if dim is None:
        return value.sum(0)
    return value if dim == 0 else movedim(value, 0, dim)


def _batched(cls: Any, args: tuple[Any, ...], level: BatchLevel, stack: Any) -> Any:
    pairs = [level.unwrap(a) for a in args]
    info = VmapInfo(level.size, level.randomness)
    answer = within(levels, stack[:-1], cls.vmap, info, tuple(d for _, d in pairs),
                    *[v for v, _ in pairs])
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and "
                           "out_dims with pytree structure compatible with the output. Got a "
                           f"{type(answer)} " + (f"with {len(answer)} returns "
                                                 if isinstance(answer, tuple) else "") + "instead")
    output, dims = answer
    if isinstance(output, tuple):
        dims = dims if isinstance(dims, tuple) else (dims,) * len(output)
        return tuple(level.wrap(o, d) if isinstance(o, Tensor) else o
                     for o, d in zip(output, dims))
    return level.wrap(output, dims) if isinstance(output, Tensor) else output


def _tangents(cls: Any, args: tuple[Any, ...], node: Any, tangents: list[Any]) -> Any:
    """What `jvp` is given, zeros for tangents that are not there if it wants them, and gives."""
    given = [zeros_like(a) if t is None and type(a) in tensor_types
             and a.is_floating_point() and node.materialize_grads else t
             for a, t in zip(args, tangents)]
    node._in_forward = True
    found = cls.jvp(node.context, *given)
    node._in_forward = False
    return given, found


def _forward(cls: Any, args: tuple[Any, ...], level: ForwardLevel, stack: Any) -> Any:
    tangents = [level.tangent(a) if type(a) in tensor_types else None for a in args]
    if all(t is None for t in tangents):
        return _apply_below(cls, args, stack)
    seen: list[Any] = []
    versions = [None if t is None else t._version for t in tangents]
    output = within(observers, seen, _apply_below, cls, args, stack)
    node, dirty, without = seen[0]
    outer = observers.get()
    if outer is not None:                   # a level around this one observes the call too
        outer.append(seen[0])
    given, found = within(levels, stack[:-1], _tangents, cls, args, node, tangents)
    outputs = output if isinstance(output, tuple) else (output,)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(outputs):
        raise RuntimeError("Function's jvp returned an invalid number of forward gradients "
                           f"(expected {len(outputs)} but got {len(found)})")
    for position, (one, tangent) in enumerate(zip(outputs, found)):
        if isinstance(one, Tensor):
            if isinstance(tangent, Tensor) and tangent.shape != one.shape:
                raise RuntimeError("Trying to set a forward gradient that has a different size "
                                   "than that of the original Tensor, this is not supported. "
                                   f"Tensor is of size {list(one.shape)} while the given forward "
                                   f"gradient is of size {list(tangent.shape)}.")
            _check_tangent(position, one, tangent, args, given, versions, dirty, without)
            level.set_tangent(one, tangent)
    return output


def _check_tangent(position: int, output: Tensor, tangent: Any, args: Any, given: Any,
                   versions: Any, dirty: set[int], without: set[int]) -> None:
    """A tangent must do what its output does: be absent, be written in place, or be a view."""
    if id(output) in without or not (output.is_floating_point() or output.is_complex()):
        if tangent is not None:
            raise RuntimeError(f"A custom Function's jvp returned a tangent for output {position}, "
                               "which is not differentiable. You should return None at that "
                               "position instead.")
        return
    for arg, own, version in zip(args, given, versions):
        if own is None or type(arg) not in tensor_types:
            continue
        if output is arg and id(output) in dirty:
            if tangent is not own or (version is not None and own._version == version):
                raise RuntimeError("An inplace custom Function is not modifying the forward mode "
                                   "gradients inplace. If the forward is modifying an input "
                                   "inplace, then the jvp function must modify the corresponding "
                                   "gradient inplace.")
        elif _views(output, arg):
            if tangent is None or tangent._base is None:
                raise RuntimeError("A custom Function's forward is returning a view (or an input "
                                   "as-is) but the jvp is not returning a view.")
            if not _views(tangent, own):
                raise RuntimeError("A custom Function is returning a view but the jvp is not "
                                   "returning a view of the " + (
                                       "" if own._base is None else "same base as the ")
                                   + "given grad input.")


def _views(tensor: Tensor, other: Tensor) -> bool:
    """Does `tensor` look at the memory of `other`?"""
    base = tensor._base
    return base is not None and (base is other or base is other._base)
