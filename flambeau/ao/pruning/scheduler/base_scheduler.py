"""What all schedulers of sparsity share: counting steps, and writing levels into the groups."""
from __future__ import annotations

import warnings
import weakref
from functools import wraps
from typing import Any

from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


def _counting(sparsifier: Any) -> None:
    """Let the sparsifier count its steps in `_step_count`."""
    if hasattr(sparsifier.step, "_with_counter"):
        return
    function, there = type(sparsifier).step, weakref.ref(sparsifier)

    @wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner = there()
        owner._step_count += 1
        return function(owner, *args, **kwargs)

    step._with_counter = True                           # type: ignore[attr-defined]
    sparsifier.step = step


class BaseScheduler:
    """The base of schedulers: a subclass says in `get_sl` what the levels of all groups are at
    `last_epoch`. `base_sl` has those that the sparsifier was made with.

    >>> from flambeau.ao.pruning import WeightNormSparsifier
    >>> class Halves(BaseScheduler):
    ...     def get_sl(self):
    ...         return [level * (1 - 0.5 ** self.last_epoch) for level in self.base_sl]
    >>> sparsifier = WeightNormSparsifier(sparsity_level=0.8)
    >>> sparsifier.prepare(nn.Sequential(nn.Linear(4, 2)), config=None)
    >>> scheduler = Halves(sparsifier)
    >>> for _ in range(2):
    ...     sparsifier.step()
    ...     scheduler.step()
    >>> round(sparsifier.groups[0]["sparsity_level"], 4)
    0.6
    """

    sparsifier: Any

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False):
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of "
                            "torch.ao.pruning.BaseSparsifier")
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        _counting(sparsifier)
        self._step_count = self.sparsifier._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self._last_sl: list[float] = []
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave. The levels of the groups change at the next step."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The levels that were set last."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The level of each group at `last_epoch`; `step` asks for them."""
        self._warn_outside_step()
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn("To get the last sparsity level computed by the scheduler, please use "
                          "`get_last_sl()`.", stacklevel=3)

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Say a level, if `is_verbose`."""
        if is_verbose:
            start = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{start} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return (f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n"
                f"    base_sl: {self.base_sl}\n)")

    def step(self, epoch: int | None = None) -> None:
        """Count a step, and set the levels of all groups."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warnings.warn("Seems like `sparsifier.step()` has been overridden after sparsity "
                              "scheduler initialization. Please, make sure to call "
                              "`sparsifier.step()` before `scheduler.step()`.", stacklevel=2)
            elif self.sparsifier._step_count < 1:
                warnings.warn("Detected call of `scheduler.step()` before `sparsifier.step()`. "
                              "You have to make sure you run the sparsifier.step() BEFORE any "
                              "calls to the scheduler.step().", stacklevel=2)
        self._step_count += 1
        self.last_epoch += 1
        self._get_sl_called_within_step = True
        try:
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for number, (group, level) in enumerate(zip(self.sparsifier.groups, levels, strict=True)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, number, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        """One value for each group."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, list | tuple):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
