"""Modules that hold others: one after the other, in a list, by name."""
from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections import abc as container_abcs
from itertools import chain, islice
from typing import Any

from flambeau._support.signatures import ANY_ARGUMENTS
from flambeau.nn.modules.module import Module, _addindent


def _counted(index, length, text="index {} is out of range"):
    """`index` counted from the start; IndexError if it lies outside."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(text.format(index))
    return index % length


class Container(Module):
    """An empty module that takes named submodules; kept for old code."""

    __signature__ = ANY_ARGUMENTS

    def __init__(self, **kwargs) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.", FutureWarning, stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Modules called one after the other, each with the result of the one before.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> net[0]
        Linear(in_features=2, out_features=3, bias=True)
        >>> net(flambeau.ones(2)).shape
        torch.Size([3])
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _get_item_by_idx(self, iterator, idx):
        return next(islice(iterator, _counted(idx, len(self)), None))

    def _renumber(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._get_item_by_idx(self._modules.values(), idx)

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_item_by_idx(self._modules.keys(), idx), module)

    def __delitem__(self, idx) -> None:
        if isinstance(idx, slice):
            for name in list(self._modules)[idx]:
                delattr(self, name)
        else:
            delattr(self, self._get_item_by_idx(self._modules.keys(), idx))
        self._renumber(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __add__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects "
                             f"of Sequential class, but {type(other)} is given.")
        result = Sequential()
        for module in chain(self, other):
            result.append(module)
        return result

    def __iadd__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects "
                             f"of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        combined = Sequential()
        for module in list(self) * other:
            combined.append(module)
        return combined

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))

    def _check_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def pop(self, key) -> Module:
        """Remove the module at an index and return it."""
        module = self[key]
        del self[key]
        return module

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential) -> Sequential:
        """Add all modules of an iterable at the end."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(Module):
    """A list of modules, all of which are registered.

    Example:
        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx):
        return str(_counted(idx, len(self)))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        return setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx) -> None:
        if isinstance(idx, slice):
            for i in range(len(self._modules))[idx]:
                delattr(self, str(i))
        else:
            delattr(self, self._get_abs_string_index(idx))
        modules = enumerate(self._modules.values())
        self._modules: dict[str, Module] = {str(i): module for i, module in modules}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Like any module's, but neighbours that print alike share a line."""
        texts = [repr(item) for item in self]
        if not texts:
            return self._get_name() + "()"
        groups: list[list[Any]] = [[0, 0, texts[0]]]
        for i, text in enumerate(texts[1:], 1):
            if text == groups[-1][2]:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        lines = [f"({first}): {text}" if first == last
                 else f"({first}-{last}): {last - first + 1} x {text}" for first, last,
                 text in groups]
        body = "\n  ".join(_addindent(line, 2) for line in lines)
        return f"{self._get_name()}(\n  {body}\n)"

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Remove the module at an index and return it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules) -> ModuleList:
        """Add all modules of an iterable at the end."""
        if not isinstance(modules, container_abcs.Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, "
                            f"but got {type(modules).__name__}")
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, all of which are registered; it keeps the order of insertion.

    Example:
        >>> choices = nn.ModuleDict({"conv": nn.Conv2d(1, 2, 3), "pool": nn.MaxPool2d(3)})
        >>> list(choices)
        ['conv', 'pool']
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """Pairs (name, module)."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules) -> None:
        """Add or replace modules, from a mapping or from pairs."""
        for key, module in _pairs(ModuleDict, modules):
            self[key] = module


def _pairs(kind, values, called=None):
    """The (key, value) pairs of a mapping, of a module of this kind or of an iterable of pairs."""
    owner = kind.__name__
    if not isinstance(values, container_abcs.Iterable):
        raise TypeError(
            f"{called or owner}.update should be called with an iterable of key/value pairs, "
            f"but got {type(values).__name__}")
    if isinstance(values, (kind, container_abcs.Mapping)):
        yield from values.items()
        return
    for i, pair in enumerate(values):
        if not isinstance(pair, container_abcs.Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is"
                            + type(pair).__name__)
        if not len(pair) == 2:
            raise ValueError(
                f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]
