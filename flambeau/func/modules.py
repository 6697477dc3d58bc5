"""Modules as functions of their parameters."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call `module` with the given parameters and buffers in place of its own."""
    from flambeau.nn.utils import stateless
    values = parameter_and_buffer_dicts
    if isinstance(values, Sequence) and not isinstance(values, dict):
        if not all(isinstance(one, dict) for one in values):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be "
                             "dictionaries")
        joined: dict[str, Any] = {}
        repeated = {}
        for one in values:
            repeated.update(dict.fromkeys(key for key in one if key in joined))
            joined.update(one)
        if repeated:
            raise ValueError(f"{list(repeated)} appeared in multiple dictionaries; behavior of "
                             "functional call is ambiguous")
        values = joined
    elif not isinstance(values, dict):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                         f"dicts, but got {type(values)}")
    return stateless._functional_call(module, values, args, kwargs, tie_weights=tie_weights,
                                      strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several models of one kind, each stacked along a new first
    dimension: what `vmap` over models takes."""
    import flambeau
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training for m in models) and not all(m.training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval "
                           "mode.")
    kinds = {type(m) for m in models}
    if len(kinds) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named: list[dict[str, Any]]) -> dict[str, Any]:
        result = {}
        for name in named[0]:
            values = [d[name] for d in named]
            flags = {v.requires_grad for v in values}
            if len(flags) > 1:
                raise RuntimeError("Expected parameters from different models to have the same "
                                   ".requires_grad")
            whole = flambeau.stack([v.detach() for v in values])
            result[name] = whole.requires_grad_(flags.pop())
        return result
    return (stacked([dict(m.named_parameters()) for m in models]),
            stacked([dict(m.named_buffers()) for m in models]))


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make every batch normalisation in `root` use the statistics of its batch alone, in place."""
    from flambeau import nn

    def replace(module: Any) -> None:
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    for module in root.modules():
        replace(module)
    return root
