"""Handles for hooks, and hooks of modules made of hooks of nodes."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.function import Function
from flambeau.core.autograd.hooks import RemovableHandle
from flambeau.core.modes import grad_enabled
from flambeau.core.tensor import Tensor


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that cannot be pickled with its tensor."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that pickling drops the hooks of `tensor`, unless they say that they may be dropped."""
    hooks = tensor._backward_hooks
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                          "expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)


class BackwardHookFunction(Function):
    """Passes all arguments on, as one node."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """Full backward hooks and pre-hooks of one call of `module`: a barrier through which gradients
    enter and leave it.

    Two identity nodes are put into the graph, one before the module's inputs and one after its
    outputs. A hook on the outer node learns the gradient of the outputs, a hook on the inner node
    the gradient of the inputs; with both, `user_hooks(module, grad_input, grad_output)` are called,
    and may replace them.
    """

    def __init__(self, module: Any, user_hooks: Any, user_pre_hooks: Any):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_outputs = self.n_inputs = -1
        self.output_positions: list[int] | None = None
        self.input_positions: list[int] | None = None

    @staticmethod
    def _spread(positions: list[int], values: Any, size: int) -> tuple[Any, ...]:
        """A tuple of `size` Nones, with `values` at `positions`."""
        spread: list[Any] = [None] * size
        for position, value in zip(positions, values):
            spread[position] = value
        return tuple(spread)

    @staticmethod
    def _replaced(seen: Any, answer: Any, what: str) -> Any:
        """The gradients that a hook puts in the place of those that it has seen."""
        if answer is None:
            return seen
        if len(answer) != len(seen):
            raise RuntimeError(f"Backward {what}, got {len(answer)}, but expected {len(seen)}")
        return answer

    def _through_identity(self, attach: Callable[[Any], None], args: Any
                          ) -> tuple[Any, list[int] | None]:
        """`args` with its tensors sent through one identity node that `attach` puts hooks on."""
        positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[i] for i in positions]
        if not (grad_enabled() and any(t.requires_grad for t in tensors)):
            return args, None
        new = BackwardHookFunction.apply(*tensors)
        if not new:
            raise RuntimeError(
                "Cannot set Module backward hook for a Module with no input Tensors.")
        nodes = [node for node in (t.grad_fn for t in new)
                 if node is not None and node.name() == "BackwardHookFunctionBackward"]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks. Please open "
                               "an issue with a code sample to reproduce this.")
        attach(nodes[0])
        changed = list(args)
        for position, tensor in zip(positions, new):
            changed[position] = tensor
        if type(args) is tuple:
            return tuple(changed), positions
        return type(args)(*changed), positions  # a named tuple

    def setup_input_hook(self, args: Any) -> Any:
        """The inputs, observed."""
        def attach(node: Any) -> None:
            node.register_hook(hook)

        def hook(grad_input: Any, _: Any) -> Any:
            if self.grad_outputs is None:
                return None  # the outputs were not used: there is no grad_output to show
            seen = self._spread(self.input_positions, grad_input, self.n_inputs)
            for user_hook in self.user_hooks:
                seen = self._replaced(seen, user_hook(self.module, seen, self.grad_outputs),
                                      "hook returned an invalid number of grad_input")
            self.grad_outputs = None
            return tuple(seen[position] for position in self.input_positions)

        args, positions = self._through_identity(attach, args)
        self.n_inputs = len(args)
        self.input_positions = positions
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """The outputs, observed."""
        def attach(node: Any) -> None:
            node.register_prehook(hook)

        def hook(grad_output: Any) -> Any:
            seen = self._spread(self.output_positions, grad_output, self.n_outputs)
            for user_hook in self.user_pre_hooks:
                seen = self._replaced(seen, user_hook(self.module, seen),
                                      "pre hook returned an invalid number of grad_output")
            self.grad_outputs = seen
            grads = tuple(seen[position] for position in self.output_positions)
            if self.input_positions is None:
                self._fire_without_inputs()
            return grads if self.user_pre_hooks else None

        is_tuple = isinstance(args, tuple)
        values, positions = self._through_identity(attach, args if is_tuple else (args,))
        self.n_outputs = len(values)
        self.output_positions = positions
        return values if is_tuple else values[0]

    def _fire_without_inputs(self) -> None:
        """No input requires grad: the hooks run when the gradient of the outputs is known."""
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients. See https://docs.pytorch.org/docs/main/"
                "generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook "
                "for more details.", stacklevel=5)
        nothing = (None,) * self.n_inputs
        for hook in self.user_hooks:
            result = hook(self.module, nothing, self.grad_outputs)
            is_nothing = result is None or (
                isinstance(result, tuple) and all(grad is None for grad in result))
            if not is_nothing:
                raise RuntimeError("Backward hook for Modules where no input requires gradient "
                                   "should always return None or None for all gradients.")
        self.grad_outputs = None


__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
