"""What a custom function sees as `ctx`: the node itself, or without a graph something like it."""
from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from flambeau.core.autograd.backward_errors import freed_error
from flambeau.core.autograd.graph import Node, unpack
from flambeau.core.autograd.saved_hooks import SavedTensor
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.ops.factory.create import zeros_like

# What `backward` and `vjp` of a `Function` are that does not write them; `function` puts it here.
unwritten: list[Any] = []


class FunctionCtx:
    """What `forward` and `setup_context` may do with their context."""

    __slots__ = ()
    if TYPE_CHECKING:                        # its attributes are those of a node
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where `ctx.saved_tensors` gives them back."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where `ctx.saved_tensors` gives them back."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise AssertionError("save_for_forward expects all arguments to be tensors; you "
                                     f"should save non-tensors as attributes on ctx: got "
                                     f"{type(tensor).__name__}")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs `forward` has written to in place; each must be returned."""
        for i, tensor in enumerate(args):
            if not isinstance(tensor, Tensor):
                raise RuntimeError("mark_dirty can only accept variables, but argument \n"
                                   f"{i} is of type {type(tensor).__name__}")
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Has no effect, and is kept for old code."""
        warnings.warn("function 'mark_shared_storage' is deprecated. Tensors with shared storages "
                      "are automatically tracked. Note that calls to `set_()` are not tracked",
                      FutureWarning, stacklevel=2)

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no derivative."""
        for tensor in args:
            if not isinstance(tensor, Tensor):
                raise RuntimeError("mark_non_differentiable only accepts variable arguments, but "
                                   f"got \n{type(tensor).__name__}")
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without gradient."""
        self.materialize_grads = value


class BackwardNode(Node, FunctionCtx):
    """The node of one call of a `Function`."""

    __slots__ = ()
    _forward_cls: Any = None
    accepts_undefined = True
    materialize_grads = True
    _materialize_non_diff_grads = True
    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    saved_for_forward: Any = None
    needs_input_grad: tuple[bool, ...] = ()
    _in_forward = True
    _accessed_once: RuntimeError | None = None

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    @property
    def context(self) -> Context:
        """What the user's methods get as `ctx`."""
        own = self.__dict__.get("_context")
        if own is None:
            own = self.__dict__["_context"] = self._forward_cls._context_cls(self)
        return own

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_context")
        if own is not None and name in own.__dict__:
            return own.__dict__[name]
        return super().__getattr__(name)

    def apply(self, grad: Any) -> Any:
        grads = [grad] if self.outputs == 1 else list(grad)
        if self.materialize_grads:
            grads = [_zeros(meta) if g is None and meta is not None else g
                     for g, meta in zip(grads, self.metas)]
        cls = self._forward_cls
        rule, vjp = cls.backward, cls.vjp
        if vjp is not unwritten[0]:
            if rule is not unwritten[0]:
                raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function "
                                   "is not allowed. You should only implement one of them.")
            rule = vjp
        produced = rule(self.context, grads) if cls.boxed_grads_call \
            else rule(self.context, *grads)
        if type(produced) is not tuple:
            produced = tuple(produced) if isinstance(produced, list) else (produced,)
        return self._per_edge(produced)

    def _per_edge(self, produced: tuple[Any, ...]) -> list[Any]:
        """Gradients of the tensor arguments, out of those of all arguments."""
        expected = len(self.is_tensor_input)
        if len(produced) > expected and all(p is None for p in produced[expected:]):
            produced = produced[:expected]
        if len(produced) != expected:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients "
                               f"(expected {expected}, got {len(produced)})")
        kept = []
        for i, (g, is_tensor) in enumerate(zip(produced, self.is_tensor_input)):
            if is_tensor:
                if g is not None and type(g) not in tensor_types:
                    raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
                kept.append(g)
            elif g is not None:
                raise RuntimeError(f"function {self.name()} returned a gradient different than "
                                   f"None at position {i + 1}, but the corresponding forward input "
                                   "was not a Variable")
        return kept

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept, if nobody wrote to it since."""
        if self._in_forward:
            return self.saved_for_forward or ()
        if self.saved is None:
            raise self._accessed_once or freed_error(self)
        found = tuple([unpack(self, i) for i in range(len(self.saved))])
        if self._forward_cls.clear_saved_tensors_on_access:
            self.saved, self._accessed_once = None, RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                "is set on the autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False.")
        return found

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning,
                      stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self.saved is None:
            raise freed_error(self)
        return tuple([SavedTensor.of(self, i) for i in range(len(self.saved))])

    def maybe_clear_saved_tensors(self) -> None:
        """Let go of what was saved for backward."""
        self.saved = None


class Context(FunctionCtx):
    """The node as the user's methods see it: their attributes live here, so that `ctx.shape` and
    `ctx.order` are theirs; what is not theirs is the node's."""

    __slots__ = ("__dict__", "_node")

    def __init__(self, node: BackwardNode):
        object.__setattr__(self, "_node", weakref.ref(node))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OF_THE_NODE:
            setattr(self._node(), name, value)
        else:
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._node()

    def __hash__(self) -> int:
        return hash(self._node())

    def __repr__(self) -> str:
        return repr(self._node())
_OF_THE_NODE = frozenset({"to_save", "saved_for_forward", "dirty_tensors", "non_differentiable",
                          "materialize_grads", "_materialize_non_diff_grads", "needs_input_grad"})
BackwardCFunction = BackwardNode


def _zeros(meta: Any) -> Tensor:
    from flambeau.core.dtypes import from_numpy_dtype
    from flambeau.ops.factory.create import zeros
    shape, array_type, like = meta
    if like is not None:
        return zeros_like(like)
    return zeros(shape, dtype=from_numpy_dtype(array_type))

FunctionCtx.__module__ = "torch.autograd.function"
BackwardNode.__name__, BackwardNode.__module__ = "BackwardCFunction", "torch.autograd.function"
