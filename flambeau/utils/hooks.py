"""Handles for hooks."""
from __future__ import annotations

from typing import Any

from flambeau.core.autograd.hooks import RemovableHandle


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that cannot be pickled with its tensor."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that pickling drops the hooks of `tensor`, unless they say that they may be dropped."""
    hooks = tensor._backward_hooks
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            import warnings
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                          "expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)


class BackwardHook:
    """Makes hooks on a module's gradients out of two identity ops around its call.

    One is put at the module's inputs, one at its outputs; when gradients have passed the second and
    the first, `user_hooks(module, grad_input, grad_output)` are called, and may replace them.
    """

    def __init__(self, module: Any, user_hooks: Any, user_pre_hooks: Any):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = self.n_outputs = -1
        self.input_places: list[int] = []
        self.output_places: list[int] = []

    def _identity(self, args: tuple[Any, ...], register: Any) -> tuple[Any, list[int]]:
        from flambeau import Tensor, is_grad_enabled
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        tensors = [args[i] for i in places]
        if not is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return args, []
        passed = _Identity.apply(*tensors)
        passed = passed if isinstance(passed, tuple) else (passed,)
        nodes = [t.grad_fn for t in passed if t.grad_fn is not None]
        register(nodes[0])
        replaced = list(args)
        for place, tensor in zip(places, passed):
            replaced[place] = tensor
        return tuple(replaced), places

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs, observed."""
        def register(node: Any) -> None:
            node.register_hook(self._at_inputs)
        self.n_inputs = len(args)
        observed, self.input_places = self._identity(args, register)
        return observed

    def setup_output_hook(self, args: Any) -> Any:
        """The outputs, observed."""
        single = not isinstance(args, tuple)
        given = (args,) if single else args

        def register(node: Any) -> None:
            node.register_prehook(self._at_outputs)
        self.n_outputs = len(given)
        observed, self.output_places = self._identity(given, register)
        return observed[0] if single else observed

    def _spread(self, values: Any, places: list[int], size: int) -> tuple[Any, ...]:
        found: list[Any] = [None] * size
        for place, value in zip(places, values):
            found[place] = value
        return tuple(found)

    def _at_outputs(self, grad_outputs: tuple[Any, ...]) -> Any:
        grads = self._spread(grad_outputs, self.output_places, self.n_outputs)
        for hook in self.user_pre_hooks:
            answer = hook(self.module, grads)
            if answer is not None:
                answer = answer if isinstance(answer, tuple) else (answer,)
                if len(answer) != len(grads):
                    raise RuntimeError("Backward pre hook returned an invalid number of "
                                       f"grad_output, got {len(answer)}, but expected {len(grads)}")
                grads = answer
        self.grad_outputs = grads
        if not self.input_places and self.user_hooks:
            # no input requires grad: the hooks see the outputs only
            nothing = self._spread([], [], max(self.n_inputs, 0))
            for hook in self.user_hooks:
                if hook(self.module, nothing, grads) is not None:
                    raise RuntimeError("Backward hook for Modules where no input requires gradient "
                                       "should always return None or None for all gradients.")
            self.grad_outputs = None
        return tuple(grads[i] for i in self.output_places)

    def _at_inputs(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None:
            raise RuntimeError("Module backward hook for grad_input is called before the "
                               "grad_output one. This happens because the gradient in your "
                               "nn.Module flows to the Module's input without passing through the "
                               "Module's output. Make sure that the output depends on the input "
                               "and that the loss is computed based on the output.")
        grads = self._spread(grad_inputs, self.input_places, self.n_inputs)
        for hook in self.user_hooks:
            answer = hook(self.module, grads, self.grad_outputs)
            if answer is not None:
                answer = answer if isinstance(answer, tuple) else (answer,)
                if len(answer) != len(grads):
                    raise RuntimeError("Backward hook returned an invalid number of grad_input, "
                                       f"got {len(answer)}, but expected {len(grads)}")
                grads = answer
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_places)


def _make_identity() -> Any:
    from flambeau.autograd.function import Function

    class BackwardHookFunction(Function):
        """Passes tensors through, so that hooks can be put on the node."""

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
            return args

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads
    return BackwardHookFunction


_Identity = _make_identity()
__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
