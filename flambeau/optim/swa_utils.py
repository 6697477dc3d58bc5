"""Averages of a model's weights over training: stochastic weight averaging, moving averages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import copy_inherited, shown_as
from flambeau.nn import Module
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.optim.lr_scheduler.base import LRScheduler, per_group
from flambeau.optim.lr_scheduler.cycles import check_anneal_strategy
from flambeau.optim.optimizer import Optimizer
from flambeau.utils._foreach_utils import (  # noqa: F401
    _get_foreach_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]

PARAM_LIST = tuple[Tensor, ...] | list[Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The exponential moving average `decay * average + (1 - decay) * current`."""
    _check_decay(decay)

    @flambeau.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The mean of all models so far: `average + (current - average) / (count + 1)`."""

    @flambeau.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """:func:`get_ema_avg_fn` for lists of tensors, in place."""
    _check_decay(decay)
    return _multi(get_ema_avg_fn(decay), lambda count: 1 - decay,
                  "get_ema_multi_avg_fn.<locals>.ema_update")


def get_swa_multi_avg_fn() -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """:func:`get_swa_avg_fn` for lists of tensors, in place."""
    return _multi(get_swa_avg_fn(), lambda count: 1 / (float(count) + 1),
                  "get_swa_multi_avg_fn.<locals>.swa_update")


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _multi(average: Callable[[Tensor, Tensor, Any], Tensor],
           weight: Callable[[Any], float], shown: str
           ) -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """An average of lists, by `average` one by one, or with the `weight` of the present values."""
    @flambeau.no_grad()
    @shown_as(shown)
    def update(averaged_params: list[Tensor], current_params: list[Tensor],
               num_averaged: Any) -> None:
        if averaged_params and all(p.is_floating_point() or p.is_complex()
                                   for p in averaged_params):
            flambeau._foreach_lerp_(averaged_params, current_params, weight(num_averaged))
            return
        for averaged, current in zip(averaged_params, current_params, strict=True):
            averaged.copy_(average(averaged, current, num_averaged))

    return update


class AveragedModel(Module):
    r"""A copy of a model that holds an average of the weights that the model has had.

    Call :meth:`update_parameters` after an optimiser's step, or after an epoch. By default it
    averages equally (Izmailov et al., *Averaging weights leads to wider optima and better
    generalization*, 2018, arXiv:1803.05407); with `get_ema_multi_avg_fn` it takes an
    exponential moving average (Polyak and Juditsky 1992).

    Args:
        model: the model.
        device: where to keep the average; by default where the model is.
        avg_fn: function of average, current value and count that gives the new average.
        multi_avg_fn: function of lists of averages and current values, and the count, that
            updates the averages in place.
        use_buffers: average the buffers too, rather than copy them.

    Example::

        >>> import flambeau as torch
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> average = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = model.weight.data.fill_(value)
        ...     average.update_parameters(model)
        >>> average.module.weight.item()
        3.0
    """

    def __init__(self, model: Module, device: flambeau.device | int | str | None = None,
                 avg_fn: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
                 multi_avg_fn: Callable[[list[Tensor], list[Tensor], Tensor], None] | None = None,
                 use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer(
            "n_averaged", flambeau.tensor(0, dtype=flambeau.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present weights of the model into the average."""
        averages = [p.detach() for p in self._averaged(self.module)]
        current = [p.detach().to(average.device)
                   for p, average in zip(self._averaged(model), averages, strict=True)]
        if self.n_averaged == 0:
            for average, value in zip(averages, current, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, current, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update(averages, current, self.n_averaged)
        if not self.use_buffers:
            for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(value.detach())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()


@flambeau.no_grad()
def update_bn(loader: Iterable[Any], model: Module,
              device: flambeau.device | int | str | None = None) -> None:
    """Compute the batch norms' running statistics of a model anew, in one pass over data.

    An averaged model needs it, since nothing ever ran through it. An item of the loader is an
    input, or a list or tuple that starts with one.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.momentum = None   # so that the running statistics become equal means
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


@copy_inherited("state_dict", "load_state_dict")
class SWALR(LRScheduler):
    r"""Takes the learning rate to a fixed value, at which weights are then averaged.

    Args:
        optimizer: the optimiser.
        swa_lr: the value, or a list with one for each group.
        anneal_epochs: how many steps it takes to get there.
        anneal_strategy: `"cos"` or `"linear"`.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(
        ...     optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.75]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
                 anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        for lr, group in zip(per_group("swa_lr", swa_lr, optimizer), optimizer.param_groups,
                             strict=True):
            group["swa_lr"] = lr
        check_anneal_strategy(anneal_strategy)
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        lrs = []
        for group in self.optimizer.param_groups:
            target, lr = group["swa_lr"], group["lr"]
            if isinstance(lr, Tensor):
                lr = lr.clone()
            start = target if before == 1 else (lr - before * target) / (1 - before)
            lrs.append(target * now + start * (1 - now))
        return lrs

    def _share(self, step: float) -> float:
        """How much of the way to `swa_lr` is gone after a number of steps."""
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return check_anneal_strategy(self._anneal_strategy)(0.0, 1.0, share)
