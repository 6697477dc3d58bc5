"""Modules that hold modules or parameters."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections import abc as container_abcs
from itertools import chain, islice
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn.parameter import Parameter

from .module import Module, _addindent

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _counted(index, length, text="index {} is out of range"):
    """`index` counted from the start; IndexError if it lies outside."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(text.format(index))
    return index % length


class Container(Module):
    """An empty module that takes named submodules; kept for old code."""

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
            raise ValueError(
                "add operator supports only objects "
                f"of Sequential class, but {type(other)} is given."
            )
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
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _pairs(owner, values, called=None):
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(values, container_abcs.Iterable):
        raise TypeError(
            f"{called or owner}.update should be called with an iterable of key/value pairs, "
            f"but got {type(values).__name__}")
    if isinstance(values, (ModuleDict, ParameterDict, container_abcs.Mapping)):
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


class _ParameterHolder(Module):
    """What ParameterList and ParameterDict share: how an element is kept and how it prints."""

    @staticmethod
    def _as_element(value):
        # Tensors become parameters; other things are kept as they are.
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            return Parameter(value)
        return value

    def _type_in_repr(self, value):
        return value.dtype

    def _describe(self, key, value):
        if not isinstance(value, Tensor):
            return f"({key}): Object of type: {type(value).__name__}"
        size = "x".join(str(n) for n in value.size())
        device = "" if not value.is_cuda else f" (GPU {value.get_device()})"
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"({key}): {kind} containing: [{self._type_in_repr(value)} of size {size}{device}]"

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__} should not be called.")


class ParameterList(_ParameterHolder):
    """A list whose tensors are registered as parameters.

    Example:
        >>> nn.ParameterList([flambeau.ones(2, 3), flambeau.ones(4)])
        ParameterList(
            (0): Parameter containing: [torch.float32 of size 2x3]
            (1): Parameter containing: [torch.float32 of size 4]
        )
    """

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx):
        return str(_counted(idx, len(self)))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            picked = type(self)()
            for i in range(*idx.indices(len(self))):
                picked.append(self[i])
            return picked
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param) -> None:
        return setattr(self, self._get_abs_string_index(idx), self._as_element(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value) -> ParameterList:
        """Add a value at the end."""
        index = len(self)
        self._size += 1
        self[index] = value
        return self

    def extend(self, values) -> ParameterList:
        """Add all values of an iterable at the end."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, "
                            f"but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join("  " + self._describe(i, value) for i, value in enumerate(self))


class ParameterDict(_ParameterHolder):
    """A dictionary whose tensors are registered as parameters.

    Example:
        >>> params = nn.ParameterDict({"left": flambeau.ones(2)})
        >>> params["right"] = nn.Parameter(flambeau.zeros(3))
        >>> [name for name, _ in params.named_parameters()]
        ['left', 'right']
    """

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is "
                            f"not a string (type is '{type(key).__name__}'). Open an issue on "
                            "github if you need non-string keys.")
        return key

    def __getitem__(self, key: str):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), self._as_element(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A shallow copy."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default=None):
        """The value of `key`, which is set to `default` if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str):
        """Remove a key and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove and return the pair that was added last."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, self._key_to_attr(key))
        return key, value

    def get(self, key: str, default=None):
        """The value of `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys, default=None) -> ParameterDict:
        """A new dictionary with `keys`, all with the same value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """Pairs (key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters) -> None:
        """Add or replace values, from a mapping or from pairs.

        Those of a plain dict come in the order of their keys, so that optimisers see parameters in
        the order that PyTorch gives them.
        """
        pairs = _pairs("ParameterDict", parameters, "ParametersDict")
        if isinstance(parameters, container_abcs.Mapping) and not isinstance(
                parameters, (OrderedDict, ParameterDict)):
            pairs = sorted(pairs)
        for key, value in pairs:
            self[key] = value

    def _type_in_repr(self, value):
        return flambeau.typename(value)

    def extra_repr(self) -> str:
        return "\n".join("  " + self._describe(key, value) for key, value in self.items())

    def __call__(self, input):
        super().__call__(input)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict):
        self.update(other)
        return self
