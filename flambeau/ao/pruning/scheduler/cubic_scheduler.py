"""Levels that rise fast at first and slowly at last."""
from __future__ import annotations

from typing import Any

from flambeau.ao.pruning.scheduler.base_scheduler import BaseScheduler
from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    r"""From `init_sl` to the level that each group was made with, by a cubic.

    .. math:: s_t = s_f + (s_0 - s_f) \left(1 - \frac{t - t_0}{n\,\Delta t}\right)^3

    for :math:`t_0 \le t \le t_0 + n\,\Delta t`, :math:`s_f` afterwards. Zhu and Gupta, To prune, or
    not to prune, 2017.

    Args:
        sparsifier: what has the groups.
        init_sl: :math:`s_0`. It and all that follow are one value, or one for each group.
        init_t: :math:`t_0`.
        delta_t: :math:`\Delta t`.
        total_t: n.
        initially_zero: is the level 0 before :math:`t_0`? Else it is :math:`s_0`.

    >>> from flambeau.ao.pruning import WeightNormSparsifier
    >>> sparsifier = WeightNormSparsifier(sparsity_level=0.8)
    >>> sparsifier.prepare(nn.Sequential(nn.Linear(4, 2)), config=None)
    >>> scheduler = CubicSL(sparsifier, total_t=2, delta_t=1)
    >>> for _ in range(3):
    ...     sparsifier.step()
    ...     scheduler.step()
    ...     print(round(sparsifier.groups[0]["sparsity_level"], 4))
    0.7
    0.8
    0.8
    """

    def __init__(self, sparsifier: BaseSparsifier, init_sl: Any = 0.0, init_t: Any = 0,
                 delta_t: Any = 10, total_t: Any = 100, initially_zero: Any = False,
                 last_epoch: int = -1, verbose: bool = False):
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The levels at `last_epoch`."""
        self._warn_outside_step()
        return [self._level(*each) for each in zip(
            self.base_sl, self.init_sl, self.init_t, self.delta_t, self.total_t,
            self.initially_zero, strict=True)]

    def _level(self, last: float, first: float, start: int, delta: int, total: int,
               zero: bool) -> float:
        if self.last_epoch < start:
            return 0 if zero else first
        left = max(0.0, 1 - (self.last_epoch - start) / (total * delta))
        return last + (first - last) * left ** 3
