"""Loading pickles that may come from anybody: data is built, no code of the file's choosing runs.

A pickle is a program for a small stack machine. The unpickler here runs only the instructions
that data needs, looks names up in a list of allowed ones instead of importing them, and calls
only what is on that list.
"""

from __future__ import annotations

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import Any

from flambeau import Tensor
from flambeau._serialization.checkpoint_names import (
    LATE,
    PARAMETER,
    allowed_globals,
    find_global,
    is_parameter_type,
    rebuild_from_type,
    set_state,
)
from flambeau._support.own_methods import shown_as

BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt"})

_user_globals: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow `load(..., weights_only=True)` to use these classes and functions.

    An entry is the object, or a pair of the object and the full name that files give it.
    """
    _user_globals.extend(entry for entry in safe_globals if entry not in _user_globals)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_user_globals)


def clear_safe_globals() -> None:
    """Take back all that `add_safe_globals` has added."""
    _user_globals.clear()


class safe_globals:
    """`add_safe_globals` for the length of a `with` block."""

    @shown_as("_safe_globals.__init__")
    def __init__(self, safe_globals: list[Any]):
        self.entries = safe_globals

    @shown_as("_safe_globals.__enter__")
    def __enter__(self) -> None:
        self.before = get_safe_globals()
        add_safe_globals(self.entries)

    def __exit__(self, *exception: object) -> None:
        _user_globals[:] = self.before


def _user_table() -> dict[str, Any]:
    table = {}
    for entry in _user_globals:
        obj, name = entry if isinstance(entry, tuple) else (entry, None)
        if name is None:
            name = f"{obj.__module__}.{obj.__qualname__}"
            if name.startswith("flambeau."):
                table["torch" + name.removeprefix("flambeau")] = obj
        table[name] = obj
    return table


class Unpickler:
    """Runs a pickle from a binary file; `persistent_load` supplies the storages it refers to."""

    def __init__(self, file: Any, persistent_load: Callable[[Any], Any], *,
                 encoding: str = "utf-8"):
        self.read, self.readline = file.read, file.readline
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.user_globals = _user_table()
        self.globals = {**allowed_globals(), **self.user_globals}
        self.callable_ids = {
            id(value) for name, value in self.globals.items()
            if callable(value) and (name in self.user_globals or not name.endswith("Storage"))}

    def load(self) -> Any:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        instructions, costs, taken = _INSTRUCTIONS, _COSTS, 0
        while True:
            code = self.read(1)
            if not code:
                raise EOFError("the pickle ends early")
            run = instructions.get(code[0])
            if run is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            taken += costs[code[0]]
            if taken > MOST_MEMORY:
                raise UnpicklingError(f"the objects of the pickle, without tensors, take more than "
                                      f"{MOST_MEMORY >> 20} MiB: it may be made to fill the memory")
            if run(self) is _STOP:
                return self.stack.pop()

    def find(self, module: str, attribute: str) -> Any:
        """What the file calls by this name, if it is on the list."""
        if module in IMPORT_MAPPING:     # Python 2's names, which protocols up to 2 use
            module, attribute = NAME_MAPPING.get((module, attribute),
                                                 (IMPORT_MAPPING[module], attribute))
        name = f"{module}.{attribute}"
        if name in self.globals:
            return self.globals[name]
        if name in LATE:
            found = find_global(module, attribute)
            self.callable_ids.add(id(found))
            if name != PARAMETER:           # PyTorch adds these as users add theirs
                self.user_globals[name] = found
            return found
        if module.split(".")[0] in BLOCKED_MODULES:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {name} whose module {module} is blocked.")
        shown = attribute if module == "builtins" else name
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{shown}])` or the "
            f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this "
            "global if you trust this class/function.")

    # What the instructions share

    def pop_mark(self) -> list[Any]:
        """The items pushed since the last mark, removed from the stack."""
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def exactly(self, count: int) -> bytes:
        data = self.read(count) if count >= 0 else b""
        if len(data) != count:
            raise EOFError("the pickle ends early")
        return data

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.exactly(struct.calcsize(form)))[0]

    def text(self, form: str) -> str:
        return str(self.exactly(self.number(form)), "utf-8", "surrogatepass")

    def line(self) -> str:
        line = self.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the pickle ends early")
        return line[:-1].decode("utf-8")

    def call(self, function: Any, args: Any) -> Any:
        self._check_callable(function)
        if not isinstance(args, tuple):
            raise UnpicklingError(f"arguments are a tuple, not {type(args).__name__}")
        if function is rebuild_from_type:      # which calls its first argument
            self._check_callable(args[0])
        return function(*args)

    def _check_callable(self, function: Any) -> None:
        if id(function) not in self.callable_ids:
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function!r}")

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(cls is known for known in (OrderedDict, Counter, set, bytearray, complex)):
            return cls(*args, **kwargs)
        if any(cls is known for known in self.user_globals.values()):
            return cls.__new__(cls, *args, **kwargs)
        raise UnpicklingError(f"Trying to create new object for unrecognized class {cls}")

    def build(self, state: Any) -> None:
        instance = self.stack[-1]
        kind = type(instance)
        if kind is OrderedDict or kind is Counter:
            instance.__dict__.update(state)
        elif kind is Tensor or is_parameter_type(kind):
            set_state(instance, state)
        elif any(kind is value for value in self.user_globals.values()):
            _set_state(instance, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}")


def _set_state(instance: Any, state: Any) -> None:
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        instance.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)


# The instructions ---------------------------------------------------------------------------------

_STOP = object()
MOST_MEMORY = 3 << 28           # bytes that all the objects of a pickle may take
# what an instruction of one byte or two makes, at least: containers, and places in the memo
_COSTS = [16] * 256
for _codes, _cost in ((b"])l", 64), (b"}d", 72), (b"\x8f\x91", 224), (b"(tq\x85\x86\x87\x94r", 64)):
    for _code in _codes:
        _COSTS[_code] = _cost
_INSTRUCTIONS: dict[int, Callable[[Unpickler], Any]] = {}


def _instruction(code: bytes) -> Callable[[Any], Any]:
    def register(run: Callable[[Unpickler], Any]) -> Callable[[Unpickler], Any]:
        _INSTRUCTIONS[code[0]] = run
        return run

    return register


def _pushes(code: bytes, value: Callable[[Unpickler], Any]) -> None:
    """An instruction that pushes what `value` reads."""
    _INSTRUCTIONS[code[0]] = lambda machine: machine.stack.append(value(machine))


def _long(machine: Unpickler, form: str) -> int:
    return int.from_bytes(machine.exactly(machine.number(form)), "little", signed=True)


def _decimal_integer(machine: Unpickler) -> int | bool:
    text = machine.line()
    return {"00": False, "01": True}.get(text) if text in ("00", "01") else int(text)


def _old_string(machine: Unpickler, form: str) -> Any:
    data = machine.exactly(machine.number(form))
    return data if machine.encoding == "bytes" else str(data, machine.encoding)


_pushes(b"N", lambda machine: None)
_pushes(b"\x88", lambda machine: True)
_pushes(b"\x89", lambda machine: False)
_pushes(b"I", _decimal_integer)
_pushes(b"J", lambda machine: machine.number("<i"))
_pushes(b"K", lambda machine: machine.number("<B"))
_pushes(b"M", lambda machine: machine.number("<H"))
_pushes(b"L", lambda machine: int(machine.line().rstrip("L")))
_pushes(b"\x8a", lambda machine: _long(machine, "<B"))
_pushes(b"\x8b", lambda machine: _long(machine, "<i"))
_pushes(b"F", lambda machine: float(machine.line()))
_pushes(b"G", lambda machine: machine.number(">d"))
_pushes(b"V", lambda machine: str(machine.line().encode("latin1"), "raw-unicode-escape"))
_pushes(b"X", lambda machine: machine.text("<I"))
_pushes(b"\x8c", lambda machine: machine.text("<B"))
_pushes(b"\x8d", lambda machine: machine.text("<Q"))
_pushes(b"T", lambda machine: _old_string(machine, "<i"))
_pushes(b"U", lambda machine: _old_string(machine, "<B"))
_pushes(b"B", lambda machine: machine.exactly(machine.number("<I")))
_pushes(b"C", lambda machine: machine.exactly(machine.number("<B")))
_pushes(b"\x8e", lambda machine: machine.exactly(machine.number("<Q")))
_pushes(b"\x96", lambda machine: bytearray(machine.exactly(machine.number("<Q"))))
_pushes(b"]", lambda machine: [])
_pushes(b"}", lambda machine: {})
_pushes(b")", lambda machine: ())
_pushes(b"\x8f", lambda machine: set())
_pushes(b"l", lambda machine: machine.pop_mark())
_pushes(b"t", lambda machine: tuple(machine.pop_mark()))
_pushes(b"d", lambda machine: _pairs(machine.pop_mark()))
_pushes(b"\x91", lambda machine: frozenset(machine.pop_mark()))
_pushes(b"2", lambda machine: machine.stack[-1])
_pushes(b"h", lambda machine: machine.memo[machine.number("<B")])
_pushes(b"j", lambda machine: machine.memo[machine.number("<I")])
_pushes(b"g", lambda machine: machine.memo[int(machine.line())])
_pushes(b"c", lambda machine: machine.find(machine.line(), machine.line()))
_pushes(b"Q", lambda machine: machine.persistent_load(machine.stack.pop()))


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


@_instruction(b".")
def _stop(machine: Unpickler) -> Any:
    return _STOP


@_instruction(b"\x80")
def _protocol(machine: Unpickler) -> None:
    version = machine.number("<B")
    if version > 5:
        raise UnpicklingError(f"unsupported pickle protocol: {version}")


@_instruction(b"\x95")
def _frame(machine: Unpickler) -> None:
    machine.number("<Q")


@_instruction(b"(")
def _mark(machine: Unpickler) -> None:
    machine.marks.append(len(machine.stack))


@_instruction(b"0")
def _pop(machine: Unpickler) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


@_instruction(b"1")
def _discard_to_mark(machine: Unpickler) -> None:
    machine.pop_mark()


@_instruction(b"q")
def _put_short(machine: Unpickler) -> None:
    machine.memo[machine.number("<B")] = machine.stack[-1]


@_instruction(b"r")
def _put_long(machine: Unpickler) -> None:
    machine.memo[machine.number("<I")] = machine.stack[-1]


@_instruction(b"p")
def _put_text(machine: Unpickler) -> None:
    machine.memo[int(machine.line())] = machine.stack[-1]


@_instruction(b"\x94")
def _memoize(machine: Unpickler) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


@_instruction(b"\x85")
def _tuple1(machine: Unpickler) -> None:
    machine.stack[-1] = (machine.stack[-1],)


@_instruction(b"\x86")
def _tuple2(machine: Unpickler) -> None:
    machine.stack[-2:] = [tuple(machine.stack[-2:])]


@_instruction(b"\x87")
def _tuple3(machine: Unpickler) -> None:
    machine.stack[-3:] = [tuple(machine.stack[-3:])]


@_instruction(b"a")
def _append(machine: Unpickler) -> None:
    item = machine.stack.pop()
    _of(list, machine.stack[-1]).append(item)


@_instruction(b"e")
def _appends(machine: Unpickler) -> None:
    items = machine.pop_mark()
    _of(list, machine.stack[-1]).extend(items)


@_instruction(b"s")
def _set_item(machine: Unpickler) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _of(dict, machine.stack[-1])[key] = value


@_instruction(b"u")
def _set_items(machine: Unpickler) -> None:
    items = machine.pop_mark()
    _of(dict, machine.stack[-1]).update(_pairs(items))


@_instruction(b"\x90")
def _add_items(machine: Unpickler) -> None:
    items: Iterable[Any] = machine.pop_mark()
    _of(set, machine.stack[-1]).update(items)


def _of(kind: type, container: Any) -> Any:
    if not isinstance(container, kind):
        raise UnpicklingError(f"Can only add items to a {kind.__name__}, but got {type(container)}")
    return container


@_instruction(b"\x93")
def _stack_global(machine: Unpickler) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(machine.find(module, name))


@_instruction(b"R")
def _reduce(machine: Unpickler) -> None:
    args = machine.stack.pop()
    machine.stack[-1] = machine.call(machine.stack[-1], args)


@_instruction(b"\x81")
def _new_object(machine: Unpickler) -> None:
    args = machine.stack.pop()
    machine.stack[-1] = machine.new(machine.stack[-1], args, {})


@_instruction(b"\x92")
def _new_object_with_keywords(machine: Unpickler) -> None:
    kwargs, args = machine.stack.pop(), machine.stack.pop()
    machine.stack[-1] = machine.new(machine.stack[-1], args, kwargs)


@_instruction(b"b")
def _build(machine: Unpickler) -> None:
    state = machine.stack.pop()
    machine.build(state)
