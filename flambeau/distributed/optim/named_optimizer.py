"""An optimizer whose state is kept under the names of the parameters."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed._shard.sharded_tensor import ShardedTensor
from flambeau.optim import Optimizer

__all__: list[str] = []


class _NamedOptimizer(Optimizer):
    """Wraps an optimizer; its state dict has names in the place of numbers.

    `param_groups` are those of the optimizer, by default one of all parameters; the parameters in
    them must be among `named_parameters`, or those of `module`.
    """

    def __init__(self, named_parameters: Mapping[str, Tensor], optimizer_class: Any,
                 param_groups: Collection[Mapping[str, Any]] | None = None,
                 module: nn.Module | None = None, *args: Any, **kwargs: Any):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self.param_groups = param_groups  # type: ignore[assignment]
        self._param_groups_check()
        self.named_parameters = dict(named_parameters)
        everything = self.named_parameters.values() if param_groups is None else param_groups
        self._optimizer = optimizer_class(everything, *args, **kwargs)
        self.module = module
        if param_groups is None:
            self.ordered_param_keys = list(self.named_parameters)
        else:
            names = {id(param): name for name, param in self.named_parameters.items()}
            self.ordered_param_keys = []
            for group in param_groups:
                for param in group["params"]:
                    if id(param) not in names:
                        raise ValueError(f"Expect param name {param} found in param group but is "
                                         "missing.")
                    self.ordered_param_keys.append(names[id(param)])
        self.param_groups = self._optimizer.param_groups

    def _param_groups_check(self) -> None:
        for group in self.param_groups or ():
            assert isinstance(group, dict), "param group must be a dict"
            assert "params" in group, "param group must contain key params"
            params = group["params"]
            params = list([params] if isinstance(params, Tensor) else params)
            for param in params:
                if not isinstance(param, Tensor):
                    raise TypeError("optimizer can only optimize Tensors, but one of the params "
                                    "is " + flambeau.typename(param))
            group["params"] = params

    @property
    def state(self) -> Mapping[Tensor, Any]:
        """The state of the optimizer."""
        return self._optimizer.state

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, under the names of the parameters."""
        found = self._optimizer.state_dict()
        names = self.ordered_param_keys
        groups, at = [], 0
        for group in found["param_groups"]:
            count = len(group["params"])
            groups.append({**group, "params": sorted(names[at:at + count])})
            at += count
        return {"state": {names[index]: value for index, value in found["state"].items()},
                "param_groups": groups}

    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """A step of the optimizer."""
        return self._optimizer.step(closure=closure)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; the optimizer must have a state already, of the same
        form (see `init_state`)."""
        new, given = self._optimizer.state_dict(), self._pre_load_state_dict(state_dict)
        state, new_state = given["state"], new["state"]
        if not new_state:
            raise ValueError("Expects the optim to be initialized before load but found not "
                             "initialized.")
        for index, name in enumerate(self.ordered_param_keys):
            if name not in state:
                continue
            if len(state[name]) != len(new_state[index]):
                raise ValueError(f"Expects equal length as {len(new_state[index])} for parameter "
                                 f"{name} but found: {len(state[name])}")
            for key, value in new_state[index].items():
                if key not in state[name]:
                    raise ValueError(f"Expects state {key} for parameter {name} but not found.")
                new_state[index][key] = _loaded(name, key, value, state[name][key])
        groups = {_gen_param_group_key(group["params"]): group for group in given["param_groups"]}
        at = 0
        for group in new["param_groups"]:
            count = len(group["params"])
            key = _gen_param_group_key(self.ordered_param_keys[at:at + count])
            at += count
            if key not in groups:
                continue
            if len(groups[key]) != len(group):
                raise ValueError(f"Expects equal param_group size as {len(group)} for group "
                                 f"{key} but found {len(groups[key])}.")
            for name in group:
                if name not in groups[key]:
                    raise ValueError(f"Expects group key {name} to be in group {key} in "
                                     "`state_dict` but is missing.")
                if name != "params":
                    group[name] = groups[key][name]
        self._optimizer.load_state_dict(new)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters, which `module` has."""
        assert isinstance(param_group, dict), "param group must be a dict"
        params = param_group["params"]
        params = list([params] if isinstance(params, Tensor) else params)
        names = {id(param): name for name, param in self.named_parameters.items()}
        if self.module is not None:
            names |= {id(param): name for name, param in self.module.named_parameters()}
        for param in params:
            if id(param) not in names:
                raise ValueError("some parameters are not in the module")
            self.ordered_param_keys.append(names[id(param)])
        self._optimizer.add_param_group(param_group)
        self.param_groups = self._optimizer.param_groups

    def init_state(self) -> None:
        """Have a state without having trained: a step of length 0 along gradients that are 0."""
        params = [param for group in self.param_groups for param in group["params"]
                  if param.requires_grad]
        rates = [group.get("lr") for group in self.param_groups]
        for param in params:
            param.grad = flambeau.zeros_like(param)
        for group, rate in zip(self.param_groups, rates):
            if rate is not None:
                group["lr"] = flambeau.tensor(0.0) if isinstance(rate, Tensor) else 0.0
        self.step(closure=None)
        for group, rate in zip(self.param_groups, rates):
            if rate is not None:
                group["lr"] = rate
        for param in params:
            param.grad = None

    def _pre_load_state_dict(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """What comes from the state dict of a `FullyShardedDataParallel` is cut there."""
        from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
        if isinstance(self.module, FSDP):
            return FSDP.optim_state_dict_to_load(self.module, self._optimizer, state_dict,
                                                 is_named_optimizer=True)
        return state_dict

    def _post_state_dict(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
        if isinstance(self.module, FSDP):
            FSDP.optim_state_dict(self.module, self._optimizer, state_dict)
        return state_dict


def _loaded(name: str, key: str, now: Any, given: Any) -> Any:
    """What an entry of the state becomes: tensors that are there are filled."""
    if isinstance(now, ShardedTensor):
        assert isinstance(given, ShardedTensor)
        count = len(now.local_shards())
        if count != len(given.local_shards()):
            raise ValueError(f"Expects equal number of shards as {count} but found "
                             f"{len(given.local_shards())} for {name}/{key}")
        for shard, source in zip(now.local_shards(), given.local_shards()):
            shard.tensor.detach().copy_(source.tensor)
        return now
    if isinstance(now, Tensor):
        now.detach().copy_(given)
        return now
    return deepcopy(given)


def _gen_param_group_key(param_keys: list[str]) -> str:
    """A name for a group of parameters."""
    return "/".join(sorted(param_keys))
