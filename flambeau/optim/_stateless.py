"""Another name of :mod:`flambeau.optim._swap`."""

from flambeau.optim._swap import swap_in_optimizer_params_and_state

__all__ = ["swap_in_optimizer_params_and_state"]
