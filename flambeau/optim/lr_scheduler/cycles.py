"""Schedulers that let the learning rate rise and fall."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau.optim.lr_scheduler.base import (
    LRScheduler,
    allow_get_lr,
    callable_state,
    check_optimizer,
    per_group,
    set_option,
)
from flambeau.optim.optimizer import Optimizer


def _cosine(start: Any, end: float, share: float) -> Any:
    """From start to end along half a period of the cosine."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _line(start: float, end: float, share: float) -> Any:
    return (end - start) * share + start


def check_anneal_strategy(name: str) -> Callable[[Any, Any, float], Any]:
    """The function that goes from a start to an end, by its name."""
    if name not in ("cos", "linear"):
        raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {name}")
    return _cosine if name == "cos" else _line


class _Momentum(LRScheduler):
    """A scheduler that can move the momentum against the learning rate."""

    def _find_momentum(self, optimizer: Optimizer) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            set_option(group, "momentum", momentum)


class CyclicLR(_Momentum):
    r"""Lets the learning rate go up and down between two bounds.

    It goes linearly from `base_lr` to `max_lr` in `step_size_up` steps and back in
    `step_size_down`. The height of the cycles changes as `mode` says: `"triangular"` not at all,
    `"triangular2"` by half each cycle, `"exp_range"` by the factor `gamma` each step; or as
    `scale_fn` says, a function of the number of the cycle (from 1) or of the step.

    Smith, *Cyclical learning rates for training neural networks* (2015), arXiv:1506.01186.

    Args:
        optimizer: the optimiser.
        base_lr, max_lr: the bounds, or lists with one for each group.
        step_size_up, step_size_down: lengths of the two halves; equal by default.
        mode, gamma, scale_fn: see above.
        scale_mode: `"cycle"` or `"iterations"`: what `scale_fn` is a function of.
        cycle_momentum: whether the momentum moves too, from `max_momentum` down to
            `base_momentum` as the learning rate goes up.
        base_momentum, max_momentum: its bounds, or lists with one for each group.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(
        ...     optimizer, 0.25, 0.75, step_size_up=2, cycle_momentum=False)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float],
                 max_lr: float | list[float], step_size_up: float = 2000,
                 step_size_down: float | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else (
            "cycle" if scale_fn is None else scale_mode)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(self.max_momentums, self.base_momentums,
                                            optimizer.param_groups, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of the cycle: of cycle `x`, or at step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        ratio = self.step_ratio
        share = x / ratio if x <= ratio else (x - 1) / (ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums,
                                        self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high - (high - low) * share * scale)
        return [low + (high - low) * share * scale
                for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser; of `scale_fn` only what an object holds."""
        state = super().state_dict()
        del state["_scale_fn_custom"]
        state["_scale_fn_custom"] = callable_state(self._scale_fn_custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        rest = dict(state_dict)
        saved = rest.pop("_scale_fn_custom")
        super().load_state_dict(rest)
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(_Momentum):
    r"""One rise of the learning rate to `max_lr`, and one fall to nearly nothing.

    The learning rate starts at `max_lr / div_factor`, rises for the first `pct_start` of all
    steps, and falls to the `final_div_factor`-th part of where it started; with `three_phase` it
    first falls back to the start, as long as it rose, and then to the end. The momentum moves
    against it. Step it after every batch.

    Smith and Topin, *Super-convergence: very fast training of neural networks using large
    learning rates* (2017), arXiv:1708.07120.

    Args:
        optimizer: the optimiser.
        max_lr: the highest learning rate, or a list with one for each group.
        total_steps: the number of steps; or give `epochs` and `steps_per_epoch`.
        pct_start, div_factor, final_div_factor, three_phase: see above.
        anneal_strategy: `"cos"` or `"linear"`, the shape of the rise and the fall.
        cycle_momentum: whether the momentum moves, from `max_momentum` to `base_momentum`.
        base_momentum, max_momentum: its bounds, or lists with one for each group.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=4, pct_start=0.5)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [1.0]
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float],
                 total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float = 0.85, max_momentum: float = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        rise_ends = float(pct_start * self.total_steps) - 1
        phases = [(rise_ends, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases += [
                (float(2 * pct_start * self.total_steps) - 2,
                 "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            phases += [(self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        names = "end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"
        self._schedule_phases: list[dict[str, Any]] = [
            dict(zip(names, phase, strict=True)) for phase in phases]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        check_anneal_strategy(anneal_strategy)
        self._anneal_func_type = anneal_strategy
        self._set_bounds(per_group("max_lr", max_lr, optimizer), div_factor, final_div_factor,
                         last_epoch)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            highs = per_group("max_momentum", max_momentum, optimizer)
            lows = per_group("base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(highs, lows, optimizer.param_groups, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _set_bounds(self, max_lrs: list[float], div_factor: float, final_div_factor: float,
                    last_epoch: int) -> None:
        if last_epoch != -1:
            return
        for group, max_lr in zip(self.optimizer.param_groups, max_lrs, strict=True):
            group["initial_lr"] = max_lr / div_factor
            group["max_lr"] = max_lr
            group["min_lr"] = group["initial_lr"] / final_div_factor

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is "
                             f"{self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        share = (step - start) / (end - start)
        anneal = check_anneal_strategy(self._anneal_func_type)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                self._set_momentum(group, anneal(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], share))
        return lrs


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    def positive(name: str, value: int) -> int:
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total_steps is not None:
        return positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Lets the learning rate fall along half a cosine, again and again.

    .. math::
        \gamma_t = \eta_{min} + \tfrac12 (\gamma_0 - \eta_{min})
            \Big(1 + \cos\frac{T_{cur}\,\pi}{T_i}\Big)

    where :math:`T_{cur}` counts the steps since the last restart. The first period
    :math:`T_i` is `T_0`, each further one `T_mult` times as long. Loshchilov and Hutter, *SGDR:
    stochastic gradient descent with warm restarts* (2016), arXiv:1608.03983.

    Example::

        >>> import flambeau as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(2):
        ...     optimizer.step(); scheduler.step(); print(scheduler.get_last_lr())
        [0.5]
        [1.0]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next step, or to the given one, which may be fractional.

        A fraction is useful to step after each batch: `step(epoch + batch / batches)`.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._enter_period(epoch)
        self.last_epoch = math.floor(epoch)
        with allow_get_lr(self):
            values = self.get_lr()
        self._set_lrs(values)

    def _enter_period(self, epoch: float) -> None:
        """Find the period that holds `epoch`, and how far into it that is."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
