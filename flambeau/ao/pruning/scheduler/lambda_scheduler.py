"""Levels by a function of the step."""
from __future__ import annotations

from collections.abc import Callable

from flambeau.ao.pruning.scheduler.base_scheduler import BaseScheduler
from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The level that each group was made with, times a function of the step.

    Args:
        sparsifier: what has the groups.
        sl_lambda: the function, or one for each group.

    >>> from flambeau.ao.pruning import WeightNormSparsifier
    >>> sparsifier = WeightNormSparsifier(sparsity_level=0.5)
    >>> sparsifier.prepare(nn.Sequential(nn.Linear(4, 2)), config=None)
    >>> LambdaSL(sparsifier, lambda step: min(1, step / 10)).get_last_sl()
    [0.0]

    Raises:
        ValueError: there are more or fewer functions than groups.
    """

    def __init__(self, sparsifier: BaseSparsifier,
                 sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
                 last_epoch: int = -1, verbose: bool = False) -> None:
        count = len(sparsifier.groups)
        if isinstance(sl_lambda, list | tuple):
            if len(sl_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(sl_lambda)}")
            self.sl_lambdas = list(sl_lambda)
        else:
            self.sl_lambdas = [sl_lambda] * count
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The levels at `last_epoch`."""
        self._warn_outside_step()
        return [level * function(self.last_epoch)
                for level, function in zip(self.base_sl, self.sl_lambdas, strict=True)]
