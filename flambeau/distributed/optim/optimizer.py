"""`DistributedOptimizer`: one optimizer at each process that owns parameters, through RPC."""
from __future__ import annotations

import logging
import threading
from collections import defaultdict
from typing import Any

from flambeau.distributed.optim.utils import functional_optim_map
from flambeau.futures import wait_all

__all__ = ["DistributedOptimizer"]

logger = logging.getLogger(__name__)


class _LocalOptimizer:
    """An optimizer at the owner of parameters. Steps of one process take turns: the optimizers
    may share state."""

    global_lock = threading.Lock()

    def __init__(self, optim_cls: type, local_params_rref: list[Any], *args: Any, **kwargs: Any):
        self._local_params = [rref.local_value() for rref in local_params_rref]
        self.optim = optim_cls(self._local_params, *args, **kwargs)

    def step(self, autograd_ctx_id: int) -> None:
        """A step along the gradients of a context."""
        import flambeau.distributed.autograd as dist_autograd
        gradients = dist_autograd.get_gradients(autograd_ctx_id)
        with _LocalOptimizer.global_lock:
            for param, gradient in gradients.items():
                param.grad = gradient
            self.optim.step()


class _FunctionalLocalOptimizer:
    """The same for optimizers that are given gradients: it needs no lock."""

    def __init__(self, optim_cls: type, local_params_rref: list[Any], *args: Any, **kwargs: Any):
        self._local_params = [rref.local_value() for rref in local_params_rref]
        self.optim = optim_cls(self._local_params, *args, **kwargs)

    def step(self, autograd_ctx_id: int) -> None:
        """A step along the gradients of a context."""
        import flambeau.distributed.autograd as dist_autograd
        gradients = dist_autograd.get_gradients(autograd_ctx_id)
        self.optim.step([gradients.get(param) for param in self._local_params])


def _new_local_optimizer(optim_cls: type, local_params_rref: list[Any], *args: Any,
                         **kwargs: Any) -> Any:
    import flambeau.distributed.rpc as rpc
    return rpc.RRef(_LocalOptimizer(optim_cls, local_params_rref, *args, **kwargs))


def _new_functional_optimizer(optim_cls: type, local_params_rref: list[Any], *args: Any,
                              **kwargs: Any) -> Any:
    import flambeau.distributed.rpc as rpc
    return rpc.RRef(_FunctionalLocalOptimizer(optim_cls, local_params_rref, *args, **kwargs))


def _local_optimizer_step(local_optim_rref: Any, autograd_ctx_id: int) -> None:
    local_optim_rref.local_value().step(autograd_ctx_id)


def _wait_for_all(rpc_futs: list[Any]) -> list[Any]:
    """All results; raises the last error, once all are there."""
    error, results = None, []
    for future in rpc_futs:
        try:
            results.append(future.wait())
        except Exception as raised:
            results.append(raised)
            error = raised
    if error is not None:
        raise error
    return results


class DistributedOptimizer:
    """Steps for parameters that other processes own, given as remote references.

    >>> with dist_autograd.context() as context_id:                           # doctest: +SKIP
    ...     dist_autograd.backward(context_id, [loss])
    ...     optimizer = DistributedOptimizer(flambeau.optim.SGD, [rref1, rref2], lr=0.05)
    ...     optimizer.step(context_id)
    """

    def __init__(self, optimizer_class: type, params_rref: list[Any], *args: Any, **kwargs: Any):
        import flambeau.distributed.rpc as rpc
        by_owner = defaultdict(list)
        for param in params_rref:
            by_owner[param.owner()].append(param)
        functional = functional_optim_map.get(optimizer_class)
        self.is_functional_optim = functional is not None
        if functional is None:
            logger.warning(
                "Creating the optimizer %s without TorchScript support, this might result in slow "
                "computation time in multithreading environment(i.e. Distributed Model Parallel "
                "training on CPU) due to the Python's Global Interpreter Lock (GIL). Please file "
                "an issue if you need this optimizer in TorchScript. ", optimizer_class)
            make, cls = _new_local_optimizer, optimizer_class
        else:
            make, cls = _new_functional_optimizer, functional
        self.remote_optimizers = _wait_for_all([
            rpc.rpc_async(owner, make, args=(cls, params, *args), kwargs=kwargs)
            for owner, params in by_owner.items()])

    def step(self, context_id: int) -> None:
        """A step of all optimizers, along the gradients of a distributed autograd context."""
        import flambeau.distributed.autograd as dist_autograd
        import flambeau.distributed.rpc as rpc
        dist_autograd._is_valid_context(context_id)
        wait_all([rpc.rpc_async(optimizer.owner(), _local_optimizer_step,
                                args=(optimizer, context_id))
                  for optimizer in self.remote_optimizers])
