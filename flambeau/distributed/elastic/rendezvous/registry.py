"""The backends that are there."""
from __future__ import annotations

from importlib.metadata import entry_points

from flambeau.distributed.elastic.rendezvous.api import RendezvousHandler, RendezvousParameters
from flambeau.distributed.elastic.rendezvous.api import (
    rendezvous_handler_registry as handler_registry,
)
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["get_rendezvous_handler"]

log = get_logger(__name__)


def _create_static_handler(params: RendezvousParameters) -> RendezvousHandler:
    from flambeau.distributed.elastic.rendezvous import static_tcp_rendezvous
    return static_tcp_rendezvous.create_rdzv_handler(params)


def _create_etcd_handler(params: RendezvousParameters) -> RendezvousHandler:
    from flambeau.distributed.elastic.rendezvous import etcd_rendezvous
    return etcd_rendezvous.create_rdzv_handler(params)


def _create_etcd_v2_handler(params: RendezvousParameters) -> RendezvousHandler:
    from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
    from flambeau.distributed.elastic.rendezvous.etcd_rendezvous_backend import create_backend
    backend, store = create_backend(params)
    return create_handler(store, backend, params)


def _create_c10d_handler(params: RendezvousParameters) -> RendezvousHandler:
    from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
    from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
    backend, store = create_backend(params)
    return create_handler(store, backend, params)


def _register_default_handlers() -> None:
    for name, create in {"etcd": _create_etcd_handler, "etcd-v2": _create_etcd_v2_handler,
                         "c10d": _create_c10d_handler, "static": _create_static_handler}.items():
        handler_registry.register(name, create)


def _register_out_of_tree_handlers() -> None:
    """The backends that installed packages declare as `torchrun.handlers`."""
    for found in entry_points(group="torchrun.handlers"):
        try:
            handler_registry.register(found.name, found.load()())
        except Exception:
            log.warning("Exception while registering out of tree plugin %s: ", found.name,
                        exc_info=True)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """A handler of the backend that the parameters name: "c10d", "static", or one that was
    registered.

    >>> parameters = RendezvousParameters("static", "localhost:29500", "run", 1, 1, rank=0)
    >>> get_rendezvous_handler(parameters).get_backend()
    'static'
    """
    return handler_registry.create_handler(params)
