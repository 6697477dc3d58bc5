"""Which modules of a model are wrapped each by itself, in FSDP or another wrapper.

A policy is a function of a module, `recurse` (True asks whether to look at its children, False
whether to wrap it) and `nonwrapped_numel`, the size of its parameters that are not wrapped yet;
or an object of `ModuleWrapPolicy` or `CustomPolicy`.
"""
from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from flambeau import nn

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap",
           "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
           "transformer_auto_wrap_policy", "wrap"]

Targets = dict[nn.Module, dict[str, Any]]       # modules to be wrapped, and their options


# ---- policies -----------------------------------------------------------------------------------

class _Policy(ABC):
    """Chooses the modules of a model that are wrapped."""

    @abstractmethod
    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module],
                    root_kwargs: dict[str, Any]) -> Targets:
        """The modules, with the options of their wrappers."""


class ModuleWrapPolicy(_Policy):
    """Wraps the modules of these classes.

    >>> policy = ModuleWrapPolicy({nn.Linear})
    >>> model = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    >>> policy._run_policy(model, set(), {})
    {Linear(in_features=1, out_features=1, bias=True): {}}
    """

    def __init__(self, module_classes: Iterable[type[nn.Module]]):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module],
                    root_kwargs: dict[str, Any]) -> Targets:
        classes = tuple(self._module_classes)
        return {module: copy.copy(root_kwargs) for module in root_module.modules()
                if module not in ignored_modules and isinstance(module, classes)}

    def __call__(self, module: nn.Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return _module_wrap_policy(module, recurse, nonwrapped_numel=-1,
                                   module_classes=self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wraps the modules for which `lambda_fn` gives True, or a dict of options that take
    precedence over those of the whole model."""

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | dict[str, Any]]):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module],
                    root_kwargs: dict[str, Any]) -> Targets:
        targets: Targets = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            found = self._lambda_fn(module)
            if not isinstance(found, (dict, bool)):
                raise ValueError("The lambda_fn passed to CustomPolicy should return False/True "
                                 f"or a kwarg dict, but it returned {found}")
            if found or isinstance(found, dict):
                options = copy.copy(root_kwargs)
                options.update(found if isinstance(found, dict) else {})
                if found:
                    targets[module] = options
        return targets


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wraps every module."""
    return True


def _module_wrap_policy(module: nn.Module, recurse: bool, nonwrapped_numel: int,
                        module_classes: set[type[nn.Module]]) -> bool:
    """Wraps the modules of these classes."""
    return recurse or isinstance(module, tuple(module_classes))


def lambda_auto_wrap_policy(module: nn.Module, recurse: bool, nonwrapped_numel: int,
                            lambda_fn: Callable[[nn.Module], bool]) -> bool:
    """Wraps the modules for which `lambda_fn` is true."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(module: nn.Module, recurse: bool, nonwrapped_numel: int,
                                 transformer_layer_cls: set[type[nn.Module]]) -> bool:
    """Wraps the layers of a transformer, which are of these classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(module: nn.Module, module_classes: Sequence[type],
                                  recurse: bool, *args: Any, **kwargs: Any) -> bool:
    return recurse or isinstance(module, tuple(module_classes))


def _or_policy(module: nn.Module, recurse: bool, nonwrapped_numel: int,
               policies: Iterable[Callable[..., bool]]) -> bool:
    """Wraps what any of these policies wraps."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
               for policy in policies)


def size_based_auto_wrap_policy(module: nn.Module, recurse: bool, nonwrapped_numel: int,
                                min_num_params: int = int(1e8),
                                force_leaf_modules: set[type[nn.Module]] | None = None,
                                exclude_wrap_modules: set[type[nn.Module]] | None = None) -> bool:
    """Wraps modules with at least `min_num_params` unwrapped parameters; it does not look into
    `force_leaf_modules`, and leaves out `exclude_wrap_modules`."""
    given, default = (force_leaf_modules, "FORCE_LEAF_MODULES") if recurse else \
        (exclude_wrap_modules, "EXCLUDE_WRAP_MODULES")
    refused = getattr(size_based_auto_wrap_policy, default) if given is None else given
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(refused))


vars(size_based_auto_wrap_policy).update(EXCLUDE_WRAP_MODULES={nn.ModuleList, nn.ModuleDict},
                                         FORCE_LEAF_MODULES={nn.MultiheadAttention})


# ---- wrapping by hand ---------------------------------------------------------------------------

@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps modules in `wrapper_cls`, with these options."""
    with _ConfigAutoWrap(wrapper_cls=wrapper_cls, **wrapper_kwargs):
        yield


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """`module` in the wrapper that `enable_wrap` names; outside of it, `module` as it is."""
    if not _ConfigAutoWrap.in_autowrap_context:
        return module
    assert _ConfigAutoWrap.wrapper_cls is not None
    return _wrap(module, _ConfigAutoWrap.wrapper_cls,
                 **{**_ConfigAutoWrap.kwargs, **wrap_overrides})


class _ConfigAutoWrap:
    """The wrapper that `wrap` uses."""

    in_autowrap_context = False
    wrapper_cls: Callable[..., nn.Module] | None = None
    kwargs: dict[str, Any] = {}

    def __init__(self, **kwargs: Any):
        self.kwargs = kwargs

    @staticmethod
    def enable_autowrap_context(kwargs: Any) -> None:
        """Begin to wrap."""
        if _ConfigAutoWrap.in_autowrap_context:
            raise NotImplementedError("You are already within an autowrap context and we currently "
                                      "do not supported nested autowrap.")
        assert "wrapper_cls" in kwargs, (
            "Expected to pass in wrapper_cls arg into _ConfigAutoWrap.")
        _ConfigAutoWrap.in_autowrap_context = True
        _ConfigAutoWrap.wrapper_cls = kwargs.pop("wrapper_cls")
        _ConfigAutoWrap.kwargs = kwargs

    @staticmethod
    def disable_autowrap_context() -> None:
        """Wrap no more."""
        _ConfigAutoWrap.in_autowrap_context = False
        _ConfigAutoWrap.wrapper_cls = None
        _ConfigAutoWrap.kwargs = {}

    def __enter__(self) -> None:
        self.enable_autowrap_context(self.kwargs)

    def __exit__(self, *exception: Any) -> None:
        self.disable_autowrap_context()


# ---- wrapping by a policy -----------------------------------------------------------------------

def _wrap(module: nn.Module, wrapper_cls: Callable[..., nn.Module], **kwargs: Any) -> nn.Module:
    """`module` in a wrapper; `_wrap_overrides` of the module take precedence."""
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _recursive_wrap(module: nn.Module, auto_wrap_policy: Callable[..., bool],
                    wrapper_cls: Callable[..., nn.Module], ignored_modules: set[nn.Module],
                    ignored_params: set[nn.Parameter], only_wrap_children: bool = False,
                    **kwargs: Any) -> tuple[nn.Module, int]:
    """Wrap what a policy chooses, children first; the module, and the size of what is wrapped."""
    if isinstance(wrapper_cls, type):
        for child in module.modules():
            assert child in ignored_modules or not isinstance(child, wrapper_cls), (
                f"Child module {child} is already wrapped by {wrapper_cls}")
    size = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=size):
        return module, 0
    wrapped_size = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules,
                                         ignored_params, **kwargs)
        setattr(module, name, wrapped)
        wrapped_size += count
    rest = size - wrapped_size
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False,
                                                   nonwrapped_numel=rest):
        return _wrap(module, wrapper_cls, **kwargs), size
    return module, wrapped_size


def _post_order_apply(root_module: nn.Module,
                      fn: Callable[[nn.Module], nn.Module | None]) -> None:
    """Replace modules by what `fn` gives, children first; where it gives None, they stay."""
    seen = {root_module}

    def visit(module: nn.Module, name: str, parent: nn.Module | None) -> None:
        for child_name, child in module.named_children():
            if child not in seen:
                seen.add(child)
                visit(child, child_name, module)
        found = fn(module)
        if found is None:
            return
        assert isinstance(found, nn.Module), (
            f"fn should return None or an nn.Module but got {found}")
        assert parent is not None, (
            f"Non-root modules should have their parent module set but got {parent} for {module}")
        assert isinstance(parent, nn.Module)
        setattr(parent, name, found)
    visit(root_module, "", None)


def _construct_wrap_fn(root_module: nn.Module, target_module_to_kwargs: Targets,
                       fsdp_fn: Callable[..., nn.Module]
                       ) -> Callable[[nn.Module], nn.Module | None]:
    """A function for `_post_order_apply` that wraps the targets, except for the root."""
    def fn(module: nn.Module) -> nn.Module | None:
        if module in target_module_to_kwargs and module is not root_module:
            return _wrap(module, fsdp_fn, **target_module_to_kwargs[module])
        return None
    return fn


def _run_mixed_precision_override_policy(root_module: nn.Module,
                                         module_classes: Iterable[type[nn.Module]],
                                         ignored_modules: set[nn.Module],
                                         root_kwargs: dict[str, Any],
                                         target_module_to_kwargs: Targets) -> Targets:
    """Let modules of these classes be wrapped too, in full precision."""
    classes = tuple(set(module_classes))
    for module in root_module.modules():
        if module not in ignored_modules and isinstance(module, classes):
            options = target_module_to_kwargs.setdefault(module, copy.copy(root_kwargs))
            options["mixed_precision"] = None
    return target_module_to_kwargs
