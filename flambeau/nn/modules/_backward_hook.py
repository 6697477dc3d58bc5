"""The barrier through which gradients enter and leave a module that has full backward hooks.

Two identity nodes are put into the graph, one before the module's inputs and one after its
outputs. A hook on the outer node learns the gradient of the outputs, a hook on the inner node the
gradient of the inputs; with both, the user's hook is called.
"""

import warnings

import flambeau
from flambeau import Tensor
from flambeau.autograd.function import Function


class BackwardHookFunction(Function):
    """Pass all arguments on, as one node."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """Full backward hooks and pre-hooks of one call of `module`."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_outputs = -1
        self.output_positions = None
        self.n_inputs = -1
        self.input_positions = None

    @staticmethod
    def _spread(positions, values, size):
        """A tuple of `size` Nones, with `values` at `positions`."""
        spread = [None] * size
        for position, value in zip(positions, values):
            spread[position] = value
        return tuple(spread)

    @staticmethod
    def _replaced(seen, answer, what):
        """The gradients that a hook puts in the place of those that it has seen."""
        if answer is None:
            return seen
        if len(answer) != len(seen):
            raise RuntimeError(f"Backward {what}, got {len(answer)}, but expected {len(seen)}")
        return answer

    def _through_identity(self, attach, args):
        """`args` with its tensors sent through one identity node that `attach` puts hooks on."""
        positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[i] for i in positions]
        if not (flambeau.is_grad_enabled() and any(t.requires_grad for t in tensors)):
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

    def setup_input_hook(self, args):
        def attach(node):
            node.register_hook(hook)

        def hook(grad_input, _):
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

    def setup_output_hook(self, outputs):
        def attach(node):
            node.register_prehook(hook)

        def hook(grad_output):
            seen = self._spread(self.output_positions, grad_output, self.n_outputs)
            for user_hook in self.user_pre_hooks:
                seen = self._replaced(seen, user_hook(self.module, seen),
                                      "pre hook returned an invalid number of grad_output")
            self.grad_outputs = seen
            grads = tuple(seen[position] for position in self.output_positions)
            if self.input_positions is None:
                self._fire_without_inputs()
            return grads if self.user_pre_hooks else None

        is_tuple = isinstance(outputs, tuple)
        values, positions = self._through_identity(attach, outputs if is_tuple else (outputs,))
        self.n_outputs = len(values)
        self.output_positions = positions
        return values if is_tuple else values[0]

    def _fire_without_inputs(self):
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
