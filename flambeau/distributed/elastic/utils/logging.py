"""Logs of torchelastic, in the form that PyTorch's logs have."""
from __future__ import annotations

import inspect
import logging
import os

from flambeau.distributed.elastic.utils.log_level import get_log_level

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))).split("flambeau")[0]


class _Formatter(logging.Formatter):
    """Each line tells level, time, process and place: `W1122 19:53:00.433000 4711 file.py:7] …`."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        place = record.pathname.removeprefix(_PACKAGE)
        clock = self.formatTime(record, "%m%d %H:%M:%S")
        head = (f"{_rank()}{record.levelname[0]}{clock}.{int(record.msecs):03}000 "
                f"{record.process} {place}:{record.lineno}]")
        return "\n".join(f"{head} {line}" for line in text.split("\n"))


def _rank() -> str:
    from flambeau import distributed
    return f"[rank{distributed.get_rank()}]:" if distributed.is_initialized() else ""


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of a module, the caller's by default; the variable LOGLEVEL sets its level.

    Its name begins with `torch`, as that of PyTorch's loggers, whose settings so hold here.

    >>> get_logger("flambeau.distributed.run").name
    'torch.distributed.run'
    """
    name = name or _derive_module_name(depth=2) or "flambeau.distributed.elastic"
    package, dot, rest = name.partition(".")
    return _setup_logger("torch" + dot + rest if package == "flambeau" else name)


def _setup_logger(name: str | None = None) -> logging.Logger:
    parent = logging.getLogger("torch.distributed")
    if not parent.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter())
        parent.addHandler(handler)
        parent.propagate = False
    logger = logging.getLogger(name)
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger


def _derive_module_name(depth: int = 1) -> str | None:
    """The name of the module that called, `depth` calls up."""
    frame = inspect.currentframe()
    for _ in range(depth):
        frame = frame and frame.f_back
    return frame and frame.f_globals.get("__name__")  # type: ignore[return-value]
