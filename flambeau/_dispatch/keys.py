"""The keys of PyTorch's dispatcher, by which kernels are registered: `CPU`, `Autograd`, `Meta` …

flambeau has one kernel an op; the keys matter for ops of `flambeau.library` and for higher-order
ops, which are told what to run where.

>>> DispatchKey.CPU, int(DispatchKey.AutogradCPU)
(<DispatchKey.CPU: 49>, 134)
>>> DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.AutogradCPU)
DispatchKeySet(CPU, AutogradCPU)
"""
from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any

_BACKENDS = ("CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 "
             "PrivateUse3 Meta").split()
_SINGLE = {
    "Undefined": 0, "Dense": 1, "Quantized": 5, "Sparse": 8, "SparseCsr": 9, "NestedTensor": 10,
    "BackendSelect": 11, "Python": 13, "FuncTorchDynamicLayerBackMode": 14, "Functionalize": 15,
    "Conjugate": 16, "Negative": 17, "ZeroTensor": 18, "ADInplaceOrView": 19, "AutogradOther": 20,
    "AutogradFunctionality": 21, "AutogradNestedTensor": 22, "AutocastCPU": 24, "AutocastXPU": 27,
    "AutocastIPU": 28, "AutocastHPU": 29, "AutocastMPS": 31, "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33, "FuncTorchBatched": 34, "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39, "PythonTLSSnapshot": 41, "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45, "PythonDispatcher": 46}
_ALIASES = {
    "Autograd": 150, "CompositeImplicitAutograd": 151, "FuncTorchBatchedDecomposition": 152,
    "CompositeImplicitAutogradNestedTensor": 153, "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155}


def _numbers() -> dict[str, int]:
    found, number = dict(_SINGLE), 48
    for family, name in (("", "Dense"), ("Quantized", "Quantized"), ("Sparse", "Sparse"),
                         ("SparseCsr", "SparseCsr"), ("NestedTensor", "NestedTensor"),
                         ("Autograd", "AutogradFunctionality")):
        found[f"StartOf{name}Backends"] = number
        for backend in _BACKENDS:
            number += 1
            found[family + backend] = number
        found[f"EndOf{name}Backends"] = number
        number += 1
    return found | _ALIASES


def _made() -> Any:
    make: Any = enum.IntEnum
    return make("DispatchKey", _numbers(), module="torch._C")


DispatchKey: Any = _made()
DispatchKey.__str__ = lambda self: f"DispatchKey.{self.name}"


class DispatchKeySet:
    """A set of keys; that with the highest number has priority."""

    def __init__(self, *keys: Any):
        self._keys = frozenset(keys)

    @classmethod
    def of(cls, keys: Iterable[Any]) -> DispatchKeySet:
        """The set of these keys."""
        return cls(*keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.of(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.of(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.of(self._keys - other._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def add(self, key: Any) -> DispatchKeySet:
        """A set with one key more."""
        return self.of(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """A set with one key less."""
        return self.of(self._keys - {key})

    def has(self, key: Any) -> bool:
        """Is a key in the set?"""
        return key in self._keys

    def highestPriorityTypeId(self) -> Any:
        """The key that is asked first."""
        return max(self._keys, default=DispatchKey.Undefined)

    def raw_repr(self) -> int:
        """The set as bits."""
        return sum(1 << int(key) for key in self._keys)

    @classmethod
    def from_raw_repr(cls, bits: int) -> DispatchKeySet:
        """The set that `raw_repr` has written."""
        return cls.of(DispatchKey(n) for n in range(bits.bit_length()) if bits >> n & 1)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


DispatchKeySet.__module__ = "torch._C"


def parse_key(name: Any) -> Any:
    """The key of that name; RuntimeError if there is none."""
    if isinstance(name, DispatchKey):
        return name
    if name not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return DispatchKey[name]


def keys_of(tensor: Any) -> DispatchKeySet:
    """The keys that a call on `tensor` goes through."""
    backend = "Meta" if tensor.is_meta else "CPU"
    kinds = [DispatchKey[backend], DispatchKey.ADInplaceOrView, DispatchKey[f"Autograd{backend}"]]
    return DispatchKeySet(*kinds, *([] if tensor.is_meta else [DispatchKey.AutocastCPU]))


__all__ = ["DispatchKey", "DispatchKeySet", "keys_of", "parse_key"]
