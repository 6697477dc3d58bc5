"""Names, states and searches that the parts of `FullyShardedDataParallel` share."""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from flambeau import Tensor, nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."
FSDP_FLATTENED = "_fsdp_flattened"


class TrainingState(Enum):
    """What a wrapped module is doing."""
    IDLE = auto()
    FORWARD_BACKWARD = auto()
    SUMMON_FULL_PARAMS = auto()


class HandleTrainingState(Enum):
    """What the parameters of a wrapped module are needed for."""
    IDLE = auto()
    FORWARD = auto()
    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()
    SUMMON_FULL_PARAMS = auto()


class _FSDPState:
    """What is known of a wrapped module; `FullyShardedDataParallel` is one."""

    _handle: Any = None
    _is_root: bool | None = None
    training_state: TrainingState = TrainingState.IDLE


def _get_module_fsdp_state(module: nn.Module) -> _FSDPState | None:
    """What is known of a module, if it is a wrapped one."""
    return module if isinstance(module, _FSDPState) else None


_get_module_fsdp_state_if_fully_sharded_module = _get_module_fsdp_state


def _is_composable(state: _FSDPState) -> bool:
    return not isinstance(state, nn.Module)


def _module_handle(state: _FSDPState, module: nn.Module) -> Any:
    """The handle of a module's parameters."""
    return state._handle


def _has_fsdp_params(state: _FSDPState, module: nn.Module) -> bool:
    """Has a wrapped module parameters of its own?"""
    return _module_handle(state, module) is not None


def _get_sharding_strategy(handle: Any) -> Any:
    """How the parameters of a handle are sharded."""
    return handle._sharding_strategy if handle else None


def clean_tensor_name(tensor_name: str) -> str:
    """The name of a parameter without what wrappers add to it.

    >>> clean_tensor_name("0._fsdp_wrapped_module._checkpoint_wrapped_module.weight")
    '0.weight'
    """
    return tensor_name.replace(FSDP_PREFIX, "").replace(_CHECKPOINT_PREFIX, "")


def _set_fsdp_flattened(tensor: Tensor) -> None:
    setattr(tensor, FSDP_FLATTENED, True)


def _is_fsdp_flattened(tensor: Tensor) -> bool:
    return getattr(tensor, FSDP_FLATTENED, False)


def _named_parameters_with_duplicates(module: nn.Module,
                                      **kwargs: Any) -> list[tuple[str, nn.Parameter]]:
    """All names of parameters, shared ones under each of theirs."""
    assert "remove_duplicate" not in kwargs, (
        "_named_parameters_with_duplicates cannot be used with `remove_duplicate` argument.")
    return list(module.named_parameters(**kwargs, remove_duplicate=False))


def _get_param_to_fqns(model: nn.Module, dedup_shared_params: bool = True
                       ) -> dict[nn.Parameter, list[str]]:
    """For each parameter its names, without what wrappers add; for a flat one those of all that
    are in it."""
    found: dict[nn.Parameter, list[str]] = {}
    for path, module in model.named_modules(remove_duplicate=not dedup_shared_params):
        prefix = clean_tensor_name(path + "." if path else "")
        for name, param in module._parameters.items():
            if param is None:
                continue
            if hasattr(param, "_fqns"):
                fqns = [prefix + fqn for fqn in param._fqns]
            else:
                fqns = [prefix + clean_tensor_name(name)]
            known = found.setdefault(param, [])
            if not known or not dedup_shared_params:
                known += [fqn for fqn in fqns if fqn not in known]
    return found


def _apply_to_modules(root_module: nn.Module, module_fn: Callable[..., Any],
                      return_fn: Callable[..., Any], filter_fqns: list[str] | None = None,
                      *args: Any, **kwargs: Any) -> Any:
    """Call `module_fn(module, prefix, tree_level, …)` for all modules."""
    def walk(module: nn.Module, prefix: str, level: int) -> None:
        module_fn(module, prefix, level, *args, **kwargs)
        for name, child in module.named_children():
            inner = f"{prefix}{name}."
            if name in (FSDP_WRAPPED_MODULE, "_checkpoint_wrapped_module"):
                inner = prefix
            walk(child, inner, level + 1)
    walk(root_module, "", 0)
    return return_fn(*args, **kwargs)


def _assert_in_training_states(state: _FSDPState, training_states: list[TrainingState]) -> None:
    if state.training_state not in training_states:
        raise ValueError(f"expected to be in states {training_states} but current state is "
                         f"{state.training_state}")


def _get_root_modules(modules: set[nn.Module]) -> set[nn.Module]:
    """Those of the modules that are in no other of them."""
    inner = {child for module in modules for child in module.modules() if child is not module}
    return modules - inner


def _override_module_mixed_precision(root: nn.Module, module_classes_to_override: Any,
                                     wrap_override_dict: dict[str, Any] | None = None
                                     ) -> set[type[nn.Module]]:
    """Let modules of these classes stay in full precision; the classes that are there."""
    overrides = {"mixed_precision": None} if wrap_override_dict is None else wrap_override_dict
    classes = tuple(set(module_classes_to_override))
    found = set()
    for module in root.modules():
        if isinstance(module, classes):
            found.add(type(module))
            module._wrap_overrides = overrides
            module.register_forward_pre_hook(_cast_up, with_kwargs=True)
            module.register_forward_hook(_cast_back)
    return found


def _cast_up(module: nn.Module, args: Any, kwargs: Any) -> Any:
    import flambeau
    from flambeau.distributed.utils import _apply_to_tensors, _cast_forward_inputs
    types: list[Any] = []
    _apply_to_tensors(lambda x: types.append(x.dtype) if x.is_floating_point() else None, args)
    module._fsdp_input_dtype = types[0] if types else None
    return _cast_forward_inputs(flambeau.float32, *args, **kwargs)


def _cast_back(module: nn.Module, args: Any, output: Any) -> Any:
    from flambeau.distributed.utils import _cast_forward_inputs
    dtype = getattr(module, "_fsdp_input_dtype", None)
    if dtype is None:
        return output
    (found,), _ = _cast_forward_inputs(dtype, output)
    return found
