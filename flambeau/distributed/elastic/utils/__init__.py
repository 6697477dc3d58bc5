"""Helpers of torchelastic: ports, variables of the environment, logs, stores, samplers."""
from __future__ import annotations

from flambeau.distributed.elastic.utils.api import (
    get_env_variable_or_raise,
    get_socket_with_port,
    macros,
)
