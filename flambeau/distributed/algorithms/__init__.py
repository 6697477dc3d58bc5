"""Algorithms on top of process groups."""
from __future__ import annotations

from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
