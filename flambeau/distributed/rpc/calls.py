"""Calls as they travel, and what they raise: an error as words that another process can raise."""
from __future__ import annotations

import sys
import traceback
from typing import Any, NamedTuple

from flambeau.distributed.rpc.current import current_agent


class PythonUDF(NamedTuple):
    """A function and its arguments."""

    func: Any
    args: Any
    kwargs: Any


class RemoteException(NamedTuple):
    """What a function raised in another process, in words, and its type."""

    msg: str
    exception_type: type[BaseException]


def _run_function(python_udf: Any) -> Any:
    """Call a function: what it returns, or a `RemoteException`."""
    try:
        if isinstance(python_udf, AttributeError):
            raise python_udf
        return python_udf.func(*python_udf.args, **python_udf.kwargs)
    except Exception as error:
        return describe_error(error)


def describe_error(error: Exception) -> RemoteException:
    """An error in words that another process can raise."""
    words = (f"On {current_agent().get_worker_info()}:\n{error!r}\n"
             f"{''.join(traceback.format_exception(error))}")
    print(words, file=sys.stderr)
    return RemoteException(words, type(error))


def _handle_exception(result: Any) -> None:
    """Raise what another process raised, if that is what it sent."""
    if not isinstance(result, RemoteException):
        return
    try:
        error = result.exception_type(result.msg.replace("\\n", "\n"))
    except Exception as failure:
        raise RuntimeError(
            f"Failed to create original exception type. Error msg was {failure} Original "
            f"exception on remote side was {result.msg}") from failure
    raise error
