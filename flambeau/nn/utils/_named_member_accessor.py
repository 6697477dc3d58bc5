"""Parameters, buffers and submodules read and replaced by their names, quickly and often."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.nn.modules.module import Module

_MISSING = object()


def _check(module: Any, name: str) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def _check_tensor(tensor: Any) -> None:
    if not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Put a tensor where a module has a parameter or a buffer; else set an attribute."""
    _check(module, name)
    _check_tensor(tensor)
    for place in (module._parameters, module._buffers):
        if name in place:
            place[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor where a module has a parameter, a buffer or a plain attribute, and give what was
    there. Where nothing was, the module has the attribute afterwards if `allow_missing`.

    >>> layer = nn.Linear(1, 1)
    >>> before = swap_tensor(layer, "bias", torch.zeros(1))
    >>> isinstance(before, nn.Parameter), layer.bias
    (True, tensor([0.]))
    """
    _check(module, name)
    if tensor is not _MISSING:
        _check_tensor(tensor)
    for place in (module._parameters, module._buffers):
        if name in place:
            before = place[name]
            if tensor is _MISSING:
                del place[name]
            else:
                place[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING:
        if not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if tensor is not _MISSING:
            setattr(module, name, tensor)
        return before
    if not isinstance(before, Tensor) and before is not None:
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in the place of a child, and give the child."""
    for one in (module, submodule):
        if not isinstance(one, Module):
            raise TypeError(f"{one} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before: Any = module._modules[name]
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """What a module and its children have, by names with dots.

    >>> accessor = NamedMemberAccessor(nn.Sequential(nn.Linear(2, 1)))
    >>> accessor.check_keys(["0.weight", "0.scale"])
    (['0.bias'], ['0.scale'])
    """

    def __init__(self, module: Module):
        self.module = module
        self.memo: dict[str, Module] = {}

    def get_submodule(self, name: str) -> Module:
        """The module of a name."""
        if not name:
            return self.module
        if name not in self.memo:
            prefix, _, attribute = name.rpartition(".")
            parent = self.get_submodule(prefix)
            found = getattr(parent, attribute, _MISSING)
            if found is _MISSING:
                raise AttributeError(f"{parent._get_name()} has no attribute `{attribute}`")
            if not isinstance(found, Module):
                raise TypeError(f"submodule `{name}`: {found} is not an instance of "
                                "torch.nn.Module")
            self.memo[name] = found
        return self.memo[name]

    def _place(self, name: str) -> tuple[Module, str]:
        prefix, _, attribute = name.rpartition(".")
        return self.get_submodule(prefix), attribute

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in the place of another, which it gives."""
        parent, attribute = self._place(path)
        self.memo.clear()
        return swap_submodule(parent, attribute, value)

    def get_tensor(self, name: str) -> Tensor:
        """The parameter, buffer or other tensor of a name."""
        parent, attribute = self._place(name)
        try:
            found = getattr(parent, attribute)
        except AttributeError:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`") from None
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        """`set_tensor` by a name with dots."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name: str) -> None:
        """Take a tensor away."""
        parent, attribute = self._place(name)
        try:
            swap_tensor(parent, attribute, _MISSING)
        except AttributeError:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`") from None

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """`swap_tensor` by a name with dots."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of several names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Set the tensors of several names."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Set the tensors of a dictionary."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take several tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any],
                     allow_missing: bool = False) -> list[Any]:
        """Swap the tensors of several names."""
        return [self.swap_tensor(name, value, allow_missing)
                for name, value in _pairs(names, values)]

    def swap_tensors_dict(self, named_tensors: dict[str, Any], allow_missing: bool = False
                          ) -> tuple[dict[str, Any], list[str]]:
        """Swap the tensors of a dictionary; gives those that were there, and the names that were
        not. Where one is missing that may not be, everything is as before."""
        before: dict[str, Any] = {}
        missing: list[str] = []
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                names = ", ".join([f"'{name}'" for name in missing])
                raise RuntimeError(f"Missing key(s): {names}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names of parameters and buffers that are not among `keys`, and keys that are none."""
        given = set(keys)
        own = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """`Module.named_parameters`."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """`Module.named_buffers`."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """Parameters, then buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Module]]:
        """`Module.named_modules`."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> Any:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError("names and values must have the same length, got "
                             f"{len(names)} names and {len(values)} values")
    return zip(names, values, strict=True)
