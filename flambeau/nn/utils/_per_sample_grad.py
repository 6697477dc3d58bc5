"""Gradients of each sample of a batch by itself."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.func import functional_call, grad, vmap
from flambeau.utils._pytree import tree_leaves, tree_map


def call_for_per_sample_grads(module: nn.Module, *, batch_size: int | None = None,
                              loss_reduction: str = "sum", batch_first: bool = True
                              ) -> Callable[..., Any]:
    """A function that calls the module; its parameters then have the gradient of each sample, in
    `grad_sample`, when the gradient of what it gives is known.

    `loss_reduction` says whether the losses of samples are summed or averaged after that.

    >>> layer = nn.Linear(2, 1)
    >>> call_for_per_sample_grads(layer)(flambeau.ones(3, 2)).sum().backward()
    >>> layer.weight.grad_sample.shape
    torch.Size([3, 1, 2])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError("Expected loss_reduction argument to be sum or mean, got "
                           f"{loss_reduction}")
    if not isinstance(module, nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError("Batch size passed must be None or an integer, got "
                           f"{type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, p in module.named_parameters():
        if getattr(p, "grad_sample", None) is not None:
            raise RuntimeError("Current Expanded Weights accumulates the gradients, which will be "
                               "incorrect for multiple calls without clearing gradients. Please "
                               f"clear out the grad_sample parameter of {name} or post an issue "
                               "to pytorch/pytorch to prioritize correct behavior")
    axis = 0 if batch_first else 1

    @wraps(module.forward)
    def called(*args: Any, **kwargs: Any) -> Any:
        size = batch_size or _batch_size(args, kwargs, axis)
        named = dict(module.named_parameters())
        sizes = size if loss_reduction == "mean" else 1
        names = [name for name, p in named.items() if p.requires_grad]
        return _PerSample.apply(module, names, axis, size, sizes, args, kwargs,
                                *[named[name] for name in names],
                                *[t for t in tree_leaves((args, kwargs))
                                  if isinstance(t, Tensor)])
    return called


def _batch_size(args: Any, kwargs: Any, axis: int) -> int:
    found = {t.shape[axis] for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
    if not found:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. They may not be "
                           "pytree-able and so Expanded Weights cannot determine the batch size "
                           "from the inputs. Please pass the batch size explicitly")
    if len(found) > 1:
        raise RuntimeError("When computing batch size, found at least one input with a batch size "
                           f"of {max(found)} and one with a batch size of {min(found)}. Please "
                           "specify it explicitly using the batch size kwarg in "
                           "call_for_per_sample_grads")
    return found.pop()


class _PerSample(flambeau.autograd.Function):
    """A call of a module whose backward pass differentiates the call of each sample."""

    @staticmethod
    def forward(ctx: Any, module: nn.Module, names: list[str], axis: int, size: int, scale: int,
                args: Any, kwargs: Any, *tensors: Tensor) -> Any:
        ctx.call = module, names, axis, scale, args, kwargs
        ctx.save_for_backward(*tensors)
        return module(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        module, names, axis, scale, args, kwargs = ctx.call
        tensors = ctx.saved_tensors
        parameters, inputs = dict(zip(names, tensors)), tensors[len(names):]

        def product(own: dict[str, Tensor], given: Any, weight: Tensor) -> Tensor:
            batched = tree_map(lambda t: t.unsqueeze(axis) if isinstance(t, Tensor) else t, given)
            result = functional_call(module, own, batched[0], batched[1])
            return (result.squeeze(axis) * weight).sum()
        axes = tree_map(lambda t: axis if isinstance(t, Tensor) else None, (args, kwargs))
        each = vmap(grad(product), in_dims=(None, axes, axis))(
            parameters, (args, kwargs), grad_output)
        for name, p in module.named_parameters():
            if name in each:
                p.grad_sample = each[name] * scale
        with flambeau.enable_grad():
            needed = ctx.needs_input_grad[len(ctx.needs_input_grad) - len(inputs):]
            leaves = [t.detach().requires_grad_(need) for t, need in zip(inputs, needed)]
            rest = iter(leaves)
            again = tree_map(lambda t: next(rest) if isinstance(t, Tensor) else t, (args, kwargs))
            result = module(*again[0], **again[1])
            wanted = [t for t in leaves if t.requires_grad]
            found = iter(flambeau.autograd.grad(result, wanted, grad_output, allow_unused=True)
                         if wanted else ())
        return (*[None] * (7 + len(names)),
                *[next(found) if t.requires_grad else None for t in leaves])
