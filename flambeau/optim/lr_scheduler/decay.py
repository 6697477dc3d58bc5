"""Schedulers that let the learning rate fall, or rise, once."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any

from flambeau._support.own_methods import define_in_subclasses
from flambeau.optim.lr_scheduler.base import LRScheduler, callable_state
from flambeau.optim.optimizer import Optimizer

__all__ = ["ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR",
           "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR"]


@define_in_subclasses("get_lr", further=True)
class _Factors(LRScheduler):
    """A scheduler that multiplies the learning rates by a factor that depends on the step."""

    def _factor(self) -> float:
        """The learning rate of step `last_epoch`, relative to that of the step before."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        factor = self._factor()
        return [lr * factor for lr in self._lrs()]


class _ClosedForm(_Factors):
    """One whose learning rates are known multiples of the first ones at each step, too."""

    def _closed_factor(self) -> float:
        """The learning rate of step `last_epoch`, relative to the first one."""
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._closed_factor()
        return [base * factor for base in self.base_lrs]


@define_in_subclasses("__init__", "state_dict", "load_state_dict")
class _Lambdas(LRScheduler):
    """A scheduler that is given by functions of the step, one for all groups or one for each."""

    _checks_functions = False

    def __init__(self, optimizer: Optimizer,
                 lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
                 last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        wrong = [function for function in self.lr_lambdas if not callable(function)]
        if wrong and self._checks_functions:
            raise TypeError(f"lr_lambda should be a function, but got {type(wrong[0]).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser; of the functions only those that are objects."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [callable_state(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        rest = {name: value for name, value in state_dict.items() if name != "lr_lambdas"}
        super().load_state_dict(rest)
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_Lambdas):
    r"""The first learning rate times a function of the step: :math:`\gamma_t = f(t)\,\gamma_0`.

    Args:
        optimizer: the optimiser.
        lr_lambda: the function, or a list with one for each group.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (t + 1))
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        return [base * function(self.last_epoch)
                for base, function in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_Lambdas):
    r"""Multiplies the learning rate by a function: :math:`\gamma_t = f(t)\,\gamma_{t-1}`.

    Args:
        optimizer: the optimiser.
        lr_lambda: the function, or a list with one for each group.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda t: 0.5)
        >>> for _ in range(2):
        ...     optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    _checks_functions = True

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        if self._is_initial:
            return self._lrs()
        return [lr * function(self.last_epoch)
                for lr, function in zip(self._lrs(), self.lr_lambdas, strict=True)]


class StepLR(_ClosedForm):
    r"""Multiplies the learning rate by `gamma` every `step_size` steps.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return 1
        return self.gamma

    def _closed_factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_ClosedForm):
    r"""Multiplies the learning rate by `gamma` at each of the given steps.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
        >>> for _ in range(2):
        ...     optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, milestones: list[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch not in self.milestones:
            return 1
        return self.gamma ** self.milestones[self.last_epoch]

    def _closed_factor(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_ClosedForm):
    r"""Multiplies the learning rate by `factor` for the first `total_iters` steps.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        if self.last_epoch != self.total_iters:
            return 1
        return 1.0 / self.factor

    def _closed_factor(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_ClosedForm):
    r"""Lets the factor of the learning rate go linearly from one value to another.

    .. math::
        \gamma_t = \gamma_0 \Big(a + (b - a)\, \frac{\min(t, T)}{T}\Big)

    Args:
        optimizer: the optimiser.
        start_factor, end_factor: :math:`a` and :math:`b`.
        total_iters: :math:`T`.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.75]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and "
                             "less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _closed_factor(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_ClosedForm):
    r"""Multiplies the learning rate by `gamma` at every step: :math:`\gamma_t = g^t \gamma_0`.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _closed_factor(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_ClosedForm):
    r"""Lets the learning rate fall to 0 along a power of the remaining steps.

    .. math::
        \gamma_t = \gamma_0 \Big(1 - \frac{\min(t, T)}{T}\Big)^{power}

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5625]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        t, total = self.last_epoch, self.total_iters
        if self._is_initial or t > total:
            return 1
        return ((1.0 - t / total) / (1.0 - (t - 1) / total)) ** self.power

    def _closed_factor(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    r"""Lets the learning rate fall to `eta_min` along half a period of the cosine.

    .. math::
        \gamma_t = \eta_{min} + \tfrac12 (\gamma_0 - \eta_{min})
            \Big(1 + \cos\frac{t\,\pi}{T_{max}}\Big)

    After `T_max` steps it rises again in the same way. Loshchilov and Hutter, *SGDR: stochastic
    gradient descent with warm restarts* (2016), arXiv:1608.03983, without the restarts.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        t, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._lrs()
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - period) % (2 * period) == 0:
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - low) * rise
                    for base, lr in zip(self.base_lrs, self._lrs(), strict=True)]
        change = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [change * (lr - low) + low for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]
