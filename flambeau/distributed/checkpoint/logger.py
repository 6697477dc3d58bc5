"""The logger of checkpoints."""
from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from flambeau.distributed.checkpoint.logging_handlers import DCP_LOGGER_NAME, _log_handlers

__all__: list[str] = []

_dcp_logger = logging.getLogger(DCP_LOGGER_NAME)
_dcp_logger.addHandler(_log_handlers[DCP_LOGGER_NAME])


def _msg_dict_from_dcp_method_args(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """What is logged of a call: the checkpoint that it is about."""
    storage = kwargs.get("storage_writer") or kwargs.get("storage_reader")
    checkpoint_id = kwargs.get("checkpoint_id") or getattr(storage, "checkpoint_id", None)
    return {} if checkpoint_id is None else {"checkpoint_id": str(checkpoint_id)}


def _get_msg_dict(func_name: str, **kwargs: Any) -> dict[str, Any]:
    from flambeau.distributed import distributed_c10d as dist
    found = {"func_name": func_name, **_msg_dict_from_dcp_method_args(**kwargs)}
    if dist.is_initialized():
        found |= {"pg_size": dist.get_world_size(), "global_rank": dist.get_rank()}
    return found


def _dcp_method_logger(log_exceptions: bool = False, **wrapper_kwargs: Any) -> Any:
    """A decorator: beginning, end and errors of calls are logged."""
    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            about = _get_msg_dict(func.__name__, **{**wrapper_kwargs, **kwargs})
            _dcp_logger.debug({**about, "event": "start"})
            began = time.time_ns()
            try:
                result = func(*args, **kwargs)
            except BaseException as error:
                if log_exceptions:
                    _dcp_logger.error({**about, "event": "exception", "error": repr(error)})
                raise
            _dcp_logger.debug({**about, "event": "end", "time": time.time_ns() - began})
            return result
        return wrapper
    return decorator


def _init_logger(rank: int) -> None:
    """Let the logger name this process."""
    logging.getLogger(DCP_LOGGER_NAME).setLevel(logging.INFO)
