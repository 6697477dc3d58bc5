"""Programs of many processes that go on when one of them fails, or when machines come and go.

An agent on each machine (`agent`) meets the others (`rendezvous`), starts the workers of its own
(`multiprocessing`), watches them, and starts all again where one has failed.
"""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.distributed.elastic", "agent", "control_plane", "events",
                           "metrics", "multiprocessing", "rendezvous", "timer", "utils")
