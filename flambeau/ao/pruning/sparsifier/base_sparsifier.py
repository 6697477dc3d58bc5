"""What all sparsifiers share: the tensors and their masks, their state, their end."""
from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.pruning.sparsifier.utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)
from flambeau.nn.utils import parametrize

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES = {nn.Linear}

KEYS_NOT_IN_STATE_DICT = ("module", "module_fqn", "tensor_name")


class BaseSparsifier(abc.ABC):
    """The base of sparsifiers: a subclass says in `update_mask` what is zero.

    `groups` has a dict for each tensor: where it is, and the arguments of `update_mask`, by default
    those of `defaults`.

    >>> class FirstRow(BaseSparsifier):
    ...     def update_mask(self, module, tensor_name, rows, **kwargs):
    ...         module.parametrizations[tensor_name][0].mask[:rows] = 0
    >>> model = nn.Sequential(nn.Linear(2, 3, bias=False))
    >>> sparsifier = FirstRow({"rows": 1})
    >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    >>> sparsifier.step()
    >>> (model[0].weight == 0).sum(1)
    tensor([2, 0, 0])
    """

    config: list[dict[str, Any]]
    model: nn.Module

    def __init__(self, defaults: dict[str, Any] | None = None):
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.groups):
            keys = ["module", *sorted(group.keys() - {"module"})]
            lines += [f"\n\tGroup {number}\n", *(f"\t    {key}: {group[key]}\n" for key in keys)]
        return f"{type(self).__name__} ({''.join(lines)})"

    def state_dict(self) -> dict[str, Any]:
        """The masks, by the names of their tensors, and the groups without their modules."""
        groups = [{key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT}
                  for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over what `state_dict` gave, for the model that was prepared; tensors that have no
        mask yet get one.

        Raises:
            RuntimeError: a tensor is not in the model, and `strict` is set.
        """
        groups = copy.deepcopy(state_dict["groups"])
        states = state_dict["state"]
        for name, state in states.items():
            info = get_arg_info_from_tensor_fqn(self.model, name)
            module, tensor_name = info["module"], info["tensor_name"]
            if module is None:
                if strict:
                    raise RuntimeError(f"Error loading {name} into the model")
                continue
            chain = module.parametrizations[tensor_name] \
                if parametrize.is_parametrized(module, tensor_name) else ()
            found = next((each for each in chain if isinstance(each, FakeSparsity)), None)
            if found is None:
                found = FakeSparsity(flambeau.ones(getattr(module, tensor_name).shape))
                parametrize.register_parametrization(module, tensor_name, found)
            found.mask.copy_(state["mask"])
        for group in groups:
            group.update(get_arg_info_from_tensor_fqn(self.model, group["tensor_fqn"]))
        self.__setstate__({"state": states, "groups": groups})

    def make_config_from_model(self, model: nn.Module, SUPPORTED_MODULES: set[type[nn.Linear]]
                               = SUPPORTED_MODULES) -> None:
        """Let `config` name the weights of all modules of these classes."""
        self.config = [
            {"tensor_fqn": f"{module_to_fqn(model, module)}.weight"}
            for module in model.modules() if type(module) in SUPPORTED_MODULES]

    def prepare(self, model: nn.Module, config: list[dict[str, Any]] | None) -> None:
        """Give tensors of the model masks of ones.

        Args:
            model: what has the tensors.
            config: a dict for each, with its name as `tensor_fqn`, and the arguments in which it
                differs from `defaults`. None: the weights of all linear layers.

        Raises:
            AssertionError: an element of `config` is no dict, or has no name.
        """
        self.model = model
        if config is None:
            self.make_config_from_model(model)
        else:
            self.config = config
        for each in self.config:
            if not isinstance(each, dict):
                raise AssertionError("config elements should be dicts not modules i.e.:"
                                     "[{`tensor_fqn`: `foo.bar.weight`}, "
                                     "{`tensor_fqn`: ... }, ...]")
            tensor_fqn = each.get("tensor_fqn")
            if tensor_fqn is None:
                raise AssertionError("tensor_fqn is a required argument in the sparsity config "
                                     "which replaces previous `module` and [module]`fqn` arguments")
            info = get_arg_info_from_tensor_fqn(model, tensor_fqn)
            for key, value in info.items():
                if key in each and each[key] != value:
                    raise AssertionError(f"Given both `{key}` and `tensor_fqn` in the config, it "
                                         "is expected them to agree!")
            self.groups.append({**self.defaults, **each, **info})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask", flambeau.ones_like(getattr(module, name)))
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(
                module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(self, params_to_keep: tuple[str, ...] | None = None,
                    params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
                    *args: Any, **kwargs: Any) -> None:
        """Make the masked tensors the parameters, and forget groups and masks.

        Args:
            params_to_keep: arguments that modules are to remember in a dict `sparse_params`.
            params_to_keep_per_layer: further ones, by the names of the modules.
        """
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            parametrize.remove_parametrizations(module, name, leave_parametrized=True)
            kept = (*(params_to_keep or ()),
                    *(params_to_keep_per_layer or {}).get(group["module_fqn"], ()))
            if kept:
                module.sparse_params = {key: group[key] for key in kept}

    def convert(self, module: nn.Module,
                mapping: dict[type[nn.Module], type[nn.Module]] | None = None,
                inplace: bool = False,
                parameterization: type[nn.Module] = FakeSparsity) -> nn.Module:
        """The model with masked modules replaced: by what the class that `mapping` has for theirs
        makes of them with `from_dense`.

        Raises:
            NotImplementedError: `mapping` is None.
        """
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in module.named_children():
            if module_contains_param(child, parameterization):
                module._modules[name] = swap_module(child, mapping)
            else:
                module._modules[name] = self.convert(child, mapping, inplace=True,
                                                     parameterization=parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Decide anew what is zero, unless `enable_mask_update` is False."""
        if self.enable_mask_update:
            with flambeau.no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        """Write the mask of a tensor, which is
        `module.parametrizations[tensor_name][0].mask`. `kwargs` is the rest of the group."""
