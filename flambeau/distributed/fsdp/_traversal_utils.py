"""The wrapped modules in a model."""
from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.distributed.fsdp._common_utils import _FSDPState, _get_module_fsdp_state


def _composable(module: nn.Module) -> bool:
    return True


def _get_fsdp_states_with_modules(module: nn.Module
                                  ) -> tuple[list[_FSDPState], list[nn.Module]]:
    """What is known of the wrapped modules in a model, and the modules, from the outside in."""
    found: list[Any] = [inner for inner in module.modules()
                        if _get_module_fsdp_state(inner) is not None]
    return list(found), list(found)


def _get_fsdp_states(module: nn.Module) -> list[_FSDPState]:
    """What is known of the wrapped modules in a model."""
    return _get_fsdp_states_with_modules(module)[0]


def _get_fsdp_handles(module: nn.Module) -> list[Any]:
    """The handles of all flat parameters in a model."""
    return [state._handle for state in _get_fsdp_states(module) if state._handle is not None]
