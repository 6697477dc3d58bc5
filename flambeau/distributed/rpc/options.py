"""Options of the transport."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed.rpc import constants

__all__ = ["TensorPipeRpcBackendOptions"]

DeviceType = int | str | flambeau.device


class RpcBackendOptions:
    """What all transports know: a timeout in seconds, and where the workers meet."""

    def __init__(self, rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method: str = constants.DEFAULT_INIT_METHOD):
        self.rpc_timeout, self.init_method = rpc_timeout, init_method

    @property
    def rpc_timeout(self) -> float:
        """Seconds that a call may take; 0 means no limit."""
        return self._rpc_timeout

    @rpc_timeout.setter
    def rpc_timeout(self, seconds: float) -> None:
        if seconds < 0:
            raise RuntimeError("RPC Timeout must be non-negative")
        self._rpc_timeout = float(seconds)


class _TensorPipeRpcBackendOptionsBase(RpcBackendOptions):
    def __init__(self, num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
                 _transports: list[str] | None = None, _channels: list[str] | None = None,
                 rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method: str = constants.DEFAULT_INIT_METHOD,
                 device_maps: dict[str, Any] | None = None, devices: list[Any] | None = None):
        if num_worker_threads <= 0:
            raise RuntimeError(f"num_worker_threads must be positive, got {num_worker_threads}")
        super().__init__(rpc_timeout, init_method)
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, Any] = device_maps or {}
        self.devices: list[Any] = devices or []

    def _set_device_map(self, to: str, device_map: dict[Any, Any]) -> None:
        self.device_maps[to] = {**self.device_maps.get(to, {}), **device_map}


def _to_device(device: DeviceType) -> flambeau.device:
    """A device, which has to be one of an accelerator: tensors on the CPU need no map."""
    if isinstance(device, int):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    found = flambeau.device(device)
    if found.type != "cuda":
        raise ValueError("`set_devices` expect a list of CUDA devices, but got device type "
                         f"{found.type}.")
    return found


def _to_device_map(device_map: dict[DeviceType, DeviceType]
                   ) -> dict[flambeau.device, flambeau.device]:
    found: dict[flambeau.device, flambeau.device] = {}
    for source, target in device_map.items():
        source, target = _to_device(source), _to_device(target)
        if target in found.values():
            raise ValueError(f"device_map only supports 1-to-1 mapping, but {target} is there "
                             "twice.")
        found[source] = target
    return found


def _to_device_list(devices: list[DeviceType]) -> list[flambeau.device]:
    return list(map(_to_device, devices))


class TensorPipeRpcBackendOptions(_TensorPipeRpcBackendOptionsBase):
    """Options of `init_rpc`.

    Args:
        num_worker_threads: how many threads run what other workers call.
        rpc_timeout: seconds that a call may take; 0 means no limit.
        init_method: where the workers meet, as in `init_process_group`.
        device_maps: for accelerators, on which device of a worker a tensor arrives.
        devices: the accelerators in use.

    >>> TensorPipeRpcBackendOptions(rpc_timeout=20).rpc_timeout
    20.0
    """

    def __init__(self, *, num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
                 rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method: str = constants.DEFAULT_INIT_METHOD,
                 device_maps: dict[str, dict[DeviceType, DeviceType]] | None = None,
                 devices: list[DeviceType] | None = None, _transports: list[Any] | None = None,
                 _channels: list[Any] | None = None):
        maps = {name: _to_device_map(found) for name, found in (device_maps or {}).items()}
        super().__init__(num_worker_threads, _transports, _channels, rpc_timeout, init_method,
                         maps, _to_device_list(devices or []))

    def set_device_map(self, to: str, device_map: dict[DeviceType, DeviceType]) -> None:
        """Say on which device of a worker tensors of a device arrive."""
        self._set_device_map(to, _to_device_map(device_map))

    def set_devices(self, devices: list[DeviceType]) -> None:
        """Say which accelerators are in use."""
        self.devices = _to_device_list(devices)
