"""Tensors and a mode that log which ops they see.

>>> from flambeau.testing._internal.logging_tensor import capture_logs_with_logging_tensor_mode
>>> with capture_logs_with_logging_tensor_mode() as logs:
...     _ = flambeau.ones(2) + 1
>>> print(*logs, sep="\\n")
$0: f32[2] = torch._ops.aten.ones.default(['2'], device=device(type='cpu'), pin_memory=False)
$1: f32[2] = torch._ops.aten.add.Tensor($0, 1)
"""
from __future__ import annotations

import contextlib
import itertools
import logging
import traceback
from collections.abc import Iterator
from typing import Any

from flambeau import Tensor
from flambeau.fx.node import dtype_abbrs
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_map
from flambeau.utils.weak import WeakTensorKeyDictionary

_dtype_abbrs = dtype_abbrs
logger = logging.getLogger("LoggingTensor")


class LoggingTensor(Tensor):
    """A tensor around another, `elem`; every op that it takes part in is logged."""

    elem: Tensor
    __slots__ = ["elem"]
    context: Any = contextlib.nullcontext

    @staticmethod
    def __new__(cls, elem: Tensor, *args: Any, **kwargs: Any) -> Any:
        made: Any = Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, layout=elem.layout, device=elem.device,
            requires_grad=kwargs.get("requires_grad", False))
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        base: Any = super()
        return base.__repr__(tensor_contents=f"{self.elem}")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def unwrap(value: Any) -> Any:
            return value.elem if isinstance(value, cls) else value

        def wrap(value: Any) -> Any:
            return cls(value) if isinstance(value, Tensor) else value
        kwargs = kwargs or {}
        with cls.context():
            found = tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs)))
        _log(func, args, kwargs, found)
        return found


class LoggingTensorReentrant(LoggingTensor):
    """A `LoggingTensor` whose ops run with what is below autograd set up anew."""

    @staticmethod
    def context() -> Any:
        from flambeau.overrides import enable_reentrant_dispatch
        return enable_reentrant_dispatch()


class LoggingTensorMode(TorchDispatchMode):
    """Logs every op inside the block."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        _log(func, args, kwargs, found)
        return found


def _log(func: Any, args: Any, kwargs: Any, found: Any) -> None:
    logger.info("%s.%s", func.__module__.replace("flambeau", "torch"), func.__name__,
                extra={"call": (args, kwargs, found)})


class LoggingTensorHandler(logging.Handler):
    """Appends a line for each record to a list; tensors are numbered as they come up."""

    def __init__(self, log_list: list[str], use_shortid_for_all_tensors: bool,
                 with_type: bool, tracebacks_list: list[Any] | None):
        super().__init__()
        self.log_list, self.with_type = log_list, with_type
        self.use_shortid_for_all_tensors = use_shortid_for_all_tensors
        self.tracebacks_list = tracebacks_list
        self.memo = WeakTensorKeyDictionary()
        self._numbers = itertools.count()

    def _shortid(self, tensor: Tensor) -> int:
        if tensor not in self.memo:
            self.memo[tensor] = next(self._numbers)
        return self.memo[tensor]

    def _fmt(self, value: Any, with_type: bool = False) -> str:
        kind = Tensor if self.use_shortid_for_all_tensors else LoggingTensor
        if not isinstance(value, kind):
            return repr(value)
        text = f"${self._shortid(value)}"
        if with_type and self.with_type:
            text += f": {_dtype_abbrs[value.dtype]}[{', '.join(map(str, value.shape))}]"
        return text

    def _each(self, value: Any, **options: Any) -> str:
        """A value as a line shows it: a list as the list of what its items look like."""
        if isinstance(value, list | tuple):
            return str([self._fmt(item, **options) for item in value])
        return self._fmt(value, **options)

    def emit(self, record: logging.LogRecord) -> None:
        args, kwargs, found = vars(record)["call"]
        shown = [*map(self._each, args),
                 *[f"{name}={self._each(value)}" for name, value in kwargs.items()]]
        self.log_list.append(f"{self._each(found, with_type=True)} = {record.getMessage()}"
                             f"({', '.join(shown)})")
        if self.tracebacks_list is not None:
            self.tracebacks_list.append(vars(record)["traceback"])


def log_input(name: str, var: object) -> None:
    """Log a tensor as an input of that name."""
    logger.info("input", extra={"call": ((name,), {}, var)})


class GatherTraceback(logging.Filter):
    """Notes where in the program each record comes from."""

    def __init__(self, python: bool = True, script: bool = True, cpp: bool = False):
        super().__init__()
        self.python, self.script, self.cpp = python, script, cpp

    def filter(self, record: logging.LogRecord) -> bool:
        vars(record)["traceback"] = traceback.extract_stack()
        return True


@contextlib.contextmanager
def capture_logs(is_mode: bool = False, python_tb: bool = False, script_tb: bool = False,
                 cpp_tb: bool = False) -> Iterator[Any]:
    """A list that gets a line for each op that is logged inside the block; with a traceback wanted
    two lists, of lines and of tracebacks."""
    wanted = python_tb or script_tb or cpp_tb
    lines: list[str] = []
    tracebacks: list[Any] = []
    handler = LoggingTensorHandler(lines, use_shortid_for_all_tensors=is_mode, with_type=True,
                                   tracebacks_list=tracebacks if wanted else None)
    if wanted:
        handler.addFilter(GatherTraceback(python_tb, script_tb, cpp_tb))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield (lines, tracebacks) if wanted else lines
    finally:
        logger.level, logger.propagate = before
        logger.removeHandler(handler)


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(python_tb: bool = False, script_tb: bool = False,
                                          cpp_tb: bool = False) -> Iterator[Any]:
    """`capture_logs` of all ops inside the block."""
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs
