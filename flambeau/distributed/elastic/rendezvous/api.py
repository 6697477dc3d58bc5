"""What all kinds of rendezvous share: handlers, their parameters, their registry, errors."""
from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from flambeau.distributed._c10d.stores import Store
from flambeau.distributed.elastic.utils.distributed import get_free_port

__all__ = ["RendezvousClosedError", "RendezvousConnectionError", "RendezvousError",
           "RendezvousGracefulExitError", "RendezvousHandler", "RendezvousHandlerCreator",
           "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters",
           "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
           "rendezvous_handler_registry"]


class RendezvousError(Exception):
    """Something went wrong in a rendezvous."""


class RendezvousClosedError(RendezvousError):
    """It is closed: nobody can join any more."""


class RendezvousTimeoutError(RendezvousError):
    """Too few nodes joined in time."""


class RendezvousConnectionError(RendezvousError):
    """The backend cannot be reached."""


class RendezvousStateError(RendezvousError):
    """The state that the backend keeps is broken."""


class RendezvousGracefulExitError(RendezvousError):
    """This node is not needed any more."""


@dataclass
class RendezvousStoreInfo:
    """Where the store of the workers is."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store: Store, local_addr: str | None, server_port: int | None = None
              ) -> RendezvousStoreInfo:
        """Rank 0 tells the others its address, and the port of its server or a free one.

        >>> from flambeau.distributed import HashStore
        >>> RendezvousStoreInfo.build(0, HashStore(), "localhost", 29500)
        RendezvousStoreInfo(master_addr='localhost', master_port=29500)
        """
        keys = RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY
        if rank == 0:
            store.set(keys[0], local_addr or socket.getfqdn())
            store.set(keys[1], str(server_port or get_free_port()))
        return RendezvousStoreInfo(store.get(keys[0]).decode(), int(store.get(keys[1])))


class RendezvousInfo:
    """What a rendezvous gives: a store, this node's number of how many, and where the store of
    the workers is."""

    def __init__(self, store: Store, rank: int, world_size: int,
                 bootstrap_store_info: RendezvousStoreInfo):
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    @property
    def store(self) -> Store:
        """The store of the agents."""
        return self._store

    @property
    def rank(self) -> int:
        """The number of this node."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many nodes there are."""
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where the store of the workers is."""
        return self._bootstrap_store_info


class RendezvousHandler(ABC):
    """A node's part in a rendezvous."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name of the backend."""

    @property
    def use_agent_store(self) -> bool:
        """Does the store of the workers live in an agent?"""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Meet the other nodes: waits until there are enough of them."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Has the rendezvous ended for good?"""

    @abstractmethod
    def set_closed(self) -> None:
        """End the rendezvous for good."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many nodes wait to be let in, in the next round."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The name of the run."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Close the rendezvous and leave; did that work?"""


class RendezvousParameters:
    """What is known beforehand of a rendezvous; `kwargs` are options of its backend.

    >>> parameters = RendezvousParameters("c10d", "localhost:0", "run", 1, 2, timeout="30")
    >>> parameters.get_as_int("timeout")
    30
    """

    def __init__(self, backend: str, endpoint: str, run_id: str, min_nodes: int, max_nodes: int,
                 local_addr: str | None = None, **kwargs: Any):
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be "
                             "greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or "
                f"equal to the minimum number of rendezvous nodes ({min_nodes}).")
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes = min_nodes, max_nodes
        self.config, self.local_addr = kwargs, local_addr

    def get(self, key: str, default: Any = None) -> Any:
        """The value of an option."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """The value of an option: "1", "yes" and so on are True, "0", "no" False."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        for words, meaning in ((("1", "true", "t", "yes", "y"), True),
                               (("0", "false", "f", "no", "n"), False)):
            if (isinstance(value, str) and value.lower() in words) or \
                    (isinstance(value, int) and value == meaning):
                return meaning
        raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid "
                         "boolean value.")

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """The value of an option as a number."""
        value = self.get(key, default)
        try:
            return value if value is None else int(value)
        except ValueError as error:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a "
                             "valid integer value.") from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Backends by name."""

    def __init__(self) -> None:
        self._registry: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Make `creator(parameters)` give the handlers of a backend."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._registry.get(backend, creator)
        if known != creator:
            raise ValueError(f"The rendezvous backend '{backend}' cannot be registered with "
                             f"'{creator}' as it is already registered with '{known}'.")
        self._registry[backend] = creator

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """A handler of the backend that the parameters name."""
        creator = self._registry.get(params.backend)
        if creator is None:
            raise ValueError(f"The rendezvous backend '{params.backend}' is not registered. Did "
                             "you forget to call `register`?")
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(f"The rendezvous backend '{handler.get_backend()}' does not match "
                               f"the requested backend '{params.backend}'.")
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
