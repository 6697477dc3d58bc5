"""Marks for Intel's tools: they are for builds with ITT."""
from __future__ import annotations

from flambeau._support.devices.absent import answer, refusal, settle

_MESSAGE = "ITT functions not installed. Are you sure you have a ITT build?"
is_available = answer("is_available", False, "False: there is no ITT.")
mark, range_push, range_pop, range = (
    refusal(heading, RuntimeError, _MESSAGE) for heading in (
        "mark(msg)", "range_push(msg)", "range_pop", "range(msg,*args,**kwargs)"))

settle(globals())
__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]
