"""The names of python-etcd where that is not installed: who uses them learns that it is missing."""
from __future__ import annotations

from typing import Any


class EtcdStubError(ImportError):
    """etcd is asked for."""

    def __init__(self) -> None:
        super().__init__("The 'etcd' module is required but not installed.")


class _Missing(Exception):
    def __init__(self, *args: Any, **kwargs: Any):
        raise EtcdStubError


class EtcdAlreadyExist(_Missing):
    """An error of etcd."""


class EtcdCompareFailed(_Missing):
    """An error of etcd."""


class EtcdKeyNotFound(_Missing):
    """An error of etcd."""


class EtcdWatchTimedOut(_Missing):
    """An error of etcd."""


class EtcdEventIndexCleared(_Missing):
    """An error of etcd."""


class EtcdException(_Missing):
    """An error of etcd."""


class EtcdConnectionFailed(_Missing):
    """An error of etcd."""


class EtcdResult:
    """An answer of etcd."""

    def __init__(self) -> None:
        raise EtcdStubError


class Client:
    """A connection to etcd."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise EtcdStubError
