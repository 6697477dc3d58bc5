"""Optimizer steps over lists of tensors as ops of PyTorch's dispatcher: `_fused_adam_`, ….

Gradients are divided by `grad_scale` in place, and nothing is done where `found_inf` is not 0.
`state_steps` count the step that is being made.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.dispatch.aten.functions import defines

Tensors = Sequence[Tensor]


def _gradients(params: Tensors, grads: Tensors, weight_decay: float, maximize: bool,
               grad_scale: Tensor | None, found_inf: Tensor | None) -> Iterator[Tensor]:
    """The direction of each parameter's descent, with the gradient of its decay."""
    if found_inf is not None and bool(found_inf):
        return
    for param, grad in zip(params, grads):
        if grad_scale is not None:
            grad.div_(grad_scale)
        grad = -grad if maximize else grad
        yield grad.add(param, alpha=weight_decay) if weight_decay else grad


@defines("_fused_sgd_")
@flambeau.no_grad()
def _sgd(self: Tensors, grads: Tensors, momentum_buffer_list: Tensors, *, weight_decay: float,
         momentum: float, lr: Any, dampening: float, nesterov: bool, maximize: bool,
         is_first_step: bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None
         ) -> None:
    directions = _gradients(self, grads, weight_decay, maximize, grad_scale, found_inf)
    for n, direction in enumerate(directions):
        if momentum:
            buffer = momentum_buffer_list[n]
            if is_first_step:
                buffer.copy_(direction)
            else:
                buffer.mul_(momentum).add_(direction, alpha=1 - dampening)
            direction = direction.add(buffer, alpha=momentum) if nesterov else buffer
        self[n].sub_(direction * lr)


@flambeau.no_grad()
def _adam(decoupled: bool, self: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
          max_exp_avg_sqs: Tensors, state_steps: Tensors, *, lr: Any, beta1: float, beta2: float,
          weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
          grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    directions = _gradients(self, grads, 0.0 if decoupled else weight_decay, maximize, grad_scale,
                            found_inf)
    for n, direction in enumerate(directions):
        param, mean, square, step = self[n], exp_avgs[n], exp_avg_sqs[n], state_steps[n].item()
        if decoupled:
            param.mul_(1 - lr * weight_decay)
        mean.lerp_(direction, 1 - beta1)
        square.mul_(beta2).addcmul_(direction, direction, value=1 - beta2)
        if amsgrad:
            largest = max_exp_avg_sqs[n]
            square = largest.copy_(flambeau.maximum(largest, square))
        width = (square / (1 - beta2 ** step)).sqrt_().add_(eps)
        param.sub_(mean / width * (lr / (1 - beta1 ** step)))


defines("_fused_adam_")(partial(_adam, False))
defines("_fused_adamw_")(partial(_adam, True))


@defines("_fused_adagrad_")
@flambeau.no_grad()
def _adagrad(self: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors, *, lr: Any,
             lr_decay: float, weight_decay: float, eps: float, maximize: bool,
             grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    directions = _gradients(self, grads, weight_decay, maximize, grad_scale, found_inf)
    for n, direction in enumerate(directions):
        total = state_sums[n].addcmul_(direction, direction)
        rate = lr / (1 + (state_steps[n].item() - 1) * lr_decay)
        self[n].sub_(direction / (total.sqrt() + eps) * rate)


def _functional(step: Callable[..., None], written: int) -> Callable[..., tuple[list[Tensor], ...]]:
    """The step on copies of its first `written` lists, which it gives."""
    def run(*lists: Tensors, **options: Any) -> tuple[list[Tensor], ...]:
        copies = [[x.clone() for x in tensors] for tensors in lists[:written]]
        step(*copies, *lists[written:], **options)
        return tuple(copies)
    return run


defines("_fused_sgd")(_functional(_sgd, 3))
defines("_fused_adam")(_functional(partial(_adam, False), 5))
defines("_fused_adamw")(_functional(partial(_adam, True), 5))
defines("_fused_adagrad")(_functional(_adagrad, 4))
