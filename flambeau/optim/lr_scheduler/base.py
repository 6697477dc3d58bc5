"""What all schedulers share: counting steps, setting learning rates, saving and loading."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from weakref import ref

from flambeau import Tensor
from flambeau.optim.optimizer import Optimizer

_HOW_TO = ("See more details at "
           "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate")

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose.")


class LRScheduler:
    """Base of the schedulers, which set the learning rates of an optimiser's groups.

    A subclass implements `get_lr`, which gives the learning rates for step `self.last_epoch`,
    from the ones that the groups have now, so that several schedulers can work on one optimiser.
    It may give a closed form from `self.base_lrs` too, as `_get_closed_form_lr`.

    Args:
        optimizer: the optimiser.
        last_epoch: the last step that was taken before; -1 to start anew.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_of(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)")
        self.optimizer = optimizer
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first learning rates."""
        self._step_count = 0
        with initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser, as a dict."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that this scheduler set last, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates for step `last_epoch`; called by `step`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step, and set its learning rates.

        Call it after `optimizer.step()`. Giving `epoch` is deprecated.
        """
        if self._step_count == 1:
            _check_order(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True      # as in `allow_get_lr`, at less cost
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed_form()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(values)

    def _set_lrs(self, values: Iterable[Any]) -> None:
        last = []
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_option(group, "lr", value)
            last.append(copy_of(group["lr"]))
        self._last_lr = last

    def _lrs(self) -> list[Any]:
        """The learning rates that the groups have now."""
        return values_of(self.optimizer, "lr")

    def _check_within_step(self) -> None:
        warn_outside_of_step(self)


class _LRScheduler(LRScheduler):
    """An older name of :class:`LRScheduler`."""


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise TypeError unless it is an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copy_of(value: Any) -> Any:
    """The value itself, or a copy if it is a tensor, since those are changed in place."""
    return value.clone() if type(value) is not float and isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set a group's option; one that is a tensor is filled."""
    if type(group[name]) is not float and isinstance(group[name], Tensor):
        group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def values_of(optimizer: Optimizer, key: Any) -> list[Any]:
    """An option's value in each group."""
    return [copy_of(group[key]) for group in optimizer.param_groups]


def per_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group: a list as it is, after a check of its length, or a copy each."""
    groups = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != groups:
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} "
                             f"has {len(value)} values, param_groups has {groups}.")
        return list(value)
    return [value] * groups


def warn_outside_of_step(scheduler: LRScheduler) -> None:
    """Warn a user who calls `get_lr`, which is for `step` to call."""
    if not scheduler._get_lr_called_within_step:
        warnings.warn("To get the last learning rate computed by the scheduler, please use "
                      "`get_last_lr()`.", UserWarning, stacklevel=4)


@contextmanager
def initial_mode(scheduler: LRScheduler) -> Iterator[None]:
    """Inside, the scheduler's step is the first one, taken when it is made."""
    scheduler._is_initial = True
    try:
        yield
    finally:
        scheduler._is_initial = False


@contextmanager
def allow_get_lr(scheduler: LRScheduler) -> Iterator[None]:
    """Let `get_lr` run without the warning that it gives to users who call it."""
    scheduler._get_lr_called_within_step = True
    try:
        yield
    finally:
        scheduler._get_lr_called_within_step = False


def callable_state(function: Any) -> dict[str, Any] | None:
    """What to save of a callable: the attributes of an object, nothing of a function."""
    is_object = function is not None and not hasattr(function, "__code__")
    return function.__dict__.copy() if is_object and hasattr(function, "__dict__") else None


def _note_steps(optimizer: Optimizer) -> None:
    """Have the optimiser remember that its `step` was called."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step: Any = optimizer.step
    function, owner = step.__func__, ref(optimizer)

    @wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        optimizer: Any = owner()
        optimizer._opt_called = True
        return function(optimizer, *args, **kwargs)

    noting._wrapped_by_lr_sched = True                              # type: ignore[attr-defined]
    optimizer.step = noting


def _check_order(optimizer: Optimizer) -> None:
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
            "initialization. Please, make sure to call `optimizer.step()` before "
            f"`lr_scheduler.step()`. {_HOW_TO}", UserWarning, stacklevel=3)
    elif not getattr(optimizer, "_opt_called", False):
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 "
            "and later, you should call them in the opposite order: `optimizer.step()` before "
            "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
            f"value of the learning rate schedule. {_HOW_TO}", UserWarning, stacklevel=3)
