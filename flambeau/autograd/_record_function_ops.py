"""The ops of `torch.ops.profiler`: named blocks of a profile, begun and ended by hand."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau._C._ir import ScriptObject
from flambeau.autograd.profiler import record_function

_RECORD = "__torch__.torch.classes.profiler._RecordFunction"
_open: dict[int, _Block] = {}          # blocks that a tensor stands for


class _Block(ScriptObject):
    """A named block of a profile that has begun."""

    def __init__(self, block: record_function):
        self.block = block

    def __repr__(self) -> str:
        return f"ScriptObject <{_RECORD}>"


def _enter_new(name: str, args: str | None = None) -> _Block:
    block = record_function(name, args)
    block.begin()
    return _Block(block)


def _enter(name: str, args: str | None = None) -> flambeau.Tensor:
    block = _enter_new(name, args)
    _open[id(block)] = block
    return flambeau.tensor(id(block))


def _exit(handle: Any) -> None:
    if isinstance(handle, flambeau.Tensor):
        handle = _open.pop(int(handle), None)
    if not isinstance(handle, _Block):
        raise RuntimeError("profiler::_record_function_exit() Expected a value of type 'Tensor' "
                           "for argument 'handle': what _record_function_enter has given")
    handle.block.end()


def _define() -> None:
    space = flambeau.ops.profiler
    for name, overload, schema, function in (
            ("_record_function_enter", "default", "(str name, str? args=None) -> Tensor", _enter),
            ("_record_function_enter_new", "default",
             f"(str name, str? args=None) -> {_RECORD}", _enter_new),
            ("_record_function_exit", "default", "(Tensor handle) -> ()", _exit),
            ("_record_function_exit", "_RecordFunction", f"({_RECORD} record) -> ()", _exit)):
        packet = space.packet(name)
        packet._call = function
        suffix = "" if overload == "default" else f".{overload}"
        packet.declare(overload, f"{name}{suffix}{schema}", function)


_define()
