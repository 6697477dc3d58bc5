"""Keys of PyTorch's dispatcher, sets of them, and guards that set keys aside.

There is no dispatcher with a table of kernels here: the keys name what PyTorch would do with a
tensor, and excluding a key switches off what it stands for, recording of gradients or autocast.

>>> import flambeau
>>> DispatchKeySet(DispatchKey.CPU).add(DispatchKey.AutogradCPU)
DispatchKeySet(CPU, AutogradCPU)
>>> x = flambeau.ones(1, requires_grad=True)
>>> with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutogradCPU)):
...     x * 2
tensor([2.])
"""
from __future__ import annotations

import enum
import threading
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import bound_in_c

BACKENDS = ("CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 "
            "PrivateUse3 Meta").split()
# In order of priority, the lowest first; a key's number is its place.
FUNCTIONALITIES = (
    "Undefined Dense FPGA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr "
    "NestedTensor BackendSelect Fake Python FuncTorchDynamicLayerBackMode Functionalize Conjugate "
    "Negative ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor "
    "Tracer AutocastCPU AutocastMTIA AutocastMAIA AutocastXPU AutocastIPU AutocastHPU AutocastXLA "
    "AutocastMPS AutocastCUDA AutocastPrivateUse1 FuncTorchBatched BatchedNestedTensor "
    "FuncTorchVmapMode Batched VmapMode FuncTorchGradWrapper DeferredInit PythonTLSSnapshot "
    "FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode "
    "PreDispatch PythonDispatcher EndOfFunctionalityKeys").split()
# Functionalities with a key for each backend, and how those keys begin.
BY_BACKEND = {"Dense": "", "Quantized": "Quantized", "Sparse": "Sparse", "SparseCsr": "SparseCsr",
              "NestedTensor": "NestedTensor", "AutogradFunctionality": "Autograd"}
ALIASES = ("Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition "
           "CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd "
           "CompositeExplicitAutogradNonFunctional").split()


def _numbers() -> dict[str, int]:
    """The number of each key: functionalities, those of each by backend, aliases."""
    found = {name: i for i, name in enumerate(FUNCTIONALITIES)}
    start = len(FUNCTIONALITIES)
    for family, prefix in BY_BACKEND.items():
        found[f"StartOf{family}Backends"] = start
        found |= {prefix + name: start + 1 + i for i, name in enumerate(BACKENDS)}
        start += 1 + len(BACKENDS)
        found[f"EndOf{family}Backends"] = start - 1
    return found | {name: start + i for i, name in enumerate(ALIASES)}


class _Key(enum.Enum):
    """What an op does with a tensor, or what runs it: one of PyTorch's keys."""

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


DispatchKey: Any = _Key("DispatchKey", _numbers(), module="torch._C")   # type: ignore[call-arg]

_BACKEND_BITS = len(BACKENDS)
_ALL_BACKENDS = (1 << _BACKEND_BITS) - 1


def _bits_of(key: Any) -> int:
    name = key.name
    for family, prefix in BY_BACKEND.items():
        if name.startswith(prefix) and name[len(prefix):] in BACKENDS:
            backend = 1 << BACKENDS.index(name[len(prefix):])
            return backend | _functionality_bit(FUNCTIONALITIES.index(family))
    if name in FUNCTIONALITIES[1:-1]:
        return _functionality_bit(FUNCTIONALITIES.index(name))
    return 0


def _functionality_bit(number: int) -> int:
    return 1 << (_BACKEND_BITS + number - 1)


@bound_in_c
class DispatchKeySet:
    """A set of keys. Backends and functionalities are kept apart, so that a set with two backends
    has every functionality for both."""

    __slots__ = ("_bits",)

    def __init__(self, key: Any):
        if not isinstance(key, DispatchKey):
            raise TypeError("DispatchKeySet(): expected a torch._C.DispatchKey, but got "
                            f"{type(key).__name__}")
        self._bits = _bits_of(key)

    @classmethod
    def from_raw_repr(cls, bits: int) -> DispatchKeySet:
        """The set that `raw_repr` describes."""
        made = object.__new__(cls)
        made._bits = bits
        return made

    def raw_repr(self) -> int:
        """The set as bits: backends in the lowest, then functionalities."""
        return self._bits

    def has(self, key: Any) -> bool:
        """Is a key in the set?"""
        bits = _bits_of(key)
        return bits & self._bits == bits

    def add(self, key: Any) -> DispatchKeySet:
        """The set with a key."""
        return self | DispatchKeySet(key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without the functionality of a key."""
        return self - DispatchKeySet(key)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits | other._bits)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits & other._bits)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits & (_ALL_BACKENDS | ~other._bits))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def members(self) -> list[Any]:
        """The keys, those of lowest priority first."""
        backends = [name for i, name in enumerate(BACKENDS) if self._bits >> i & 1]
        found = []
        for number, family in enumerate(FUNCTIONALITIES[1:-1], 1):
            if not self._bits & _functionality_bit(number):
                continue
            names = [BY_BACKEND[family] + name for name in backends] if family in BY_BACKEND \
                else [family]
            found += [DispatchKey[name] for name in names]
        return found

    def highestPriorityTypeId(self) -> Any:
        """The key that the dispatcher would serve first."""
        keys = self.members()
        return keys[-1] if keys else DispatchKey.Undefined

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self.members())})"


DispatchKeySet.__module__ = "torch._C"


# ---- what keys tensors and devices have ----------------------------------------------------------


def _key_set(*names: str) -> DispatchKeySet:
    found = DispatchKeySet.from_raw_repr(0)
    for name in names:
        found |= DispatchKeySet(DispatchKey[name])
    return found


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The keys of a tensor."""
    backend = _backend(tensor.device.type)
    family = "Dense"
    if tensor.is_quantized:
        family = "Quantized"
    elif tensor.layout is not _strided():
        family = "Sparse" if tensor.is_sparse else "SparseCsr"
    names = [BY_BACKEND[family] + backend, "ADInplaceOrView", f"Autograd{backend}"]
    if backend == "CPU":
        names.append("AutocastCPU")
    if tensor.is_conj():
        names.append("Conjugate")
    return _key_set(*names)


def _strided() -> Any:
    from flambeau.core.type_info import strided
    return strided


def _backend(device_type: str) -> str:
    known = {name.lower(): name for name in BACKENDS} | {"privateuseone": "PrivateUse1"}
    return known[device_type]


def _dispatch_key_for_device(device_type: str) -> str:
    """The name of the key of a type of device."""
    from flambeau.core.devices import device
    return _backend(device(device_type).type)


def _dispatch_key_name(key: Any) -> str:
    """The name of a key."""
    return key.name


def _dispatch_key_parse(name: str) -> Any:
    """The key of a name."""
    try:
        return DispatchKey[name]
    except KeyError:
        raise RuntimeError(f"could not parse dispatch key: {name}") from None


_parse_dispatch_key = _dispatch_key_parse
keys_of = _dispatch_keys


def parse_key(name: Any) -> Any:
    """A key as it is, or the one of a name."""
    return name if isinstance(name, DispatchKey) else _dispatch_key_parse(name)


def _to_functionality_key(key: Any) -> Any:
    """What a key does, without its backend."""
    for family, prefix in BY_BACKEND.items():
        if key.name.startswith(prefix) and key.name[len(prefix):] in BACKENDS:
            return DispatchKey[family]
    return key


def _dispatch_is_alias_key(key: Any) -> bool:
    """Does a key stand for several?"""
    return key.name in ALIASES


def _dispatch_is_included_in_alias(key: Any, alias: Any) -> bool:
    """Is a key one of those for which `alias` stands?"""
    autograd = key.name.startswith("Autograd") and key.name != "AutogradFunctionality"
    if alias.name == "Autograd":
        return autograd
    return alias.name in ALIASES and (not autograd or alias.name.startswith("CompositeImplicit"))


def _dispatch_keyset_full() -> DispatchKeySet:
    """The set of all keys."""
    return DispatchKeySet.from_raw_repr(
        (1 << (_BACKEND_BITS + len(FUNCTIONALITIES) - 2)) - 1)


def _dispatch_keyset_to_string(keys: DispatchKeySet) -> str:
    """A set as text."""
    return repr(keys)


def _dispatch_num_backends() -> int:
    """The number of backends."""
    return len(BACKENDS)


# ---- guards --------------------------------------------------------------------------------------

_AUTOCAST = [name for name in FUNCTIONALITIES if name.startswith("Autocast")]


class _OfThread(threading.local):
    """The keys that every call of a thread has, and those that guards set aside."""

    def __init__(self) -> None:
        self.included = _key_set("BackendSelect", "ADInplaceOrView")
        self.excluded = _key_set()


_of_thread = _OfThread()


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys that every call has."""
    return _of_thread.included


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that are set aside: by guards, and those of autocast where it is off."""
    from flambeau.amp.autocast_mode import is_autocast_enabled
    off = [name for name in _AUTOCAST if not is_autocast_enabled(_device_type(name))]
    return _of_thread.excluded | _key_set(*off)


def _device_type(autocast_key: str) -> str:
    backend = autocast_key.removeprefix("Autocast").lower()
    return "privateuseone" if backend == "privateuse1" else backend


def _dispatch_tls_is_dispatch_key_excluded(key: Any) -> bool:
    """Is a key set aside?"""
    return _dispatch_tls_local_exclude_set().has(key)


def _dispatch_tls_is_dispatch_key_included(key: Any) -> bool:
    """Has every call this key?"""
    return _of_thread.included.has(key)


below_autograd: ContextVar[bool] = ContextVar("below_autograd", default=False)


class _Guard:
    """Changes the sets of keys from when it is made until its block ends, or until it is gone."""

    def __init__(self, include: DispatchKeySet, exclude: DispatchKeySet):
        from flambeau.amp.autocast_mode import autocast
        from flambeau.core.autograd.grad_mode import no_grad
        self._before = _of_thread.included, _of_thread.excluded
        self._open = ExitStack()
        new = DispatchKeySet.from_raw_repr(exclude.raw_repr() & ~_of_thread.excluded.raw_repr())
        _of_thread.included, _of_thread.excluded = include, exclude
        names = {key.name for key in (new | _key_set("CPU")).members()}
        if names & {"AutogradCPU", "AutogradMeta"}:
            self._open.enter_context(no_grad())
            self._open.callback(below_autograd.reset, below_autograd.set(True))
        if "AutocastCPU" in names:
            self._open.enter_context(autocast("cpu", enabled=False))

    def _end(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            _of_thread.included, _of_thread.excluded = self._before

    def __enter__(self) -> _Guard:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._end()

    def __del__(self) -> None:
        self._end()


class _ExcludeDispatchKeyGuard(_Guard):
    """Sets keys aside."""

    def __init__(self, keys: DispatchKeySet):
        super().__init__(_of_thread.included, _of_thread.excluded | keys)


class _SetExcludeDispatchKeyGuard(_Guard):
    """Sets a key aside, or not."""

    def __init__(self, key: Any, set_excluded: bool):
        keys = DispatchKeySet(key)
        excluded = _of_thread.excluded
        super().__init__(_of_thread.included, excluded | keys if set_excluded else excluded - keys)


class _IncludeDispatchKeyGuard(_Guard):
    """Gives every call a key."""

    def __init__(self, key: Any):
        super().__init__(_of_thread.included | DispatchKeySet(key), _of_thread.excluded)


class _ForceDispatchKeyGuard(_Guard):
    """Sets both sets of keys."""

    def __init__(self, include: DispatchKeySet, exclude: DispatchKeySet):
        super().__init__(include, exclude)


class _PreserveDispatchKeyGuard(_Guard):
    """Restores both sets of keys at its end."""

    def __init__(self) -> None:
        super().__init__(_of_thread.included, _of_thread.excluded)


class _AutoDispatchBelowAutograd(_Guard):
    """Sets the keys of autograd aside."""

    def __init__(self) -> None:
        super().__init__(_of_thread.included,
                         _of_thread.excluded | _key_set("AutogradCPU", "ADInplaceOrView"))


class _AutoDispatchBelowADInplaceOrView(_AutoDispatchBelowAutograd):
    """Sets the keys of autograd aside."""


class _DisableAutocast(_Guard):
    """Sets autocast aside."""

    def __init__(self) -> None:
        super().__init__(_of_thread.included, _of_thread.excluded | _key_set(*_AUTOCAST))
