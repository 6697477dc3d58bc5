"""How long a process group waits for the others."""
from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

_DEFAULT_PG_TIMEOUT = timedelta(minutes=30)
default_pg_timeout: timedelta = _DEFAULT_PG_TIMEOUT
default_pg_nccl_timeout: timedelta | None = None      # there is no such backend
