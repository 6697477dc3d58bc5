"""The names of backends, and which backend serves which type of device."""
from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import flambeau
from flambeau.distributed._c10d.process_group import BackendType
from flambeau.distributed.constants import default_pg_timeout

_Plugin = namedtuple("_Plugin", ["creator_fn", "extended_api"])


class Backend(str):
    """The name of a backend, in lower case. flambeau has gloo and, where it is
    installed, mpi; others are registered.

    >>> Backend("GLOO")
    'gloo'
    """
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    FAKE = "fake"
    _BackendPlugin = _Plugin
    _plugins: dict[str, Any] = {}
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"],
                          UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"],
                          FAKE: ["cpu", "cuda", "hpu", "xpu"]}
    backend_type_map = {UNDEFINED: BackendType.UNDEFINED, GLOO: BackendType.GLOO,
                        NCCL: BackendType.NCCL, XCCL: BackendType.XCCL, UCC: BackendType.UCC,
                        MPI: BackendType.MPI, FAKE: BackendType.CUSTOM}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper(), None) or name.lower()

    @classmethod
    def register_backend(cls, name: str, func: Callable[..., Any], extended_api: bool = False,
                         devices: str | list[str] | None = None) -> None:
        """Make `func(store, rank, size, timeout)` the maker of backends of this name, for these
        types of devices. With `extended_api` it gets the options of the group instead."""
        upper, lower = name.upper(), name.lower()
        if not hasattr(cls, upper):
            setattr(cls, upper, lower)
        if lower not in cls.backend_list:
            cls.backend_list.append(lower)
        cls.backend_type_map[lower] = BackendType.CUSTOM
        if devices is None:
            import warnings
            warnings.warn(f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or "
                          "`xpu`. Please specify it via the `devices` argument of "
                          "`register_backend`.", stacklevel=2)
            cls.backend_capability[lower] = ["cpu", "cuda"]
        else:
            named = [devices] if isinstance(devices, str) else list(devices)
            for device in named:
                current = cls.default_device_backend_map.get(device)
                if current is None or (current == cls.FAKE and lower != cls.FAKE):
                    cls.default_device_backend_map[device] = lower
            cls.backend_capability[lower] = named
        cls._plugins[upper] = _Plugin(func, extended_api)


class BackendConfig:
    """Which backend serves which type of device.

    >>> BackendConfig("cpu:gloo")
    cpu:gloo
    """

    def __init__(self, backend: str):
        self.device_backend_map: dict[str, str] = {}
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend.GLOO}
        elif ":" in backend.lower():
            self.device_backend_map = {device: Backend(name)
                                       for device, name in _pairs(backend).items()}
        else:
            devices = Backend.backend_capability.get(backend.lower())
            if devices is None:
                import warnings
                warnings.warn(f"Device capability of {backend} unknown, assuming `cpu` and "
                              "`cuda`. You can specify it in `device:backend` format in "
                              "`init_process_group` call.", stacklevel=2)
                devices = ["cpu", "cuda", "xpu"]
            self.device_backend_map = {device: Backend(backend) for device in devices}

    def __repr__(self) -> str:
        return ",".join(f"{device}:{b}" for device, b in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Types of devices to backends."""
        return self.device_backend_map


def _pairs(backend: str) -> dict[str, str]:
    """The devices and backends that a string like "cpu:gloo,cuda:nccl" names."""
    found: dict[str, str] = {}
    message = ("The custom backend string argument is invalid: {}.\n                Custom backend "
               "string is an experimental feature where the backend string must be in the format:"
               "\n                \"<device_type1>:<backend1>,<device_type2>:<backend2>...\". "
               "e.g. 'cpu:gloo,cuda:nccl'")
    for pair in backend.lower().split(","):
        parts = pair.split(":")
        if len(parts) != 2:
            raise ValueError(message.format(backend))
        if parts[0] in found:
            raise ValueError(f"Duplicate device type {parts[0]} in backend string: {backend}. ")
        found[parts[0]] = parts[1]
    return found


def is_available() -> bool:
    """True: the package is there."""
    return True


def is_gloo_available() -> bool:
    """True."""
    return True


def is_nccl_available() -> bool:
    """False: there is no CUDA."""
    return False


def is_mpi_available() -> bool:
    """Are mpi4py and MPICH installed (`pip install 'flambeau[mpi]'`)?"""
    from flambeau.distributed._c10d.backends.mpi.library import is_installed
    return is_installed()


def is_ucc_available() -> bool:
    """False: flambeau is not built with UCC."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XPU."""
    return False


def is_backend_available(backend: str) -> bool:
    """Are these backends there? gloo is, mpi where it is installed, and those that are registered.

    >>> is_backend_available("gloo"), is_backend_available("nccl")
    (True, False)
    """
    names = _pairs(backend).values() if ":" in backend else [backend.lower()]
    missing = {"nccl", "ucc", "xccl", "undefined"} | ({"mpi"} if not is_mpi_available() else set())
    return all(name not in missing - {p.lower() for p in Backend._plugins}
               and name in Backend.backend_list for name in names)


def is_torchelastic_launched() -> bool:
    """Was this process started by torchelastic?"""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a type of device unless told otherwise."""
    kind = device.type if isinstance(device, flambeau.device) else flambeau.device(device).type
    if kind == "cpu" and is_mpi_available():
        return Backend.MPI
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def check_timeout(timeout: Any) -> None:
    """A timeout is a timedelta."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got "
                        f"{timeout}")


def default_timeout(backend: str) -> timedelta:
    """How long groups of a backend wait unless told otherwise."""
    return default_pg_timeout
