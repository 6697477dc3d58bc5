"""What programs import as `functorch`: the transforms of `flambeau.func`, and modules as functions
in the form that came before `functional_call`."""
from __future__ import annotations

import copy
from typing import Any

from flambeau.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from flambeau.nn import Module


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers: `f(params, buffers, *args)`."""

    def __init__(self, stateless_model: Module, param_names: Any, buffer_names: Any):
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params)) | dict(zip(self.buffer_names, buffers))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers that is called with its parameters: `f(params, *args)`."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def _stateless(kind: Any, model: Module, params: dict[str, Any], buffers: dict[str, Any]) -> Any:
    return kind(copy.deepcopy(model).to("meta"), params, buffers)


def _values(named: Any, disable_autograd_tracking: bool) -> tuple[Any, ...]:
    return tuple([v.detach().requires_grad_(v.requires_grad and not disable_autograd_tracking)
                  for _, v in named])


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """(function, parameters, buffers) of a module, where `function(parameters, buffers, *args)`
    calls it.

    >>> import flambeau
    >>> f, params, buffers = make_functional_with_buffers(flambeau.nn.Linear(3, 2))
    >>> f(params, buffers, flambeau.ones(1, 3)).shape
    torch.Size([1, 2])
    """
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    return (_stateless(FunctionalModuleWithBuffers, model, params, buffers),
            _values(params.items(), disable_autograd_tracking), _values(buffers.items(), True))


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """(function, parameters) of a module without buffers, where `function(parameters, *args)`
    calls it."""
    if any(True for _ in model.buffers()):
        raise ValueError("make_functional(model): `model` has buffers. Please use "
                         "make_functional_with_buffers(model) instead.")
    params = dict(model.named_parameters())
    return (_stateless(FunctionalModule, model, params, {}),
            _values(params.items(), disable_autograd_tracking))


def combine_state_for_ensemble(models: Any) -> Any:
    """(function, parameters, buffers) of several models of one kind, stacked along a new first
    dimension, for `vmap` over the models."""
    models = list(models)
    params, buffers = stack_module_state(models)
    return (_stateless(FunctionalModuleWithBuffers, models[0], params, buffers),
            tuple(params.values()), tuple(buffers.values()))


__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble",
           "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
           "stack_module_state", "vjp", "vmap"]
