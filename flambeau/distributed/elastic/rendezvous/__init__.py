"""How agents meet: each learns how many nodes there are, which it is, and through which store the
workers will talk.

A backend keeps the state of the meeting: "c10d" (a store that one of the agents holds; nodes may
come and go) or "static" (all is known beforehand).
"""
from __future__ import annotations

from flambeau.distributed.elastic.rendezvous.api import *
from flambeau.distributed.elastic.rendezvous.registry import (
    _register_default_handlers,
    _register_out_of_tree_handlers,
)

_register_default_handlers()
_register_out_of_tree_handlers()

__all__ = ["RendezvousClosedError", "RendezvousConnectionError", "RendezvousError",
           "RendezvousGracefulExitError", "RendezvousHandler", "RendezvousHandlerCreator",
           "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters",
           "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
           "rendezvous_handler_registry"]
