"""Lists and dicts of parameters, as modules."""
from __future__ import annotations

from collections import OrderedDict
from collections import abc as container_abcs

import flambeau
from flambeau import Tensor
from flambeau.nn.modules.container.modules import _counted, _pairs
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter


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
        pairs = _pairs(ParameterDict, parameters, "ParametersDict")
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
