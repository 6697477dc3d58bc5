"""The profiler under the name of its older form: it records the same."""
from __future__ import annotations

from flambeau.autograd.profiler import EventList, FunctionEvent, profile

__all__ = ["EventList", "FunctionEvent", "profile"]
