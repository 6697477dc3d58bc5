"""Profiling what other workers call here."""
from __future__ import annotations

from typing import Any

from flambeau.autograd.profiler_legacy import profile

__all__: list[str] = []


class _server_process_global_profile(profile):
    """Profiles all threads of this process. NotImplementedError: profiles are of one thread."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.distributed.rpc._server_process_global_profile: flambeau "
                                  "profiles the thread that asks for it")
